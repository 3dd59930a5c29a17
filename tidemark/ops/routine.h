// The precompiled kernels of ops. `ops` lies below `emit`, so a definition names its kernel, and
// compile/cpu/library_ops.cc calls it.
#pragma once

#include <cstdint>

namespace tidemark {

// Ops without a routine are views, or are compiled from their `value`, `monoid` or `sweeps`.
enum class Routine : uint8_t {
  none,
  accumulate,
  accumulate_conv2d,
  arange,
  cholesky,
  concat,
  conv,
  cummax,
  cummin,
  cumprod,
  cumsum,
  distances,
  eigh,
  expm,
  fft,
  first_equal,
  gather,
  linear_scan,
  lu,
  matmul,
  pad,
  pinv,
  put,
  qr,
  random_bernoulli,
  random_fold,
  random_integers,
  random_normal,
  random_permutation,
  random_uniform,
  resample,
  scatter_add,
  scatter_max,
  scatter_min,
  scatter_mul,
  searchsorted,
  solve,
  solve_triangular,
  sort,
  svd,
  take_along_axis,
  top_k,
  update,
  weighted_differences,
};

}  // namespace tidemark
