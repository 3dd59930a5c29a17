# A sum of padded parts becomes a concatenation, with zeros around it where the parts end earlier.
# Exceptions: the parts overlap or leave a gap, they are padded along different axes, a part is read
# besides, or other numbers than zero are added.
function(%a: f32[2, 3], %b: f32[2, 1], %c: f32[2, 4], %i: i32[2], %j: i32[3], %x: f32[8], %y: f32[4], %m: f32[8, 2], %trips: f32[4, 4]) {
  %a0: f32[2, 8] = pad(%a) {low = [0, 1], high = [0, 4], inside = [0, 0], value = 0, whole_value = 0}
  %b0: f32[2, 8] = pad(%b) {low = [0, 0], high = [0, 7], inside = [0, 0], value = 0, whole_value = 0}
  %c0: f32[2, 8] = pad(%c) {low = [0, 4], high = [0, 0], inside = [0, 0], value = 0, whole_value = 0}
  %ca: f32[2, 8] = add(%c0, %a0)
  %all: f32[2, 8] = add(%b0, %ca)
  %i0: i32[6] = pad(%i) {low = [4], high = [0], inside = [0], value = 0, whole_value = 0}
  %j0: i32[6] = pad(%j) {low = [1], high = [2], inside = [0], value = 0, whole_value = 0}
  %most: i32[6] = add(%i0, %j0)
  %y0: f32[10] = pad(%y) {low = [3], high = [3], inside = [0], value = 0, whole_value = 0}
  %x0: f32[10] = pad(%x) {low = [0], high = [2], inside = [0], value = 0, whole_value = 0}
  %overlapping: f32[10] = add(%x0, %y0)
  %y1: f32[10] = pad(%y) {low = [0], high = [6], inside = [0], value = 0, whole_value = 0}
  %y2: f32[10] = pad(%y) {low = [5], high = [1], inside = [0], value = 0, whole_value = 0}
  %gap: f32[10] = add(%y1, %y2)
  %y3: f32[8] = pad(%y) {low = [0], high = [4], inside = [0], value = 0, whole_value = 0}
  %y4: f32[8] = pad(%y) {low = [4], high = [0], inside = [0], value = 0, whole_value = 0}
  %twice: f32[8] = add(%y3, %y4)
  %again: f32[8] = multiply(%y4, %x)
  %y5: f32[8] = pad(%y) {low = [0], high = [4], inside = [0], value = 1, whole_value = 0}
  %y6: f32[8] = pad(%y) {low = [4], high = [0], inside = [0], value = -0, whole_value = 0}
  %y7: f32[8] = pad(%y) {low = [0], high = [4], inside = [0], value = 0, whole_value = 0}
  %ones: f32[8] = add(%y5, %y7)
  %signed: f32[8] = add(%y6, %y7)
  %m0: f32[8, 4] = pad(%m) {low = [0, 2], high = [0, 0], inside = [0, 0], value = 0, whole_value = 0}
  %t0: f32[8, 4] = pad(%trips) {low = [4, 0], high = [0, 0], inside = [0, 0], value = 0, whole_value = 0}
  %across: f32[8, 4] = add(%m0, %t0)
  %maps: f32[4, 8] = map(%trips) {slices = 1, trips = 4}
    (%row: f32[4]) {
      %first: f32[8] = pad(%row) {low = [0], high = [4], inside = [0], value = 0, whole_value = 0}
      %second: f32[8] = pad(%row) {low = [4], high = [0], inside = [0], value = 0, whole_value = 0}
      %both: f32[8] = add(%first, %second)
      return %both
    }
  return %all, %most, %overlapping, %gap, %twice, %again, %ones, %signed, %across, %maps
}
---- after join_pads
function(%0: f32[2, 3], %1: f32[2, 1], %2: f32[2, 4], %3: i32[2], %4: i32[3], %5: f32[8], %6: f32[4], %7: f32[8, 2], %8: f32[4, 4]) {
  %9: f32[] = constant 0
  %10: f32[2, 1] = add(%1, %9)
  %11: f32[2, 3] = add(%0, %9)
  %12: f32[2, 4] = add(%2, %9)
  %13: f32[2, 8] = concat(%10, %11, %12) {axis = 1}
  %14: i32[5] = concat(%4, %3)
  %15: i32[6] = pad(%14) {low = [1], high = [0], inside = [0]}
  %16: f32[10] = pad(%6) {low = [3], high = [3], inside = [0]}
  %17: f32[10] = pad(%5) {low = [0], high = [2], inside = [0]}
  %18: f32[10] = add(%17, %16)
  %19: f32[10] = pad(%6) {low = [0], high = [6], inside = [0]}
  %20: f32[10] = pad(%6) {low = [5], high = [1], inside = [0]}
  %21: f32[10] = add(%19, %20)
  %22: f32[8] = pad(%6) {low = [0], high = [4], inside = [0]}
  %23: f32[8] = pad(%6) {low = [4], high = [0], inside = [0]}
  %24: f32[8] = add(%22, %23)
  %25: f32[8] = multiply(%23, %5)
  %26: f32[8] = pad(%6) {low = [0], high = [4], inside = [0], value = 1}
  %27: f32[8] = pad(%6) {low = [4], high = [0], inside = [0], value = -0}
  %28: f32[8] = pad(%6) {low = [0], high = [4], inside = [0]}
  %29: f32[8] = add(%26, %28)
  %30: f32[8] = add(%27, %28)
  %31: f32[8, 4] = pad(%7) {low = [0, 2], high = [0, 0], inside = [0, 0]}
  %32: f32[8, 4] = pad(%8) {low = [4, 0], high = [0, 0], inside = [0, 0]}
  %33: f32[8, 4] = add(%31, %32)
  %34: f32[4, 8] = map(%8) {slices = 1, trips = 4}
    (%35: f32[4]) {
      %36: f32[] = constant 0
      %37: f32[4] = add(%35, %36)
      %38: f32[4] = add(%35, %36)
      %39: f32[8] = concat(%37, %38)
      return %39
    }
  return %13, %15, %18, %21, %24, %25, %29, %30, %33, %34
}
