// einsum, by views, sums and one matrix product.
//
// With two operands every letter that is left is one of:
//   batch   in both and in the result     left   in the first and in the result
//   inner   in both, summed               right  in the second and in the result
// so that the product is [batch, left, inner] x [batch, inner, right] -> [batch, left, right].
#include <algorithm>
#include <string>

#include "tidemark/calls/ops.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace {

using detail::type_of;

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A tensor and a letter for each of its axes.
struct LabelledTensor {
  Tensor tensor;
  std::string letters;

  Dim size(char letter) const { return tensor.shape()[static_cast<int64_t>(letters.find(letter))]; }
};

struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
};

std::string quoted(std::string_view text) { return cat('"', text, '"'); }

// The letters that occur once, in alphabetical order.
std::string implied_result(const std::vector<std::string>& operands) {
  std::string all;
  for (const std::string& letters : operands) all += letters;
  std::string once;
  for (const char letter : all) {
    if (std::count(all.begin(), all.end(), letter) == 1) once += letter;
  }
  std::sort(once.begin(), once.end());
  return once;
}

void check_result(const Subscripts& subscripts, std::string_view text, Source at) {
  for (const char letter : subscripts.result) {
    const bool known = std::any_of(subscripts.operands.begin(), subscripts.operands.end(),
                                   [&](const std::string& list) { return has(list, letter); });
    if (!known)
      throw UserError(
          cat("einsum: ", quoted(text), ": ", letter, " of the result is in no operand"), at,
          "name an axis of an operand; td::expand_dims adds one of size 1");
    if (std::count(subscripts.result.begin(), subscripts.result.end(), letter) > 1)
      throw UserError(cat("einsum: ", quoted(text), ": ", letter, " occurs twice in the result"),
                      at, "give each axis of the result its own letter");
  }
}

Subscripts parsed(std::string_view text, size_t count, Source at) {
  Subscripts subscripts{.operands = {""}, .result = {}};
  bool in_result = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == ',' && !in_result) {
      subscripts.operands.emplace_back();
    } else if (text.substr(i, 2) == "->" && !in_result) {
      in_result = true;
      ++i;
    } else if (is_letter(c)) {
      (in_result ? subscripts.result : subscripts.operands.back()) += c;
    } else {
      throw UserError(cat("einsum: ", quoted(text), ": cannot read \"", text.substr(i), "\""), at,
                      "write letters, a comma between operands, and \"->\" before the result");
    }
  }
  if (subscripts.operands.size() != count) {
    throw UserError(cat("einsum: ", quoted(text), " is of ", subscripts.operands.size(),
                        " operands, ", count, count == 1 ? " was given" : " were given"),
                    at, "separate the letters of operands by commas");
  }
  if (!in_result) subscripts.result = implied_result(subscripts.operands);
  check_result(subscripts, text, at);
  return subscripts;
}

Tensor in_order(const Tensor& x, const AxisList& order, Source at) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return detail::bind_op(def_of(&ops::transpose), {&x, 1}, Attrs().add(order), at);
}

// The axes in the order of these letters, all of which it has.
Tensor in_order(const LabelledTensor& x, std::string_view letters, Source at) {
  AxisList order;
  for (const char letter : letters) order.push_back(static_cast<int64_t>(x.letters.find(letter)));
  return in_order(x.tensor, order, at);
}

// Two axes with the same letter become one, their diagonal: both are moved last and merged, and
// every (n + 1)-th element is taken.
LabelledTensor with_diagonal(const LabelledTensor& x, size_t first, size_t second, Source at) {
  AxisList order;
  LabelledTensor result;
  for (size_t i = 0; i < x.letters.size(); ++i) {
    if (i == first || i == second) continue;
    order.push_back(static_cast<int64_t>(i));
    result.letters += x.letters[i];
  }
  result.letters += x.letters[first];
  order.push_back(static_cast<int64_t>(first));
  order.push_back(static_cast<int64_t>(second));
  const Tensor last = in_order(x.tensor, order, at);
  const int64_t size = last.shape()[-1];
  Shape flat;
  for (int64_t i = 0; i < last.rank() - 2; ++i) flat.push_back(last.shape()[i]);
  flat.push_back(size * size);
  result.tensor = reshape(last, flat, at)[{ellipsis, Slice{.step = size + 1}}];
  return result;
}

LabelledTensor lettered(const Operand& operand, const std::string& letters, std::string_view text,
                        Source at) {
  LabelledTensor x{detail::tensor_of(operand, at), letters};
  const TensorType type = type_of(x.tensor, at);
  if (static_cast<int64_t>(letters.size()) != type.shape.rank()) {
    throw UserError(cat("einsum: ", quoted(text), ": ", quoted(letters), " has ", letters.size(),
                        " letters, ", type, " has ", type.shape.rank(), " axes"),
                    at, "give one letter for each axis");
  }
  for (size_t second = 1; second < x.letters.size(); ++second) {
    const size_t first = x.letters.find(x.letters[second]);
    if (first == second) continue;
    const Dim a = x.tensor.shape()[static_cast<int64_t>(first)];
    const Dim b = x.tensor.shape()[static_cast<int64_t>(second)];
    if (a != b) {
      throw UserError(cat("einsum: ", quoted(text), ": ", x.letters[second], " is ", a, " and ", b,
                          " in ", type),
                      at, "a letter stands for one size");
    }
    x = with_diagonal(x, first, second, at);
    second = 0;
  }
  return x;
}

// Sums over the letters that are used nowhere else, in the tensor's dtype.
LabelledTensor summed(LabelledTensor x, std::string_view wanted, Source at) {
  std::vector<int64_t> axes;
  std::string kept;
  for (size_t i = 0; i < x.letters.size(); ++i) {
    if (has(wanted, x.letters[i]))
      kept += x.letters[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  return {cast(sum(x.tensor, Axes(axes), Keep::no, at), x.tensor.dtype(), at), kept};
}

void check_sizes(const LabelledTensor& a, const LabelledTensor& b, std::string_view text,
                 Source at) {
  for (const char letter : a.letters) {
    if (!has(b.letters, letter) || a.size(letter) == b.size(letter)) continue;
    throw UserError(
        cat("einsum: ", quoted(text), ": ", letter, " is ", a.size(letter), " in ",
            type_of(a.tensor, at), " and ", b.size(letter), " in ", type_of(b.tensor, at)),
        at, "a letter stands for one size");
  }
}

Dim product_of(const LabelledTensor& x, std::string_view letters) {
  Dim product = 1;
  for (const char letter : letters) product = product * x.size(letter);
  return product;
}

// The tensor with its letters in this order and each group merged into one axis; a leading empty
// group is left out.
Tensor grouped(const LabelledTensor& x, const std::string (&groups)[3], Source at) {
  Shape shape;
  if (!groups[0].empty()) shape.push_back(product_of(x, groups[0]));
  shape.push_back(product_of(x, groups[1]));
  shape.push_back(product_of(x, groups[2]));
  return reshape(in_order(x, groups[0] + groups[1] + groups[2], at), shape, at);
}

// The operand with all axes of the result; the ones it lacks have size 1.
Tensor over(const LabelledTensor& x, std::string_view result, Source at) {
  std::string mine;
  Shape shape;
  for (const char letter : result) {
    if (has(x.letters, letter)) mine += letter;
    shape.push_back(has(x.letters, letter) ? x.size(letter) : Dim(1));
  }
  return reshape(in_order(x, mine, at), shape, at);
}

Tensor product(const LabelledTensor& a, const LabelledTensor& b, const std::string& result,
               Source at) {
  std::string batch, left, inner, right;
  for (const char letter : a.letters) {
    const bool shared = has(b.letters, letter);
    (!has(result, letter) ? inner : shared ? batch : left) += letter;
  }
  for (const char letter : b.letters) {
    if (!has(a.letters, letter)) right += letter;
  }
  // Without a sum it is a plain product.
  if (inner.empty()) return multiply(over(a, result, at), over(b, result, at), at);
  const Tensor c =
      matmul(grouped(a, {batch, left, inner}, at), grouped(b, {batch, inner, right}, at), {}, at);
  Shape shape;
  for (const char letter : batch + left) shape.push_back(a.size(letter));
  for (const char letter : right) shape.push_back(b.size(letter));
  return in_order(LabelledTensor{reshape(c, shape, at), batch + left + right}, result, at);
}

}  // namespace

Tensor einsum(std::string_view subscripts, const Operand& x, Source at) {
  const SourceScope scope(at);
  const Subscripts read = parsed(subscripts, 1, at);
  return in_order(summed(lettered(x, read.operands[0], subscripts, at), read.result, at),
                  read.result, at);
}

Tensor einsum(std::string_view subscripts, const Operand& a, const Operand& b, Source at) {
  const SourceScope scope(at);
  const Subscripts read = parsed(subscripts, 2, at);
  const LabelledTensor x = lettered(a, read.operands[0], subscripts, at);
  const LabelledTensor y = lettered(b, read.operands[1], subscripts, at);
  check_sizes(x, y, subscripts, at);
  return product(summed(x, read.result + y.letters, at), summed(y, read.result + x.letters, at),
                 read.result, at);
}

}  // namespace tidemark
