function(%x: f32[4], %c: bool[]) {
  %1: f32[4] = exp(%x)
  %2: f32[4] = sin(%1)
  %3: f32[4] = cos(%1)
  %4: f32[4], %5: f32[4] = cond(%c, %x)
    (%a: f32[4]) {
      %b: f32[4] = exp(%a)
      %d: f32[4] = tanh(%a)
      return %b, %a
    }
    (%a: f32[4]) {
      return %a, %a
    }
  %6: f32[4] = cond(%c, %3)
    (%a: f32[4]) {
      return %a
    }
    (%a: f32[4]) {
      return %a
    }
  return %5, %2
}
---- after remove_dead
function(%0: f32[4], %1: bool[]) {
  %2: f32[4] = exp(%0)
  %3: f32[4] = sin(%2)
  %4: f32[4], %5: f32[4] = cond(%1, %0)
    (%6: f32[4]) {
      %7: f32[4] = exp(%6)
      return %7, %6
    }
    (%8: f32[4]) {
      return %8, %8
    }
  return %5, %3
}
