# Unread checkpoints are removed, and with them the stacked array that only a gradient read.
function(%x: f32[4]) {
  %last: f32[4], %all: f32[6, 4], %marks: i64[8], %states: f32[4, 4], %more: f32[6, 4] = loop(%x) {carries = 1, stacked = 2, trips = 6, save = 3, amount = 4, saved = 1, marks = 2, kept = 1}
    (%trip: i64[], %c: f32[4]) {
      %d: f32[4] = sin(%c)
      return %d, %c, %d
    }
  return %last, %all
}
---- after trim
function(%0: f32[4]) {
  %1: f32[4], %2: f32[6, 4] = loop(%0) {carries = 1, stacked = 1, trips = 6, save = 3, amount = 4}
    (%3: i64[], %4: f32[4]) {
      %5: f32[4] = sin(%4)
      return %5, %4
    }
  return %1, %2
}
