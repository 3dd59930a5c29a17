#include "tidemark/emit/library/scan.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tidemark/device/threads.h"
#include "tidemark/emit/library/arithmetic.h"

namespace tidemark::library {
namespace {

// Columns that are scanned side by side: what is carried fits into registers, and rows of memory
// are read in one piece.
constexpr int64_t kColumns = 64;

// Below this many bytes another thread is not worth waking.
constexpr int64_t kGrainBytes = 64 << 10;

// Calls f(first, width) for every block of columns, with the offset of its first element.
template <class F>
void for_each_block(const Scan& scan, F f) {
  const int64_t blocks = (scan.inner + kColumns - 1) / kColumns;
  const int64_t bytes = scan.count * std::min(scan.inner, kColumns) * size_of(scan.dtype);
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes));
  device::parallel_for(scan.outer * blocks, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t column = piece % blocks * kColumns;
      f(piece / blocks * scan.count * scan.inner + column, std::min(kColumns, scan.inner - column));
    }
  });
}

// The position along the axis of step number `i`.
int64_t position(const Scan& scan, int64_t i) { return scan.reverse ? scan.count - 1 - i : i; }

// Rows whose elements lie side by side are scanned several at a time, a line of the cache each: a
// row waits for its own last element, and the CPU works on the next one meanwhile.
constexpr int64_t kRowsTogether = 8, kLine = 16;

// Calls f(row, begin, end, carried) for lines of steps of every row, in groups of rows. `carried`
// is that row's, kept from line to line.
template <class Carried, class F>
void for_each_line(const Scan& scan, const Carried& start, F f) {
  const int64_t bytes = scan.count * size_of(scan.dtype);
  const int64_t rows = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes));
  const int64_t grain = (rows + kRowsTogether - 1) / kRowsTogether;
  const int64_t groups = (scan.outer + kRowsTogether - 1) / kRowsTogether;
  device::parallel_for(groups, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kRowsTogether;
      const int64_t last = std::min(first + kRowsTogether, scan.outer);
      Carried carried[kRowsTogether];
      std::fill_n(carried, kRowsTogether, start);
      for (int64_t i = 0; i < scan.count; i += kLine) {
        for (int64_t row = first; row < last; ++row)
          f(row, i, std::min(i + kLine, scan.count), carried[row - first]);
      }
    }
  });
}

using Four [[gnu::vector_size(16)]] = float;
constexpr int64_t kFour = 4;

// Rows become columns, and columns rows.
void turn(Four (&x)[kFour]) {
  const Four low = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
  const Four low2 = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
  const Four high = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
  const Four high2 = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(low, low2, 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(high, high2, 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
}

Four load_four(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}
void store_four(float* to, Four four) { std::memcpy(to, &four, sizeof(four)); }

// Four rows side by side, a square of elements at a time.
template <class Combine>
void running_four_rows(int64_t count, const float* from, float* to, float start, Combine combine) {
  Four total = {start, start, start, start};
  int64_t i = 0;
  for (; i + kFour <= count; i += kFour) {
    Four square[kFour] = {load_four(from + i), load_four(from + i + count),
                          load_four(from + i + 2 * count), load_four(from + i + 3 * count)};
    turn(square);
    square[0] = combine(total, square[0]);
    square[1] = combine(square[0], square[1]);
    square[2] = combine(square[1], square[2]);
    square[3] = total = combine(square[2], square[3]);
    turn(square);
    store_four(to + i, square[0]);
    store_four(to + i + count, square[1]);
    store_four(to + i + 2 * count, square[2]);
    store_four(to + i + 3 * count, square[3]);
  }
  for (; i < count; ++i) {
    total =
        combine(total, Four{from[i], from[i + count], from[i + 2 * count], from[i + 3 * count]});
    to[i] = total[0];
    to[i + count] = total[1];
    to[i + 2 * count] = total[2];
    to[i + 3 * count] = total[3];
  }
}

// Rows of a few lines, of which the CPU works on several groups at once.
template <class Combine>
void running_short_rows(const Scan& scan, const float* from, float* to, float start,
                        Combine combine) {
  const int64_t count = scan.count, bytes = count * size_of(DType::f32);
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes));
  device::parallel_for(scan.outer, grain, [&](int64_t begin, int64_t end, int) {
    int64_t row = begin;
    for (; row + kFour <= end; row += kFour)
      running_four_rows(count, from + row * count, to + row * count, start, combine);
    for (; row < end; ++row) {
      float last = start;
      for (int64_t k = row * count; k < (row + 1) * count; ++k)
        to[k] = last = combine(last, from[k]);
    }
  });
}

template <class T, class Combine>
void running_rows(const Scan& scan, const T* from, T* to, Wide<T> start, Combine combine) {
  const int64_t count = scan.count, step = scan.reverse ? -1 : 1;
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kShort = 4 * kLine;
    if (count <= kShort && !scan.reverse) return running_short_rows(scan, from, to, start, combine);
  }
  for_each_line(scan, start, [=](int64_t row, int64_t begin, int64_t end, Wide<T>& carried) {
    Wide<T> total = carried;
    int64_t at = row * count + (step < 0 ? count - 1 - begin : begin);
    for (int64_t i = begin; i < end; ++i, at += step) {
      total = combine(total, static_cast<Wide<T>>(from[at]));
      to[at] = static_cast<T>(total);
    }
    carried = total;
  });
}

template <class T, class Combine>
void running(const Scan& scan, const T* from, T* to, Wide<T> start, Combine combine) {
  if (scan.inner == 1) return running_rows(scan, from, to, start, combine);
  for_each_block(scan, [&](int64_t first, int64_t width) {
    Wide<T> total[kColumns];
    std::fill_n(total, width, start);
    for (int64_t i = 0; i < scan.count; ++i) {
      const int64_t at = first + position(scan, i) * scan.inner;
      for (int64_t n = 0; n < width; ++n) {
        total[n] = combine(total[n], static_cast<Wide<T>>(from[at + n]));
        to[at + n] = static_cast<T>(total[n]);
      }
    }
  });
}

// Whether a stays the largest (least) so far, beyond doubt: a NaN leaves it open.
template <bool kLargest, class T>
bool stays(T a, T b) {
  const auto x = static_cast<Wide<T>>(a), y = static_cast<Wide<T>>(b);
  return kLargest ? y <= x : x <= y;
}

// Whether a stays so with each of the next kFew elements. False where that takes no less time than
// to see one after the other.
constexpr int64_t kFew = 16;
template <bool kLargest, class T>
bool stays_with_few(T a, const T* next) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, int32_t>) {
    using V [[gnu::vector_size(16)]] = T;
    constexpr auto kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
    const V best = a - V{};
    __m128i stay = _mm_set1_epi8(-1);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kFew; i += kLanes) {
      V some;
      std::memcpy(&some, next + i, sizeof(V));
      stay &= reinterpret_cast<__m128i>(kLargest ? some <= best : best <= some);
    }
    return _mm_movemask_epi8(stay) == 0xffff;
  }
  return false;
}

// The largest element changes rarely in long rows: a jump that is foreseen costs less than a choice
// that every element waits for.
template <bool kLargest, bool has_values, bool has_positions, class T>
void extremum_rows(const Scan& scan, const T* from, T* to, int64_t* positions) {
  struct Best {
    T element = {};
    int64_t where = 0;
  };
  const int64_t count = scan.count, step = scan.reverse ? -1 : 1;
  for_each_line(scan, Best{}, [=](int64_t row, int64_t begin, int64_t end, Best& carried) {
    const int64_t first = row * count;
    int64_t here = step < 0 ? count - 1 - begin : begin;
    Best best = begin == 0 ? Best{from[first + here], here} : carried;
    const auto follow = [&](int64_t many) {
      for (int64_t i = 0; i < many; ++i, here += step) {
        const T element = from[first + here];
        if (!stays<kLargest>(best.element, element) && replaces<kLargest>(best.element, element))
          best = {element, here};
        if constexpr (has_values) to[first + here] = best.element;
        if constexpr (has_positions) positions[first + here] = best.where;
      }
    };
    int64_t left = end - begin;
    for (; step > 0 && left >= kFew; left -= kFew) {
      if (!stays_with_few<kLargest>(best.element, from + first + here)) {
        follow(kFew);
        continue;
      }
      if constexpr (has_values) std::fill_n(to + first + here, kFew, best.element);
      if constexpr (has_positions) std::fill_n(positions + first + here, kFew, best.where);
      here += kFew;
    }
    follow(left);
    carried = best;
  });
}

template <bool kLargest, class T>
void extremum_rows(const Scan& scan, const T* from, T* to, int64_t* positions) {
  if (positions == nullptr) return extremum_rows<kLargest, true, false>(scan, from, to, positions);
  if (to == nullptr) return extremum_rows<kLargest, false, true>(scan, from, to, positions);
  extremum_rows<kLargest, true, true>(scan, from, to, positions);
}

template <bool kLargest>
void extremum(const Scan& scan, const std::byte* bytes, std::byte* to, int64_t* positions) {
  visit_dtype(scan.dtype, [&](auto element) {
    using T = decltype(element);
    const T* from = reinterpret_cast<const T*>(bytes);
    if (scan.inner == 1)
      return extremum_rows<kLargest>(scan, from, reinterpret_cast<T*>(to), positions);
    for_each_block(scan, [&](int64_t first, int64_t width) {
      T best[kColumns];
      int64_t where[kColumns];
      for (int64_t i = 0; i < scan.count; ++i) {
        const int64_t here = position(scan, i), at = first + here * scan.inner;
        for (int64_t n = 0; n < width; ++n) {
          const bool takes = i == 0 || replaces<kLargest>(best[n], from[at + n]);
          best[n] = takes ? from[at + n] : best[n];
          where[n] = takes ? here : where[n];
        }
        if (to != nullptr) std::copy_n(best, width, reinterpret_cast<T*>(to) + at);
        if (positions != nullptr) std::copy_n(where, width, positions + at);
      }
    });
  });
}

// NaNs come last.
template <class T>
bool comes_before(T a, T b) {
  const auto x = static_cast<Wide<T>>(a), y = static_cast<Wide<T>>(b);
  if constexpr (std::is_floating_point_v<Wide<T>>)
    return x < y || (y != y && x == x);
  else
    return x < y;
}

}  // namespace

void cumsum(const Scan& scan, const std::byte* from, std::byte* to) {
  visit_dtype(scan.dtype, [&](auto element) {
    using T = decltype(element);
    running(scan, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), Wide<T>{},
            [](auto a, auto b) { return plus(a, b); });
  });
}

void cumprod(const Scan& scan, const std::byte* from, std::byte* to) {
  visit_dtype(scan.dtype, [&](auto element) {
    using T = decltype(element);
    running(scan, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), Wide<T>{1},
            [](auto a, auto b) { return times(a, b); });
  });
}

void cummax(const Scan& scan, const std::byte* from, std::byte* to, int64_t* positions) {
  extremum<true>(scan, from, to, positions);
}

void cummin(const Scan& scan, const std::byte* from, std::byte* to, int64_t* positions) {
  extremum<false>(scan, from, to, positions);
}

void linear_scan(const Scan& scan, const std::byte* a, const std::byte* b, std::byte* to) {
  visit_dtype(scan.dtype, [&](auto element) {
    using T = decltype(element);
    const T* factors = reinterpret_cast<const T*>(a);
    const T* terms = reinterpret_cast<const T*>(b);
    T* result = reinterpret_cast<T*>(to);
    for_each_block(scan, [&](int64_t first, int64_t width) {
      Wide<T> state[kColumns];
      for (int64_t i = 0; i < scan.count; ++i) {
        const int64_t at = first + position(scan, i) * scan.inner;
        for (int64_t n = 0; n < width; ++n) {
          const auto term = static_cast<Wide<T>>(terms[at + n]);
          // The first state is the term itself: the factor may be infinite.
          state[n] =
              i == 0 ? term : plus(times(static_cast<Wide<T>>(factors[at + n]), state[n]), term);
          result[at + n] = static_cast<T>(state[n]);
        }
      }
    });
  });
}

void searchsorted(const Search& search, const std::byte* sorted, const std::byte* values,
                  int64_t* to) {
  visit_dtype(search.dtype, [&](auto element) {
    using T = decltype(element);
    device::parallel_for(search.rows * search.count, 1024, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = reinterpret_cast<const T*>(sorted) + i / search.count * search.size;
        const T value = reinterpret_cast<const T*>(values)[i];
        const T* found = search.right
                             ? std::upper_bound(row, row + search.size, value, comes_before<T>)
                             : std::lower_bound(row, row + search.size, value, comes_before<T>);
        to[i] = found - row;
      }
    });
  });
}

}  // namespace tidemark::library
