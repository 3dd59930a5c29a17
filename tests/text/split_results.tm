# Both results of a node around a table are computed part by part; an unused one is dropped.
function(%x: f32[600, 4], %w: f32[4, 512]) {
  %t: f32[600, 512] = matmul(%x, %w)
  %v: f32[600, 3], %i: i64[600, 3] = top_k(%t) {axis = 1, k = 3}
  %s: f32[600, 512], %p: i64[600, 512] = sort(%t) {axis = 1}
  %m: f32[600] = max(%s) {axes = [1]}
  return %v, %i, %m
}
---- after split
function(%0: f32[600, 4], %1: f32[4, 512]) {
  %2: f32[3, 200, 4] = reshape(%0) {shape = [3, 200, 4]}
  %3: f32[3, 200, 3], %4: i64[3, 200, 3], %5: f32[3, 200] = map(%2, %1) {slices = 1, trips = 3}
    (%6: f32[200, 4], %7: f32[4, 512]) {
      %8: f32[200, 512] = matmul(%6, %7)
      %9: f32[200, 3], %10: i64[200, 3] = top_k(%8) {axis = 1, k = 3}
      %11: f32[200, 512], %12: i64[200, 512] = sort(%8) {axis = 1}
      %13: f32[200] = max(%11) {axes = [1]}
      return %9, %10, %13
    }
  %14: f32[600, 3] = reshape(%3) {shape = [600, 3]}
  %15: i64[600, 3] = reshape(%4) {shape = [600, 3]}
  %16: f32[600] = reshape(%5) {shape = [600]}
  return %14, %15, %16
}
