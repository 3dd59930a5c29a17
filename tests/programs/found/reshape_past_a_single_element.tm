# Between two axes that cannot become one stands an axis of one element.
function(%0: f64[17, 1, 1]) {
  %1: f64[17, 1, 2] = broadcast_to(%0) {shape = [17, 1, 2]}
  %2: f64[2, 17, 1] = reshape(%1) {shape = [2, 17, 1]}
  return %2
}
