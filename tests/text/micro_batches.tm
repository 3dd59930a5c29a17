# Two layers and their gradients run for a part of the batch at a time. The loop carries the
# gradients of the weights; that of the bias is combined from blocks; the loss comes after the loop.
function(%x: f32[512, 8], %y: f32[512, 4], %v: f32[8, 16], %b: f32[16], %w: f32[16, 4]) {
  %a: f32[512, 16] = matmul(%x, %v)
  %c: f32[512, 16] = add(%a, %b)
  %h: f32[512, 16] = tanh(%c)
  %o: f32[512, 4] = matmul(%h, %w)
  %d: f32[512, 4] = subtract(%o, %y)
  %q: f32[512, 4] = square(%d)
  %l: f32[] = sum(%q) {axes = [0, 1]}
  %g: f32[512, 4] = add(%d, %d) gradient of square
  %ht: f32[16, 512] = transpose(%h) {order = [1, 0]} gradient of matmul
  %gw: f32[16, 4] = matmul(%ht, %g) gradient of matmul
  %wt: f32[4, 16] = transpose(%w) {order = [1, 0]} gradient of matmul
  %gh: f32[512, 16] = matmul(%g, %wt) gradient of matmul
  %hh: f32[512, 16] = square(%h) gradient of tanh
  %gt: f32[512, 16] = multiply(%gh, %hh) gradient of tanh
  %gb: f32[16] = sum(%gt) {axes = [0]} gradient of add
  %xt: f32[8, 512] = transpose(%x) {order = [1, 0]} gradient of matmul
  %gv: f32[8, 16] = matmul(%xt, %gt) gradient of matmul
  return %l, %gv, %gb, %gw
}
---- after micro_batches
function(%0: f32[512, 8], %1: f32[512, 4], %2: f32[8, 16], %3: f32[16], %4: f32[16, 4]) {
  %5: f32[] = constant -0
  %6: f32[16, 4] = broadcast_to(%5) {shape = [16, 4]}
  %7: f32[] = constant -0
  %8: f32[8, 16] = broadcast_to(%7) {shape = [8, 16]}
  %9: f32[2, 256, 8] = reshape(%0) {shape = [2, 256, 8]}
  %10: f32[2, 256, 4] = reshape(%1) {shape = [2, 256, 4]}
  %11: f32[16, 4], %12: f32[8, 16], %13: f32[2, 256, 4], %14: f32[2, 16] = loop(%6, %8, %9, %10, %2, %3, %4) {carries = 2, slices = 2, stacked = 2, trips = 2}
    (%15: i64[], %16: f32[16, 4], %17: f32[8, 16], %18: f32[256, 8], %19: f32[256, 4], %20: f32[8, 16], %21: f32[16], %22: f32[16, 4]) {
      %23: f32[256, 16] = matmul(%18, %20)
      %24: f32[256, 16] = add(%23, %21)
      %25: f32[256, 16] = tanh(%24)
      %26: f32[256, 4] = matmul(%25, %22)
      %27: f32[256, 4] = subtract(%26, %19)
      %28: f32[256, 4] = add(%27, %27) gradient of square
      %29: f32[16, 256] = transpose(%25) {order = [1, 0]} gradient of matmul
      %30: f32[16, 4] = accumulate(%16, %29, %28) gradient of matmul
      %31: f32[4, 16] = transpose(%22) {order = [1, 0]} gradient of matmul
      %32: f32[256, 16] = matmul(%28, %31) gradient of matmul
      %33: f32[256, 16] = square(%25) gradient of tanh
      %34: f32[256, 16] = multiply(%32, %33) gradient of tanh
      %35: f32[16] = sum(%34) {axes = [0]} gradient of add
      %36: f32[8, 256] = transpose(%18) {order = [1, 0]} gradient of matmul
      %37: f32[8, 16] = accumulate(%17, %36, %34) gradient of matmul
      return %30, %37, %27, %35
    }
  %38: f32[512, 4] = reshape(%13) {shape = [512, 4]}
  %39: f32[1, 16] = slice(%14) {begin = [0, 0], size = [1, 16], step = [2, 1]}
  %40: f32[1, 16] = slice(%14) {begin = [1, 0], size = [1, 16], step = [2, 1]}
  %41: f32[1, 16] = add(%39, %40)
  %42: f32[16] = reshape(%41) {shape = [16]}
  %43: f32[512, 4] = square(%38)
  %44: f32[] = sum(%43) {axes = [0, 1]}
  return %44, %12, %42, %11
}
