// An array of tensors of one type, written one element at a time: what loops collect results in.
//
// It is a value: write and push_back give the new array, `a = std::move(a).write(i, x)`. All its
// elements lie in one tensor that is taken once. A write is in place where the array is moved in
// (a loop moves what it carries into a body that takes it by value) and nobody else holds it; in
// compiled code also where it is not moved.
#pragma once

#include <optional>

#include "tidemark/structure/static.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {

struct TensorArrayOptions {
  Dim size = 0;
  // Lets push_back add elements, this many in all at the most.
  std::optional<Dim> max_size = {};
  // Of one element; else that of the first one written.
  std::optional<Shape> element_shape = {};
};

class TensorArray {
 public:
  explicit TensorArray(DType dtype, const TensorArrayOptions& options = {},
                       Source at = Source::here());

  // An index out of range is a UserError; a negative one counts from the end.
  [[nodiscard("write gives the new array: a = std::move(a).write(i, x)")]] TensorArray write(
      const Operand& index, const Operand& element, Source at = Source::here()) const&;
  [[nodiscard("write gives the new array: a = std::move(a).write(i, x)")]] TensorArray write(
      const Operand& index, const Operand& element, Source at = Source::here()) &&;
  // Many at once: the elements are the slices of the first axis.
  [[nodiscard]] TensorArray scatter(const Operand& indices, const Operand& elements,
                                    Source at = Source::here()) const;
  // Behind the last one. Needs max_size.
  [[nodiscard("push_back gives the new array: a = std::move(a).push_back(x)")]] TensorArray
  push_back(const Operand& element, Source at = Source::here()) const&;
  [[nodiscard("push_back gives the new array: a = std::move(a).push_back(x)")]] TensorArray
  push_back(const Operand& element, Source at = Source::here()) &&;
  // The array that holds the slices of the first axis of x.
  [[nodiscard]] TensorArray unstack(const Operand& x, Source at = Source::here()) const;

  // One that was never written is zero.
  Tensor read(const Operand& index, Source at = Source::here()) const;
  Tensor gather(const Operand& indices, Source at = Source::here()) const;
  // All of them, along a new first axis: max_size of them where there is one, so that the shape
  // does not depend on how many were pushed.
  Tensor stack(Source at = Source::here()) const;
  // How many there are, an i32.
  Tensor size(Source at = Source::here()) const;
  DType dtype() const { return dtype_; }

  TIDEMARK_FIELDS(buffer_, count_, dtype_, room_)

 private:
  const Tensor& buffer(const char* what, Source at) const;
  // Takes the memory, once the shape of an element is known.
  void make_room(const Shape& element, Source at);
  Tensor fitting(const Operand& element, const char* what, Source at) const;
  void check_full(Source at) const;
  Dim room() const { return buffer_.has_value() ? buffer_.shape()[0] : *room_; }

  Tensor buffer_;                // Nothing before the first write, unless the shape was given.
  std::optional<Tensor> count_;  // Of elements, where push_back may add some.
  DType dtype_;
  Static<Dim> room_;  // Of a program's result it is the buffer that tells.
};

}  // namespace tidemark
