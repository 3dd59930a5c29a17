# One of each family, and the rewrites of simplify.
function "all of \x41"(%x: f32[2, 3], %i: i32[4], %p: i64[2, 5], %u: f32[4, 3], %w: f32[3, 5], %open: f32[?, 3], %im: f32[1, 8, 8, 4], %k: f32[3, 3, 2, 6]) {
  %a: f32[2, 3] = relu(%x)
  %b: f32[2, 3] = relu(%a)
  %c: f32[] = sum(%b) {axes = [0, 1]}
  %d: f32[2, 1] = max(%b) {axes = [1], keepdims = true}
  %e: f32[2, 3] = softmax(%b) {axis = 1}
  %f: bf16[2, 3] = cast(%e) {dtype = bf16}
  %g: f32[2, 3] = cast(%f) {dtype = f32}
  %h: f32[3, 2] = reshape(%g) {shape = [3, 2]}
  %h2: f32[6] = reshape(%h) {shape = [6]}
  %t: f32[3, 2] = transpose(%g) {order = [1, 0]}
  %t2: f32[2, 3] = transpose(%t) {order = [1, 0]}
  %s: f32[1, 2] = slice(%x) {begin = [1, 2], size = [1, 2], step = [1, -2]}
  %s2: f32[1, 1] = slice(%s) {begin = [0, 1], size = [1, 1], step = [1, 1]}
  %y: f32[4, 2, 3] = broadcast_to(%x) {shape = [4, 2, 3]}
  %y2: f32[5, 4, 2, 3] = broadcast_to(%y) {shape = [5, 4, 2, 3]}
  %z: f32[2, 6] = concat(%x, %x) {axis = 1}
  %q: f32[3, 6] = pad(%x) {low = [1, 0], high = [0, 1], inside = [0, 1], value = -0}
  %g1: f32[4, 3] = gather(%x, %i)
  %g2: f32[2, 5] = take_along_axis(%x, %p) {axis = 1, from_end = true}
  %g3: f32[2, 3] = scatter_add(%x, %i, %u)
  %g4: f32[2, 3] = cumsum(%x) {axis = 1, reverse = true}
  %m: f32[2, 5] = matmul(%x, %w)
  %cv: f32[1, 3, 6, 6] = conv2d(%im, %k) {stride = [2, 1], pad_low = [0, 0], pad_high = [0, 0], dilation = [1, 1], groups = 2}
  %ar: f64[5] = arange() {shape = [5], dtype = f64, start = 0.1, step = -2.5e-3}
  %key: i64[] = constant 42
  %key2: i64[] = random_fold(%key, %key)
  %rn: f32[2] = random_normal(%key2) {shape = [2], dtype = f32, a = inf, b = nan}
  %up: f32[2, 3] = update(%x, %s) {begin = [1, 2], size = [1, 2], step = [1, -2]}
  %row: f32[3] = sum(%x) {axes = [0]}
  %pt: f32[2, 3] = put(%x, %key, %row)
  print(%rn, %key) {text = "draw \% of \%\x21"}
  check_numerics(%x) {text = "x"}
  %one: f32[] = constant 1
  %x1: f32[2, 3] = multiply(%x, %one)
  %yes: bool[] = constant true
  %x2: f32[2, 3] = where(%yes, %x1, %x)
  %o: f32[?, 3] = multiply(%open, %open)
  return %x2, %o, %y2, %s2, %t2, %h2
}
