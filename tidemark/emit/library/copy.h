// Copies between memory of different orders: transposes and reversals, for elements of 1, 2, 4 or 8
// bytes. Precompiled: they move memory, a few lines of the caches at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::library {

// to(r, c) = from(r, c), where rows are contiguous in `to` and columns in `from`. Strides are in
// bytes, of any sign.
struct Turn {
  const std::byte* from = nullptr;
  int64_t from_column = 0;  // From one column to the next.
  std::byte* to = nullptr;
  int64_t to_row = 0;  // From one row to the next.
  int64_t rows = 0, columns = 0;
};
void turn(const Turn& work, int64_t element_bytes);

// The same where each row of `to` has an address of its own, `to` + to_rows[row], for a few rows of
// elements of 4 bytes.
inline constexpr int64_t kMostFewRows = 16;
void turn_few(const Turn& work, const int64_t* to_rows);

// Rows of up to kMostRowBytes that lie apart: a few moves each, where longer ones take a kernel's
// vectors as well.
inline constexpr int64_t kMostRowBytes = 64;
struct Rows {
  const std::byte* from = nullptr;
  int64_t from_row = 0;
  std::byte* to = nullptr;
  int64_t to_row = 0;
  int64_t rows = 0, bytes = 0;
};
void copy_rows(const Rows& work);

// Each row is one element, over and over; rows follow one another without a gap.
inline constexpr int64_t kMostRepeatedBytes = 16;
void repeat_elements(const Rows& work, int64_t element_bytes);

// to[i] = from[-i]. What lies `next` bytes behind is fetched meanwhile, such as the next row, which
// no CPU foresees where each row is read backwards.
void reverse(const std::byte* from, std::byte* to, int64_t count, int64_t element_bytes,
             int64_t next);

}  // namespace tidemark::library
