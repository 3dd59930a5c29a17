# If nothing sums over the rows, they become a map.
function(%x: f32[600, 4], %w: f32[4, 512]) {
  %t: f32[600, 512] = matmul(%x, %w)
  %s: f32[600, 512] = softmax(%t) {axis = 1}
  %r: f32[600] = max(%s) {axes = [1]}
  return %r
}
---- after split
function(%0: f32[600, 4], %1: f32[4, 512]) {
  %2: f32[3, 200, 4] = reshape(%0) {shape = [3, 200, 4]}
  %3: f32[3, 200] = map(%2, %1) {slices = 1, trips = 3}
    (%4: f32[200, 4], %5: f32[4, 512]) {
      %6: f32[200, 512] = matmul(%4, %5)
      %7: f32[200, 512] = softmax(%6) {axis = 1}
      %8: f32[200] = max(%7) {axes = [1]}
      return %8
    }
  %9: f32[600] = reshape(%3) {shape = [600]}
  return %9
}
