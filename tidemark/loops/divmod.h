// Floor division of floats and its remainder. Python's rules, as in NumPy: the remainder has the
// sign of the divisor and is exact.
#pragma once

#include "tidemark/loops/lane.h"

namespace tidemark::math {

using namespace lane;

template <class V>
TIDEMARK_INLINE V float_remainder(V x, V y) {
  const V zero = like(x, 0.0);
  const V left = fmod(x, y);
  const auto other_side =
      both(no(equal(left, zero)), no(equal_masks(less(left, zero), less(y, zero))));
  const V moved = select(other_side, left + y, left);
  return select(equal(moved, zero), copysign(zero, y), moved);
}

template <class V>
TIDEMARK_INLINE V float_floor_divide(V x, V y) {
  const V zero = like(x, 0.0);
  const V one = like(x, 1.0);
  const V left = fmod(x, y);
  const auto other_side =
      both(no(equal(left, zero)), no(equal_masks(less(left, zero), less(y, zero))));
  const V quotient = (x - left) / y;
  const V whole = select(other_side, quotient - one, quotient);
  const V down = floor(whole);
  const V nearest = select(less(like(x, 0.5), whole - down), down + one, down);
  const V signed_zero = copysign(zero, x / y);
  const V result = select(equal(whole, zero), signed_zero, nearest);
  return select(equal(y, zero), x / y, result);
}

}  // namespace tidemark::math
