# The nodes around a table run part by part: sums over the rows are carried by a loop, in blocks of
# 256, or combined from blocks; the remaining rows are computed separately.
function(%x: f32[612, 4], %w: f32[4, 512], %b: f32[512]) {
  %t: f32[612, 512] = matmul(%x, %w)
  %u: f32[612, 512] = add(%t, %b)
  %e: f32[612, 512] = exp(%u)
  %r: f32[612] = sum(%e) {axes = [1]}
  %c: f32[512] = sum(%e) {axes = [0]}
  %xt: f32[4, 612] = transpose(%x) {order = [1, 0]}
  %g: f32[4, 512] = matmul(%xt, %e)
  return %r, %c, %g
}
---- after split
function(%0: f32[612, 4], %1: f32[4, 512], %2: f32[512]) {
  %3: f32[] = constant -0
  %4: f32[4, 512] = broadcast_to(%3) {shape = [4, 512]}
  %5: f32[512, 4] = slice(%0) {begin = [0, 0], size = [512, 4], step = [1, 1]}
  %6: f32[2, 256, 4] = reshape(%5) {shape = [2, 256, 4]}
  %7: f32[4, 512], %8: f32[2, 256], %9: f32[2, 512] = loop(%4, %6, %1, %2) {carries = 1, slices = 1, stacked = 2, trips = 2}
    (%10: i64[], %11: f32[4, 512], %12: f32[256, 4], %13: f32[4, 512], %14: f32[512]) {
      %15: f32[256, 512] = matmul(%12, %13)
      %16: f32[256, 512] = add(%15, %14)
      %17: f32[256, 512] = exp(%16)
      %18: f32[256] = sum(%17) {axes = [1]}
      %19: f32[512] = sum(%17) {axes = [0]}
      %20: f32[4, 256] = transpose(%12) {order = [1, 0]}
      %21: f32[4, 512] = accumulate(%11, %20, %17)
      return %21, %18, %19
    }
  %22: f32[100, 4] = slice(%0) {begin = [512, 0], size = [100, 4], step = [1, 1]}
  %23: f32[100, 512] = matmul(%22, %1)
  %24: f32[100, 512] = add(%23, %2)
  %25: f32[100, 512] = exp(%24)
  %26: f32[100] = sum(%25) {axes = [1]}
  %27: f32[512] = sum(%25) {axes = [0]}
  %28: f32[4, 100] = transpose(%22) {order = [1, 0]}
  %29: f32[4, 512] = accumulate(%7, %28, %25)
  %30: f32[512] = reshape(%8) {shape = [512]}
  %31: f32[612] = concat(%30, %26)
  %32: f32[1, 512] = reshape(%27) {shape = [1, 512]}
  %33: f32[3, 512] = concat(%9, %32)
  %34: f32[1, 512] = slice(%33) {begin = [2, 0], size = [1, 512], step = [1, 1]}
  %35: f32[1, 512] = slice(%33) {begin = [0, 0], size = [1, 512], step = [2, 1]}
  %36: f32[1, 512] = slice(%33) {begin = [1, 0], size = [1, 512], step = [2, 1]}
  %37: f32[1, 512] = add(%35, %36)
  %38: f32[1, 512] = add(%37, %34)
  %39: f32[512] = reshape(%38) {shape = [512]}
  return %31, %39, %29
}
