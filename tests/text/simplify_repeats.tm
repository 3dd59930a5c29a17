# A sum over a broadcast value multiplies by the count, any other sum adds: no rewrite may turn one
# into the other. Views of a broadcast still repeat; a product or a reshape that copies does not.
function(%row: f32[11]) {
  %many: f32[1000, 11] = broadcast_to(%row) {shape = [1000, 11]}
  %one: f32[] = constant 1
  %product: f32[1000, 11] = multiply(%many, %one)
  %a: f32[11] = sum(%product) {axes = [0]}
  %flat: f32[11000] = reshape(%many) {shape = [11000]}
  %copied: f32[1000, 11] = reshape(%flat) {shape = [1000, 11]}
  %b: f32[11] = sum(%copied) {axes = [0]}
  %cast: f32[1000, 11] = cast(%many) {dtype = f32}
  %c: f32[11] = sum(%cast) {axes = [0]}
  %turned: f32[11, 1000] = transpose(%many) {order = [1, 0]}
  %back: f32[1000, 11] = transpose(%turned) {order = [1, 0]}
  %d: f32[11] = sum(%back) {axes = [0]}
  %minus: f32[11, 1000] = negative(%turned)
  %plus: f32[11, 1000] = negative(%minus)
  %e: f32[11] = sum(%plus) {axes = [1]}
  return %a, %b, %c, %d, %e
}
---- after simplify
function(%0: f32[11]) {
  %1: f32[1000, 11] = broadcast_to(%0) {shape = [1000, 11]}
  %2: f32[] = constant 1
  %3: f32[1000, 11] = multiply(%1, %2)
  %4: f32[11] = sum(%3) {axes = [0]}
  %5: f32[11000] = reshape(%1) {shape = [11000]}
  %6: f32[1000, 11] = reshape(%5) {shape = [1000, 11]}
  %7: f32[11] = sum(%6) {axes = [0]}
  %8: f32[1000, 11] = cast(%1) {dtype = f32}
  %9: f32[11] = sum(%8) {axes = [0]}
  %10: f32[11, 1000] = transpose(%1) {order = [1, 0]}
  %11: f32[11] = sum(%1) {axes = [0]}
  %12: f32[11, 1000] = negative(%10)
  %13: f32[11, 1000] = negative(%12)
  %14: f32[11] = sum(%13) {axes = [1]}
  return %4, %7, %9, %11, %14
}
---- after remove_dead
function(%0: f32[11]) {
  %1: f32[1000, 11] = broadcast_to(%0) {shape = [1000, 11]}
  %2: f32[] = constant 1
  %3: f32[1000, 11] = multiply(%1, %2)
  %4: f32[11] = sum(%3) {axes = [0]}
  %5: f32[11000] = reshape(%1) {shape = [11000]}
  %6: f32[1000, 11] = reshape(%5) {shape = [1000, 11]}
  %7: f32[11] = sum(%6) {axes = [0]}
  %8: f32[1000, 11] = cast(%1) {dtype = f32}
  %9: f32[11] = sum(%8) {axes = [0]}
  %10: f32[11, 1000] = transpose(%1) {order = [1, 0]}
  %11: f32[11] = sum(%1) {axes = [0]}
  %12: f32[11, 1000] = negative(%10)
  %13: f32[11, 1000] = negative(%12)
  %14: f32[11] = sum(%13) {axes = [1]}
  return %4, %7, %9, %11, %14
}
