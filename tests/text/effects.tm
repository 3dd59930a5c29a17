# Effects are never merged, dropped or moved, also inside regions.
function(%x: f32[2], %c: bool[]) {
  print(%x) {text = "once \%"}
  %a: f32[2] = exp(%x)
  print(%x) {text = "once \%"}
  %b: f32[2] = exp(%x)
  check_numerics(%b) {text = "b"}
  check_numerics(%a) {text = "b"}
  %y: f32[2] = cond(%c, %a)
    (%p: f32[2]) {
      %q: f32[2] = sin(%p)
      print(%p) {text = "taken: \%"}
      return %p
    }
    (%p: f32[2]) {
      return %p
    }
  return %b
}
---- after simplify
function(%0: f32[2], %1: bool[]) {
  print(%0) {text = "once \%"}
  %2: f32[2] = exp(%0)
  print(%0) {text = "once \%"}
  %3: f32[2] = exp(%0)
  check_numerics(%3) {text = "b"}
  check_numerics(%2) {text = "b"}
  %4: f32[2] = cond(%1, %2)
    (%5: f32[2]) {
      %6: f32[2] = sin(%5)
      print(%5) {text = "taken: \%"}
      return %5
    }
    (%7: f32[2]) {
      return %7
    }
  return %3
}
---- after merge
function(%0: f32[2], %1: bool[]) {
  print(%0) {text = "once \%"}
  %2: f32[2] = exp(%0)
  print(%0) {text = "once \%"}
  check_numerics(%2) {text = "b"}
  check_numerics(%2) {text = "b"}
  %3: f32[2] = cond(%1, %2)
    (%4: f32[2]) {
      %5: f32[2] = sin(%4)
      print(%4) {text = "taken: \%"}
      return %4
    }
    (%6: f32[2]) {
      return %6
    }
  return %2
}
---- after remove_dead
function(%0: f32[2], %1: bool[]) {
  print(%0) {text = "once \%"}
  %2: f32[2] = exp(%0)
  print(%0) {text = "once \%"}
  check_numerics(%2) {text = "b"}
  check_numerics(%2) {text = "b"}
  %3: f32[2] = cond(%1, %2)
    (%4: f32[2]) {
      print(%4) {text = "taken: \%"}
      return %4
    }
    (%5: f32[2]) {
      return %5
    }
  return %2
}
