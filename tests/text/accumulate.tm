# A loop accumulates the product into the sum that it carries. Exceptions: the product is longer than
# one block of k, it has other readers, or the sum so far has another reader.
function(%x: f32[5, 8, 4], %y: f32[5, 8, 6], %long: f32[5, 257, 4], %wide: f32[5, 257, 6], %s: f32[4, 6]) {
  %a: f32[4, 6], %b: f32[4, 6], %c: f32[4, 6], %d: f32[4, 6], %e: f32[5, 4, 6] = loop(%s, %s, %s, %s, %x, %y, %long, %wide) {carries = 4, slices = 4, stacked = 1, trips = 5, reverse = false, counted = false}
    (%t: i64[], %p: f32[4, 6], %q: f32[4, 6], %r: f32[4, 6], %u: f32[4, 6], %xt: f32[8, 4], %yt: f32[8, 6], %lt: f32[257, 4], %wt: f32[257, 6]) {
      %turned: f32[4, 8] = transpose(%xt) {order = [1, 0]}
      %one: f32[4, 6] = matmul(%turned, %yt)
      %sum: f32[4, 6] = add(%one, %p)
      %far: f32[4, 257] = transpose(%lt) {order = [1, 0]}
      %two: f32[4, 6] = matmul(%far, %wt)
      %next: f32[4, 6] = add(%q, %two)
      %half: f32[8, 6] = negative(%yt)
      %three: f32[4, 6] = matmul(%turned, %half)
      %third: f32[4, 6] = add(%r, %three)
      %twice: f32[8, 6] = add(%yt, %yt)
      %four: f32[4, 6] = matmul(%turned, %twice)
      %fourth: f32[4, 6] = add(%u, %four)
      return %sum, %next, %third, %fourth, %u
    }
  return %a, %b, %c, %d, %e
}
---- after accumulate
function(%0: f32[5, 8, 4], %1: f32[5, 8, 6], %2: f32[5, 257, 4], %3: f32[5, 257, 6], %4: f32[4, 6]) {
  %5: f32[4, 6], %6: f32[4, 6], %7: f32[4, 6], %8: f32[4, 6], %9: f32[5, 4, 6] = loop(%4, %4, %4, %4, %0, %1, %2, %3) {carries = 4, slices = 4, stacked = 1, trips = 5}
    (%10: i64[], %11: f32[4, 6], %12: f32[4, 6], %13: f32[4, 6], %14: f32[4, 6], %15: f32[8, 4], %16: f32[8, 6], %17: f32[257, 4], %18: f32[257, 6]) {
      %19: f32[4, 8] = transpose(%15) {order = [1, 0]}
      %20: f32[4, 6] = accumulate(%11, %19, %16)
      %21: f32[4, 257] = transpose(%17) {order = [1, 0]}
      %22: f32[4, 6] = matmul(%21, %18)
      %23: f32[4, 6] = add(%12, %22)
      %24: f32[8, 6] = negative(%16)
      %25: f32[4, 6] = accumulate(%13, %19, %24)
      %26: f32[8, 6] = add(%16, %16)
      %27: f32[4, 6] = matmul(%19, %26)
      %28: f32[4, 6] = add(%14, %27)
      return %20, %23, %25, %28, %14
    }
  return %5, %6, %7, %8, %9
}
