// The peak rates of this core: fma per second, and bytes read per second.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tidemark::bench {

// Floating-point operations of one call of fma_peak.
inline constexpr double kPeakFlops = 2.0 * 16 * 24 * 2000;

__attribute__((target("avx512f"))) inline void fma_peak_avx512() {
  __m512 sums[24];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0F);
  __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(1e-3F);
  for (int i = 0; i < 2000; ++i) {
#pragma GCC unroll 32
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, x, y);
    __asm__ volatile("" : "+v"(x), "+v"(y));
  }
  for (auto& sum : sums) __asm__ volatile("" ::"v"(sum));
}

__attribute__((target("avx2,fma"))) inline void fma_peak_avx2() {
  __m256 sums[12];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0F);
  __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(1e-3F);
  for (int i = 0; i < 8000; ++i) {
#pragma GCC unroll 32
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, x, y);
    __asm__ volatile("" : "+x"(x), "+x"(y));
  }
  for (auto& sum : sums) __asm__ volatile("" ::"x"(sum));
}

// Reads every line once; the sum is returned so that the reads are made.
__attribute__((target("avx2"))) inline float read_all(const float* data, int64_t count) {
  __m256 sums[8];
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  for (int64_t i = 0; i + 64 <= count; i += 64) {
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) sums[v] = _mm256_add_ps(sums[v], _mm256_loadu_ps(data + i + 8 * v));
  }
  float total = 0;
  for (const auto& sum : sums) total += sum[0];
  return total;
}

}  // namespace tidemark::bench
