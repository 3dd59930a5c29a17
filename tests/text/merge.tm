# Nodes are merged if op, attributes, inputs and types are equal. Zeros of different sign differ; the
# order of operands counts; draws with the same key are equal.
function(%x: f32[2, 3], %y: f32[2, 3]) {
  %1: f32[2, 3] = exp(%x)
  %2: f32[2, 3] = exp(%x)
  %3: f32[2, 3] = exp(%y)
  %4: f32[2, 3] = add(%1, %3)
  %5: f32[2, 3] = add(%2, %3)
  %6: f32[2, 3] = add(%3, %2)
  %7: f32[3] = sum(%4) {axes = [0]}
  %8: f32[3] = sum(%5) {axes = [0]}
  %9: f32[2] = sum(%5) {axes = [1]}
  %10: f32[] = constant 0
  %11: f32[] = constant -0
  %12: f32[] = constant 0
  %key: i64[] = constant 7
  %other: i64[] = constant 8
  %13: f32[4] = random_normal(%key) {shape = [4], dtype = f32, b = 1}
  %14: f32[4] = random_normal(%key) {shape = [4], dtype = f32, b = 1}
  %15: f32[4] = random_normal(%other) {shape = [4], dtype = f32, b = 1}
  return %6, %7, %8, %9, %10, %11, %12, %13, %14, %15
}
---- after merge
function(%0: f32[2, 3], %1: f32[2, 3]) {
  %2: f32[2, 3] = exp(%0)
  %3: f32[2, 3] = exp(%1)
  %4: f32[2, 3] = add(%2, %3)
  %5: f32[2, 3] = add(%3, %2)
  %6: f32[3] = sum(%4) {axes = [0]}
  %7: f32[2] = sum(%4) {axes = [1]}
  %8: f32[] = constant 0
  %9: f32[] = constant -0
  %10: i64[] = constant 7
  %11: i64[] = constant 8
  %12: f32[4] = random_normal(%10) {shape = [4], dtype = f32, b = 1}
  %13: f32[4] = random_normal(%11) {shape = [4], dtype = f32, b = 1}
  return %5, %6, %6, %7, %8, %9, %8, %12, %12, %13
}
