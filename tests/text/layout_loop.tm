# A carry that is not updated in place has two buffers, one that is has one; stacked results are
# written row by row. The branches of a cond share memory.
function(%x: f32[64], %one: f32[1, 64], %c: bool[]) {
  %a: f32[64], %b: f32[1, 64], %s: f32[5, 64] = loop(%x, %one) {carries = 2, stacked = 1, trips = 5}
    (%t: i64[], %p: f32[64], %q: f32[1, 64]) {
      %e: f32[64] = sin(%p)
      %f: f32[1, 64] = cumsum(%q) {axis = 1}
      return %e, %f, %e
    }
  %r: f32[64] = cond(%c, %a, %b)
    (%g: f32[64], %h: f32[1, 64]) {
      %k: f32[64] = exp(%g)
      %l: f32[64] = cumsum(%k)
      return %l
    }
    (%g: f32[64], %h: f32[1, 64]) {
      %k: f32[64] = reshape(%h) {shape = [64]}
      %l: f32[64] = cumsum(%k)
      return %l
    }
  return %r, %s
}
---- after layout
step 0: copy of parameter 0, buffer 0
step 1: copy of parameter 1, buffer 1
step 2: loop
step 3: sin of register 6, register 6
step 4: cumsum of register 8, register 9
step 5: copy of register 6, register 10
step 6: cond of parameter 2
step 7: exp of register 6, buffer 5
step 8: cumsum of buffer 5, result 0
step 9: cumsum of register 8, result 0
buffer 0: 256 bytes at 0 for steps [0, 10), temporaries of loop carry
buffer 1: 256 bytes at 256 for steps [1, 10), temporaries of loop carry
buffer 2: 0 bytes at 0 for steps [2, 6), temporaries of loop carry, next
buffer 3: 256 bytes at 512 for steps [2, 10), temporaries of loop carry, next
buffer 4: 64 bytes at 768 for steps [2, 6), temporaries of trip
buffer 5: 256 bytes at 768 for steps [7, 9), temporaries of exp
arena: 1024 bytes, 1024 in use
