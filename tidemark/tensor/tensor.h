// Tensor: the handle that users hold.
//
// A Tensor is cheap to copy and safe to capture by value. It behaves as a value: a write is in
// place if its handle is the only one, and copies otherwise; no other handle ever sees it. Views
// (slices, transposes, broadcasts, most reshapes) share memory with the tensor they are views of.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"

namespace tidemark {

class Gradient;
class Operand;
class Variable;
struct Slices;
struct TensorSpec;
namespace detail {
struct TensorState;
// Gives one reference back.
void drop(TensorState* state);
template <class T>
inline constexpr bool always_false = false;

// A float converted to T as td::cast does: integers truncate and saturate, NaN becomes 0. C++'s own
// conversion is undefined outside T's range.
template <Number T>
constexpr T converted(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Limits = std::numeric_limits<T>;
    // Powers of two, so both are exact.
    constexpr double least = static_cast<double>(Limits::min());
    constexpr T half = Limits::max() / 2 + 1;
    constexpr double past = 2.0 * static_cast<double>(half);
    if (value != value) return 0;
    if (value <= least) return Limits::min();
    if (value >= past) return Limits::max();
  }
  return static_cast<T>(value);
}

[[noreturn]] void does_not_fit_i64(uint64_t value, Source at);
// Plain integers are held as i64.
template <Number T>
int64_t whole_number(T value, Source at) {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(int64_t)) {
    if (value > static_cast<uint64_t>(INT64_MAX)) [[unlikely]]
      does_not_fit_i64(value, at);
  }
  return static_cast<int64_t>(value);
}
}  // namespace detail

class Tensor {
 public:
  // Empty, as after being moved from; using it is a UserError.
  Tensor() = default;
  // A plain number converts to a Tensor. It has a kind but no width: it takes the dtype of the
  // tensor it is combined with.
  template <Number T>
  Tensor(T value, Source at = Source::here()) {
    if constexpr (std::is_same_v<T, bool>)
      set_number(value ? 1 : 0, 0, 0, at);
    else if constexpr (std::is_integral_v<T>)
      set_number(detail::whole_number(value, at), 0, 1, at);
    else
      set_number(0, static_cast<double>(value), 2, at);
  }
  // A complex number converts to a Tensor of its dtype.
  template <ComplexNumber T>
  Tensor(T value, Source at = Source::here()) {
    set_complex(value, dtype_of<T>, at);
  }
  // A type without elements, for plans.
  Tensor(const TensorSpec& spec, Source at = Source::here());
  // The current value of a Variable: a snapshot that later assignments do not change.
  Tensor(const Variable& variable, Source at = Source::here());
  // The gradient by a Variable; a row-sparse one becomes dense, with a warning that names the
  // bytes.
  Tensor(const Gradient& gradient, Source at = Source::here());
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  Tensor& operator=(const Tensor& other) &;
  // Releases the memory at once: `x = {}` shows in the account in the same statement.
  Tensor& operator=(Tensor&& other) & noexcept;
  template <class T>
  void operator=(T&&) && {
    static_assert(detail::always_false<T>,
                  "a slice of a Tensor is a value, not a place: write "
                  "x = td::update(std::move(x), {...}, value)");
  }
  ~Tensor() {
    if (state_ != nullptr) detail::drop(state_);
  }

  bool has_value() const { return state_ != nullptr; }
  const Shape& shape() const;
  DType dtype() const;
  int64_t rank() const { return shape().rank(); }
  int64_t size() const { return shape().size(); }
  // The bytes of its elements if they were contiguous.
  Bytes size_bytes() const;
  // The line that made it.
  Source source() const;

  // The one element, converted to T as td::cast does.
  template <Number T>
  T item(Source at = Source::here()) const {
    need_value(at);
    if (is_float(dtype())) return detail::converted<T>(real_item(at));
    const int64_t whole = whole_item(at);
    if (std::is_floating_point_v<T> && dtype() == DType::u64)
      return static_cast<T>(static_cast<uint64_t>(whole));
    return static_cast<T>(whole);
  }
  template <ComplexNumber T>
  T item(Source at = Source::here()) const {
    return T(complex_item(at));
  }
  // All elements in row-major order, converted to T as td::cast does.
  template <class T>
    requires Number<T> || ComplexNumber<T>
  std::vector<T> to_vector(Source at = Source::here()) const;
  // The elements, without a copy. The tensor must be dense and T its element type.
  template <class T>
    requires std::is_const_v<T> && Element<T>
  std::span<T> span(Source at = Source::here()) const {
    return {static_cast<T*>(dense_data(dtype_of<T>, at)), static_cast<size_t>(size())};
  }
  // Whether the single element is true. A conversion cannot know its caller's line, so an error
  // names the line that made the tensor: that of `x == y` in `if (x == y)`.
  explicit operator bool() const { return item<bool>(has_value() ? source() : Source::none()); }

  Tensor operator[](const Slices& index) const;
  Tensor& operator+=(const Operand& b) &;
  Tensor& operator-=(const Operand& b) &;
  Tensor& operator*=(const Operand& b) &;
  Tensor& operator/=(const Operand& b) &;

 private:
  friend struct detail::TensorState;
  void set_number(int64_t whole, double real, int kind, Source at);
  void set_complex(std::complex<double> value, DType dtype, Source at);
  void need_value(Source at) const;
  double real_item(Source at) const;
  std::complex<double> complex_item(Source at) const;
  int64_t whole_item(Source at) const;
  const void* dense_data(DType wanted, Source at) const;
  void copy_out(DType dtype, void* to, Source at) const;

  detail::TensorState* state_ = nullptr;
};

namespace detail {
// An open size as a value of the traced program.
Tensor size_number(Dim size, Source at);
}  // namespace detail

// In NumPy's style; arrays of more than 1000 elements are abbreviated.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// The same dtype, shape and bits. For tests; `==` is elementwise.
bool identical(const Tensor& a, const Tensor& b);

// The parameter type of ops: a tensor, a Variable or a plain number, with the caller's line. It
// lives only for the duration of the call.
class Operand {
 public:
  Operand(const Tensor& tensor, Source at = Source::here()) : tensor_(&tensor), at_(at) {}
  // An rvalue: its memory may be reused if it is not shared.
  Operand(Tensor&& tensor, Source at = Source::here()) : tensor_(&tensor), dying_(true), at_(at) {}
  Operand(const Variable& variable, Source at = Source::here())
      : snapshot_(variable, at), at_(at) {}
  Operand(const Gradient& gradient, Source at = Source::here())
      : snapshot_(gradient, at), at_(at) {}
  Operand(Dim size, Source at = Source::here()) : kind_(1), at_(at) {
    if (size.is_traced()) [[unlikely]]
      snapshot_ = detail::size_number(size, at);
    else
      whole_ = size.number();
  }
  template <Number T>
  Operand(T value, Source at = Source::here()) : at_(at) {
    if constexpr (std::is_floating_point_v<T>) {
      kind_ = 2;
      real_ = static_cast<double>(value);
    } else {
      kind_ = std::is_same_v<T, bool> ? 0 : 1;
      whole_ = detail::whole_number(value, at);
    }
  }

  // A plain complex number: with a tensor it takes the precision of that, alone it is c64.
  template <ComplexNumber T>
  Operand(T value, Source at = Source::here())
      : kind_(3),
        real_(static_cast<double>(value.real())),
        imag_(static_cast<double>(value.imag())),
        at_(at) {}

  // Null for a plain number.
  const Tensor* tensor() const { return snapshot_.has_value() ? &snapshot_ : tensor_; }
  bool is_dying() const { return dying_; }
  int kind() const { return kind_; }  // Of a number: 0 bool, 1 integer, 2 float, 3 complex.
  int64_t whole() const { return whole_; }
  double real() const { return kind_ >= 2 ? real_ : static_cast<double>(whole_); }
  double imag() const { return imag_; }
  Source at() const { return at_; }

 private:
  const Tensor* tensor_ = nullptr;
  Tensor snapshot_;  // Of a Variable or a Gradient, or an open size.
  bool dying_ = false;
  int kind_ = 0;
  int64_t whole_ = 0;
  double real_ = 0, imag_ = 0;
  Source at_;
};

// A list of tensors: braces, vector or span.
class TensorList {
 public:
  TensorList(std::initializer_list<Tensor> list) : list_(list.begin(), list.size()) {}
  TensorList(const std::vector<Tensor>& list) : list_(list) {}
  TensorList(std::span<const Tensor> list) : list_(list) {}
  std::span<const Tensor> list() const { return list_; }

 private:
  std::span<const Tensor> list_;
};

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator%(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a);
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
// Logical on bools, bitwise on integers.
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Operand& a);
Tensor operator<<(const Tensor& a, const Operand& b);
Tensor operator>>(const Tensor& a, const Operand& b);

// ---- indexing: x[0], x[{0, td::all}], x[{td::Slice{.begin = 1, .step = 2}, td::newaxis}], x[mask]
// -

struct Slice {
  std::optional<int64_t> begin = {}, end = {};
  int64_t step = 1;
};
inline constexpr struct NewAxis {
} newaxis;
inline constexpr struct Ellipsis {
} ellipsis;

class Index {
 public:
  enum class Kind : uint8_t { whole, number, slice, new_axis, ellipsis, tensor };
  Index() = default;
  template <std::integral I>
  Index(I number) : kind(Kind::number), number(static_cast<int64_t>(number)) {}
  Index(Dim size) : kind(Kind::number), number(size.is_traced() ? 0 : size.number()), size(size) {}
  Index(Slice slice) : kind(Kind::slice), slice(slice) {}
  Index(NewAxis) : kind(Kind::new_axis) {}
  Index(Ellipsis) : kind(Kind::ellipsis) {}
  // Integers select along their axis; a bool mask selects the true elements.
  Index(const Tensor& tensor) : kind(Kind::tensor), tensor(&tensor) {}
  // `td::all` stands for the whole axis.
  consteval Index(const ReduceOp& op) {
    if (&op != &all) throw "only tidemark::all stands for a whole axis";
  }

  Kind kind = Kind::whole;
  int64_t number = 0;
  Dim size = 0;  // Used instead of `number` if it is open.
  Slice slice = {};
  const Tensor* tensor = nullptr;
};

struct Slices {
  Slices(std::initializer_list<Index> list, Source at = Source::here()) : list(list), at(at) {}
  template <class T>
    requires std::convertible_to<const T&, Index>
  Slices(const T& index, Source at = Source::here()) : list{Index(index)}, at(at) {}

  SmallVec<Index, 4> list;
  Source at;
};

// x with `value` (broadcast) assigned to the subscript; where tensors in it name an element twice,
// the last wins. In place if x was moved in and is not shared, and the subscript has no tensors.
Tensor update(const Operand& x, const Slices& place, const Operand& value);

template <class T>
  requires Number<T> || ComplexNumber<T>
std::vector<T> Tensor::to_vector(Source at) const {
  need_value(at);
  const auto count = static_cast<size_t>(size());
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(count);
    copy_out(DType::boolean, bytes.data(), at);
    return std::vector<bool>(bytes.begin(), bytes.end());
  } else {
    // If T is not an element type, converts through the widest dtype of the same kind.
    if constexpr (Element<T>) {
      std::vector<T> elements(count);
      copy_out(dtype_of<T>, elements.data(), at);
      return elements;
    } else {
      std::vector<T> elements;
      elements.reserve(count);
      if (is_float(dtype()) || std::is_floating_point_v<T>) {
        std::vector<double> wide(count);
        copy_out(DType::f64, wide.data(), at);
        for (const double value : wide) elements.push_back(detail::converted<T>(value));
      } else {
        std::vector<int64_t> wide(count);
        copy_out(DType::i64, wide.data(), at);
        for (const int64_t value : wide) elements.push_back(static_cast<T>(value));
      }
      return elements;
    }
  }
}

}  // namespace tidemark
