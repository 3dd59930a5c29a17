# Removes unread results of a branch, carries of a loop that serve no result, and captures that no
# region reads.
function(%x: f32[4], %y: f32[4], %z: f32[3, 4], %c: bool[]) {
  %1: f32[4], %2: f32[4] = cond(%c, %x, %y)
    (%a: f32[4], %b: f32[4]) {
      %d: f32[4] = exp(%b)
      return %a, %d
    }
    (%a: f32[4], %b: f32[4]) {
      return %a, %b
    }
  %3: f32[4], %4: f32[4], %5: f32[3, 4] = loop(%x, %y, %z, %x, %y) {carries = 2, slices = 1, stacked = 1, trips = 3, reverse = false, counted = false}
    (%t: i64[], %p: f32[4], %q: f32[4], %s: f32[4], %u: f32[4], %v: f32[4]) {
      %e: f32[4] = sin(%p)
      %f: f32[4] = add(%q, %v)
      %g: f32[4] = multiply(%s, %q)
      return %e, %f, %g
    }
  return %1, %4
}
---- after trim
function(%0: f32[4], %1: f32[4], %2: f32[3, 4], %3: bool[]) {
  %4: f32[4] = cond(%3, %0)
    (%5: f32[4]) {
      return %5
    }
    (%6: f32[4]) {
      return %6
    }
  %7: f32[4] = loop(%1, %1) {carries = 1, trips = 3}
    (%8: i64[], %9: f32[4], %10: f32[4]) {
      %11: f32[4] = add(%9, %10)
      return %11
    }
  return %4, %7
}
