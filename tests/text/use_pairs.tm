# Complex values become pairs of reals, and views of one as the other become reshapes. Parameters and
# results stay complex.
function(%x: c64[3], %y: f32[3, 2]) {
  %1: f32[3, 2] = view_as_real(%x)
  %2: f32[3, 2] = add(%1, %y)
  %3: c64[3] = view_as_complex(%2)
  %4: c64[1, 3] = reshape(%3) {shape = [1, 3]}
  return %3, %4
}
---- after use_pairs
function(%0: c64[3], %1: f32[3, 2]) {
  %2: f32[3, 2] = view_as_real(%0)
  %3: f32[3, 2] = reshape(%2) {shape = [3, 2]}
  %4: f32[3, 2] = add(%3, %1)
  %5: f32[3, 2] = reshape(%4) {shape = [3, 2]}
  %6: f32[1, 3, 2] = reshape(%5) {shape = [1, 3, 2]}
  %7: c64[3] = view_as_complex(%5)
  %8: c64[1, 3] = view_as_complex(%6)
  return %7, %8
}
