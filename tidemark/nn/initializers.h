// First values of parameters: functions of a shape and a dtype, run when the bytes are first used.
//
// Draws come from the global generator: after td::random::seed(1) a program draws the same again.
// What they make is what the Variable holds, without a copy.
#pragma once

#include "tidemark/api/variable.h"

namespace tidemark::nn::initializers {

Tensor zeros(const Shape& shape, DType dtype);
Tensor ones(const Shape& shape, DType dtype);
Initializer constant(double value);
Initializer normal(double stddev = 0.05);
Initializer uniform(double low = -0.05, double high = 0.05);

// By the number of inputs and outputs of a unit, in and out: a matrix is [in, out], the kernel of a
// convolution [height, width, in, out].
Tensor glorot_uniform(const Shape& shape, DType dtype);  // Within sqrt(6 / (in + out)).
Tensor glorot_normal(const Shape& shape, DType dtype);   // Deviation sqrt(2 / (in + out)).
Tensor he_uniform(const Shape& shape, DType dtype);      // Within sqrt(6 / in).
Tensor he_normal(const Shape& shape, DType dtype);       // Deviation sqrt(2 / in).
// All axes but the last taken as one: the rows, or the columns where these are more, have length 1
// and stand at right angles to each other.
Tensor orthogonal(const Shape& shape, DType dtype);

}  // namespace tidemark::nn::initializers
