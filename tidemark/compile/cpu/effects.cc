#include "tidemark/compile/cpu/effects.h"

#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "tidemark/base/output.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/ops/effect.h"
#include "tidemark/types/array_text.h"

namespace tidemark::compile {
namespace {

TensorType type_of(const ArrayRef& array) { return {array.dtype, array.shape}; }

std::string text_of(const Attrs& attrs) {
  std::string text;
  for (const int64_t code : attrs.read().integers()) text += static_cast<char>(code);
  return text;
}

void run_print(std::span<const ArrayRef> operands, const Attrs& attrs) {
  std::string line;
  size_t next = 0;
  for (const int64_t code : attrs.read().integers()) {
    if (code == ops::kOperandHere)
      line += array_text(operands[next++]);
    else
      line += static_cast<char>(code);
  }
  detail::write_line(line + '\n');
}

// Calls visit(element) for each element in row-major order.
template <class T, class Visit>
void visit_elements(const ArrayRef& array, const std::byte* data, int64_t axis, Visit& visit) {
  if (axis == array.rank()) {
    T element;
    std::memcpy(&element, data, sizeof(T));
    return visit(element);
  }
  const int64_t step = array.strides[static_cast<size_t>(axis)] * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < array.shape[axis]; ++i)
    visit_elements<T>(array, data + i * step, axis + 1, visit);
}

// The number of bad elements, and the position of the first.
struct BadElements {
  int64_t nans = 0, infinities = 0, falses = 0;
  int64_t first = -1;  // In row-major order.
};

// Infinities and NaNs have all exponent bits set; NaNs also have other bits set.
template <class T, class Bits>
BadElements not_finite(const ArrayRef& array, Bits exponent, Bits magnitude) {
  BadElements found;
  int64_t number = 0;
  auto visit = [&](T element) {
    const auto bits = std::bit_cast<Bits>(element);
    if ((bits & exponent) == exponent) [[unlikely]] {
      ++((bits & magnitude) == exponent ? found.infinities : found.nans);
      if (found.first < 0) found.first = number;
    }
    ++number;
  };
  visit_elements<T>(array, array.data, 0, visit);
  return found;
}

BadElements not_finite(const ArrayRef& array) {
  switch (array.dtype) {
    case DType::f64:
      return not_finite<double, uint64_t>(array, uint64_t{0x7FF} << 52, ~uint64_t{0} >> 1);
    case DType::f32:
      return not_finite<float, uint32_t>(array, 0x7F800000, 0x7FFFFFFF);
    case DType::f16:
      return not_finite<uint16_t, uint16_t>(array, 0x7C00, 0x7FFF);
    case DType::bf16:
      return not_finite<uint16_t, uint16_t>(array, 0x7F80, 0x7FFF);
    default:
      return {};
  }
}

BadElements not_true(const ArrayRef& array) {
  BadElements found;
  int64_t number = 0;
  visit_dtype(array.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto visit = [&](T element) {
      bool is_true = false;
      if constexpr (std::is_arithmetic_v<T>)
        is_true = element != T{};
      else
        is_true = static_cast<float>(element) != 0;
      if (!is_true && found.falses++ == 0) found.first = number;
      ++number;
    };
    visit_elements<T>(array, array.data, 0, visit);
  });
  return found;
}

// "[1, 0]": the index of an element by its number in row-major order.
std::string index_text(int64_t number, const Shape& shape) {
  AxisList index(static_cast<size_t>(shape.rank()));
  for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = number % shape[axis];
    number /= shape[axis];
  }
  std::string text = "[";
  for (const int64_t i : index) text += (text.size() > 1 ? ", " : "") + std::to_string(i);
  return text + "]";
}

void run_check_numerics(const ArrayRef& x, const Attrs& attrs, Source at) {
  const BadElements found = not_finite(x);
  if (found.first < 0) return;
  throw UserError(
      cat("check_numerics: ", text_of(attrs), ": ", type_of(x), " has ", found.nans, " NaN and ",
          found.infinities, " Inf, the first at ", index_text(found.first, x.shape)),
      at, "check what it was computed from in the same way, back to the first that fails");
}

// Throws the message of the op that will use the index.
void run_check_index(const ArrayRef& index, const Attrs& attrs, Source at) {
  Attrs::Reader read = attrs.read();
  const std::span<const int64_t> text = read.integers();
  const int64_t size = read.size();
  const auto refuse = [&](auto bad) {
    std::string problem;
    for (const int64_t code : text)
      problem +=
          code == ops::kOperandHere ? std::to_string(bad) : std::string(1, static_cast<char>(code));
    throw UserError(problem, at, cat("indices go from ", -size, " to ", size - 1));
  };
  visit_dtype(index.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      auto visit = [&](T element) {
        if (std::cmp_less(+element, -size) || std::cmp_greater_equal(+element, size)) [[unlikely]]
          refuse(+element);
      };
      visit_elements<T>(index, index.data, 0, visit);
    }
  });
}

void run_assert_that(std::span<const ArrayRef> operands, const Attrs& attrs, Source at) {
  const ArrayRef& condition = operands[0];
  const BadElements found = not_true(condition);
  if (found.falses == 0) return;
  std::string problem = cat("assert_that: ", text_of(attrs));
  if (condition.rank() > 0) {
    problem += cat(": ", found.falses, " of ", condition.size(), " are false, the first at ",
                   index_text(found.first, condition.shape));
  }
  std::string values;
  for (const ArrayRef& value : operands.subspan(1))
    values += cat(values.empty() ? "" : "\n  ", type_of(value), " ", array_text(value));
  throw UserError(problem, at, values);
}

}  // namespace

void run_effect(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                Source at) {
  switch (op.effect) {
    case Effect::assert_that:
      return run_assert_that(operands, attrs, at);
    case Effect::check_index:
      return run_check_index(operands[0], attrs, at);
    case Effect::check_numerics:
      return run_check_numerics(operands[0], attrs, at);
    case Effect::print:
      return run_print(operands, attrs);
    case Effect::none:
      break;
  }
  TIDEMARK_CHECK(false, op.name, " is no effect");
}

}  // namespace tidemark::compile
