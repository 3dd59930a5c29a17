#include "tidemark/calls/create.h"

#include <cmath>
#include <cstring>

#include "tidemark/compile/cpu/eager.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/complex_parts.h"
#include "tidemark/tensor/direct.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

using detail::TensorState;

constexpr std::string_view kMixed = "put every number inside equally many braces";

// Checks that nested braces are rectangular, with the shape of their first elements.
void check_shape(const NestedList& values, size_t depth, const AxisList& sizes, Source at) {
  if (!values.is_list()) {
    if (depth != sizes.size())
      throw UserError("constant: numbers and lists are mixed at the same depth", at, kMixed);
    return;
  }
  const auto length = static_cast<int64_t>(values.list().size());
  if (depth >= sizes.size())
    throw UserError("constant: numbers and lists are mixed at the same depth", at, kMixed);
  if (sizes[depth] != length) {
    throw UserError(cat("constant: lists of different lengths at depth ", depth, " (", sizes[depth],
                        " and ", length, ")"),
                    at, "all lists of one depth must be equally long");
  }
  for (const NestedList& value : values.list()) check_shape(value, depth + 1, sizes, at);
}

int find_kind(const NestedList& values) {
  if (!values.is_list()) return values.kind();
  int kind = -1;
  for (const NestedList& value : values.list()) kind = std::max(kind, find_kind(value));
  return kind;
}

// The numbers in order, converted through the widest dtype of their kind.
void flatten(const NestedList& values, std::vector<double>& reals, std::vector<int64_t>& wholes) {
  if (values.is_list()) {
    for (const NestedList& value : values.list()) flatten(value, reals, wholes);
    return;
  }
  reals.push_back(values.real());
  wholes.push_back(values.kind() == 2 ? 0 : values.whole());
}

void flatten(const NestedList& values, std::vector<std::complex<double>>& numbers) {
  for (const NestedList& value : values.list()) flatten(value, numbers);
  if (!values.is_list()) numbers.emplace_back(values.real(), values.imag());
}

void check_whole(const std::vector<int64_t>& wholes, DType dtype, Source at) {
  for (const int64_t value : wholes) {
    if (!fits(value, dtype))
      throw UserError(cat("constant: ", value, " does not fit ", dtype), at,
                      "name a wider dtype: td::constant(values, td::i64)");
  }
}

void check_elements(int64_t count, const Shape& shape, const char* what, Source at) {
  if (shape.size() == count) return;
  throw UserError(cat(what, ": ", count, " elements do not fill the shape ", shape, ", which has ",
                      shape.size()),
                  at, "give a shape whose sizes multiply to the number of elements");
}

// One number at every element. As in eager code these are separate elements, not a broadcast one: a
// sum over them adds (and does not multiply). The identity that makes it so is free inside a
// kernel.
Tensor spread(const Tensor& number, const Shape& shape, Source at) {
  check_is_given(shape);
  const Tensor repeated =
      detail::bind_op(def_of(&ops::broadcast_to), {&number, 1}, Attrs().add(shape), at);
  return shape.rank() == 0 ? repeated : identity(repeated, at);
}

Tensor filled(const Shape& shape, double value, DType dtype, Source at) {
  const device::FloatEnvironment ieee;
  if (detail::is_observed({}))
    return spread(detail::literal(dtype, value, static_cast<int64_t>(value), at), shape, at);
  Tensor result = detail::make_tensor(dtype, shape, at);
  const ArrayRef& array = TensorState::of(result)->array;
  const auto fill = [value](double part, const ArrayRef& to) {
    const bool is_real = is_float(to.dtype);
    compile::run_fill(number_bits(part, static_cast<int64_t>(value), is_real, to.dtype), to);
  };
  if (is_complex(dtype)) {
    fill(value, parts_of(array, 0));
    fill(0, parts_of(array, 1));
  } else {
    fill(value, array);
  }
  return result;
}

}  // namespace

Tensor constant(const NestedList& values, std::optional<DType> dtype, Source at) {
  AxisList sizes;
  for (const NestedList* level = &values; level->is_list(); level = &level->list().front()) {
    sizes.push_back(static_cast<int64_t>(level->list().size()));
    if (level->list().empty()) break;
  }
  const detail::NoTrace eager;
  check_shape(values, 0, sizes, at);
  const int kind = find_kind(values);
  constexpr DType defaults[] = {DType::boolean, DType::i32, DType::f32, DType::c64};
  const DType wanted = dtype.value_or(kind < 0 ? DType::f32 : defaults[kind]);
  const Shape shape(std::vector<Dim>(sizes.begin(), sizes.end()));
  if (kind == 3) {
    std::vector<std::complex<double>> numbers;
    flatten(values, numbers);
    return detail::cast_to(constant(numbers, shape, at), wanted, at);
  }
  std::vector<double> reals;
  std::vector<int64_t> wholes;
  flatten(values, reals, wholes);
  const Tensor wide = kind == 2 ? constant(reals, shape, at) : constant(wholes, shape, at);
  if (kind != 2) check_whole(wholes, wanted, at);
  return detail::cast_to(wide, wanted, at);
}

namespace detail {

Tensor copied(const void* data, int64_t count, DType dtype, const Shape* shape, Source at) {
  const Shape wanted = shape != nullptr ? *shape : Shape{count};
  check_elements(count, wanted, "constant", at);
  Tensor result = make_tensor(dtype, wanted, at);
  if (count > 0)
    std::memcpy(TensorState::of(result)->array.data, data,
                static_cast<size_t>(count * size_of(dtype)));
  return result;
}

Tensor copied(const std::vector<bool>& list, const Shape* shape, Source at) {
  const std::vector<uint8_t> bytes(list.begin(), list.end());
  return copied(bytes.data(), static_cast<int64_t>(bytes.size()), DType::boolean, shape, at);
}

Tensor borrowed(const void* data, int64_t count, DType dtype, const Shape& shape,
                std::function<void()> release, Source at) {
  check_elements(count, shape, "borrow", at);
  const int64_t alignment = size_of(part_dtype(dtype));
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) != 0) {
    throw UserError(cat("borrow: memory is not aligned to ", alignment, " bytes, the size of ",
                        part_dtype(dtype)),
                    at, "copy it: td::constant(memory)");
  }
  // The cast is safe: a borrowed storage is marked read-only.
  return make_borrowed(static_cast<std::byte*>(const_cast<void*>(data)), dtype, shape,
                       std::move(release), at);
}

}  // namespace detail

Tensor from_callback(const Shape& shape, DType dtype,
                     const std::function<void(std::span<std::byte>)>& write, Source at) {
  Tensor result = detail::make_tensor(dtype, closed(shape), at);
  const ArrayRef& array = TensorState::of(result)->array;
  const UserCode user;
  write({array.data, static_cast<size_t>(array.size() * size_of(dtype))});
  return result;
}

Tensor zeros(const Shape& shape, DType dtype, Source at) { return filled(shape, 0, dtype, at); }
Tensor ones(const Shape& shape, DType dtype, Source at) { return filled(shape, 1, dtype, at); }

Tensor full(const Shape& shape, const Operand& value, std::optional<DType> dtype, Source at) {
  const Tensor number = detail::tensor_of(value, at, dtype);
  if (number.size() != 1)
    throw UserError(
        cat("full: the value must be one number, got ", TensorType{number.dtype(), number.shape()}),
        at, "to repeat a tensor use td::broadcast_to or td::tile");
  if (detail::is_observed({&number})) {
    const Attrs scalar = Attrs().add(Shape{});
    return spread(detail::bind_op(def_of(&ops::reshape), {&number, 1}, scalar, at), shape, at);
  }
  Tensor result = detail::make_tensor(number.dtype(), shape, at);
  ArrayRef repeated = detail::array_of(number, at);
  repeated.shape = shape;
  repeated.strides = Strides(static_cast<size_t>(shape.rank()), 0);
  compile::run_copy(repeated, TensorState::of(result)->array);
  return result;
}

namespace {
TensorType operand_type(const Operand& x, Source at) {
  return detail::type_of(detail::tensor_of(x, at), at);
}
}  // namespace

Tensor zeros_like(const Operand& x, Source at) {
  const TensorType type = operand_type(x, at);
  return filled(type.shape, 0, type.dtype, at);
}
Tensor ones_like(const Operand& x, Source at) {
  const TensorType type = operand_type(x, at);
  return filled(type.shape, 1, type.dtype, at);
}
Tensor full_like(const Operand& x, const Operand& value, Source at) {
  const TensorType type = operand_type(x, at);
  return full(type.shape, value, type.dtype, at);
}

namespace {

constexpr double kMostNumbers = 0x1p53;  // Beyond it positions are not exact.

template <class Number>
[[noreturn]] void leaves_range(Number value, DType dtype, Source at) {
  throw UserError(cat("arange: ", value, " does not fit ", dtype), at,
                  dtype == DType::i64
                      ? "name a float dtype: td::arange(start, stop, step, td::f64)"
                      : "name a wider dtype: td::arange(start, stop, step, td::i64)");
}

double real_number(const Operand& x, Source at) {
  if (const auto size = detail::open_size_of(x)) return static_cast<double>(int64_t{*size});
  if (x.tensor() == nullptr) return x.real();
  return x.tensor()->item<double>(at);
}

bool is_whole(const Operand& x, Source at) {
  if (detail::is_complex(x)) refuse_complex(OnComplex::needs_order, "arange", at);
  if (x.tensor() == nullptr) return x.kind() != 2;
  return !is_float(detail::type_of(*x.tensor(), at).dtype);
}

Attrs range_attrs(double start, double step, Dim count, DType dtype) {
  return Attrs().add(DimList{count}).add(dtype).add(start).add(step);
}

Tensor range(double start, double step, int64_t count, DType dtype, Source at) {
  const Attrs attrs =
      range_attrs(start, step, count, dtype).add(false).add(int64_t{0}).add(int64_t{0});
  return detail::bind_op(def_of(&ops::arange), {}, attrs, at);
}

int64_t whole_number(const Operand& x, Source at) {
  if (const auto size = detail::open_size_of(x)) return *size;
  return x.tensor() == nullptr ? x.whole() : x.tensor()->item<int64_t>(at);
}

// Integers of an integer dtype: exact up to the ends of i64.
Tensor whole_range(int64_t from, int64_t to, int64_t by, DType dtype, Source at) {
  if (by == 0) {
    throw UserError(cat("arange: cannot go from ", from, " to ", to, " in steps of ", by), at,
                    "the step must not be 0, and all must be finite");
  }
  // Unsigned, so that every difference of two i64 fits.
  const bool up = by > 0;
  const auto a = static_cast<uint64_t>(from), b = static_cast<uint64_t>(to);
  const uint64_t reach = up == (from < to) && from != to ? (up ? b - a : a - b) : 0;
  const uint64_t step = up ? static_cast<uint64_t>(by) : 0 - static_cast<uint64_t>(by);
  const uint64_t count = reach == 0 ? 0 : (reach - 1) / step + 1;
  if (count > static_cast<uint64_t>(kMostNumbers)) {
    throw UserError(cat("arange: from ", from, " to ", to, " in steps of ", by, " it has ", count,
                        " elements, too many to count"),
                    at, "take larger steps");
  }
  if (count > 0) {
    const auto last = static_cast<int64_t>(a + (count - 1) * static_cast<uint64_t>(by));
    if (!fits(from, dtype)) leaves_range(from, dtype, at);
    if (!fits(last, dtype)) leaves_range(last, dtype, at);
  }
  const Attrs attrs = range_attrs(static_cast<double>(from), static_cast<double>(by),
                                  static_cast<int64_t>(count), dtype)
                          .add(true)
                          .add(from)
                          .add(by);
  return detail::bind_op(def_of(&ops::arange), {}, attrs, at);
}

// From a known start up to an open size, in steps of 1.
Tensor open_range(int64_t from, Dim to, int64_t by, DType dtype, Source at) {
  if (is_integer(dtype)) {
    if (!fits(from, dtype)) leaves_range(from, dtype, at);
    if (size_of(dtype) < 8 && is_less(most_of(dtype), to - 1))
      leaves_range(int64_t{to - 1}, dtype, at);
  }
  // From 0, the count is the size itself, without a guard for empty ranges.
  const bool some = from == 0 && by == 1 ? !is_less(to, 0) : is_less(from, to);
  const Dim count = !some ? Dim(0) : by == 1 ? to - from : (to - from - 1) / by + 1;
  const Attrs attrs = range_attrs(static_cast<double>(from), static_cast<double>(by), count, dtype)
                          .add(is_integer(dtype))
                          .add(is_integer(dtype) ? from : 0)
                          .add(is_integer(dtype) ? by : 0);
  return detail::bind_op(def_of(&ops::arange), {}, attrs, at);
}

}  // namespace

namespace {

// arange takes plain numbers, which are not differentiable.
void refuse_watched(const Operand& x, Source at) {
  if (x.tensor() == nullptr || !detail::is_watched({x.tensor()})) return;
  throw UserError(
      "arange: a tape watches its start or step, and arange is not differentiable", at,
      "write start + step * td::arange(count), which has a gradient, or td::stop_gradient(x)");
}

}  // namespace

Tensor arange(const Operand& stop, Source at) { return arange(0, stop, 1, {}, at); }

Tensor arange(const Operand& start, const Operand& stop, const Operand& step,
              std::optional<DType> dtype, Source at) {
  const device::FloatEnvironment ieee;
  const bool whole = is_whole(start, at) && is_whole(stop, at) && is_whole(step, at);
  const DType wanted = dtype.value_or(whole ? DType::i32 : DType::f32);
  const std::optional<Dim> end = detail::open_size_of(stop);
  if (end && whole && start.tensor() == nullptr && step.tensor() == nullptr && step.whole() > 0)
    return open_range(start.whole(), *end, step.whole(), wanted, at);
  if (whole && is_integer(wanted)) {
    return whole_range(whole_number(start, at), whole_number(stop, at), whole_number(step, at),
                       wanted, at);
  }
  refuse_watched(start, at);
  refuse_watched(step, at);
  const double from = real_number(start, at);
  const double to = real_number(stop, at);
  const double by = real_number(step, at);
  if (by == 0 || !std::isfinite(from) || !std::isfinite(to) || !std::isfinite(by)) {
    throw UserError(cat("arange: cannot go from ", from, " to ", to, " in steps of ", by), at,
                    "the step must not be 0, and all must be finite");
  }
  const double count = std::max(0.0, std::ceil((to - from) / by));
  if (count > kMostNumbers) {
    throw UserError(cat("arange: from ", from, " to ", to, " in steps of ", by, " it has ", count,
                        " elements, too many to count"),
                    at, "take larger steps");
  }
  const double last = from + std::max(0.0, count - 1) * by;
  if (count > 0 && is_integer(wanted)) {
    // Elements are truncated. The number after the largest is a power of two, and so exact.
    const double past =
        std::ldexp(1, static_cast<int>(8 * size_of(wanted)) - (is_signed_integer(wanted) ? 1 : 0));
    for (const double end : {std::trunc(from), std::trunc(last)}) {
      if (end < static_cast<double>(least_of(wanted)) || end >= past) leaves_range(end, wanted, at);
    }
  }
  return range(from, by, static_cast<int64_t>(count), wanted, at);
}

Tensor linspace(double start, double stop, int64_t count, DType dtype, Source at) {
  const device::FloatEnvironment ieee;
  if (count < 0)
    throw UserError(cat("linspace: cannot make ", count, " numbers"), at,
                    "the count must not be negative");
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  Tensor result = range(start, step, count, dtype, at);
  // The last one is `stop` exactly, regardless of rounding.
  if (count > 1) result = update(std::move(result), Slices(-1, at), Operand(stop, at));
  return result;
}

Tensor eye(int64_t rows, DType dtype, Source at) { return eye(rows, rows, dtype, at); }

Tensor eye(int64_t rows, int64_t columns, DType dtype, Source at) {
  const SourceScope scope(at);
  if (rows < 0 || columns < 0)
    throw UserError(cat("eye: cannot make ", rows, " rows of ", columns, " columns"), at,
                    "sizes must not be negative");
  if (auto made = detail::on_diagonal(nullptr, dtype, {rows, columns}, 0, at))
    return *std::move(made);
  const Tensor numbers = arange(rows);
  const Attrs column = Attrs().add(Shape{rows, 1});
  const Tensor down = detail::bind_op(def_of(&ops::reshape), {&numbers, 1}, column, at);
  return detail::cast_to(down == arange(columns), dtype, at);
}

}  // namespace tidemark
