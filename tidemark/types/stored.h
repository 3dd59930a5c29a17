// The C++ types behind all dtypes, complex ones too.
#pragma once

#include <complex>
#include <utility>

#include "tidemark/types/dtype.h"

namespace tidemark {

// Calls f with a value-initialised element of the C++ type behind `dtype`.
template <class F>
decltype(auto) visit_stored(DType dtype, F&& f) {
  if (dtype == DType::c64) return f(std::complex<float>{});
  if (dtype == DType::c128) return f(std::complex<double>{});
  return visit_dtype(dtype, std::forward<F>(f));
}

}  // namespace tidemark
