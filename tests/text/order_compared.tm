# %u has the bytes of the result, which exist anyway, while the 448 bytes of %t end with it. An estimate
# that counts both would run the sum over %y before the concatenation; the layout knows better.
function(%x: f32[100], %y: f32[5000]) {
  %t: f32[100] = cumsum(%x) {axis = 0}
  %s: f32[] = max(%t) {axes = [0]}
  %u: f32[300] = concat(%t, %t, %t) {axis = 0}
  %v: f32[5000] = multiply(%y, %s)
  %p: f32[5000] = cumsum(%v) {axis = 0}
  %m: f32[] = max(%p) {axes = [0]}
  %r: f32[300] = multiply(%u, %m)
  return %r
}
---- after order
function(%0: f32[100], %1: f32[5000]) {
  %2: f32[100] = cumsum(%0)
  %3: f32[] = max(%2) {axes = [0]}
  %4: f32[300] = concat(%2, %2, %2)
  %5: f32[5000] = multiply(%1, %3)
  %6: f32[5000] = cumsum(%5)
  %7: f32[] = max(%6) {axes = [0]}
  %8: f32[300] = multiply(%4, %7)
  return %8
}
---- after layout
step 0: cumsum of parameter 0, buffer 0
step 1: max of buffer 0, buffer 1
step 2: concat of buffer 0, buffer 0, buffer 0, result 0
step 3: multiply of parameter 1, buffer 1, buffer 2
step 4: cumsum of buffer 2, buffer 3
step 5: max of buffer 3, buffer 4
step 6: multiply of result 0, buffer 4, result 0
buffer 0: 448 bytes at 0 for steps [0, 3), temporaries of cumsum
buffer 1: 64 bytes at 20032 for steps [1, 4), temporaries of max
buffer 2: 20032 bytes at 0 for steps [3, 5), temporaries of multiply
buffer 3: 20032 bytes at 20032 for steps [4, 6), temporaries of cumsum
buffer 4: 64 bytes at 0 for steps [5, 7), temporaries of max
arena: 40064 bytes, 40064 in use
