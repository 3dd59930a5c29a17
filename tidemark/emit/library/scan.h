// Kernels that go along an axis and carry something from element to element, and searches in sorted
// rows. Arrays are dense and viewed as [outer, axis, inner].
#pragma once

#include <cstdint>

#include "tidemark/types/dtype.h"

namespace tidemark::library {

struct Scan {
  DType dtype = DType::f32;
  int64_t outer = 1, count = 1, inner = 1;
  bool reverse = false;  // From the last element to the first.
};

// to[o, i, n] = from[o, 0, n] + ... + from[o, i, n], in order; cumprod multiplies. 16-bit floats
// are combined in f32. Integers and bools come as i64.
void cumsum(const Scan& scan, const std::byte* from, std::byte* to);
void cumprod(const Scan& scan, const std::byte* from, std::byte* to);

// The largest (least) element so far, and its position along the axis, the first of equal ones;
// either may be null. NaN from the first NaN on.
void cummax(const Scan& scan, const std::byte* from, std::byte* to, int64_t* positions);
void cummin(const Scan& scan, const std::byte* from, std::byte* to, int64_t* positions);

// to[o, i, n] = a[o, i, n] * to[o, i - 1, n] + b[o, i, n], from 0.
void linear_scan(const Scan& scan, const std::byte* a, const std::byte* b, std::byte* to);

// For each of `count` values of a row, the number of elements of that row of `sorted` that come
// before it; with `right`, equal ones too. NaNs come after all numbers.
struct Search {
  DType dtype = DType::f32;
  int64_t rows = 1, size = 0, count = 0;
  bool right = false;
};
void searchsorted(const Search& search, const std::byte* sorted, const std::byte* values,
                  int64_t* to);

}  // namespace tidemark::library
