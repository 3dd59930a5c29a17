// Polynomials over the operations of `lane.h`.
#pragma once

#include "tidemark/loops/lane.h"

namespace tidemark::math {

using namespace lane;

// c0 + c1 t + c2 t^2 + ..., one fma for each power, highest first.
template <class V>
TIDEMARK_INLINE V polynomial(V t, double c0) {
  return like(t, c0);
}
template <class V, class... Rest>
TIDEMARK_INLINE V polynomial(V t, double c0, Rest... rest) {
  return fma(polynomial(t, rest...), t, like(t, c0));
}

}  // namespace tidemark::math
