# f(f(x)) equals x or f(x).
function(%x: f32[11], %n: i32[11], %m: u8[11], %p: bool[11]) {
  %1: f32[11] = negative(%x)
  %2: f32[11] = negative(%1)
  %3: f32[11] = negative(%2)
  %4: u8[11] = negative(%m)
  %5: u8[11] = negative(%4)
  %6: bool[11] = logical_not(%p)
  %7: bool[11] = logical_not(%6)
  %8: i32[11] = bitwise_invert(%n)
  %9: i32[11] = bitwise_invert(%8)
  %10: f32[11] = relu(%x)
  %11: f32[11] = relu(%10)
  %12: f32[11] = abs(%x)
  %13: f32[11] = abs(%12)
  %14: f32[11] = round(%x)
  %15: f32[11] = round(%14)
  %16: f32[11] = floor(%14)
  %17: f32[11] = identity(%x)
  return %2, %3, %5, %7, %9, %11, %13, %15, %16, %17
}
---- after simplify
function(%0: f32[11], %1: i32[11], %2: u8[11], %3: bool[11]) {
  %4: f32[11] = negative(%0)
  %5: f32[11] = negative(%0)
  %6: u8[11] = negative(%2)
  %7: bool[11] = logical_not(%3)
  %8: i32[11] = bitwise_invert(%1)
  %9: f32[11] = relu(%0)
  %10: f32[11] = abs(%0)
  %11: f32[11] = round(%0)
  %12: f32[11] = floor(%11)
  return %0, %5, %2, %3, %1, %9, %10, %11, %12, %0
}
---- after remove_dead
function(%0: f32[11], %1: i32[11], %2: u8[11], %3: bool[11]) {
  %4: f32[11] = negative(%0)
  %5: f32[11] = relu(%0)
  %6: f32[11] = abs(%0)
  %7: f32[11] = round(%0)
  %8: f32[11] = floor(%7)
  return %0, %4, %2, %3, %1, %5, %6, %7, %8, %0
}
