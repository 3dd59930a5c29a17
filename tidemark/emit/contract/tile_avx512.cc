// Vectors of 64 bytes. Six rows by four vectors take 24 of 32 registers, and leave four for a row
// of B and some for broadcasts in flight.
#include <immintrin.h>

#include "tidemark/emit/contract/tile_kernels.h"

namespace tidemark::contraction {
namespace {

// CPUs that work on 64 bytes as two halves spend half the time on one.
struct NarrowFloats {
  using V = __m256;
  using Mask = __mmask8;
  static constexpr int kLanes = 8;
  static Mask mask(int count) { return static_cast<Mask>((1U << count) - 1U); }
  static V zero() { return _mm256_setzero_ps(); }
  static V of(__m512 v) { return _mm512_castps512_ps256(v); }
  static V load(const float* p, Mask m) { return _mm256_maskz_loadu_ps(m, p); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, V v, Mask m) { _mm256_mask_storeu_ps(p, m, v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
};

struct NarrowInts : InFloats<NarrowFloats> {
  static V fma(V a, V b, V c) {
    const __m256i product = _mm256_mullo_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));
    return add(_mm256_castsi256_ps(product), c);
  }
  static V add(V a, V b) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
  }
};

struct NarrowDoubles {
  using V = __m256d;
  using Mask = __mmask8;
  static constexpr int kLanes = 4;
  static Mask mask(int count) { return static_cast<Mask>((1U << count) - 1U); }
  static V zero() { return _mm256_setzero_pd(); }
  static V of(__m512d v) { return _mm512_castpd512_pd256(v); }
  static V load(const double* p, Mask m) { return _mm256_maskz_loadu_pd(m, p); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static void store(double* p, V v, Mask m) { _mm256_mask_storeu_pd(p, m, v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
};

struct Floats {
  using T = float;
  using Narrow = NarrowFloats;
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static V of(V v) { return v; }
  static Mask mask(int count) { return static_cast<Mask>((1U << count) - 1U); }
  static V zero() { return _mm512_setzero_ps(); }
  static V broadcast(const T* p) { return _mm512_set1_ps(*p); }
  static V load(const T* p) { return _mm512_loadu_ps(p); }
  static V load(const T* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(T* p, V v) { _mm512_storeu_ps(p, v); }
  static void store(T* p, V v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }

  using Places = __m512i;
  static Places places(int each, int i) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_and_si512(lanes, _mm512_set1_epi32(-each)),
                            _mm512_set1_epi32(i));
  }
  static V pick(V v, Places places) { return _mm512_permutexvar_ps(places, v); }
  static V every_other(V first, V last) {
    const __m512i places =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(first, places, last);
  }

  static Mask mask_up_to(int64_t count) {
    return count >= kLanes ? static_cast<Mask>(0xffff) : mask(static_cast<int>(count));
  }
  static V load_f16(const uint16_t* p, int64_t count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask_up_to(count), p));
  }
  static V load_bf16(const uint16_t* p, int64_t count) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask_up_to(count), p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  static void round_f16(const T* from, uint16_t* to, int64_t count) {
    const Mask m = mask_up_to(count);
    const __m256i half = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, from), _MM_FROUND_TO_NEAREST_INT);
    _mm256_mask_storeu_epi16(to, m, half);
  }
  // As bf16_of_float in types/dtype.h.
  static void round_bf16(const T* from, uint16_t* to, int64_t count) {
    const Mask m = mask_up_to(count);
    const V value = _mm512_maskz_loadu_ps(m, from);
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i top = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_srli_epi32(
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    const __m512i quiet = _mm512_or_si512(top, _mm512_set1_epi32(0x40));
    const Mask nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    _mm256_mask_storeu_epi16(to, m,
                             _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet)));
  }

  // Loads put each quarter in its final position, so that only shuffles within quarters are left.
  static constexpr int kTurned = 4;
  template <class Chains>
  static void load_turned(const Chains& a, int64_t k, V (&columns)[kTurned]) {
    V x[4];
    TIDEMARK_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm512_castps128_ps512(_mm_loadu_ps(a.at(i) + k));
      x[i] = _mm512_insertf32x4(x[i], _mm_loadu_ps(a.at(i + 4) + k), 1);
      x[i] = _mm512_insertf32x4(x[i], _mm_loadu_ps(a.at(i + 8) + k), 2);
      x[i] = _mm512_insertf32x4(x[i], _mm_loadu_ps(a.at(i + 12) + k), 3);
    }
    const V low = _mm512_unpacklo_ps(x[0], x[1]), high = _mm512_unpackhi_ps(x[0], x[1]);
    const V low2 = _mm512_unpacklo_ps(x[2], x[3]), high2 = _mm512_unpackhi_ps(x[2], x[3]);
    columns[0] = pairs_low(low, low2);
    columns[1] = pairs_high(low, low2);
    columns[2] = pairs_low(high, high2);
    columns[3] = pairs_high(high, high2);
  }

  static void transpose(V (&x)[kLanes]) {
    V y[kLanes];
    // Pairs, then squares of four, within quarters of 16 bytes.
    TIDEMARK_UNROLL
    for (int i = 0; i < 16; i += 2) {
      y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
      y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    TIDEMARK_UNROLL
    for (int i = 0; i < 16; i += 4) {
      x[i] = pairs_low(y[i], y[i + 2]);
      x[i + 1] = pairs_high(y[i], y[i + 2]);
      x[i + 2] = pairs_low(y[i + 1], y[i + 3]);
      x[i + 3] = pairs_high(y[i + 1], y[i + 3]);
    }
    // x[4 g + j] holds in quarter q column 4 q + j of rows 4 g to 4 g + 3: quarters change places.
    TIDEMARK_UNROLL
    for (int j = 0; j < 4; ++j) {
      y[j] = _mm512_shuffle_f32x4(x[j], x[j + 4], 0x88);
      y[j + 4] = _mm512_shuffle_f32x4(x[j], x[j + 4], 0xdd);
      y[j + 8] = _mm512_shuffle_f32x4(x[j + 8], x[j + 12], 0x88);
      y[j + 12] = _mm512_shuffle_f32x4(x[j + 8], x[j + 12], 0xdd);
    }
    TIDEMARK_UNROLL
    for (int j = 0; j < 8; ++j) {
      x[j] = _mm512_shuffle_f32x4(y[j], y[j + 8], 0x88);
      x[j + 8] = _mm512_shuffle_f32x4(y[j], y[j + 8], 0xdd);
    }
  }
  static V pairs_low(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static V pairs_high(V a, V b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
};

struct Ints : InFloats<Floats> {
  using Narrow = NarrowInts;
  static V broadcast(const T* p) { return _mm512_castsi512_ps(_mm512_set1_epi32(*p)); }
  static V fma(V a, V b, V c) {
    const __m512i product = _mm512_mullo_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b));
    return add(_mm512_castsi512_ps(product), c);
  }
  static V add(V a, V b) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }
};

struct Doubles {
  using T = double;
  using Narrow = NarrowDoubles;
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8;
  static V of(V v) { return v; }
  static Mask mask(int count) { return static_cast<Mask>((1U << count) - 1U); }
  static V zero() { return _mm512_setzero_pd(); }
  static V broadcast(const T* p) { return _mm512_set1_pd(*p); }
  static V load(const T* p) { return _mm512_loadu_pd(p); }
  static V load(const T* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static void store(T* p, V v) { _mm512_storeu_pd(p, v); }
  static void store(T* p, V v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }

  using Places = __m512i;
  static Places places(int each, int i) {
    const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm512_add_epi64(_mm512_and_si512(lanes, _mm512_set1_epi64(-each)),
                            _mm512_set1_epi64(i));
  }
  static V pick(V v, Places places) { return _mm512_permutexvar_pd(places, v); }
  static V every_other(V first, V last) {
    return _mm512_permutex2var_pd(first, _mm512_setr_epi64(0, 2, 4, 6, 9, 11, 13, 15), last);
  }

  static constexpr int kTurned = 2;
  template <class Chains>
  static void load_turned(const Chains& a, int64_t k, V (&columns)[kTurned]) {
    V x[2];
    TIDEMARK_UNROLL
    for (int i = 0; i < 2; ++i) {
      x[i] = _mm512_castpd128_pd512(_mm_loadu_pd(a.at(i) + k));
      x[i] = _mm512_insertf64x2(x[i], _mm_loadu_pd(a.at(i + 2) + k), 1);
      x[i] = _mm512_insertf64x2(x[i], _mm_loadu_pd(a.at(i + 4) + k), 2);
      x[i] = _mm512_insertf64x2(x[i], _mm_loadu_pd(a.at(i + 6) + k), 3);
    }
    columns[0] = _mm512_unpacklo_pd(x[0], x[1]);
    columns[1] = _mm512_unpackhi_pd(x[0], x[1]);
  }

  static void transpose(V (&x)[kLanes]) {
    V y[kLanes];
    TIDEMARK_UNROLL
    for (int i = 0; i < 8; i += 2) {
      y[i] = _mm512_unpacklo_pd(x[i], x[i + 1]);
      y[i + 1] = _mm512_unpackhi_pd(x[i], x[i + 1]);
    }
    TIDEMARK_UNROLL
    for (int j = 0; j < 2; ++j) {
      const V a = _mm512_shuffle_f64x2(y[j], y[j + 2], 0x88);
      const V b = _mm512_shuffle_f64x2(y[j], y[j + 2], 0xdd);
      const V c = _mm512_shuffle_f64x2(y[j + 4], y[j + 6], 0x88);
      const V d = _mm512_shuffle_f64x2(y[j + 4], y[j + 6], 0xdd);
      x[j] = _mm512_shuffle_f64x2(a, c, 0x88);
      x[j + 4] = _mm512_shuffle_f64x2(a, c, 0xdd);
      x[j + 2] = _mm512_shuffle_f64x2(b, d, 0x88);
      x[j + 6] = _mm512_shuffle_f64x2(b, d, 0xdd);
    }
  }
};

}  // namespace

constinit const KernelSet<float> kAvx512F32 = make_kernel_set<Floats, 8, 8, 8, 6>();
constinit const KernelSet<int32_t> kAvx512I32 = make_kernel_set<Ints, 8, 8, 8, 6>();
constinit const KernelSet<double> kAvx512F64 = make_kernel_set<Doubles, 8, 8, 8, 6>();

}  // namespace tidemark::contraction
