# Views of views, and views that change nothing.
function(%x: f32[2, 3, 4], %row: f32[1, 4], %s: f32[]) {
  %1: f32[3, 4, 2] = transpose(%x) {order = [1, 2, 0]}
  %2: f32[2, 3, 4] = transpose(%1) {order = [2, 0, 1]}
  %3: f32[2, 4, 3] = transpose(%1) {order = [2, 1, 0]}
  %4: f32[6, 4] = reshape(%x) {shape = [6, 4]}
  %5: f32[24] = reshape(%4) {shape = [24]}
  %6: f32[2, 3, 4] = reshape(%5) {shape = [2, 3, 4]}
  %7: f32[2, 3, 4] = slice(%x) {begin = [0, 0, 0], size = [2, 3, 4], step = [1, 1, 1]}
  %8: f32[2, 3, 4] = slice(%x) {begin = [0, 2, 0], size = [2, 3, 4], step = [1, -1, 1]}
  %9: f32[1, 2, 2] = slice(%8) {begin = [1, 0, 1], size = [1, 2, 2], step = [1, 2, 2]}
  %10: f32[0, 2, 1] = slice(%9) {begin = [1, 0, 1], size = [0, 2, 1], step = [1, 1, 5]}
  %11: f32[3, 4] = broadcast_to(%row) {shape = [3, 4]}
  %12: f32[2, 3, 4] = broadcast_to(%11) {shape = [2, 3, 4]}
  %13: f32[1, 4] = broadcast_to(%row) {shape = [1, 4]}
  %14: f32[2, 3, 4] = transpose(%x) {order = [0, 1, 2]}
  %15: f32[] = reshape(%s) {shape = []}
  return %2, %3, %6, %7, %8, %9, %10, %12, %13, %14, %15
}
---- after simplify
function(%0: f32[2, 3, 4], %1: f32[1, 4], %2: f32[]) {
  %3: f32[3, 4, 2] = transpose(%0) {order = [1, 2, 0]}
  %4: f32[2, 4, 3] = transpose(%0) {order = [0, 2, 1]}
  %5: f32[6, 4] = reshape(%0) {shape = [6, 4]}
  %6: f32[24] = reshape(%0) {shape = [24]}
  %7: f32[2, 3, 4] = slice(%0) {begin = [0, 2, 0], size = [2, 3, 4], step = [1, -1, 1]}
  %8: f32[1, 2, 2] = slice(%0) {begin = [1, 2, 1], size = [1, 2, 2], step = [1, -2, 2]}
  %9: f32[0, 2, 1] = slice(%0) {begin = [0, 2, 3], size = [0, 2, 1], step = [1, -2, 1]}
  %10: f32[3, 4] = broadcast_to(%1) {shape = [3, 4]}
  %11: f32[2, 3, 4] = broadcast_to(%1) {shape = [2, 3, 4]}
  return %0, %4, %0, %0, %7, %8, %9, %11, %1, %0, %2
}
---- after remove_dead
function(%0: f32[2, 3, 4], %1: f32[1, 4], %2: f32[]) {
  %3: f32[2, 4, 3] = transpose(%0) {order = [0, 2, 1]}
  %4: f32[2, 3, 4] = slice(%0) {begin = [0, 2, 0], size = [2, 3, 4], step = [1, -1, 1]}
  %5: f32[1, 2, 2] = slice(%0) {begin = [1, 2, 1], size = [1, 2, 2], step = [1, -2, 2]}
  %6: f32[0, 2, 1] = slice(%0) {begin = [0, 2, 3], size = [0, 2, 1], step = [1, -2, 1]}
  %7: f32[2, 3, 4] = broadcast_to(%1) {shape = [2, 3, 4]}
  return %0, %3, %0, %0, %4, %5, %6, %7, %1, %0, %2
}
