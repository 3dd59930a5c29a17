function(%x: f32[11], %y: f32[11]) {
  %1: f32[11] = multiply(%x, %y)
  %2: f32[11] = multiply(%x, %y)
  %3: f32[11] = maximum(%1, %y)
  %4: f32[11] = maximum(%2, %y)
  %5: f32[11] = maximum(%y, %2)
  %6: f32[11] = divide(%3, %4)
  return %3, %4, %5, %6, %2
}
---- after merge
function(%0: f32[11], %1: f32[11]) {
  %2: f32[11] = multiply(%0, %1)
  %3: f32[11] = maximum(%2, %1)
  %4: f32[11] = maximum(%1, %2)
  %5: f32[11] = divide(%3, %3)
  return %3, %3, %4, %5, %2
}
