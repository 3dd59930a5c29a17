# Neutral operands: x * 1, x + -0, and similar.
function(%x: f32[11], %n: i32[11], %m: u8[11], %p: bool[11], %q: bool[], %h: bf16[11]) {
  %one: f32[] = constant 1
  %a: f32[11] = multiply(%x, %one)
  %b: f32[11] = multiply(%one, %x)
  %c: f32[11] = divide(%x, %one)
  %zero: f32[] = constant 0
  %d: f32[11] = subtract(%x, %zero)
  %minus: f32[] = constant -0
  %e: f32[11] = add(%x, %minus)
  %f: f32[11] = add(%minus, %x)
  %none: i32[] = constant 0
  %g: i32[11] = add(%n, %none)
  %i: i32[11] = subtract(%n, %none)
  %ones: i32[] = constant -1
  %j: i32[11] = bitwise_and(%ones, %n)
  %k: i32[11] = left_shift(%n, %none)
  %full: u8[] = constant 255
  %l: u8[11] = bitwise_and(%m, %full)
  %yes: bool[] = constant true
  %no: bool[] = constant false
  %o: bool[11] = logical_and(%p, %yes)
  %r: bool[11] = logical_xor(%no, %p)
  %s: bool[11] = multiply(%p, %yes)
  %many: f32[11] = broadcast_to(%one) {shape = [11]}
  %t: f32[11] = multiply(%x, %many)
  %small: bf16[] = constant 1
  %u: bf16[11] = multiply(%h, %small)
  return %a, %b, %c, %d, %e, %f, %g, %i, %j, %k, %l, %o, %r, %s, %t, %u
}
---- after simplify
function(%0: f32[11], %1: i32[11], %2: u8[11], %3: bool[11], %4: bool[], %5: bf16[11]) {
  %6: f32[] = constant 1
  %7: f32[] = constant 0
  %8: f32[] = constant -0
  %9: i32[] = constant 0
  %10: i32[] = constant -1
  %11: u8[] = constant 255
  %12: bool[] = constant true
  %13: bool[] = constant false
  %14: f32[11] = broadcast_to(%6) {shape = [11]}
  %15: bf16[] = constant 1
  return %0, %0, %0, %0, %0, %0, %1, %1, %1, %1, %2, %3, %3, %3, %0, %5
}
---- after remove_dead
function(%0: f32[11], %1: i32[11], %2: u8[11], %3: bool[11], %4: bool[], %5: bf16[11]) {
  return %0, %0, %0, %0, %0, %0, %1, %1, %1, %1, %2, %3, %3, %3, %0, %5
}
