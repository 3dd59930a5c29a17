# Each table is reduced before the next one is computed: one is live at a time.
function(%x: f32[8], %y: f32[8], %z: f32[8]) {
  %1: f32[1000, 8] = broadcast_to(%x) {shape = [1000, 8]}
  %2: f32[1000, 8] = broadcast_to(%y) {shape = [1000, 8]}
  %3: f32[1000, 8] = broadcast_to(%z) {shape = [1000, 8]}
  %a: f32[1000, 8] = exp(%1)
  %b: f32[1000, 8] = exp(%2)
  %c: f32[1000, 8] = exp(%3)
  %p: f32[1000, 8] = cumsum(%a) {axis = 0}
  %q: f32[1000, 8] = cumsum(%b) {axis = 0}
  %r: f32[1000, 8] = cumsum(%c) {axis = 0}
  %u: f32[8] = max(%p) {axes = [0]}
  %v: f32[8] = max(%q) {axes = [0]}
  %w: f32[8] = max(%r) {axes = [0]}
  return %u, %v, %w
}
---- after order
function(%0: f32[8], %1: f32[8], %2: f32[8]) {
  %3: f32[1000, 8] = broadcast_to(%0) {shape = [1000, 8]}
  %4: f32[1000, 8] = broadcast_to(%1) {shape = [1000, 8]}
  %5: f32[1000, 8] = broadcast_to(%2) {shape = [1000, 8]}
  %6: f32[1000, 8] = exp(%3)
  %7: f32[1000, 8] = cumsum(%6)
  %8: f32[8] = max(%7) {axes = [0]}
  %9: f32[1000, 8] = exp(%4)
  %10: f32[1000, 8] = cumsum(%9)
  %11: f32[8] = max(%10) {axes = [0]}
  %12: f32[1000, 8] = exp(%5)
  %13: f32[1000, 8] = cumsum(%12)
  %14: f32[8] = max(%13) {axes = [0]}
  return %8, %11, %14
}
