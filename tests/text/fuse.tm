# Nodes that can share loops become one group: elementwise ops with the reduction that reads them,
# and two readers of one value if one of them writes little. A matrix product is a separate kernel.
function(%x: f32[64, 256], %w: f32[256, 16]) {
  %e: f32[64, 256] = exp(%x)
  %s: f32[64, 256] = multiply(%e, %x)
  %r: f32[64] = sum(%s) {axes = [1]}
  %p: f32[64, 16] = matmul(%x, %w)
  %t: f32[64, 16] = tanh(%p)
  %m: f32[64, 256] = negative(%x)
  %n: f32[] = max(%x) {axes = [0, 1]}
  return %r, %t, %m, %n
}
---- after fuse
function(%0: f32[64, 256], %1: f32[256, 16]) {
  %2: f32[64, 16] = matmul(%0, %1)
  %3: f32[64, 16] = group(%2)
    (%4: f32[64, 16]) {
      %5: f32[64, 16] = tanh(%4)
      return %5
    }
  %6: f32[64], %7: f32[64, 256] = group(%0)
    (%8: f32[64, 256]) {
      %9: f32[64, 256] = exp(%8)
      %10: f32[64, 256] = multiply(%9, %8)
      %11: f32[64] = sum(%10) {axes = [1]}
      %12: f32[64, 256] = negative(%8)
      return %11, %12
    }
  %13: f32[] = group(%0)
    (%14: f32[64, 256]) {
      %15: f32[] = max(%14) {axes = [0, 1]}
      return %15
    }
  return %6, %3, %7, %13
}
