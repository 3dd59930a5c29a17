// einsum, by views, sums and matrix products.
//
// Several operands are multiplied two at a time. Of two operands, every letter that is left is one
// of:
//   batch   in both and in the result     left   in the first and in the result
//   inner   in both, summed               right  in the second and in the result
// so that the product is [batch, left, inner] x [batch, inner, right] -> [batch, left, right].
#include <algorithm>
#include <array>
#include <limits>
#include <map>
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

// The axes of "..." have letters too, by their place before its end: '\1' is the last. In a text
// that has been read, '.' stands for all of them.
constexpr char kEllipsis = '.';
bool is_unnamed(char letter) { return letter < ' '; }

std::string unnamed(int64_t count) {
  std::string letters;
  for (int64_t i = count; i > 0; --i) letters += static_cast<char>(i);
  return letters;
}

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

// The axes of "...", then the letters that occur once, in alphabetical order.
std::string implied_result(const std::vector<std::string>& operands) {
  std::string all;
  for (const std::string& letters : operands) all += letters;
  std::string once;
  for (const char letter : all) {
    if (is_letter(letter) && std::count(all.begin(), all.end(), letter) == 1) once += letter;
  }
  std::sort(once.begin(), once.end());
  return has(all, kEllipsis) ? kEllipsis + once : once;
}

void check_result(const Subscripts& subscripts, std::string_view text, Source at) {
  for (const char letter : subscripts.result) {
    const bool known = std::any_of(subscripts.operands.begin(), subscripts.operands.end(),
                                   [&](const std::string& list) { return has(list, letter); });
    if (!known)
      throw UserError(cat("einsum: ", quoted(text), ": ",
                          letter == kEllipsis ? std::string("...") : std::string(1, letter),
                          " of the result is in no operand"),
                      at, "name an axis of an operand; td::expand_dims adds one of size 1");
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
    } else if (text.substr(i, 3) == "..." &&
               !has(in_result ? subscripts.result : subscripts.operands.back(), kEllipsis)) {
      (in_result ? subscripts.result : subscripts.operands.back()) += kEllipsis;
      i += 2;
    } else {
      throw UserError(cat("einsum: ", quoted(text), ": cannot read \"", text.substr(i), "\""), at,
                      "write letters, a comma between operands, \"->\" before the result, and "
                      "\"...\" at most once in each");
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

LabelledTensor lettered(const Tensor& tensor, std::string letters, std::string_view text,
                        Source at) {
  const TensorType type = type_of(tensor, at);
  const int64_t axes_left = type.shape.rank() - static_cast<int64_t>(letters.size()) + 1;
  if (has(letters, kEllipsis) && axes_left >= 0)
    letters.replace(letters.find(kEllipsis), 1, unnamed(axes_left));
  LabelledTensor x{tensor, letters};
  if (static_cast<int64_t>(letters.size()) != type.shape.rank()) {
    const size_t named = letters.size() - (has(letters, kEllipsis) ? 1 : 0);
    if (has(letters, kEllipsis)) letters.replace(letters.find(kEllipsis), 1, "...");
    throw UserError(cat("einsum: ", quoted(text), ": ", quoted(letters), " has ", named,
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
    throw UserError(cat("einsum: ", quoted(text), ": ",
                        is_unnamed(letter) ? std::string("an axis of ...") : std::string(1, letter),
                        " is ", a.size(letter), " in ", type_of(a.tensor, at), " and ",
                        b.size(letter), " in ", type_of(b.tensor, at)),
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

// An axis of "..." that has size 1 in one operand and more in another is left out of the first:
// products broadcast over it.
void drop_broadcast_axes(std::vector<LabelledTensor>& list, Source at) {
  for (LabelledTensor& each : list) {
    std::vector<int64_t> dropped;
    std::string kept;
    for (size_t i = 0; i < each.letters.size(); ++i) {
      const char letter = each.letters[i];
      const bool is_wider = is_unnamed(letter) && each.size(letter) == 1 &&
                            std::any_of(list.begin(), list.end(), [&](const LabelledTensor& other) {
                              return has(other.letters, letter) && other.size(letter) != 1;
                            });
      if (is_wider)
        dropped.push_back(static_cast<int64_t>(i));
      else
        kept += letter;
    }
    if (dropped.empty()) continue;
    each = {squeeze(each.tensor, Axes(dropped), at), kept};
  }
}

// ---- the order of products ----------------------------------------------------------------------

// An open size may be anything, and reading it would close it: it counts as a middling one.
double guessed(Dim size) { return size.is_open() ? 64.0 : static_cast<double>(size.number()); }

// The letters of an operand or a product, with the sizes of all of them.
class Costs {
 public:
  Costs(const std::vector<LabelledTensor>& list, std::string result) : result_(std::move(result)) {
    for (const LabelledTensor& each : list) {
      letters_.push_back(each.letters);
      for (const char letter : each.letters)
        sizes_[static_cast<unsigned char>(letter)] = guessed(each.size(letter));
    }
  }

  // The letters that a product of these operands keeps.
  std::string kept(uint32_t set) const {
    std::string inside, outside = result_, letters;
    for (size_t i = 0; i < letters_.size(); ++i)
      ((set >> i & 1) != 0 ? inside : outside) += letters_[i];
    for (const char letter : inside)
      if (has(outside, letter) && !has(letters, letter)) letters += letter;
    return letters;
  }
  // Of the product of two sets: a multiplication for each element of their joint axes, and the
  // bytes of the result, each of which takes the time of some operations.
  double cost(uint32_t a, uint32_t b) const {
    constexpr double operations_per_element = 16;
    std::string joint = kept(a);
    for (const char letter : kept(b))
      if (!has(joint, letter)) joint += letter;
    return size_of(joint) + operations_per_element * size_of(kept(a | b));
  }

 private:
  double size_of(std::string_view letters) const {
    double size = 1;
    for (const char letter : letters) size *= sizes_[static_cast<unsigned char>(letter)];
    return size;
  }

  std::string result_;
  std::vector<std::string> letters_;
  std::array<double, 256> sizes_ = {};
};

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;  // Sets of operands, in order.

// The cheapest order, over all ways to split each set of operands in two.
Pairs best_order(const Costs& costs, size_t count) {
  const uint32_t all = (1U << count) - 1;
  std::vector<double> least(all + 1, 0);
  std::vector<uint32_t> half(all + 1, 0);
  for (uint32_t set = 1; set <= all; ++set) {
    if ((set & (set - 1)) == 0) continue;
    least[set] = std::numeric_limits<double>::infinity();
    for (uint32_t a = (set - 1) & set; a > (set ^ a); a = (a - 1) & set) {
      const double cost = least[a] + least[set ^ a] + costs.cost(a, set ^ a);
      if (cost < least[set] || half[set] == 0) {
        least[set] = cost;
        half[set] = a;
      }
    }
  }
  Pairs pairs;
  const auto add = [&](const auto& self, uint32_t set) -> void {
    if ((set & (set - 1)) == 0) return;
    self(self, set ^ half[set]);
    self(self, half[set]);
    pairs.emplace_back(set ^ half[set], half[set]);
  };
  add(add, all);
  return pairs;
}

// With many operands: always the pair that is the cheapest now.
Pairs greedy_order(const Costs& costs, size_t count) {
  std::vector<uint32_t> sets;
  for (size_t i = 0; i < count; ++i) sets.push_back(1U << i);
  Pairs pairs;
  while (sets.size() > 1) {
    size_t first = 0, second = 1;
    for (size_t j = 1; j < sets.size(); ++j)
      for (size_t i = 0; i < j; ++i)
        if (costs.cost(sets[i], sets[j]) < costs.cost(sets[first], sets[second])) {
          first = i;
          second = j;
        }
    pairs.emplace_back(sets[first], sets[second]);
    sets[first] |= sets[second];
    sets.erase(sets.begin() + static_cast<int64_t>(second));
  }
  return pairs;
}

Tensor product_of_all(std::vector<LabelledTensor> list, const std::string& result, Source at) {
  constexpr size_t most_to_search = 10;
  const Costs costs(list, result);
  const Pairs pairs = list.size() <= most_to_search ? best_order(costs, list.size())
                                                    : greedy_order(costs, list.size());
  std::map<uint32_t, LabelledTensor> made;
  for (size_t i = 0; i < list.size(); ++i) made[1U << i] = std::move(list[i]);
  for (const auto& [a, b] : pairs) {
    const bool is_last = &pairs.back().first == &a;
    const LabelledTensor x = std::move(made[a]), y = std::move(made[b]);
    const std::string letters = is_last ? result : costs.kept(a | b);
    made[a | b] = {product(summed(x, letters + y.letters, at), summed(y, letters + x.letters, at),
                           letters, at),
                   letters};
  }
  return made.rbegin()->second.tensor;
}

Tensor einsum_of(std::string_view text, std::span<const Tensor> operands, Source at) {
  const SourceScope scope(at);
  constexpr size_t most = 31;
  if (operands.empty() || operands.size() > most)
    throw UserError(cat("einsum: takes 1 to ", most, " operands, got ", operands.size()), at,
                    "multiply some of them first");
  Subscripts read = parsed(text, operands.size(), at);
  std::vector<LabelledTensor> list;
  int64_t most_unnamed = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    list.push_back(lettered(operands[i], read.operands[i], text, at));
    for (const char letter : list.back().letters)
      if (is_unnamed(letter)) most_unnamed = std::max<int64_t>(most_unnamed, letter);
  }
  if (has(read.result, kEllipsis))
    read.result.replace(read.result.find(kEllipsis), 1, unnamed(most_unnamed));
  drop_broadcast_axes(list, at);
  for (size_t j = 1; j < list.size(); ++j)
    for (size_t i = 0; i < j; ++i) check_sizes(list[i], list[j], text, at);
  if (list.size() == 1) return in_order(summed(list[0], read.result, at), read.result, at);
  return product_of_all(std::move(list), read.result, at);
}

}  // namespace

Tensor einsum(std::string_view subscripts, const Operand& x, Source at) {
  const Tensor operand = detail::tensor_of(x, at);
  return einsum_of(subscripts, {&operand, 1}, at);
}

Tensor einsum(std::string_view subscripts, const Operand& a, const Operand& b, Source at) {
  const Tensor operands[] = {detail::tensor_of(a, at), detail::tensor_of(b, at)};
  return einsum_of(subscripts, operands, at);
}

Tensor einsum(std::string_view subscripts, const TensorList& list, Source at) {
  return einsum_of(subscripts, list.list(), at);
}

}  // namespace tidemark
