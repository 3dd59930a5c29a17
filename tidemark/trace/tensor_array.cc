#include "tidemark/trace/tensor_array.h"

#include "tidemark/calls/create.h"
#include "tidemark/calls/effect.h"
#include "tidemark/calls/ops.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

Dim room_of(const TensorArrayOptions& options, Source at) {
  if (options.size.is_any())
    throw UserError(cat("TensorArray: a size of ", written(options.size), " is not possible"), at,
                    "give the number of elements, or .max_size and push_back");
  if (!options.max_size) return options.size;
  if (is_less(*options.max_size, options.size))
    throw UserError(
        cat("TensorArray: max_size ", *options.max_size, " is less than size ", options.size), at,
        "max_size is the most elements it ever has");
  return *options.max_size;
}

}  // namespace

TensorArray::TensorArray(DType dtype, const TensorArrayOptions& options, Source at)
    : dtype_(dtype), room_(room_of(options, at)) {
  const SourceScope scope(at);
  if (options.max_size) count_ = detail::tensor_of(Operand(options.size, at), at, DType::i32);
  if (options.element_shape) make_room(*options.element_shape, at);
}

void TensorArray::make_room(const Shape& element, Source at) {
  Shape shape = element;
  shape.insert(0, room());
  buffer_ = zeros(shape, dtype_, at);
}

const Tensor& TensorArray::buffer(const char* what, Source at) const {
  if (buffer_.has_value()) return buffer_;
  throw UserError(cat(what,
                      ": nothing was written to this TensorArray, so the shape of its "
                      "elements is not known"),
                  at, "give it: td::TensorArray(td::f32, {.size = 10, .element_shape = {2}})");
}

// The element as it is stored. A plain number takes the dtype of the array; a tensor must have it.
Tensor TensorArray::fitting(const Operand& element, const char* what, Source at) const {
  const bool is_number =
      element.tensor() == nullptr || detail::state_of(*element.tensor(), at).weak;
  const TensorType type =
      element.tensor() == nullptr ? TensorType{} : detail::type_of(*element.tensor(), at);
  if (!is_number && type.dtype != dtype_)
    throw UserError(cat(what, ": a TensorArray of ", dtype_, " cannot hold ", type), at,
                    cat("cast it: td::cast(x, td::", name(dtype_), ")"));
  return detail::tensor_of(element, at, dtype_);
}

TensorArray TensorArray::write(const Operand& index, const Operand& element, Source at) const& {
  return TensorArray(*this).write(index, element, at);
}

TensorArray TensorArray::write(const Operand& index, const Operand& element, Source at) && {
  const SourceScope scope(at);
  const Tensor fits = fitting(element, "write", at);
  if (!buffer_.has_value()) make_room(fits.shape(), at);
  buffer_ = put(Operand(std::move(buffer_), at), index, fits, at);
  return std::move(*this);
}

TensorArray TensorArray::scatter(const Operand& indices, const Operand& elements, Source at) const {
  const SourceScope scope(at);
  TensorArray written = *this;
  const Tensor fits = fitting(elements, "scatter", at);
  if (!written.buffer_.has_value()) {
    Shape element = fits.shape();
    if (element.rank() > 0) element.erase(0);
    written.make_room(element, at);
  }
  written.buffer_ = put(Operand(std::move(written.buffer_), at), indices, fits, at);
  return written;
}

void TensorArray::check_full(Source at) const {
  if (!count_)
    throw UserError("push_back: this TensorArray has a fixed size", at,
                    "give the most elements it may have, {.max_size = 100}, or use write");
  assert_that(less(*count_, room(), at),
              cat("push_back: this TensorArray has max_size ", room(), ", and is full"), {}, at);
}

TensorArray TensorArray::push_back(const Operand& element, Source at) const& {
  return TensorArray(*this).push_back(element, at);
}

TensorArray TensorArray::push_back(const Operand& element, Source at) && {
  const SourceScope scope(at);
  check_full(at);
  TensorArray longer = std::move(*this).write(*count_, element, at);
  longer.count_ = add(*longer.count_, 1, at);
  return longer;
}

TensorArray TensorArray::unstack(const Operand& x, Source at) const {
  const SourceScope scope(at);
  const Tensor all = fitting(x, "unstack", at);
  const TensorType type = detail::type_of(all, at);
  if (type.shape.rank() == 0)
    throw UserError(cat("unstack: ", type, " has no axis to take elements from"), at,
                    "give it one: td::reshape(x, {1})");
  if (count_ && is_less(room(), type.shape[0]))
    throw UserError(cat("unstack: ", type, " has ", type.shape[0],
                        " elements, this TensorArray has max_size ", room()),
                    at, "give it a larger max_size");
  TensorArray array = *this;
  if (!count_) {
    array.room_ = type.shape[0];
    array.buffer_ = all;
    return array;
  }
  array.count_ = detail::tensor_of(Operand(type.shape[0], at), at, DType::i32);
  Shape element = type.shape;
  element.erase(0);
  array.make_room(element, at);
  array.buffer_ = update(Operand(std::move(array.buffer_), at),
                         Slices({Slice{.begin = 0, .end = type.shape[0]}}, at), all);
  return array;
}

Tensor TensorArray::read(const Operand& index, Source at) const {
  return tidemark::gather(buffer("read", at), index, 0, at);
}

Tensor TensorArray::gather(const Operand& indices, Source at) const {
  return tidemark::gather(buffer("gather", at), indices, 0, at);
}

Tensor TensorArray::stack(Source at) const { return buffer("stack", at); }

Tensor TensorArray::size(Source at) const {
  return count_ ? *count_ : detail::tensor_of(Operand(room(), at), at, DType::i32);
}

}  // namespace tidemark
