// The tensors of a subscript: x[rows], x[mask], x[rows, columns]. Internal to calls/.
#pragma once

#include <vector>

#include "tidemark/calls/place.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// A tensor of a subscript and the first axis it applies to: whole numbers select along that axis, a
// mask of bools covers as many axes as it has.
struct Pick {
  int64_t axis;
  const Tensor* index;
};

// The elements of x that the picks, which are ordered by their axes, select together, as in NumPy:
// they broadcast, and the axes that they broadcast to take the place of the axes they select from,
// or come first.
Tensor pick(const Tensor& x, const std::vector<Pick>& picks, bool come_first, Source at);

// Elementwise.
Tensor combined(const Tensor& x, const Tensor& value, Change change, Source at);

// x with the value, broadcast to what `pick` gives, combined with the elements that it gives.
Tensor changed(const Tensor& x, const std::vector<Pick>& picks, bool come_first,
               const Tensor& value, Change change, Source at);

}  // namespace tidemark::detail
