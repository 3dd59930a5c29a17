// Sizes: one (Dim), and one per axis (Shape).
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <ranges>
#include <string>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

// An open size in a signature: Shape{td::open, 784}.
inline constexpr int open = -1;

class Dim;
// Identifies a Dim, open or not, so that sizes can be compared, hashed or ordered without reading
// their values. It is not a number: it has no arithmetic and no conversions.
enum class SizeWord : int64_t {};
namespace detail {
enum class SizeOp : uint8_t { add, subtract, multiply, divide, minimum, maximum };
// Operations on traced sizes: see size.h.
int64_t read_size(Dim size);
bool equal_sizes(Dim a, Dim b);
Dim combine_sizes(SizeOp op, Dim a, Dim b);
void note_size_line(Dim size, Source at);
[[noreturn]] void not_a_size(int64_t number);
}  // namespace detail

// A size: known, or open until the call. In a signature `td::open` means any size, and reading it
// as a number is a UserError. While a function is traced, an open size is an expression in the
// sizes of the arguments (size.h): arithmetic keeps it open. Reading it as a number yields its
// value in the call being traced and specialises the trace to it: a call with another size traces
// again.
class Dim {
 public:
  constexpr Dim() = default;
  template <std::integral I>
  constexpr Dim(I n) : n_(static_cast<int64_t>(n)) {
    if (is_traced()) [[unlikely]]
      detail::not_a_size(n_);
  }
  explicit constexpr Dim(SizeWord word) : n_(static_cast<int64_t>(word)) {}

  constexpr bool is_open() const { return n_ < 0; }
  constexpr bool is_traced() const { return n_ <= kTraced; }
  // td::open itself: any size.
  constexpr bool is_any() const { return is_open() && !is_traced(); }
  constexpr operator int64_t() const {
    if (is_open()) [[unlikely]]
      return detail::read_size(*this);
    return n_;
  }
  // The signed number that it holds. A difference of sizes may be negative; a size may not.
  constexpr int64_t number() const {
    if (is_traced()) [[unlikely]]
      return detail::read_size(*this);
    return n_;
  }
  // The number of a size that is known, else `other`.
  constexpr int64_t known_or(int64_t other) const { return is_open() ? other : n_; }
  // Dim(word) is the size again.
  constexpr SizeWord word() const { return SizeWord{n_}; }

  // Dim has its own comparisons because `a == b` would otherwise be ambiguous between that of
  // int64_t and the elementwise one. A comparison of traced sizes is decided by the call being
  // traced and becomes a guard: calls with another outcome trace again.
  friend constexpr bool operator==(Dim a, Dim b) {
    if (a.n_ == b.n_) return true;
    return (a.is_traced() || b.is_traced()) && detail::equal_sizes(a, b);
  }
  friend constexpr std::strong_ordering operator<=>(Dim a, Dim b) {
    if (a.is_traced() || b.is_traced()) [[unlikely]]
      return int64_t{a} <=> int64_t{b};
    return a.n_ <=> b.n_;
  }
  template <std::integral I>
  friend constexpr bool operator==(Dim a, I b) {
    return a == Dim(b);
  }
  template <std::integral I>
  friend constexpr std::strong_ordering operator<=>(Dim a, I b) {
    return a <=> Dim(b);
  }

 private:
  // Values at and below it are expressions. No number of elements comes near it.
  static constexpr int64_t kTraced = INT64_MIN / 2;
  int64_t n_ = 0;
};

#define TIDEMARK_DIM_OPERATOR(op, name)                              \
  constexpr Dim operator op(Dim a, Dim b) {                          \
    if (a.is_traced() || b.is_traced()) [[unlikely]]                 \
      return detail::combine_sizes(detail::SizeOp::name, a, b);      \
    return int64_t{a} op int64_t{b};                                 \
  }                                                                  \
  template <std::integral I>                                         \
  constexpr Dim operator op(Dim a, I b) {                            \
    if (a.is_traced()) [[unlikely]]                                  \
      return detail::combine_sizes(detail::SizeOp::name, a, Dim(b)); \
    return int64_t{a} op static_cast<int64_t>(b);                    \
  }                                                                  \
  template <std::integral I>                                         \
  constexpr Dim operator op(I a, Dim b) {                            \
    if (b.is_traced()) [[unlikely]]                                  \
      return detail::combine_sizes(detail::SizeOp::name, Dim(a), b); \
    return static_cast<int64_t>(a) op int64_t{b};                    \
  }
TIDEMARK_DIM_OPERATOR(+, add)
TIDEMARK_DIM_OPERATOR(-, subtract)
TIDEMARK_DIM_OPERATOR(*, multiply)
TIDEMARK_DIM_OPERATOR(/, divide)
#undef TIDEMARK_DIM_OPERATOR

// An axis and the source line that asks for its size. If the size is then read as a number,
// messages name that line.
struct AxisAt {
  template <std::integral I>
  constexpr AxisAt(I axis, Source at = Source::here()) : axis(static_cast<int64_t>(axis)), at(at) {}
  int64_t axis;
  Source at;
};

using DimList = SmallVec<Dim, 6>;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::span<const Dim> dims) : dims_(dims) {}

  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  // Negative axes count from the end; out of range is a UserError.
  Dim operator[](AxisAt place) const {
    const Dim dim = place.axis >= 0 && place.axis < rank() ? dims_[static_cast<size_t>(place.axis)]
                                                           : from_end(place.axis);
    if (dim.is_traced()) [[unlikely]]
      detail::note_size_line(dim, place.at);
    return dim;
  }
  // The number of elements. The variant that returns a Dim stays open if any size is open.
  int64_t size() const {
    int64_t product = 1;
    for (const Dim dim : dims_) product *= int64_t{dim};
    return product;
  }
  Dim open_size() const {
    Dim product = 1;
    for (const Dim dim : dims_) product = product * dim;
    return product;
  }
  bool is_open() const;

  const Dim* begin() const { return dims_.begin(); }
  const Dim* end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(dim); }
  void set(int64_t axis, Dim dim) { dims_[static_cast<size_t>(axis)] = dim; }
  void insert(int64_t axis, Dim dim) { dims_.insert(static_cast<size_t>(axis), dim); }
  void erase(int64_t axis) { dims_.erase(static_cast<size_t>(axis)); }

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }

 private:
  Dim from_end(int64_t axis) const;
  DimList dims_;
};

// "[2, 3]"; an open size prints "?", and in a trace "5?" where it is 5 in the call that is traced.
std::ostream& operator<<(std::ostream& out, Dim dim);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// For messages: prints a negative number with its sign, where operator<< prints "?".
std::string written(Dim dim);

// A UserError if a size is td::open: a tensor is to be created with this shape.
void check_is_given(const Shape& shape);
// The shape with every traced size read as a number.
Shape closed(const Shape& shape);

// Row-major strides, counted in elements.
Strides contiguous_strides(const Shape& shape);

}  // namespace tidemark

// As a range, a Shape consists of its sizes; size() is the number of elements.
template <>
inline constexpr bool std::ranges::disable_sized_range<tidemark::Shape> = true;
