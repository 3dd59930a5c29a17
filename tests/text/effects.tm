# Effects are never merged, dropped or moved, in regions neither.
function(%x: f32[2], %c: bool[]) {
  print(%x) {text = "once \\%"}
  %a: f32[2] = exp(%x)
  print(%x) {text = "once \\%"}
  %b: f32[2] = exp(%x)
  check_numerics(%b) {text = "b"}
  check_numerics(%a) {text = "b"}
  %y: f32[2] = cond(%c, %a)
    (%p: f32[2]) {
      %q: f32[2] = sin(%p)
      print(%p) {text = "taken: \\%"}
      return %p
    }
    (%p: f32[2]) {
      return %p
    }
  return %b
}
---- after simplify
---- after merge
---- after remove_dead
