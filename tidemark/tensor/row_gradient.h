// A gradient by rows of a table.
#pragma once

#include "tidemark/tensor/tensor.h"

namespace tidemark {

// Slices of the first axis: what was looked up in a table, and their gradients.
struct RowGradient {
  Tensor indices;  // One for each; the same may come twice.
  Tensor rows;
};

}  // namespace tidemark
