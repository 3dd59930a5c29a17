# Only nodes of the same region are merged, and never nodes that have regions.
function(%x: f32[4], %c: bool[]) {
  %e: f32[4] = exp(%x)
  %one: f32[] = constant 1
  %y: f32[4] = cond(%c, %x)
    (%a: f32[4]) {
      %one: f32[] = constant 1
      %b: f32[4] = exp(%a)
      %d: f32[4] = exp(%a)
      %f: f32[4] = add(%b, %d)
      %g: f32[4] = add(%f, %one)
      return %g
    }
    (%a: f32[4]) {
      %one: f32[] = constant 1
      %b: f32[4] = add(%a, %one)
      return %b
    }
  %z: f32[4] = cond(%c, %x)
    (%a: f32[4]) {
      return %a
    }
    (%a: f32[4]) {
      return %a
    }
  %w: f32[4] = cond(%c, %x)
    (%a: f32[4]) {
      return %a
    }
    (%a: f32[4]) {
      return %a
    }
  %f: f32[4] = exp(%x)
  return %y, %z, %w, %f, %e, %one
}
---- after merge
function(%0: f32[4], %1: bool[]) {
  %2: f32[4] = exp(%0)
  %3: f32[] = constant 1
  %4: f32[4] = cond(%1, %0)
    (%5: f32[4]) {
      %6: f32[] = constant 1
      %7: f32[4] = exp(%5)
      %8: f32[4] = add(%7, %7)
      %9: f32[4] = add(%8, %6)
      return %9
    }
    (%10: f32[4]) {
      %11: f32[] = constant 1
      %12: f32[4] = add(%10, %11)
      return %12
    }
  %13: f32[4] = cond(%1, %0)
    (%14: f32[4]) {
      return %14
    }
    (%15: f32[4]) {
      return %15
    }
  %16: f32[4] = cond(%1, %0)
    (%17: f32[4]) {
      return %17
    }
    (%18: f32[4]) {
      return %18
    }
  return %4, %13, %16, %2, %2, %3
}
