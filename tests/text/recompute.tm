# The backward pass recomputes %e from %x, which it reads anyway. %m is kept, since a sum is not
# elementwise, and %small, since its bytes are few.
function(%x: f32[2048], %g: f32[2048], %few: f32[8]) {
  %e: f32[2048] = exp(%x)
  %f: f32[2048] = tanh(%e)
  %m: f32[] = sum(%f) {axes = [0]}
  %small: f32[8] = exp(%few)
  %1: f32[2048] = multiply(%g, %e) gradient of tanh
  %2: f32[2048] = multiply(%1, %x) gradient of exp
  %3: f32[2048] = multiply(%2, %m) gradient of sum
  %4: f32[8] = multiply(%small, %few) gradient of exp
  return %f, %3, %4
}
---- after recompute
function(%0: f32[2048], %1: f32[2048], %2: f32[8]) {
  %3: f32[2048] = exp(%0)
  %4: f32[2048] = tanh(%3)
  %5: f32[] = sum(%4) {axes = [0]}
  %6: f32[8] = exp(%2)
  %7: f32[2048] = exp(%0) gradient of tanh
  %8: f32[2048] = multiply(%1, %7) gradient of tanh
  %9: f32[2048] = multiply(%8, %0) gradient of exp
  %10: f32[2048] = multiply(%9, %5) gradient of sum
  %11: f32[8] = multiply(%6, %2) gradient of exp
  return %4, %10, %11
}
