// TensorArray: an array of tensors of one type that is written one element at a time, as loops do.
//
// It is a value: write and push_back return the new array, `a = std::move(a).write(i, x)`. All
// elements are in one tensor that is allocated once. A write is in place if the array is moved in
// (a loop moves its carries into a body that takes them by value) and has no other handle; in
// compiled code also if it is not moved.
#pragma once

#include <optional>

#include "tidemark/structure/static.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {

struct TensorArrayOptions {
  Dim size = 0;
  // The most elements that push_back may add up to.
  std::optional<Dim> max_size = {};
  // The shape of an element; default: that of the first one written.
  std::optional<Shape> element_shape = {};
};

class TensorArray {
 public:
  explicit TensorArray(DType dtype, const TensorArrayOptions& options = {},
                       Source at = Source::here());

  // Throws a UserError if the index is out of range; a negative index counts from the end.
  [[nodiscard("write gives the new array: a = std::move(a).write(i, x)")]] TensorArray write(
      const Operand& index, const Operand& element, Source at = Source::here()) const&;
  [[nodiscard("write gives the new array: a = std::move(a).write(i, x)")]] TensorArray write(
      const Operand& index, const Operand& element, Source at = Source::here()) &&;
  // Writes several elements: the slices along the first axis.
  [[nodiscard]] TensorArray scatter(const Operand& indices, const Operand& elements,
                                    Source at = Source::here()) const;
  // Adds an element after the last. Needs max_size.
  [[nodiscard("push_back gives the new array: a = std::move(a).push_back(x)")]] TensorArray
  push_back(const Operand& element, Source at = Source::here()) const&;
  [[nodiscard("push_back gives the new array: a = std::move(a).push_back(x)")]] TensorArray
  push_back(const Operand& element, Source at = Source::here()) &&;
  // The array of the slices along the first axis of x.
  [[nodiscard]] TensorArray unstack(const Operand& x, Source at = Source::here()) const;

  // An element that was never written is zero.
  Tensor read(const Operand& index, Source at = Source::here()) const;
  Tensor gather(const Operand& indices, Source at = Source::here()) const;
  // All elements along a new first axis: max_size of them if that is set, so that the shape does
  // not depend on the number of push_backs.
  Tensor stack(Source at = Source::here()) const;
  // The number of elements, an i32.
  Tensor size(Source at = Source::here()) const;
  DType dtype() const { return dtype_; }

  TIDEMARK_FIELDS(buffer_, count_, dtype_, room_)

 private:
  const Tensor& buffer(const char* what, Source at) const;
  // Allocates the buffer, once the shape of an element is known.
  void make_room(const Shape& element, Source at);
  Tensor fitting(const Operand& element, const char* what, Source at) const;
  void check_full(Source at) const;
  Dim room() const { return buffer_.has_value() ? buffer_.shape()[0] : *room_; }

  Tensor buffer_;                // Empty before the first write, unless the element shape is given.
  std::optional<Tensor> count_;  // The number of elements, if push_back may add some.
  DType dtype_;
  Static<Dim> room_;  // For the result of a program, the buffer's size counts instead.
};

}  // namespace tidemark
