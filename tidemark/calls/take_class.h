// What losses and metrics look up by class number; internal to the library.
#pragma once

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// One element of each row, [..., 1] of [..., classes]. Labels are integers from 0 up: a negative
// one is an error, where an index would count from the end.
Tensor take_class(const Tensor& x, const Tensor& labels, Source at);

}  // namespace tidemark::detail
