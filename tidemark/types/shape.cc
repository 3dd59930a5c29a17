#include "tidemark/types/shape.h"

#include <ostream>

#include "tidemark/base/error.h"

namespace tidemark {

Dim Shape::from_end(int64_t axis) const {
  const int64_t counted = axis < 0 ? axis + rank() : axis;
  if (counted < 0 || counted >= rank()) {
    throw UserError(cat("shape", *this, " has no axis ", axis));
  }
  return dims_[static_cast<size_t>(counted)];
}

bool Shape::is_open() const {
  return std::any_of(begin(), end(), [](Dim dim) { return dim.is_open(); });
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) out << ", ";
    out << shape[axis];
  }
  return out << ']';
}

void check_is_given(const Shape& shape) {
  for (const Dim dim : shape)
    if (dim.is_any()) detail::read_size(dim);
}

Shape closed(const Shape& shape) {
  Shape known = shape;
  for (int64_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis].is_traced()) known.set(axis, int64_t{shape[axis]});
  return known;
}

std::string written(Dim dim) { return dim.is_any() ? std::to_string(dim.number()) : cat(dim); }

Strides contiguous_strides(const Shape& shape) {
  Strides strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(1, shape[axis]);
  }
  return strides;
}

}  // namespace tidemark
