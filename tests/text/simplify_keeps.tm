# Operands that look neutral and are not: -0 + 0 is 0, -0 - -0 is 0, 0 * NaN is NaN, 0 - 0 is 0. A
# product with 1 that broadcasts its operand is not the operand.
function(%x: f32[11], %n: i32[11], %wide: f32[2, 11], %s: f32[]) {
  %zero: f32[] = constant 0
  %a: f32[11] = add(%x, %zero)
  %b: f32[11] = add(%zero, %x)
  %minus: f32[] = constant -0
  %c: f32[11] = subtract(%x, %minus)
  %d: f32[11] = multiply(%x, %zero)
  %e: f32[11] = subtract(%zero, %x)
  %one: f32[] = constant 1
  %f: f32[11] = divide(%one, %x)
  %g: f32[11] = subtract(%x, %x)
  %h: f32[11] = divide(%x, %x)
  %whole: i32[] = constant 1
  %i: i32[11] = left_shift(%whole, %n)
  %j: i32[11] = subtract(%whole, %n)
  %ones: f32[2, 11] = broadcast_to(%one) {shape = [2, 11]}
  %k: f32[2, 11] = multiply(%x, %ones)
  %l: f32[11] = pow(%x, %one)
  %m: f32[] = add(%s, %zero)
  return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k, %l, %m
}
---- after simplify
function(%0: f32[11], %1: i32[11], %2: f32[2, 11], %3: f32[]) {
  %4: f32[] = constant 0
  %5: f32[11] = add(%0, %4)
  %6: f32[11] = add(%4, %0)
  %7: f32[] = constant -0
  %8: f32[11] = subtract(%0, %7)
  %9: f32[11] = multiply(%0, %4)
  %10: f32[11] = subtract(%4, %0)
  %11: f32[] = constant 1
  %12: f32[11] = divide(%11, %0)
  %13: f32[11] = subtract(%0, %0)
  %14: f32[11] = divide(%0, %0)
  %15: i32[] = constant 1
  %16: i32[11] = left_shift(%15, %1)
  %17: i32[11] = subtract(%15, %1)
  %18: f32[2, 11] = broadcast_to(%11) {shape = [2, 11]}
  %19: f32[2, 11] = multiply(%0, %18)
  %20: f32[11] = pow(%0, %11)
  %21: f32[] = add(%3, %4)
  return %5, %6, %8, %9, %10, %12, %13, %14, %16, %17, %19, %20, %21
}
---- after remove_dead
function(%0: f32[11], %1: i32[11], %2: f32[2, 11], %3: f32[]) {
  %4: f32[] = constant 0
  %5: f32[11] = add(%0, %4)
  %6: f32[11] = add(%4, %0)
  %7: f32[] = constant -0
  %8: f32[11] = subtract(%0, %7)
  %9: f32[11] = multiply(%0, %4)
  %10: f32[11] = subtract(%4, %0)
  %11: f32[] = constant 1
  %12: f32[11] = divide(%11, %0)
  %13: f32[11] = subtract(%0, %0)
  %14: f32[11] = divide(%0, %0)
  %15: i32[] = constant 1
  %16: i32[11] = left_shift(%15, %1)
  %17: i32[11] = subtract(%15, %1)
  %18: f32[2, 11] = broadcast_to(%11) {shape = [2, 11]}
  %19: f32[2, 11] = multiply(%0, %18)
  %20: f32[11] = pow(%0, %11)
  %21: f32[] = add(%3, %4)
  return %5, %6, %8, %9, %10, %12, %13, %14, %16, %17, %19, %20, %21
}
