// Creating tensors: from numbers, from memory, or filled.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "tidemark/tensor/tensor.h"

namespace tidemark {

// Braces nested to any depth, for td::constant({{1, 2}, {3, 4}}).
class NestedList {
 public:
  template <Number T>
  NestedList(T value, Source at = Source::here())
      : kind_(std::is_same_v<T, bool> ? 0
              : std::is_integral_v<T> ? 1
                                      : 2) {
    if constexpr (std::is_floating_point_v<T>)
      real_ = static_cast<double>(value);
    else
      whole_ = detail::whole_number(value, at);
  }
  template <ComplexNumber T>
  NestedList(T value)
      : kind_(3),
        real_(static_cast<double>(value.real())),
        imag_(static_cast<double>(value.imag())) {}
  NestedList(std::initializer_list<NestedList> list) : kind_(-1), list_(list) {}

  bool is_list() const { return kind_ < 0; }
  int kind() const { return kind_; }  // 0 bool, 1 integer, 2 float, 3 complex.
  int64_t whole() const { return whole_; }
  double real() const { return kind_ >= 2 ? real_ : static_cast<double>(whole_); }
  double imag() const { return imag_; }
  const std::vector<NestedList>& list() const { return list_; }

 private:
  int kind_;
  int64_t whole_ = 0;
  double real_ = 0, imag_ = 0;
  std::vector<NestedList> list_;
};

// Literals: complex numbers give c64, floats f32, integers i32, bools bool, unless a dtype is
// named.
Tensor constant(const NestedList& values, std::optional<DType> dtype = {},
                Source at = Source::here());

namespace detail {
Tensor copied(const void* data, int64_t count, DType dtype, const Shape* shape, Source at);
Tensor borrowed(const void* data, int64_t count, DType dtype, const Shape& shape,
                std::function<void()> release, Source at);
Tensor copied(const std::vector<bool>& list, const Shape* shape, Source at);
template <class R>
concept TypedMemory = requires(const R& range) {
  std::data(range);
  std::size(range);
  requires Element<std::remove_cvref_t<decltype(*std::data(range))>>;
};
}  // namespace detail

// Typed memory (vector, array, span) keeps its element type exactly. The elements are copied.
template <detail::TypedMemory R>
Tensor constant(const R& memory, Source at = Source::here()) {
  using T = std::remove_cvref_t<decltype(*std::data(memory))>;
  return detail::copied(std::data(memory), static_cast<int64_t>(std::size(memory)), dtype_of<T>,
                        nullptr, at);
}
template <detail::TypedMemory R>
Tensor constant(const R& memory, const Shape& shape, Source at = Source::here()) {
  using T = std::remove_cvref_t<decltype(*std::data(memory))>;
  return detail::copied(std::data(memory), static_cast<int64_t>(std::size(memory)), dtype_of<T>,
                        &shape, at);
}
// Templates, so that braces never become a vector<bool>.
template <std::same_as<std::vector<bool>> R>
Tensor constant(const R& list, Source at = Source::here()) {
  return detail::copied(list, nullptr, at);
}
template <std::same_as<std::vector<bool>> R>
Tensor constant(const R& list, const Shape& shape, Source at = Source::here()) {
  return detail::copied(list, &shape, at);
}

// A tensor over memory that the caller owns, without a copy. `release` runs once, when the last
// tensor over it is gone. The memory is never written to and not charged.
template <Element T>
Tensor borrow(std::span<T> memory, const Shape& shape, std::function<void()> release = {},
              Source at = Source::here()) {
  return detail::borrowed(memory.data(), static_cast<int64_t>(memory.size()), dtype_of<T>, shape,
                          std::move(release), at);
}

// A tensor whose elements `write` fills in row-major order, so that data from a file or a device
// needs no second copy. `write` must fill all bytes; a bool is 0 or 1. If it throws, no tensor is
// made.
Tensor from_callback(const Shape& shape, DType dtype,
                     const std::function<void(std::span<std::byte>)>& write,
                     Source at = Source::here());

Tensor zeros(const Shape& shape, DType dtype = DType::f32, Source at = Source::here());
Tensor ones(const Shape& shape, DType dtype = DType::f32, Source at = Source::here());
// The dtype is the value's own unless named.
Tensor full(const Shape& shape, const Operand& value, std::optional<DType> dtype = {},
            Source at = Source::here());
Tensor zeros_like(const Operand& x, Source at = Source::here());
Tensor ones_like(const Operand& x, Source at = Source::here());
Tensor full_like(const Operand& x, const Operand& value, Source at = Source::here());
// i32 if every number is an integer, else f32, unless a dtype is named.
Tensor arange(const Operand& stop, Source at = Source::here());
Tensor arange(const Operand& start, const Operand& stop, const Operand& step = 1,
              std::optional<DType> dtype = {}, Source at = Source::here());
// `count` numbers from start to stop, both included.
Tensor linspace(double start, double stop, int64_t count, DType dtype = DType::f32,
                Source at = Source::here());
Tensor eye(int64_t rows, DType dtype = DType::f32, Source at = Source::here());
Tensor eye(int64_t rows, int64_t columns, DType dtype = DType::f32, Source at = Source::here());

}  // namespace tidemark
