#include "tidemark/ops/reference.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tidemark/loops/expr.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/typing.h"

namespace tidemark::reference {

long double read_float(const ArrayRef& array, int64_t i) {
  return visit_dtype(array.dtype, [&](auto element) -> long double {
    using T = decltype(element);
    std::memcpy(&element, array.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<long double>(element);
    else
      return static_cast<float>(element);
  });
}

int64_t read_integer(const ArrayRef& array, int64_t i) {
  return visit_dtype(array.dtype, [&](auto element) -> int64_t {
    using T = decltype(element);
    std::memcpy(&element, array.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(element);
    else
      return 0;
  });
}

int64_t ordered(int64_t number, DType dtype) {
  return dtype == DType::u64 ? number ^ std::numeric_limits<int64_t>::min() : number;
}

int64_t read_ordered(const ArrayRef& array, int64_t i) {
  return ordered(read_integer(array, i), array.dtype);
}

namespace {

template <class T>
void put(const ArrayRef& array, int64_t i, T value) {
  std::memcpy(array.data + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <class T>
T saturated(long double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<long double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<long double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

}  // namespace

void write(const ArrayRef& array, int64_t i, long double value) {
  switch (array.dtype) {
    case DType::f16:
      return put(array, i, float16(static_cast<float>(value)));
    case DType::bf16:
      return put(array, i, bfloat16(static_cast<float>(value)));
    case DType::f32:
      return put(array, i, static_cast<float>(value));
    case DType::f64:
      return put(array, i, static_cast<double>(value));
    case DType::boolean:
      return put(array, i, value != 0);
    default:
      return visit_dtype(array.dtype, [&]<class T>(T) {
        if constexpr (std::is_integral_v<T>) put(array, i, saturated<T>(value));
      });
  }
}

void write(const ArrayRef& array, int64_t i, int64_t value) {
  if (array.dtype == DType::boolean) return put(array, i, value != 0);
  if (is_float(array.dtype)) return write(array, i, static_cast<long double>(value));
  visit_dtype(array.dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) put(array, i, static_cast<T>(value));
  });
}

namespace {

// A value during the evaluation of a recipe. Floats are wide; integers wrap at their dtype's width,
// and those of u64 beyond i64 have its bits.
struct Element {
  long double real = 0;
  int64_t whole = 0;
};

int64_t wrapped(uint64_t value, DType dtype) {
  if (dtype == DType::boolean) return static_cast<int64_t>(value & 1);
  return visit_dtype(dtype, [&]<class T>(T) -> int64_t {
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(static_cast<T>(value));
    else
      return static_cast<int64_t>(value);
  });
}

// f64 basic arithmetic is done in double, since rounding an 80-bit result again could differ.
long double rounded(long double wide, double narrow, DType dtype) {
  return dtype == DType::f64 ? static_cast<long double>(narrow) : wide;
}

long double float_remainder(long double a, long double b) {
  if (b == 0) return NAN;
  long double left = std::fmod(a, b);
  if (left != 0 && (left < 0) != (b < 0)) left += b;
  return left == 0 ? std::copysign(0.0L, b) : left;
}

// Python's rule, in the dtype's own precision: each step rounds there.
template <class T>
T float_floor_divide(T a, T b) {
  if (b == 0) return a / b;
  const T left = std::fmod(a, b);
  T quotient = (a - left) / b;
  if (left != 0 && (left < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  const T down = std::floor(quotient);
  return quotient - down > T(0.5) ? down + 1 : down;
}

long double real_binary(ExprOp op, DType dtype, long double a, long double b) {
  const auto x = static_cast<double>(a);
  const auto y = static_cast<double>(b);
  switch (op) {
    case ExprOp::add:
      return rounded(a + b, x + y, dtype);
    case ExprOp::subtract:
      return rounded(a - b, x - y, dtype);
    case ExprOp::multiply:
      return rounded(a * b, x * y, dtype);
    case ExprOp::divide:
      return rounded(a / b, x / y, dtype);
    case ExprOp::floor_divide:
      if (dtype == DType::f64) return float_floor_divide(x, y);
      return float_floor_divide(static_cast<float>(a), static_cast<float>(b));
    case ExprOp::remainder:
      if (dtype == DType::f64) return static_cast<double>(float_remainder(a, b));
      return static_cast<float>(float_remainder(a, b));
    case ExprOp::minimum:
      return std::isnan(a) ? a : a < b ? a : b;
    case ExprOp::maximum:
      return std::isnan(a) ? a : a > b ? a : b;
    case ExprOp::power:
      return std::pow(a, b);
    case ExprOp::copysign:
      return std::copysign(a, b);
    default:
      TIDEMARK_CHECK(false, "no such operation on floats: ", static_cast<int>(op));
  }
  return 0;
}

int64_t floor_division(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::u64)
    return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t whole_power(DType dtype, int64_t base, int64_t exponent) {
  if (exponent < 0 && dtype != DType::u64)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(exponent); left > 0; left /= 2) {
    if (left % 2 == 1) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

int64_t whole_binary(ExprOp op, DType dtype, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  const int64_t width = size_of(dtype) * 8;
  const bool outside = b < 0 || b >= width;
  switch (op) {
    case ExprOp::add:
      return wrapped(x + y, dtype);
    case ExprOp::subtract:
      return wrapped(x - y, dtype);
    case ExprOp::multiply:
      return wrapped(x * y, dtype);
    case ExprOp::floor_divide:
      return wrapped(static_cast<uint64_t>(floor_division(dtype, a, b)), dtype);
    case ExprOp::remainder:
      return b == 0 ? 0
                    : wrapped(x - static_cast<uint64_t>(floor_division(dtype, a, b)) * y, dtype);
    case ExprOp::minimum:
      return ordered(a, dtype) < ordered(b, dtype) ? a : b;
    case ExprOp::maximum:
      return ordered(a, dtype) > ordered(b, dtype) ? a : b;
    case ExprOp::power:
      return wrapped(static_cast<uint64_t>(whole_power(dtype, a, b)), dtype);
    case ExprOp::bit_and:
      return a & b;
    case ExprOp::bit_or:
      return a | b;
    case ExprOp::bit_xor:
      return a ^ b;
    case ExprOp::shift_left:
      return outside ? 0 : wrapped(x << b, dtype);
    case ExprOp::shift_right:
      if (dtype == DType::u64) return outside ? 0 : static_cast<int64_t>(x >> b);
      return outside ? (a < 0 ? -1 : 0) : a >> b;
    default:
      TIDEMARK_CHECK(false, "no such operation on integers: ", static_cast<int>(op));
  }
  return 0;
}

long double real_unary(ExprOp op, DType dtype, long double x) {
  switch (op) {
    case ExprOp::negate:
      return -x;
    case ExprOp::absolute:
      return std::fabs(x);
    case ExprOp::sign:
      return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
    case ExprOp::sqrt:
      return rounded(std::sqrt(x), std::sqrt(static_cast<double>(x)), dtype);
    case ExprOp::floor:
      return std::floor(x);
    case ExprOp::ceil:
      return std::ceil(x);
    case ExprOp::round:
      return std::nearbyint(x);
    case ExprOp::trunc:
      return std::trunc(x);
    case ExprOp::exp:
      return std::exp(x);
    case ExprOp::expm1:
      return std::expm1(x);
    case ExprOp::log:
      return std::log(x);
    case ExprOp::log1p:
      return std::log1p(x);
    case ExprOp::log2:
      return std::log2(x);
    case ExprOp::log10:
      return std::log10(x);
    case ExprOp::sin:
      return std::sin(x);
    case ExprOp::cos:
      return std::cos(x);
    case ExprOp::tanh:
      return std::tanh(x);
    case ExprOp::erf:
      return std::erf(x);
    case ExprOp::erfc:
      return std::erfc(x);
    default:
      TIDEMARK_CHECK(false, "no such operation on a float: ", static_cast<int>(op));
  }
  return 0;
}

int64_t whole_unary(ExprOp op, DType dtype, int64_t x) {
  switch (op) {
    case ExprOp::negate:
      return wrapped(0 - static_cast<uint64_t>(x), dtype);
    case ExprOp::absolute:
      return x < 0 && dtype != DType::u64 ? wrapped(0 - static_cast<uint64_t>(x), dtype) : x;
    case ExprOp::sign:
      return dtype == DType::u64 ? (x != 0) : (x > 0) - (x < 0);
    case ExprOp::bit_not:
      return wrapped(~static_cast<uint64_t>(x), dtype);
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round:
    case ExprOp::trunc:
      return x;
    default:
      TIDEMARK_CHECK(false, "no such operation on an integer: ", static_cast<int>(op));
  }
  return 0;
}

template <class T>
bool compared(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::equal:
      return a == b;
    case ExprOp::not_equal:
      return a != b;
    case ExprOp::less:
      return a < b;
    default:
      return a <= b;
  }
}

bool is_comparison(ExprOp op) { return op >= ExprOp::equal && op <= ExprOp::less_equal; }

bool is_unary(ExprOp op) {
  return (op >= ExprOp::negate && op <= ExprOp::erfc) || op == ExprOp::bit_not || is_elementary(op);
}

Element constant(const Expr& expr) {
  uint64_t word = expr.bits;
  const ArrayRef one{.data = reinterpret_cast<std::byte*>(&word),
                     .dtype = expr.dtype,
                     .shape = {1},
                     .strides = {1}};
  return {is_float(expr.dtype) ? read_float(one, 0) : 0, read_integer(one, 0)};
}

Element step(const Expr& expr, const std::vector<Element>& values, const std::vector<Expr>& exprs) {
  const auto in = [&](int i) -> const Element& {
    return values[static_cast<size_t>(expr.in[static_cast<size_t>(i)])];
  };
  const DType from = exprs[static_cast<size_t>(expr.in[0])].dtype;
  if (is_comparison(expr.op)) {
    const bool answer =
        is_float(from) ? compared(expr.op, in(0).real, in(1).real)
                       : compared(expr.op, ordered(in(0).whole, from), ordered(in(1).whole, from));
    return {0, answer ? 1 : 0};
  }
  if (expr.op == ExprOp::cast) {
    TIDEMARK_CHECK(is_float(from) && is_float(expr.dtype), "recipes cast floats only");
    const long double x = in(0).real;
    return {expr.dtype == DType::f64 ? static_cast<double>(x) : static_cast<float>(x), 0};
  }
  if (expr.op == ExprOp::select) return in(0).whole != 0 ? in(1) : in(2);
  if (expr.op == ExprOp::fma) {
    const auto narrow = [&](int i) { return static_cast<double>(in(i).real); };
    return {rounded(std::fma(in(0).real, in(1).real, in(2).real),
                    std::fma(narrow(0), narrow(1), narrow(2)), expr.dtype),
            0};
  }
  if (is_unary(expr.op)) {
    return is_float(expr.dtype) ? Element{real_unary(expr.op, expr.dtype, in(0).real), 0}
                                : Element{0, whole_unary(expr.op, expr.dtype, in(0).whole)};
  }
  return is_float(expr.dtype)
             ? Element{real_binary(expr.op, expr.dtype, in(0).real, in(1).real), 0}
             : Element{0, whole_binary(expr.op, expr.dtype, in(0).whole, in(1).whole)};
}

// An operand's element in the dtype the recipe loads.
Element loaded(const ArrayRef& array, int64_t i, DType wanted) {
  std::byte bytes[8] = {};
  const ArrayRef one{.data = bytes, .dtype = wanted, .shape = {1}, .strides = {1}};
  if (is_float(array.dtype) || is_float(wanted))
    write(one, 0, read_float(array, i));
  else
    write(one, 0, read_integer(array, i));
  return {is_float(wanted) ? read_float(one, 0) : 0, read_integer(one, 0)};
}

// Operands are dense but may be smaller than the result: they broadcast.
int64_t broadcast_number(const ArrayRef& operand, std::span<const int64_t> index) {
  const Strides strides = contiguous_strides(operand.shape);
  const size_t shift = index.size() - static_cast<size_t>(operand.rank());
  int64_t number = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (operand.shape[static_cast<int64_t>(axis)] != 1)
      number += index[axis + shift] * strides[axis];
  }
  return number;
}

void evaluate_pointwise(const OpDef& op, std::span<const ArrayRef> operands,
                        const ArrayRef& result) {
  std::vector<OperandType> types;
  for (const ArrayRef& operand : operands)
    types.push_back({operand.dtype, Weak::no, &operand.shape});
  const PointwiseType type = infer_pointwise(op, types, Source::none());
  const Recipe recipe = record(op, std::span(type.compute).first(operands.size()));
  std::vector<Element> values(recipe.exprs.size());
  for_each_index(result.shape, [&](std::span<const int64_t> index, int64_t i) {
    for (size_t e = 0; e < recipe.exprs.size(); ++e) {
      const Expr& expr = recipe.exprs[e];
      if (expr.op == ExprOp::load) {
        const ArrayRef& operand = operands[static_cast<size_t>(expr.ref)];
        values[e] = loaded(operand, broadcast_number(operand, index),
                           type.compute[static_cast<size_t>(expr.ref)]);
      } else if (expr.op == ExprOp::constant) {
        values[e] = constant(expr);
      } else {
        values[e] = step(expr, values, recipe.exprs);
      }
    }
    const Element& answer = values[static_cast<size_t>(recipe.result)];
    if (is_float(result.dtype))
      write(result, i, answer.real);
    else
      write(result, i, answer.whole);
  });
}

// ---- reductions ---------------------------------------------------------------------------------

Element fold_identity(Monoid monoid, DType dtype) {
  switch (monoid) {
    case Monoid::sum:
      return {0, 0};
    case Monoid::product:
      return {1, 1};
    case Monoid::minimum:
      return {INFINITY, is_float(dtype) ? 0 : most_of(dtype)};
    case Monoid::maximum:
      return {-INFINITY, is_float(dtype) ? 0 : least_of(dtype)};
  }
  return {};
}

constexpr ExprOp fold_op(Monoid monoid) {
  constexpr ExprOp table[] = {ExprOp::add, ExprOp::multiply, ExprOp::minimum, ExprOp::maximum};
  return table[static_cast<int>(monoid)];
}

// Whether element `x` replaces `best` in argmax or argmin: the first of equal elements wins, and
// the first NaN wins over everything.
bool beats(const Element& x, const Element& best, DType dtype, bool largest) {
  if (!is_float(dtype)) {
    const int64_t a = ordered(x.whole, dtype), b = ordered(best.whole, dtype);
    return largest ? a > b : a < b;
  }
  if (std::isnan(best.real)) return false;
  if (std::isnan(x.real)) return true;
  return largest ? x.real > best.real : x.real < best.real;
}

void evaluate_reduce(const OpDef& op, const ArrayRef& x, const Attrs& attrs,
                     const ArrayRef& result) {
  const std::span<const int64_t> axes = attrs.read().integers();
  const DType inner = op.gives_index ? x.dtype : result.dtype;
  const bool real = is_float(inner);
  Shape kept = x.shape;
  for (const int64_t axis : axes) kept.set(axis, 1);
  const Strides kept_strides = contiguous_strides(kept);
  std::vector<Element> folded(static_cast<size_t>(result.size()), fold_identity(op.monoid, inner));
  std::vector<int64_t> where(folded.size(), -1);
  for_each_index(x.shape, [&](std::span<const int64_t> index, int64_t i) {
    int64_t to = 0;
    int64_t position = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      const bool gone =
          std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
      if (gone)
        position = position * x.shape[static_cast<int64_t>(axis)] + index[axis];
      else
        to += index[axis] * kept_strides[axis];
    }
    Element& total = folded[static_cast<size_t>(to)];
    const Element element = loaded(x, i, inner);
    if (op.gives_index) {
      int64_t& at = where[static_cast<size_t>(to)];
      if (at < 0 || beats(element, total, inner, op.monoid == Monoid::maximum)) {
        total = element;
        at = position;
      }
    } else if (!real) {
      total.whole = whole_binary(fold_op(op.monoid), inner, total.whole, element.whole);
    } else if (op.monoid == Monoid::sum) {
      total.real += element.real;
    } else {
      total.real = real_binary(fold_op(op.monoid), DType::f32, total.real, element.real);
    }
  });
  for (int64_t i = 0; i < result.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (op.gives_index)
      write(result, i, where[at]);
    else if (real)
      write(result, i, folded[at].real);
    else
      write(result, i, folded[at].whole);
  }
}

void evaluate_row(const OpDef& op, const ArrayRef& x, const Attrs& attrs, const ArrayRef& result) {
  const auto& rows = *static_cast<const RowOp*>(op.self);
  const int64_t axis = attrs.read().integer();
  const int64_t count = x.shape[axis];
  const int64_t stride = contiguous_strides(x.shape)[static_cast<size_t>(axis)];
  std::vector<double> in(static_cast<size_t>(count)), out(in.size());
  for_each_index(x.shape, [&](std::span<const int64_t> index, int64_t i) {
    if (index[static_cast<size_t>(axis)] != 0) return;
    for (int64_t j = 0; j < count; ++j)
      in[static_cast<size_t>(j)] = static_cast<double>(read_float(x, i + j * stride));
    rows.row(in.data(), out.data(), count);
    for (int64_t j = 0; j < count; ++j)
      write(result, i + j * stride, static_cast<long double>(out[static_cast<size_t>(j)]));
  });
}

}  // namespace

void evaluate(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
              std::span<const ArrayRef> results) {
  const ArrayRef& result = results[0];
  if (op.reference != nullptr) return op.reference({op, operands, result, attrs, results});
  if (op.family == Family::pointwise) return evaluate_pointwise(op, operands, result);
  if (op.family == Family::reduce) return evaluate_reduce(op, operands[0], attrs, result);
  if (op.family == Family::row) return evaluate_row(op, operands[0], attrs, result);
  TIDEMARK_CHECK(false, op.name, " has no reference");
}

}  // namespace tidemark::reference

namespace tidemark::ops {

Attrs arange_attrs(Dim count, DType dtype) {
  return Attrs()
      .add(DimList{count})
      .add(dtype)
      .add(0.0)
      .add(1.0)
      .add(true)
      .add(int64_t{0})
      .add(int64_t{1});
}

namespace rule {

TensorType infer_filled(const InferContext& context) {
  Attrs::Reader read = context.attrs.read();
  const Shape shape(read.sizes());
  return {read.dtype(), shape};
}

namespace {
// Keys are made by the library, never by users.
void check_key(const TensorType& key) {
  TIDEMARK_CHECK(key == (TensorType{DType::i64, {}}), "a key is i64[], not ", key);
}
}  // namespace

TensorType infer_draw(const InferContext& context) {
  check_key(context.operands[0]);
  return infer_filled(context);
}

TensorType infer_draw_by_element(const InferContext& context) {
  const TensorType type = infer_draw(context);
  const TensorType& parameter = context.operands[1];
  TIDEMARK_CHECK(type.dtype == DType::f64 && parameter == type, "parameters ", parameter,
                 " of draws ", type);
  return type;
}

TensorType infer_fold(const InferContext& context) {
  check_key(context.operands[0]);
  check_key(context.operands[1]);
  return context.operands[0];
}

void reference_arange(const ReferenceContext& context) {
  Attrs::Reader read = context.attrs.read();
  read.sizes();
  read.dtype();
  const double start = read.number();
  const double step = read.number();
  if (read.boolean()) {
    const auto whole_start = static_cast<uint64_t>(read.integer());
    const auto whole_step = static_cast<uint64_t>(read.integer());
    for (int64_t i = 0; i < context.result.size(); ++i) {
      const uint64_t value = whole_start + static_cast<uint64_t>(i) * whole_step;
      reference::write(context.result, i, static_cast<int64_t>(value));
    }
    return;
  }
  for (int64_t i = 0; i < context.result.size(); ++i) {
    const double scaled = static_cast<double>(i) * step;
    reference::write(context.result, i, static_cast<long double>(start + scaled));
  }
}

}  // namespace rule
}  // namespace tidemark::ops
