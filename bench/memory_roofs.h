// The peak memory bandwidth of this machine, with the same threads and in the same run: the roofs
// that kernels are compared with. Each touches `count` floats.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "tidemark/device/threads.h"

namespace tidemark::bench {

// Pieces of 64 Ki floats over the pool, as kernels are split.
template <class Body>
void in_pieces(int64_t count, Body body) {
  device::parallel_for(count, 65536, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

__attribute__((target("avx2"))) inline void copy_piece(const float* from, float* to, int64_t begin,
                                                       int64_t end) {
  for (int64_t i = begin; i + 32 <= end; i += 32) {
    for (int v = 0; v < 4; ++v) _mm256_store_ps(to + i + 8 * v, _mm256_load_ps(from + i + 8 * v));
  }
}
__attribute__((target("avx2"))) inline void stream_piece(const float* from, float* to,
                                                         int64_t begin, int64_t end) {
  for (int64_t i = begin; i + 32 <= end; i += 32) {
    for (int v = 0; v < 4; ++v) _mm256_stream_ps(to + i + 8 * v, _mm256_load_ps(from + i + 8 * v));
  }
  _mm_sfence();
}
__attribute__((target("avx2"))) inline void scale_piece(float* data, int64_t begin, int64_t end) {
  const __m256 factor = _mm256_set1_ps(0.999F);
  for (int64_t i = begin; i + 32 <= end; i += 32) {
    for (int v = 0; v < 4; ++v)
      _mm256_store_ps(data + i + 8 * v, _mm256_mul_ps(factor, _mm256_load_ps(data + i + 8 * v)));
  }
}
__attribute__((target("avx2"))) inline float read_piece(const float* data, int64_t begin,
                                                        int64_t end) {
  __m256 sums[8];
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  for (int64_t i = begin; i + 64 <= end; i += 64) {
    for (int v = 0; v < 8; ++v) sums[v] = _mm256_add_ps(sums[v], _mm256_load_ps(data + i + 8 * v));
  }
  float total = 0;
  for (const auto& sum : sums) total += sum[0];
  return total;
}
__attribute__((target("avx2"))) inline void fill_piece(float* data, int64_t begin, int64_t end) {
  const __m256 value = _mm256_set1_ps(1.0F);
  for (int64_t i = begin; i + 32 <= end; i += 32) {
    for (int v = 0; v < 4; ++v) _mm256_stream_ps(data + i + 8 * v, value);
  }
  _mm_sfence();
}

inline void copy_roof(const float* from, float* to, int64_t count) {
  in_pieces(count, [&](int64_t b, int64_t e) { copy_piece(from, to, b, e); });
}
inline void stream_roof(const float* from, float* to, int64_t count) {
  in_pieces(count, [&](int64_t b, int64_t e) { stream_piece(from, to, b, e); });
}
inline void in_place_roof(float* data, int64_t count) {
  in_pieces(count, [&](int64_t b, int64_t e) { scale_piece(data, b, e); });
}
inline void read_roof(const float* data, int64_t count) {
  in_pieces(count, [&](int64_t b, int64_t e) {
    volatile float keep = read_piece(data, b, e);
    (void)keep;
  });
}
inline void fill_roof(float* data, int64_t count) {
  in_pieces(count, [&](int64_t b, int64_t e) { fill_piece(data, b, e); });
}

}  // namespace tidemark::bench
