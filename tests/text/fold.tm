# Expressions of constants are computed once, by the kernels: in their dtype, rounded at each step,
# including infinities, NaN and -0. Values of several elements, or that depend on an argument, stay.
function(%x: f32[4], %p: bool[]) {
  %third: f32[] = constant 0.3333333432674408
  %three: f32[] = constant 3
  %a: f32[] = multiply(%third, %three)
  %b: f32[] = exp(%a)
  %tiny: f32[] = constant 1e-40
  %c: f32[] = multiply(%tiny, %third)
  %zero: f32[] = constant 0
  %minus: f32[] = negative(%zero)
  %d: f32[] = divide(%three, %minus)
  %e: f32[] = subtract(%d, %d)
  %half: f16[] = cast(%third) {dtype = f16}
  %f: f16[] = multiply(%half, %half)
  %most: i32[] = constant 2147483647
  %g: i32[] = add(%most, %most)
  %h: bool[] = less(%a, %three)
  %i: f32[] = where(%h, %b, %c)
  %j: f32[] = stop_gradient(%i)
  %k: i64[] = cast(%d) {dtype = i64}
  %wide: f32[4] = broadcast_to(%a) {shape = [4]}
  %l: f32[4] = multiply(%wide, %j)
  %m: f32[4] = multiply(%x, %j)
  %n: f32[4] = cond(%p, %m)
    (%y: f32[4]) {
      %two: f32[] = constant 2
      %four: f32[] = square(%two)
      %o: f32[4] = multiply(%y, %four)
      return %o
    }
    (%y: f32[4]) {
      return %y
    }
  return %c, %d, %e, %f, %g, %k, %l, %n
}
---- after fold
function(%0: f32[4], %1: bool[]) {
  %2: f32[] = constant 0.3333333432674408
  %3: f32[] = constant 3
  %4: f32[] = constant 1
  %5: f32[] = constant 2.7182817459106445
  %6: f32[] = constant 1e-40
  %7: f32[] = constant 3.3332686570894424e-41
  %8: f32[] = constant 0
  %9: f32[] = constant -0
  %10: f32[] = constant -inf
  %11: f32[] = constant nan
  %12: f16[] = constant 0.333251953125
  %13: f16[] = constant 0.111083984375
  %14: i32[] = constant 2147483647
  %15: i32[] = constant -2
  %16: bool[] = constant true
  %17: f32[] = constant 2.7182817459106445
  %18: f32[] = constant 2.7182817459106445
  %19: i64[] = constant -9223372036854775808
  %20: f32[4] = broadcast_to(%4) {shape = [4]}
  %21: f32[4] = multiply(%20, %18)
  %22: f32[4] = multiply(%0, %18)
  %23: f32[4] = cond(%1, %22)
    (%24: f32[4]) {
      %25: f32[] = constant 2
      %26: f32[] = constant 4
      %27: f32[4] = multiply(%24, %26)
      return %27
    }
    (%28: f32[4]) {
      return %28
    }
  return %7, %10, %11, %13, %15, %19, %21, %23
}
---- after remove_dead
function(%0: f32[4], %1: bool[]) {
  %2: f32[] = constant 1
  %3: f32[] = constant 3.3332686570894424e-41
  %4: f32[] = constant -inf
  %5: f32[] = constant nan
  %6: f16[] = constant 0.111083984375
  %7: i32[] = constant -2
  %8: f32[] = constant 2.7182817459106445
  %9: i64[] = constant -9223372036854775808
  %10: f32[4] = broadcast_to(%2) {shape = [4]}
  %11: f32[4] = multiply(%10, %8)
  %12: f32[4] = multiply(%0, %8)
  %13: f32[4] = cond(%1, %12)
    (%14: f32[4]) {
      %15: f32[] = constant 4
      %16: f32[4] = multiply(%14, %15)
      return %16
    }
    (%17: f32[4]) {
      return %17
    }
  return %3, %4, %5, %6, %7, %9, %11, %13
}
