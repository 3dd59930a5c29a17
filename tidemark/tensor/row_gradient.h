// RowGradient: a row-sparse gradient.
#pragma once

#include "tidemark/tensor/tensor.h"

namespace tidemark {

// The rows of a table that were looked up, and their gradients.
struct RowGradient {
  Tensor indices;  // One for each row; indices may repeat.
  Tensor rows;
};

}  // namespace tidemark
