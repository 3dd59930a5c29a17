# A broadcast or a literal is recreated in the region that reads it: the region captures the operand,
# and its inner regions see that it repeats. Other views stay captured.
function(%x: f32[3], %y: f32[3, 2], %c: bool[]) {
  %b: f32[2, 3] = broadcast_to(%x) {shape = [2, 3]}
  %k: f32[] = constant 2
  %t: f32[2, 3] = transpose(%y) {order = [1, 0]}
  %1: f32[2, 3] = loop(%b, %b, %k, %t) {carries = 1, trips = 3}
    (%i: i64[], %p: f32[2, 3], %q: f32[2, 3], %l: f32[], %u: f32[2, 3]) {
      %m: f32[2, 3] = multiply(%p, %l)
      %r: f32[2, 3] = loop(%m, %q, %u) {carries = 1, trips = 2}
        (%j: i64[], %v: f32[2, 3], %w: f32[2, 3], %z: f32[2, 3]) {
          %s: f32[2, 3] = add(%v, %w)
          %a: f32[2, 3] = add(%s, %z)
          return %a
        }
      return %r
    }
  %2: f32[2, 3] = cond(%c, %1, %b)
    (%d: f32[2, 3], %e: f32[2, 3]) {
      return %e
    }
    (%d: f32[2, 3], %e: f32[2, 3]) {
      return %d
    }
  return %2
}
---- after sink_views
function(%0: f32[3], %1: f32[3, 2], %2: bool[]) {
  %3: f32[2, 3] = broadcast_to(%0) {shape = [2, 3]}
  %4: f32[] = constant 2
  %5: f32[2, 3] = transpose(%1) {order = [1, 0]}
  %6: f32[2, 3] = loop(%3, %0, %5) {carries = 1, trips = 3}
    (%7: i64[], %8: f32[2, 3], %9: f32[3], %10: f32[2, 3]) {
      %11: f32[2, 3] = broadcast_to(%9) {shape = [2, 3]}
      %12: f32[] = constant 2
      %13: f32[2, 3] = multiply(%8, %12)
      %14: f32[2, 3] = loop(%13, %9, %10) {carries = 1, trips = 2}
        (%15: i64[], %16: f32[2, 3], %17: f32[3], %18: f32[2, 3]) {
          %19: f32[2, 3] = broadcast_to(%17) {shape = [2, 3]}
          %20: f32[2, 3] = add(%16, %19)
          %21: f32[2, 3] = add(%20, %18)
          return %21
        }
      return %14
    }
  %22: f32[2, 3] = cond(%2, %6, %0)
    (%23: f32[2, 3], %24: f32[3]) {
      %25: f32[2, 3] = broadcast_to(%24) {shape = [2, 3]}
      return %25
    }
    (%26: f32[2, 3], %27: f32[3]) {
      %28: f32[2, 3] = broadcast_to(%27) {shape = [2, 3]}
      return %26
    }
  return %22
}
