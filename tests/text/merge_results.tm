# A node with several results is computed once, even if its readers use different results.
function(%x: f32[8, 6]) {
  %a: f32[8, 6], %b: i64[8, 6] = sort(%x) {axis = 1}
  %c: f32[8, 6], %d: i64[8, 6] = sort(%x) {axis = 1}
  %e: f32[8, 6], %f: i64[8, 6] = sort(%x) {axis = 1, descending = true}
  return %a, %d, %f
}
---- after merge
function(%0: f32[8, 6]) {
  %1: f32[8, 6], %2: i64[8, 6] = sort(%0) {axis = 1}
  %3: f32[8, 6], %4: i64[8, 6] = sort(%0) {axis = 1, descending = true}
  return %1, %2, %4
}
