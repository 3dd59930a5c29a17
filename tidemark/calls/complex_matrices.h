// Complex matrices as real ones of twice the size, so that the factorizations and solvers of real
// matrices, with their gradients, plans and bits, serve them too. Internal to the library.
//
// A number a + bi acts on pairs of reals as the block
//
//   a  -b
//   b   a
//
// and a matrix of such blocks multiplies, solves and inverts as the complex matrix does; its
// transpose is that of the conjugate matrix. A real factorization that is unique finds factors made
// of such blocks.
#pragma once

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// [..., m, n] complex as [..., 2m, 2n], and back: of each block the first column is read.
Tensor as_reals(const Tensor& z);
Tensor from_reals(const Tensor& x);
// [..., m, n] complex as [..., 2m, n], the real part of a row above the imaginary one, and back.
Tensor as_real_columns(const Tensor& z);
Tensor from_real_columns(const Tensor& x);

}  // namespace tidemark::detail
