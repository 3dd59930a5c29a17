function(%x: f32[11], %y: f32[11], %s: f32[], %p: bool[11]) {
  %yes: bool[] = constant true
  %no: bool[] = constant false
  %1: f32[11] = where(%yes, %x, %y)
  %2: f32[11] = where(%no, %x, %y)
  %3: f32[11] = where(%p, %x, %x)
  %4: f32[11] = where(%yes, %s, %y)
  %all: bool[11] = broadcast_to(%yes) {shape = [11]}
  %5: f32[11] = where(%all, %x, %s)
  %6: f32[11] = where(%p, %x, %y)
  return %1, %2, %3, %4, %5, %6
}
---- after simplify
function(%0: f32[11], %1: f32[11], %2: f32[], %3: bool[11]) {
  %4: bool[] = constant true
  %5: bool[] = constant false
  %6: f32[11] = where(%4, %2, %1)
  %7: bool[11] = broadcast_to(%4) {shape = [11]}
  %8: f32[11] = where(%3, %0, %1)
  return %0, %1, %0, %6, %0, %8
}
---- after remove_dead
function(%0: f32[11], %1: f32[11], %2: f32[], %3: bool[11]) {
  %4: bool[] = constant true
  %5: f32[11] = where(%4, %2, %1)
  %6: f32[11] = where(%3, %0, %1)
  return %0, %1, %0, %5, %0, %6
}
