// Sizes: one (Dim), and one per axis (Shape).
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

// What an open size is written as: Shape{td::open, 784}.
inline constexpr int open = -1;

// A size: known, or open until the call. Reading an open one as a number is a UserError.
class Dim {
 public:
  constexpr Dim() = default;
  template <std::integral I>
  constexpr Dim(I n) : n_(static_cast<int64_t>(n)) {}

  constexpr bool is_open() const { return n_ < 0; }
  constexpr operator int64_t() const {
    if (is_open()) [[unlikely]]
      read_open();
    return n_;
  }

  // Comparisons of its own: without them `a == b` is ambiguous between int64_t's and the
  // elementwise one.
  friend constexpr bool operator==(Dim a, Dim b) { return a.n_ == b.n_; }
  friend constexpr auto operator<=>(Dim a, Dim b) { return a.n_ <=> b.n_; }
  template <std::integral I>
  friend constexpr bool operator==(Dim a, I b) {
    return a.n_ == static_cast<int64_t>(b);
  }
  template <std::integral I>
  friend constexpr auto operator<=>(Dim a, I b) {
    return a.n_ <=> static_cast<int64_t>(b);
  }

 private:
  [[noreturn]] static void read_open();
  int64_t n_ = 0;
};

#define TIDEMARK_DIM_OPERATOR(op)                                              \
  constexpr Dim operator op(Dim a, Dim b) { return int64_t{a} op int64_t{b}; } \
  template <std::integral I>                                                   \
  constexpr Dim operator op(Dim a, I b) {                                      \
    return int64_t{a} op static_cast<int64_t>(b);                              \
  }                                                                            \
  template <std::integral I>                                                   \
  constexpr Dim operator op(I a, Dim b) {                                      \
    return static_cast<int64_t>(a) op int64_t{b};                              \
  }
TIDEMARK_DIM_OPERATOR(+)
TIDEMARK_DIM_OPERATOR(-)
TIDEMARK_DIM_OPERATOR(*)
TIDEMARK_DIM_OPERATOR(/)
#undef TIDEMARK_DIM_OPERATOR

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(const std::vector<Dim>& dims) : dims_(std::span<const Dim>(dims)) {}
  explicit Shape(std::span<const int64_t> sizes);

  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  // Negative axes count from the end; out of range is a UserError.
  Dim operator[](int64_t axis) const {
    if (axis >= 0 && axis < rank()) [[likely]]
      return dims_[static_cast<size_t>(axis)];
    return from_end(axis);
  }
  // The number of elements.
  int64_t size() const {
    int64_t product = 1;
    for (const Dim dim : dims_) product *= int64_t{dim};
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
  SmallVec<Dim, 6> dims_;
};

// "[2, 3]"; an open size prints "?".
std::ostream& operator<<(std::ostream& out, Dim dim);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Row-major strides, counted in elements.
Strides contiguous_strides(const Shape& shape);

}  // namespace tidemark
