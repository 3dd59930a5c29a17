// The kernels of tile.h, written once over a vector type S. Each instruction set includes this in
// one source file with an S of its own in an unnamed namespace, so every instance is private to
// that file.
//
// S has: T, V, Mask, kLanes; mask(n), zero, broadcast, load, load(p, mask), load_f16, load_bf16,
// store, store(p, v, mask), fma, add, transpose(V (&)[kLanes]), round_f16, round_bf16; and
// load_turned(chains, k, V (&columns)[kTurned]): columns[i] has chains.at(lane)[k + i]. Where
// narrower vectors cost less, S::Narrow is such an S of half as many lanes, with of(V), the low
// half of a vector; else it is S. Where kLanes > 1: Places, which number lanes; places(n, i) has
// for each lane the i-th of its n neighbours, and pick(v, places) has those lanes of v;
// every_other(first, last), of the first kLanes elements and of those up to the last one wanted.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tidemark/emit/contract/tile.h"

// Arrays of vectors stay in registers only if every loop over them is unrolled.
#define TIDEMARK_UNROLL _Pragma("GCC unroll 32")

namespace tidemark::contraction {

// The last vector of a row is one of L: S itself, or S::Narrow where so few columns are left.
// Three rows of A share a pointer: x86 adds once or twice the stride for nothing.
constexpr int pointers_of(int rows) { return (rows + 2) / 3; }

// sum = fma(a, b, sum). A set with as many registers as a tile needs has its own: with another form
// of the instruction compilers move accumulators about, and to the stack.
template <class S>
[[gnu::always_inline]] inline void add_product(typename S::V a, typename S::V b,
                                               typename S::V& sum) {
  if constexpr (requires { S::add_product(a, b, sum); }) {
    S::add_product(a, b, sum);
  } else {
    sum = S::fma(a, b, sum);
  }
}

// kPrefetchSteps steps of whole vectors, where A lies along k or in the order of tiles (kStep
// elements from one step to the next). Little is left beside the fma, so that CPUs that start four
// instructions a cycle keep two fma units busy.
template <class S, int kRows, int kVectors, int kStep>
[[gnu::always_inline]] inline void run_steps(const typename S::T* (&a)[pointers_of(kRows)],
                                             int64_t a_row, const typename S::T*& b, int64_t b_step,
                                             typename S::V (&sums)[kRows][kVectors],
                                             typename S::V (&last_sums)[kRows]) {
  using V = typename S::V;
  constexpr int kLanes = S::kLanes, kFull = kVectors - 1;
  constexpr int kPointers = pointers_of(kRows), kTogether = 2;
  for (int step = 0; step < kPrefetchSteps; step += kTogether) {
    TIDEMARK_UNROLL
    for (int k = 0; k < kTogether; ++k) {
      V row[kVectors];
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) row[v] = S::load(b + v * kLanes);
      b += b_step;
      TIDEMARK_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const V x = S::broadcast(a[r / 3] + (r % 3) * a_row + k * kStep);
        TIDEMARK_UNROLL
        for (int v = 0; v < kFull; ++v) add_product<S>(x, row[v], sums[r][v]);
        add_product<S>(x, row[kFull], last_sums[r]);
      }
    }
    TIDEMARK_UNROLL
    for (int i = 0; i < kPointers; ++i) a[i] += kTogether * kStep;
  }
}

template <class S, class L, int kRows, int kVectors>
void tile(const Tile<typename S::T>& t) {
  using T = typename S::T;
  using V = typename S::V;
  constexpr int kLanes = S::kLanes;
  constexpr int kFull = kVectors - 1;  // Vectors before the last.
  constexpr int kLast = kLanes * kFull;
  V sums[kRows][kVectors];
  typename L::V last_sums[kRows];
  const typename L::Mask mask = L::mask(t.last_lanes);
  if (t.from != nullptr) {
    TIDEMARK_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const T* const from = t.from + r * t.from_row;
      TIDEMARK_UNROLL
      for (int v = 0; v < kFull; ++v) sums[r][v] = S::load(from + v * kLanes);
      last_sums[r] = L::load(from + kLast, mask);
    }
  } else {
    TIDEMARK_UNROLL
    for (int r = 0; r < kRows; ++r) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kFull; ++v) sums[r][v] = S::zero();
      last_sums[r] = L::zero();
    }
  }
  // Prefetches c during the sums, since stores that miss would delay the next tile.
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TIDEMARK_UNROLL
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(t.c + r * t.c_row + v * kLanes, 1, 3);
  }
  const int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step;
  const int64_t a_next_row = t.a_next_row;
  constexpr int kPointers = pointers_of(kRows);
  const bool is_plain = t.packed == nullptr && t.last_lanes == kLanes && t.run == 0;
  const int64_t run = t.run, a_jump = t.a_jump, b_jump = t.b_jump;
  const T* next_a = t.next_a;
  for (int64_t s = 0; s < t.segment_count; ++s) {
    const Segment& segment = t.segments[s];
    const T* a[kPointers];
    TIDEMARK_UNROLL
    for (int i = 0; i < kPointers; ++i) a[i] = t.a + segment.a + 3 * i * a_row;
    const T* b = t.b + segment.b;
    const T* next_b = t.next_b != nullptr ? t.next_b[s] : nullptr;
    T* packed = t.packed;
    int64_t left = segment.length, left_of_run = run;
    while (left > 0) {
      int64_t steps = left < kPrefetchSteps ? left : kPrefetchSteps;
      left -= steps;
      TIDEMARK_UNROLL
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(next_a + r * a_next_row, 0, 3);
      next_a += kPrefetchSteps * a_step;
      if (next_b != nullptr) {
        for (int64_t r = 0; r < t.b_next_rows; ++r) {
          TIDEMARK_UNROLL
          for (int v = 0; v < kVectors; ++v) __builtin_prefetch(next_b + v * kLanes, 0, 2);
          next_b += t.b_next_step;
        }
      }
      if constexpr (std::is_same_v<S,
                                   L>) {  // The narrow one never packs, and has no whole vectors.
        if (is_plain && steps == kPrefetchSteps) {
          if (a_step == 1) {
            run_steps<S, kRows, kVectors, 1>(a, a_row, b, b_step, sums, last_sums);
            continue;
          }
          if (a_step == kRows && a_row == 1) {
            run_steps<S, kRows, kVectors, kRows>(a, 1, b, b_step, sums, last_sums);
            continue;
          }
        }
      }
      for (; steps > 0; --steps) {
        V row[kVectors];
        TIDEMARK_UNROLL
        for (int v = 0; v < kFull; ++v) row[v] = S::load(b + v * kLanes);
        const typename L::V last = L::load(b + kLast, mask);
        if constexpr (std::is_same_v<S, L>) {
          if (packed != nullptr) {
            TIDEMARK_UNROLL
            for (int v = 0; v < kFull; ++v) S::store(packed + v * kLanes, row[v]);
            S::store(packed + kLast, last);
            packed += kLanes * kVectors;
          }
        }
        TIDEMARK_UNROLL
        for (int r = 0; r < kRows; ++r) {
          const V x = S::broadcast(a[r / 3] + (r % 3) * a_row);
          TIDEMARK_UNROLL
          for (int v = 0; v < kFull; ++v) add_product<S>(x, row[v], sums[r][v]);
          add_product<L>(L::of(x), last, last_sums[r]);
        }
        TIDEMARK_UNROLL
        for (int i = 0; i < kPointers; ++i) a[i] += a_step;
        b += b_step;
        if (--left_of_run == 0) {
          TIDEMARK_UNROLL
          for (int i = 0; i < kPointers; ++i) a[i] += a_jump;
          b += b_jump;
          left_of_run = run;
        }
      }
    }
  }
  T* c = t.c;
  const bool whole = t.last_lanes == L::kLanes;
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (t.add) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kFull; ++v) sums[r][v] = S::add(S::load(c + v * kLanes), sums[r][v]);
      last_sums[r] = L::add(L::load(c + kLast, mask), last_sums[r]);
    }
    TIDEMARK_UNROLL
    for (int v = 0; v < kFull; ++v) S::store(c + v * kLanes, sums[r][v]);
    // Masked stores are slow on some CPUs.
    if (whole) {
      L::store(c + kLast, last_sums[r]);
    } else {
      L::store(c + kLast, last_sums[r], mask);
    }
    c += t.c_row;
  }
}

// Sums over a block of k, for the rows and vectors of a tile: term(x, row r, vector v, b, sum) adds
// a term, where x is a(r, k) in all lanes and b a vector of row k of B.
template <class S, int kRows, int kVectors, class Term>
[[gnu::always_inline]] inline void add_up_tile(const DistanceTile<typename S::T>& t, Term term) {
  using T = typename S::T;
  using V = typename S::V;
  constexpr int kLanes = S::kLanes, kLast = kVectors - 1, kPointers = pointers_of(kRows);
  const int64_t a_row = t.a_row, a_step = t.a_step, steps = t.k;
  V sums[kRows][kVectors];
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TIDEMARK_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[r][v] = S::zero();
  }
  const T* a[kPointers];
  TIDEMARK_UNROLL
  for (int i = 0; i < kPointers; ++i) a[i] = t.a + 3 * i * a_row;
  const T* b = t.b;
  for (int64_t k = 0; k < steps; ++k, b += kVectors * kLanes) {
    V row[kVectors];
    TIDEMARK_UNROLL
    for (int v = 0; v < kVectors; ++v) row[v] = S::load(b + v * kLanes);
    TIDEMARK_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V x = S::broadcast(a[r / 3] + (r % 3) * a_row);
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = term(x, r, v, row[v], sums[r][v]);
    }
    TIDEMARK_UNROLL
    for (int i = 0; i < kPointers; ++i) a[i] += a_step;
  }
  const typename S::Mask mask = S::mask(t.last_lanes);
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) {
    T* const c = t.c + r * t.c_row;
    if (t.add) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kLast; ++v) sums[r][v] = S::add(S::load(c + v * kLanes), sums[r][v]);
      sums[r][kLast] = S::add(S::load(c + kLast * kLanes, mask), sums[r][kLast]);
    }
    TIDEMARK_UNROLL
    for (int v = 0; v < kLast; ++v) S::store(c + v * kLanes, sums[r][v]);
    S::store(c + kLast * kLanes, sums[r][kLast], mask);
  }
}

template <class S, int kRows, int kVectors>
void distances(const DistanceTile<typename S::T>& t) {
  using V = typename S::V;
  add_up_tile<S, kRows, kVectors>(t, [](V x, int, int, V b, V sum) {
    const V apart = S::add(x, b);
    return S::fma(apart, apart, sum);
  });
}

template <class S, int kRows, int kVectors>
void differences(const DifferenceTile<typename S::T>& t) {
  using V = typename S::V;
  V from[kRows][kVectors];
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TIDEMARK_UNROLL
    for (int v = 0; v < kVectors; ++v)
      from[r][v] = S::load(t.from + (r * kVectors + v) * S::kLanes);
  }
  add_up_tile<S, kRows, kVectors>(
      t.of, [&](V x, int r, int v, V b, V sum) { return S::fma(x, S::add(from[r][v], b), sum); });
}

// 32-bit integers in the registers of floats F. What is derived from it adds broadcast, fma and
// add, which are those of integers.
template <class F>
struct InFloats : F {
  using T = int32_t;
  using V = typename F::V;
  using Mask = typename F::Mask;
  static const float* floats(const T* p) { return reinterpret_cast<const float*>(p); }
  static float* floats(T* p) { return reinterpret_cast<float*>(p); }
  static V load(const T* p) { return F::load(floats(p)); }
  static V load(const T* p, Mask m) { return F::load(floats(p), m); }
  static void store(T* p, V v) { F::store(floats(p), v); }
  static void store(T* p, V v, Mask m) { F::store(floats(p), v, m); }
  template <class Chains>
  struct FloatChains {
    const Chains& of;
    const float* at(int lane) const { return floats(of.at(lane)); }
  };
  template <class Chains, int kColumns>
  static void load_turned(const Chains& a, int64_t k, V (&columns)[kColumns]) {
    F::load_turned(FloatChains<Chains>{a}, k, columns);
  }
};

// How elements of each stored type become a vector of S::T.
template <class S>
struct Plain {
  using From = typename S::T;
  static typename S::V load(const From* p, int64_t count) {
    return count >= S::kLanes ? S::load(p) : S::load(p, S::mask(static_cast<int>(count)));
  }
  static void store(From* p, typename S::V value, int64_t count) {
    if (count >= S::kLanes) {
      S::store(p, value);
    } else {
      S::store(p, value, S::mask(static_cast<int>(count)));
    }
  }
};
template <class S>
struct FromF16 {
  using From = uint16_t;
  static typename S::V load(const From* p, int64_t count) { return S::load_f16(p, count); }
  static void store(From* p, typename S::V value, int64_t count) {
    typename S::T wide[S::kLanes];
    S::store(wide, value);
    S::round_f16(wide, p, count);
  }
};
template <class S>
struct FromBf16 {
  using From = uint16_t;
  static typename S::V load(const From* p, int64_t count) { return S::load_bf16(p, count); }
  static void store(From* p, typename S::V value, int64_t count) {
    typename S::T wide[S::kLanes];
    S::store(wide, value);
    S::round_bf16(wide, p, count);
  }
};

// Elements a stride apart; zeros beyond `count`.
template <class S, class Load>
typename S::V gather(const typename Load::From* from, int64_t stride, int64_t count) {
  typename Load::From gathered[S::kLanes] = {};
  for (int64_t i = 0; i < S::kLanes && i < count; ++i) gathered[i] = from[i * stride];
  return Load::load(gathered, S::kLanes);
}
template <class S, class Load>
typename S::V load_every_other(const typename Load::From* from) {
  if constexpr (S::kLanes > 1 && std::is_same_v<typename Load::From, typename S::T>) {
    return S::every_other(S::load(from), S::load(from + S::kLanes - 1));
  } else {
    return gather<S, Load>(from, 2, S::kLanes);
  }
}

template <class S, class Load>
void copy(const BlockCopy<typename S::T>& block) {
  using T = typename S::T;
  using V = typename S::V;
  constexpr int64_t kLanes = S::kLanes;
  const auto* from = static_cast<const typename Load::From*>(block.from);
  const auto put = [&](T* to, V value, int64_t room) {
    if (room >= kLanes) {
      S::store(to, value);
    } else {
      S::store(to, value, S::mask(static_cast<int>(room)));
    }
  };
  if (block.column_stride == 1) {
    for (int64_t row = 0; row < block.rows; ++row) {
      const auto* p = from + row * block.row_stride;
      T* to = block.to + row * block.to_row;
      for (int64_t column = 0; column < block.padded_columns; column += kLanes) {
        const int64_t have = block.columns - column;
        put(to + column, have > 0 ? Load::load(p + column, have) : S::zero(),
            block.padded_columns - column);
      }
    }
  } else if (block.row_stride == 1) {
    // Columns are contiguous along rows: squares are transposed in registers.
    for (int64_t column = 0; column < block.padded_columns; column += kLanes) {
      for (int64_t row = 0; row < block.rows; row += kLanes) {
        V square[kLanes];
        const int64_t deep = block.rows - row;
        for (int64_t i = 0; i < kLanes; ++i) {
          square[i] = column + i < block.columns
                          ? Load::load(from + (column + i) * block.column_stride + row, deep)
                          : S::zero();
        }
        S::transpose(square);
        const int64_t count = deep < kLanes ? deep : kLanes;
        for (int64_t i = 0; i < count; ++i) {
          put(block.to + (row + i) * block.to_row + column, square[i],
              block.padded_columns - column);
        }
      }
    }
  } else {
    // Such as the real parts of complex numbers.
    const bool every_other = block.column_stride == 2;
    for (int64_t row = 0; row < block.rows; ++row) {
      const auto* p = from + row * block.row_stride;
      T* to = block.to + row * block.to_row;
      for (int64_t column = 0; column < block.padded_columns; column += kLanes) {
        const int64_t have = block.columns - column;
        put(to + column,
            every_other && have >= kLanes
                ? load_every_other<S, Load>(p + 2 * column)
                : gather<S, Load>(p + column * block.column_stride, block.column_stride, have),
            block.padded_columns - column);
      }
    }
  }
}

struct NoPlaces {};
template <class S, int kEach>
[[gnu::always_inline]] inline auto places_in_group(int c) {
  if constexpr (S::kLanes > 1 && kEach > 1) {
    return S::places(kEach, c);
  } else {
    return NoPlaces{};
  }
}

// Channel c of the group of each lane, for groups of kEach channels: `own` are the channels of the
// lanes. A vector of one lane reads it from memory.
template <class S, class Load, int kEach>
class OfGroup {
 public:
  OfGroup() {
    TIDEMARK_UNROLL
    for (int c = 0; c < kEach; ++c) places_[c] = places_in_group<S, kEach>(c);
  }
  [[gnu::always_inline]] typename S::V channel(typename S::V own, const typename Load::From* from,
                                               int64_t at, int c) const {
    if constexpr (kEach == 1) {
      return own;
    } else if constexpr (S::kLanes > 1) {
      return S::pick(own, places_[c]);
    } else {
      return Load::load(from - at % kEach + c, 1);
    }
  }

 private:
  decltype(places_in_group<S, kEach>(0)) places_[kEach];
};

// One vector of channels of several pixels, which share each load of a weight, and where the taps
// of a row are a pixel apart those of pixels. kWhole: it is a whole vector.
template <class S, class Load, int kEach, int kPixels, bool kWhole>
[[gnu::always_inline]] inline void depthwise_channels(const Depthwise& d, int64_t first,
                                                      int64_t channel) {
  using From = typename Load::From;
  using V = typename S::V;
  constexpr int kRun = kDepthwiseRun;
  // Local copies, because compilers must assume that a vector store may alias `d`.
  const int64_t in_pixel = d.in_pixel, out_pixel = d.out_pixel, channels = d.channels;
  const int64_t have = kWhole ? S::kLanes : channels - channel;
  const From* const in = static_cast<const From*>(d.in) + first * in_pixel + channel;
  const From* const weight = static_cast<const From*>(d.weight) + channel;
  From* const out = static_cast<From*>(d.out) + first * out_pixel + channel;
  const OfGroup<S, Load, kEach> group;
  const From* const next = static_cast<const From*>(d.next) + first * in_pixel + channel;
  TIDEMARK_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    __builtin_prefetch(next + p * in_pixel, 0, 2);
    __builtin_prefetch(out + (p + kPixels) * out_pixel, 1, 3);
  }
  V sums[kPixels];
  TIDEMARK_UNROLL
  for (int p = 0; p < kPixels; ++p) sums[p] = S::zero();
  const DepthwiseTap* tap = d.taps;
  const DepthwiseTap* const end = tap + d.tap_count;
  if (kEach == 1 && d.in_runs) {
    for (; tap != end; tap += kRun) {
      V row[kPixels + kRun - 1];
      TIDEMARK_UNROLL
      for (int p = 0; p < kPixels + kRun - 1; ++p)
        row[p] = Load::load(in + tap->in + p * in_pixel, have);
      TIDEMARK_UNROLL
      for (int t = 0; t < kRun; ++t) {
        const V factor = Load::load(weight + tap[t].weight, have);
        TIDEMARK_UNROLL
        for (int p = 0; p < kPixels; ++p) sums[p] = S::fma(row[p + t], factor, sums[p]);
      }
    }
  }
  for (; tap != end; ++tap) {
    const From* const factors = weight + tap->weight;
    const From* const from = in + tap->in;
    V own[kPixels];
    TIDEMARK_UNROLL
    for (int p = 0; p < kPixels; ++p) own[p] = Load::load(from + p * in_pixel, have);
    TIDEMARK_UNROLL
    for (int c = 0; c < kEach; ++c) {
      const V factor = Load::load(factors + c * channels, have);
      TIDEMARK_UNROLL
      for (int p = 0; p < kPixels; ++p) {
        const V x = group.channel(own[p], from + p * in_pixel, channel, c);
        sums[p] = S::fma(x, factor, sums[p]);
      }
    }
  }
  TIDEMARK_UNROLL
  for (int p = 0; p < kPixels; ++p) Load::store(out + p * out_pixel, sums[p], have);
}

template <class S, class Load, int kEach, int kPixels>
void depthwise_pixels(const Depthwise& d, int64_t first) {
  const int64_t channels = d.channels;
  int64_t channel = 0;
  for (; channel + S::kLanes <= channels; channel += S::kLanes)
    depthwise_channels<S, Load, kEach, kPixels, true>(d, first, channel);
  if (channel < channels) depthwise_channels<S, Load, kEach, kPixels, false>(d, first, channel);
}

template <class S, class Load, int kEach>
void depthwise(const Depthwise& d) {
  constexpr int kTogether = 6;
  int64_t pixel = 0;
  for (; pixel + kTogether <= d.pixels; pixel += kTogether)
    depthwise_pixels<S, Load, kEach, kTogether>(d, pixel);
  for (; pixel < d.pixels; ++pixel) depthwise_pixels<S, Load, kEach, 1>(d, pixel);
}

// A few taps of a few vectors of channels, over all pixels. kWhole: they are whole vectors.
template <class S, class Load, int kEach, int kTaps, int kVectors, bool kWhole>
void sum_taps(const DepthwiseSums<typename S::T>& d, const DepthwiseTap* taps, int64_t channel) {
  using From = typename Load::From;
  using V = typename S::V;
  constexpr int64_t kLanes = S::kLanes;
  const int64_t have = kWhole ? kLanes : d.channels - channel;
  const int64_t in_pixel = d.in_pixel, by_pixel = d.by_pixel, sums_row = d.sums_row;
  typename S::T* const to = d.sums + channel;
  const OfGroup<S, Load, kEach> group;
  V sums[kTaps][kEach][kVectors];
  int64_t offsets[kTaps];
  const auto place = [&](int t, int c, int v) {
    return to + taps[t].weight + c * sums_row + v * kLanes;
  };
  TIDEMARK_UNROLL
  for (int t = 0; t < kTaps; ++t) {
    offsets[t] = taps[t].in;
    TIDEMARK_UNROLL
    for (int c = 0; c < kEach; ++c) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[t][c][v] = S::load(place(t, c, v));
    }
  }
  const From* in = static_cast<const From*>(d.in) + channel;
  const From* by = static_cast<const From*>(d.by) + channel;
  for (int64_t pixel = 0; pixel < d.pixels; ++pixel, in += in_pixel, by += by_pixel) {
    V factors[kVectors];
    TIDEMARK_UNROLL
    for (int v = 0; v < kVectors; ++v) factors[v] = Load::load(by + v * kLanes, have);
    TIDEMARK_UNROLL
    for (int t = 0; t < kTaps; ++t) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const From* const from = in + offsets[t] + v * kLanes;
        const V own = Load::load(from, have);
        TIDEMARK_UNROLL
        for (int c = 0; c < kEach; ++c) {
          const V x = group.channel(own, from, channel + v * kLanes, c);
          sums[t][c][v] = S::fma(x, factors[v], sums[t][c][v]);
        }
      }
    }
  }
  TIDEMARK_UNROLL
  for (int t = 0; t < kTaps; ++t) {
    TIDEMARK_UNROLL
    for (int c = 0; c < kEach; ++c) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) S::store(place(t, c, v), sums[t][c][v]);
    }
  }
}

// Eight to twelve chains keep two fma units busy.
template <class S, class Load, int kEach, int kTaps>
void sum_channels(const DepthwiseSums<typename S::T>& d, const DepthwiseTap* taps) {
  constexpr int kChains = kTaps * kEach;
  constexpr int kVectors = kChains <= 3 ? 4 : kChains <= 6 ? 2 : 1;
  constexpr int64_t kLanes = S::kLanes;
  int64_t channel = 0;
  for (; channel + kVectors * kLanes <= d.channels; channel += kVectors * kLanes)
    sum_taps<S, Load, kEach, kTaps, kVectors, true>(d, taps, channel);
  for (; channel + kLanes <= d.channels; channel += kLanes)
    sum_taps<S, Load, kEach, kTaps, 1, true>(d, taps, channel);
  if (channel < d.channels) sum_taps<S, Load, kEach, kTaps, 1, false>(d, taps, channel);
}

// All taps, in parts of as nearly as possible the same number.
template <class S, class Load, int kEach>
void depthwise_sums(const DepthwiseSums<typename S::T>& d) {
  using Sum = void (*)(const DepthwiseSums<typename S::T>&, const DepthwiseTap*);
  constexpr int kMost = kEach == 1 ? 6 : kEach == 2 ? 5 : kEach == 4 ? 3 : 1;
  struct Sums {
    Sum of[kMost];
  };
  static constexpr Sums kSums = []<int... t>(std::integer_sequence<int, t...>) {
    return Sums{{&sum_channels<S, Load, kEach, t + 1>...}};
  }(std::make_integer_sequence<int, kMost>{});
  int64_t parts = (d.tap_count + kMost - 1) / kMost;
  for (int64_t tap = 0; tap < d.tap_count; --parts) {
    const int64_t count = (d.tap_count - tap + parts - 1) / parts;
    kSums.of[count - 1](d, d.taps + tap);
    tap += count;
  }
}

// Sixteen rows at once, one for each lane: enough chains to keep the fma unit busy, and few enough
// streams for the hardware prefetcher.
inline constexpr int kRowsTogether = 16;

// One line of each row, copied side by side. Rows are often a power of two apart and then fall into
// one set of the first-level cache, where sixteen lines do not stay: each is read whole, once.
template <class S>
struct Lines {
  using T = typename S::T;
  static constexpr int64_t kLine = 64 / sizeof(T);
  const T* first;
  const T* at(int lane) const { return first + lane * kLine; }
};

template <class S>
void follow_rows(const typename S::T* const (&a)[kRowsTogether],
                 const RowsTimesVector<typename S::T>& p, const typename S::T* next,
                 typename S::T* out) {
  using T = typename S::T;
  using V = typename S::V;
  constexpr int kLanes = S::kLanes, kVectors = kRowsTogether / kLanes;
  constexpr int64_t kLine = Lines<S>::kLine;
  // Copied one line ahead of its use, so that no load waits for a store.
  alignas(64) T copies[2][kRowsTogether * kLine] = {};
  const auto copy_lines = [&](int64_t k) {
    T* const lines = copies[k / kLine % 2];
    if (p.k - k >= kLine) {
      TIDEMARK_UNROLL
      for (int row = 0; row < kRowsTogether; ++row) {
        TIDEMARK_UNROLL
        for (int64_t i = 0; i < kLine; i += kLanes) {
          S::store(lines + row * kLine + i, S::load(a[row] + k + i));
        }
      }
    } else {
      for (int row = 0; row < kRowsTogether; ++row) {
        for (int64_t i = 0; i < p.k - k; ++i) lines[row * kLine + i] = a[row][k + i];
      }
    }
  };
  V totals[kVectors], sums[kVectors];
  TIDEMARK_UNROLL
  for (int v = 0; v < kVectors; ++v) totals[v] = sums[v] = S::zero();
  copy_lines(0);
  for (int64_t k = 0; k < p.k; k += kLine) {
    if (k > 0 && k % kBlock == 0) {
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        totals[v] = k == kBlock ? sums[v] : S::add(totals[v], sums[v]);
        sums[v] = S::zero();
      }
    }
    TIDEMARK_UNROLL
    for (int row = 0; row < kRowsTogether; ++row) __builtin_prefetch(next + row * kLine, 0, 2);
    next += kRowsTogether * kLine;
    if (k + kLine < p.k) copy_lines(k + kLine);
    const T* const lines = copies[k / kLine % 2];
    const int64_t steps = p.k - k < kLine ? p.k - k : kLine;
    const T* x = p.x + k * p.x_step;
    const auto add_columns = [&](int64_t begin, int64_t count) {
      V columns[kVectors][S::kTurned];
      TIDEMARK_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        S::load_turned(Lines<S>{lines + v * kLanes * kLine}, begin, columns[v]);
      }
      TIDEMARK_UNROLL
      for (int i = 0; i < S::kTurned; ++i) {
        if (i >= count) break;
        const V factor = S::broadcast(x);
        x += p.x_step;
        TIDEMARK_UNROLL
        for (int v = 0; v < kVectors; ++v) sums[v] = S::fma(columns[v][i], factor, sums[v]);
      }
    };
    if (steps == kLine) {
      TIDEMARK_UNROLL
      for (int64_t i = 0; i < kLine; i += S::kTurned) add_columns(i, S::kTurned);
    } else {
      for (int64_t i = 0; i < steps; i += S::kTurned) add_columns(i, steps - i);
    }
  }
  TIDEMARK_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    S::store(out + v * kLanes, p.k <= kBlock ? sums[v] : S::add(totals[v], sums[v]));
  }
}

template <class S>
void rows_times_vector(const RowsTimesVector<typename S::T>& p) {
  using T = typename S::T;
  for (int64_t row = 0; row < p.rows; row += kRowsTogether) {
    const int64_t count = p.rows - row < kRowsTogether ? p.rows - row : kRowsTogether;
    const T* a[kRowsTogether];
    for (int i = 0; i < kRowsTogether; ++i) {
      // Lanes beyond the last row follow it again and are not stored.
      a[i] = p.a + (row + (i < count ? i : count - 1)) * p.a_row;
    }
    alignas(64) T sums[kRowsTogether];
    follow_rows<S>(a, p, a[0] + kRowsTogether * p.a_row, sums);
    for (int64_t i = 0; i < count; ++i) p.c[(row + i) * p.c_step] = sums[i];
  }
}

// The prefetch distance of a long row into the L2 cache. With this distance the hardware follows
// eight rows well; a single row gains nothing.
inline constexpr int64_t kBytesAhead = 2048;

// Eight rows of B at a time over all columns, so that memory is read in eight long streams; the
// chain of each column waits in `partial` between them.
template <class S, int kRows>
void add_rows(const VectorTimesColumns<typename S::T>& p, int64_t k, bool first, bool last,
              bool add) {
  using T = typename S::T;
  using V = typename S::V;
  constexpr int64_t kLanes = S::kLanes, kAhead = kBytesAhead / static_cast<int64_t>(sizeof(T));
  // Local copies, because compilers must assume that a vector store may alias `p`.
  const int64_t b_row = p.b_row, columns = p.columns;
  const T* const b = p.b + k * b_row;
  // A chain begins at zero, and goes to c when its block ends, by way of `partial` else.
  const T* const from = p.partial;
  T* const to = last ? p.c : p.partial;
  V x[kRows];
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) x[r] = S::broadcast(p.x + (k + r) * p.x_step);
  const int64_t whole = columns - columns % kLanes;
  for (int64_t column = 0; column < whole; column += kLanes) {
    V sum = first ? S::zero() : S::load(from + column);
    // Where these rows end soon, the rows that come next begin.
    const bool ends = column + kAhead >= columns;
    const T* ahead = b + column + kAhead + (ends ? kRows * b_row - columns : 0);
    TIDEMARK_UNROLL
    for (int r = 0; r < kRows; ++r) __builtin_prefetch(ahead + r * b_row, 0, 2);
    TIDEMARK_UNROLL
    for (int r = 0; r < kRows; ++r) sum = S::fma(x[r], S::load(b + r * b_row + column), sum);
    if (last && add) sum = S::add(S::load(to + column), sum);
    S::store(to + column, sum);
  }
  if (whole == columns) return;
  const typename S::Mask mask = S::mask(static_cast<int>(columns - whole));
  V sum = first ? S::zero() : S::load(from + whole);
  TIDEMARK_UNROLL
  for (int r = 0; r < kRows; ++r) sum = S::fma(x[r], S::load(b + r * b_row + whole, mask), sum);
  if (last && add) sum = S::add(S::load(to + whole, mask), sum);
  if (last) {
    S::store(to + whole, sum, mask);
  } else {
    S::store(to + whole, sum);
  }
}

template <class S>
void vector_times_columns(const VectorTimesColumns<typename S::T>& p) {
  for (int64_t block = 0; block < p.k; block += kBlock) {
    const int64_t end = p.k - block < kBlock ? p.k : block + kBlock;
    for (int64_t k = block; k < end;) {
      const int64_t rows = end - k >= 8 ? 8 : 1;
      const bool first = k == block, last = k + rows == end;
      if (rows == 8) {
        add_rows<S, 8>(p, k, first, last, block > 0);
      } else {
        add_rows<S, 1>(p, k, first, last, block > 0);
      }
      k += rows;
    }
  }
}

template <class S>
void round_f16(const typename S::T* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; i += S::kLanes) S::round_f16(from + i, to + i, count - i);
}
template <class S>
void round_bf16(const typename S::T* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; i += S::kLanes) S::round_bf16(from + i, to + i, count - i);
}

template <class S, int kVectors, int kRows>
constexpr void add_tiles(KernelSet<typename S::T>& set) {
  if constexpr (kRows > 0) {
    set.tile[kVectors - 1][kRows - 1] = &tile<S, S, kRows, kVectors>;
    set.narrow_tile[kVectors - 1][kRows - 1] = &tile<S, typename S::Narrow, kRows, kVectors>;
    add_tiles<S, kVectors, kRows - 1>(set);
  }
}

// Lanes of a vector can only be picked from that vector.
template <class S, int kNumber>
inline constexpr bool holds_group = S::kLanes == 1 || group_size(kNumber) <= S::kLanes;

template <class S, class Load>
constexpr void add_depthwise(void (*(&to)[kGroupSizes])(const Depthwise&)) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    const auto add = [&]<int kNumber>(std::integral_constant<int, kNumber>) {
      if constexpr (holds_group<S, kNumber>) to[kNumber] = &depthwise<S, Load, group_size(kNumber)>;
    };
    (add(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, kGroupSizes>{});
}

template <class S, class Load>
constexpr void add_depthwise_sums(void (*(&to)[kGroupSizes])(const DepthwiseSums<typename S::T>&)) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    const auto add = [&]<int kNumber>(std::integral_constant<int, kNumber>) {
      if constexpr (holds_group<S, kNumber>)
        to[kNumber] = &depthwise_sums<S, Load, group_size(kNumber)>;
    };
    (add(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, kGroupSizes>{});
}

// kRows...: the tallest tile for one vector, for two, ...
template <class S, int... kRows>
constexpr KernelSet<typename S::T> make_kernel_set() {
  KernelSet<typename S::T> set;
  set.lanes = S::kLanes;
  set.narrow_lanes = std::is_same_v<S, typename S::Narrow> ? 0 : S::Narrow::kLanes;
  int vectors = 0;
  ((set.max_rows[vectors++] = kRows), ...);
  set.max_vectors = vectors;
  [&]<int... v>(std::integer_sequence<int, v...>) {
    (add_tiles<S, v + 1, kRows>(set), ...);
  }(std::make_integer_sequence<int, sizeof...(kRows)>{});
  set.copy = &copy<S, Plain<S>>;
  add_depthwise<S, Plain<S>>(set.depthwise);
  if constexpr (std::is_floating_point_v<typename S::T>) {
    add_depthwise_sums<S, Plain<S>>(set.depthwise_sums);
    [&]<int... v>(std::integer_sequence<int, v...>) {
      ((set.distances[v] = &distances<S, kDistanceRows, v + 1>), ...);
      ((set.distances_of_row[v] = &distances<S, 1, v + 1>), ...);
      ((set.differences[v] = &differences<S, kDifferenceRows, v + 1>), ...);
      ((set.differences_of_row[v] = &differences<S, 1, v + 1>), ...);
    }(std::make_integer_sequence<int, sizeof...(kRows)>{});
  }
  if constexpr (std::is_same_v<typename S::T, float>) {
    set.copy_f16 = &copy<S, FromF16<S>>;
    set.copy_bf16 = &copy<S, FromBf16<S>>;
    add_depthwise<S, FromF16<S>>(set.depthwise_f16);
    add_depthwise<S, FromBf16<S>>(set.depthwise_bf16);
    add_depthwise_sums<S, FromF16<S>>(set.depthwise_sums_f16);
    add_depthwise_sums<S, FromBf16<S>>(set.depthwise_sums_bf16);
    set.round_f16 = &round_f16<S>;
    set.round_bf16 = &round_bf16<S>;
  }
  set.rows_times_vector = &rows_times_vector<S>;
  set.vector_times_columns = &vector_times_columns<S>;
  return set;
}

}  // namespace tidemark::contraction
