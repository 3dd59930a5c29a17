// Selects the element of a class, for losses and metrics. Internal to the library.
#pragma once

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// One element of each row: [..., 1] of [..., classes]. A negative label is an error; it does not
// count from the end.
Tensor take_class(const Tensor& x, const Tensor& labels, Source at);

}  // namespace tidemark::detail
