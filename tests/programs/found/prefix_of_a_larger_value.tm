# The result is the first elements of a larger value, which does not fit where the result goes.
function(%0: f32[300, 1, 2]) {
  %1: f32[300, 1, 2] = cumsum(%0)
  %2: f32[153, 1, 2] = slice(%1) {begin = [0, 0, 0], size = [153, 1, 2], step = [1, 1, 1]}
  return %2
}
