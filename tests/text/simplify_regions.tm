# Nodes inside regions are simplified too; chains are followed to their start.
function(%x: f32[4], %c: bool[]) {
  %y: f32[4] = cond(%c, %x)
    (%a: f32[4]) {
      %one: f32[] = constant 1
      %b: f32[4] = multiply(%a, %one)
      %d: f32[4] = divide(%b, %one)
      %e: f32[2, 2] = reshape(%d) {shape = [2, 2]}
      %f: f32[4, 1] = reshape(%e) {shape = [4, 1]}
      %g: f32[4] = reshape(%f) {shape = [4]}
      return %g
    }
    (%a: f32[4]) {
      %b: f32[4] = negative(%a)
      %d: f32[4] = negative(%b)
      %e: f32[4] = exp(%d)
      return %e
    }
  return %y
}
---- after simplify
function(%0: f32[4], %1: bool[]) {
  %2: f32[4] = cond(%1, %0)
    (%3: f32[4]) {
      %4: f32[] = constant 1
      %5: f32[2, 2] = reshape(%3) {shape = [2, 2]}
      %6: f32[4, 1] = reshape(%3) {shape = [4, 1]}
      return %3
    }
    (%7: f32[4]) {
      %8: f32[4] = negative(%7)
      %9: f32[4] = exp(%7)
      return %9
    }
  return %2
}
---- after remove_dead
function(%0: f32[4], %1: bool[]) {
  %2: f32[4] = cond(%1, %0)
    (%3: f32[4]) {
      return %3
    }
    (%4: f32[4]) {
      %5: f32[4] = exp(%4)
      return %5
    }
  return %2
}
