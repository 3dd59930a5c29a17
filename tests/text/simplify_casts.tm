# A cast to a dtype that holds all values may be skipped; one that rounds may not, nor one from an
# integer to a float (floats saturate, integers wrap).
function(%x: f32[11], %h: bf16[11], %f: f16[11], %n: i32[11], %m: u8[11], %p: bool[11], %l: i64[11]) {
  %1: f32[11] = cast(%x) {dtype = f32}
  %2: f32[11] = cast(%h) {dtype = f32}
  %3: bf16[11] = cast(%2) {dtype = bf16}
  %4: f16[11] = cast(%2) {dtype = f16}
  %5: bf16[11] = cast(%x) {dtype = bf16}
  %6: f32[11] = cast(%5) {dtype = f32}
  %7: i64[11] = cast(%n) {dtype = i64}
  %8: u8[11] = cast(%7) {dtype = u8}
  %9: i32[11] = cast(%7) {dtype = i32}
  %10: f64[11] = cast(%n) {dtype = f64}
  %11: u8[11] = cast(%10) {dtype = u8}
  %12: f32[11] = cast(%p) {dtype = f32}
  %13: i32[11] = cast(%12) {dtype = i32}
  %14: f16[11] = cast(%h) {dtype = f16}
  %15: f32[11] = cast(%14) {dtype = f32}
  %16: f64[11] = cast(%f) {dtype = f64}
  %17: bool[11] = cast(%16) {dtype = bool}
  %18: i32[11] = cast(%l) {dtype = i32}
  %19: i64[11] = cast(%18) {dtype = i64}
  %20: f64[11] = cast(%m) {dtype = f64}
  %21: u8[11] = cast(%20) {dtype = u8}
  return %1, %3, %4, %6, %8, %9, %11, %13, %15, %17, %19, %21
}
---- after simplify
function(%0: f32[11], %1: bf16[11], %2: f16[11], %3: i32[11], %4: u8[11], %5: bool[11], %6: i64[11]) {
  %7: f32[11] = cast(%1) {dtype = f32}
  %8: f16[11] = cast(%1) {dtype = f16}
  %9: bf16[11] = cast(%0) {dtype = bf16}
  %10: f32[11] = cast(%9) {dtype = f32}
  %11: i64[11] = cast(%3) {dtype = i64}
  %12: u8[11] = cast(%3) {dtype = u8}
  %13: f64[11] = cast(%3) {dtype = f64}
  %14: u8[11] = cast(%13) {dtype = u8}
  %15: f32[11] = cast(%5) {dtype = f32}
  %16: i32[11] = cast(%5) {dtype = i32}
  %17: f16[11] = cast(%1) {dtype = f16}
  %18: f32[11] = cast(%17) {dtype = f32}
  %19: f64[11] = cast(%2) {dtype = f64}
  %20: bool[11] = cast(%2) {dtype = bool}
  %21: i32[11] = cast(%6) {dtype = i32}
  %22: i64[11] = cast(%21) {dtype = i64}
  %23: f64[11] = cast(%4) {dtype = f64}
  %24: u8[11] = cast(%23) {dtype = u8}
  return %0, %1, %8, %10, %12, %3, %14, %16, %18, %20, %22, %24
}
---- after remove_dead
function(%0: f32[11], %1: bf16[11], %2: f16[11], %3: i32[11], %4: u8[11], %5: bool[11], %6: i64[11]) {
  %7: f16[11] = cast(%1) {dtype = f16}
  %8: bf16[11] = cast(%0) {dtype = bf16}
  %9: f32[11] = cast(%8) {dtype = f32}
  %10: u8[11] = cast(%3) {dtype = u8}
  %11: f64[11] = cast(%3) {dtype = f64}
  %12: u8[11] = cast(%11) {dtype = u8}
  %13: i32[11] = cast(%5) {dtype = i32}
  %14: f16[11] = cast(%1) {dtype = f16}
  %15: f32[11] = cast(%14) {dtype = f32}
  %16: bool[11] = cast(%2) {dtype = bool}
  %17: i32[11] = cast(%6) {dtype = i32}
  %18: i64[11] = cast(%17) {dtype = i64}
  %19: f64[11] = cast(%4) {dtype = f64}
  %20: u8[11] = cast(%19) {dtype = u8}
  return %0, %1, %7, %9, %10, %3, %12, %13, %15, %16, %18, %20
}
