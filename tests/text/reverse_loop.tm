# A reverse_loop: passes work inside both of its regions.
function(%x: f32[4], %g: f32[4]) {
  %last: f32[4], %marks: i64[8], %states: f32[4, 4] = loop(%x) {carries = 1, trips = 6, save = 3, amount = 4, marks = 1, kept = 1}
    (%trip: i64[], %c: f32[4]) {
      %d: f32[4] = sin(%c)
      return %d
    }
  %back: f32[4] = reverse_loop(%marks, %states, %x, %g) {carries = 1, backs = 1, trips = 6}
    (%trip: i64[], %c: f32[4]) {
      %d: f32[4] = sin(%c)
      return %d
    }
    (%trip: i64[], %c: f32[4], %b: f32[4]) {
      %d: f32[4] = negative(%b)
      %e: f32[4] = negative(%d)
      %f: f32[4] = cos(%c)
      %h: f32[4] = multiply(%e, %f)
      return %h
    }
  return %back
}
---- after simplify
function(%0: f32[4], %1: f32[4]) {
  %2: f32[4], %3: i64[8], %4: f32[4, 4] = loop(%0) {carries = 1, trips = 6, save = 3, amount = 4, marks = 1, kept = 1}
    (%5: i64[], %6: f32[4]) {
      %7: f32[4] = sin(%6)
      return %7
    }
  %8: f32[4] = reverse_loop(%3, %4, %0, %1) {carries = 1, backs = 1, trips = 6}
    (%9: i64[], %10: f32[4]) {
      %11: f32[4] = sin(%10)
      return %11
    }
    (%12: i64[], %13: f32[4], %14: f32[4]) {
      %15: f32[4] = negative(%14)
      %16: f32[4] = cos(%13)
      %17: f32[4] = multiply(%14, %16)
      return %17
    }
  return %8
}
---- after remove_dead
function(%0: f32[4], %1: f32[4]) {
  %2: f32[4], %3: i64[8], %4: f32[4, 4] = loop(%0) {carries = 1, trips = 6, save = 3, amount = 4, marks = 1, kept = 1}
    (%5: i64[], %6: f32[4]) {
      %7: f32[4] = sin(%6)
      return %7
    }
  %8: f32[4] = reverse_loop(%3, %4, %0, %1) {carries = 1, backs = 1, trips = 6}
    (%9: i64[], %10: f32[4]) {
      %11: f32[4] = sin(%10)
      return %11
    }
    (%12: i64[], %13: f32[4], %14: f32[4]) {
      %15: f32[4] = cos(%13)
      %16: f32[4] = multiply(%14, %15)
      return %16
    }
  return %8
}
