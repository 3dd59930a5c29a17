// Initial values of parameters: functions of a shape and a dtype that run when a Variable is first
// used.
//
// Draws come from the global generator, so td::random::seed makes them reproducible. The Variable
// adopts the result without a copy.
#pragma once

#include "tidemark/api/variable.h"

namespace tidemark::nn::initializers {

Tensor zeros(const Shape& shape, DType dtype);
Tensor ones(const Shape& shape, DType dtype);
Initializer constant(double value);
Initializer normal(double stddev = 0.05);
Initializer uniform(double low = -0.05, double high = 0.05);

// Scaled by the fan-in and fan-out of a unit: a matrix is [in, out], the kernel of a convolution
// [height, width, in, out].
Tensor glorot_uniform(const Shape& shape, DType dtype);  // Within sqrt(6 / (in + out)).
Tensor glorot_normal(const Shape& shape, DType dtype);   // Standard deviation sqrt(2 / (in + out)).
Tensor he_uniform(const Shape& shape, DType dtype);      // Within sqrt(6 / in).
Tensor he_normal(const Shape& shape, DType dtype);       // Standard deviation sqrt(2 / in).
// As a matrix whose columns are the last axis: the rows, or the columns if there are more of them
// than rows, are orthonormal.
Tensor orthogonal(const Shape& shape, DType dtype);

}  // namespace tidemark::nn::initializers
