# The nodes of a call replace it, also for calls inside calls and inside loops.
function(%x: f32[4], %y: f32[4]) {
  %a: f32[4], %b: f32[4] = call(%x, %y)
    (%p: f32[4], %q: f32[4]) {
      %s: f32[4] = add(%p, %q)
      %t: f32[4] = call(%s)
        (%r: f32[4]) {
          %e: f32[4] = exp(%r)
          return %e
        }
      return %t, %p
    }
  %l: f32[4] = loop(%a, %b) {carries = 1, trips = 3}
    (%i: i64[], %c: f32[4], %d: f32[4]) {
      %n: f32[4] = call(%c, %d)
        (%u: f32[4], %v: f32[4]) {
          %w: f32[4] = multiply(%u, %v)
          return %w
        }
      return %n
    }
  return %l, %b
}
---- after inline_calls
function(%0: f32[4], %1: f32[4]) {
  %2: f32[4] = add(%0, %1)
  %3: f32[4] = exp(%2)
  %4: f32[4] = loop(%3, %0) {carries = 1, trips = 3}
    (%5: i64[], %6: f32[4], %7: f32[4]) {
      %8: f32[4] = multiply(%6, %7)
      return %8
    }
  return %4, %0
}
