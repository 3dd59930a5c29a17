# result 1 is the new value of parameter 0
function(%0: f32[5, 17, 1], %1: i64[], %2: f32[5], %3: u8[1, 8], %4: bool[]) {
  %5: f32[5, 17, 1], %6: f32[5, 17, 17] = cond(%4, %1, %0)
    (%7: i64[], %8: f32[5, 17, 1]) {
      %9: f32[] = sum(%8) {axes = [0, 1, 2]}
      %10: f32[1, 17] = broadcast_to(%9) {shape = [1, 17]}
      %11: f32[5, 17, 17] = matmul(%8, %10)
      %12: i32[5, 17, 17] = cast(%11) {dtype = i32}
      %13: i32[5, 17, 1] = cast(%8) {dtype = i32}
      %14: i32[5, 17, 17] = left_shift(%12, %13)
      %15: i64[] = sum(%14) {axes = [0, 1, 2]}
      %16: i64[5, 17, 1] = broadcast_to(%15) {shape = [5, 17, 1]}
      %17: f32[5, 17, 1] = cast(%16) {dtype = f32}
      %18: f32[5, 17, 17] = cast(%14) {dtype = f32}
      return %17, %18
    }
    (%19: i64[], %20: f32[5, 17, 1]) {
      %21: f32[] = constant 0
      %22: f32[5, 17, 1] = broadcast_to(%21) {shape = [5, 17, 1]}
      %23: f32[] = constant 0
      %24: f32[5, 17, 17] = broadcast_to(%23) {shape = [5, 17, 17]}
      return %22, %24
    }
  %25: u8[5, 17, 1] = cast(%5) {dtype = u8}
  %26: u8[5, 17, 8] = left_shift(%25, %3)
  %27: f32[5, 17, 17], %28: f32[5, 17, 17] = map(%6, %2) {slices = 2, trips = 5, alive = 6}
    (%29: f32[17, 17], %30: f32[]) {
      return %29, %29
    }
  %31: i64[] = sum(%26) {axes = [0, 1, 2]}
  %32: i64[5, 17, 1] = broadcast_to(%31) {shape = [5, 17, 1]}
  %33: f32[5, 17, 1] = cast(%32) {dtype = f32}
  return %28, %33
}
