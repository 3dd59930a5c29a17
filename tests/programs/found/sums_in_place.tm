# Two sums of one kernel: the first is stored in place of a number that the second is.
function(%0: u8[5, 1], %1: i64[], %2: u8[11, 18], %3: u8[5, 2], %4: u8[5, 4], %5: u8[3, 5, 18], %6: u8[5, 18]) {
  %7: u8[5, 18], %8: i64[], %9: u8[3, 5, 18] = loop(%6, %1, %5, %5, %6, %5) {carries = 2, slices = 2, stacked = 1, trips = 3}
    (%10: i64[], %11: u8[5, 18], %12: i64[], %13: u8[5, 18], %14: u8[5, 18], %15: u8[5, 18], %16: u8[3, 5, 18]) {
      return %14, %10, %15
    }
  %17: i64[] = sum(%7) {axes = [0, 1]}
  %18: i64[5, 4] = broadcast_to(%17) {shape = [5, 4]}
  %19: u8[5, 4] = cast(%18) {dtype = u8}
  %20: u8[5, 11] = concat(%19, %0, %4, %3) {axis = 1}
  %21: i64[] = sum(%8) {axes = []}
  %22: i64[3, 3, 18] = broadcast_to(%21) {shape = [3, 3, 18]}
  %23: u8[3, 3, 18] = cast(%22) {dtype = u8}
  %24: i64[] = sum(%8) {axes = []}
  %25: i64[3, 1, 18] = broadcast_to(%24) {shape = [3, 1, 18]}
  %26: u8[3, 1, 18] = cast(%25) {dtype = u8}
  %27: u8[3, 9, 18] = concat(%9, %23, %26) {axis = 1}
  %28: u8[5, 18] = matmul(%20, %2)
  %29: i64[] = sum(%28) {axes = [0, 1]}
  %30: i64[18, 8] = broadcast_to(%29) {shape = [18, 8]}
  %31: u8[18, 8] = cast(%30) {dtype = u8}
  %32: u8[3, 9, 8] = matmul(%27, %31)
  return %32
}
