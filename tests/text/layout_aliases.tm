# Elementwise ops run in place on operands whose lifetime ends there, and write results at their
# destination; views have no bytes; operands of a concat are computed in their part of the result.
function(%x: f32[64, 32], %y: f32[64, 32]) {
  %a: f32[64, 32] = exp(%x)
  %b: f32[64, 32] = multiply(%a, %y)
  %v: f32[2048] = reshape(%b) {shape = [2048]}
  %c: f32[2048] = cumsum(%v)
  %d: f32[2048] = negative(%c)
  %p: f32[64, 32] = sin(%x)
  %q: f32[64, 32] = cos(%y)
  %whole: f32[128, 32] = concat(%p, %q)
  %m: f32[32] = max(%whole) {axes = [0]}
  return %d, %m
}
---- after layout
step 0: exp of parameter 0, buffer 0
step 1: multiply of buffer 0, parameter 1, buffer 0
step 2: cumsum of buffer 0, result 0
step 3: negative of result 0, result 0
step 4: sin of parameter 0, buffer 1
step 5: cos of parameter 1, buffer 1 + 8192
step 6: max of buffer 1, result 1
buffer 0: 8192 bytes at 0 for steps [0, 3), temporaries of exp
buffer 1: 16384 bytes at 0 for steps [4, 7), temporaries of sin
arena: 16384 bytes, 16384 in use
