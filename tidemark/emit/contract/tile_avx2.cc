// Vectors of 32 bytes. Six rows by two vectors take 12 of 16 registers, and leave two for a row of
// B and one for a broadcast.
#include <immintrin.h>

#include "tidemark/emit/contract/tile_kernels.h"

namespace tidemark::contraction {
namespace {

struct Floats {
  using T = float;
  using Narrow = Floats;
  using V = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static V of(V v) { return v; }
  static Mask mask(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V zero() { return _mm256_setzero_ps(); }
  static V broadcast(const T* p) { return _mm256_broadcast_ss(p); }
  static V load(const T* p) { return _mm256_loadu_ps(p); }
  static V load(const T* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(T* p, V v) { _mm256_storeu_ps(p, v); }
  static void store(T* p, V v, Mask m) { _mm256_maskstore_ps(p, m, v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static void add_product(V a, V b, V& sum) {
    asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }

  using Places = __m256i;
  static Places places(int each, int i) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(_mm256_and_si256(lanes, _mm256_set1_epi32(-each)),
                            _mm256_set1_epi32(i));
  }
  static V pick(V v, Places places) { return _mm256_permutevar8x32_ps(v, places); }
  static V every_other(V first, V last) {
    const V halves = _mm256_shuffle_ps(first, last, 0xd8);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(halves), 0xd8));
  }

  // There are no masked loads of 16-bit elements: a part of a vector goes through an array.
  static __m128i load_halves(const uint16_t* p, int64_t count) {
    if (count >= kLanes) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    alignas(16) uint16_t part[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) part[i] = p[i];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(part));
  }
  static void store_halves(uint16_t* p, __m128i halves, int64_t count) {
    if (count >= kLanes) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
      return;
    }
    alignas(16) uint16_t part[kLanes];
    _mm_store_si128(reinterpret_cast<__m128i*>(part), halves);
    for (int64_t i = 0; i < count; ++i) p[i] = part[i];
  }
  static V load_up_to(const T* p, int64_t count) {
    return count >= kLanes ? load(p) : load(p, mask(static_cast<int>(count)));
  }
  static V load_f16(const uint16_t* p, int64_t count) {
    return _mm256_cvtph_ps(load_halves(p, count));
  }
  static V load_bf16(const uint16_t* p, int64_t count) {
    const __m256i bits = _mm256_cvtepu16_epi32(load_halves(p, count));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  static void round_f16(const T* from, uint16_t* to, int64_t count) {
    const V value = load_up_to(from, count);
    store_halves(to, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT), count);
  }
  // As bf16_of_float in types/dtype.h.
  static void round_bf16(const T* from, uint16_t* to, int64_t count) {
    const V value = load_up_to(from, count);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i top = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(rounded, quiet, nan);
    store_halves(
        to, _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)),
        count);
  }

  // Loads put each half in its final position, so that only shuffles within halves are left.
  static constexpr int kTurned = 4;
  template <class Chains>
  static void load_turned(const Chains& a, int64_t k, V (&columns)[kTurned]) {
    V x[4];
    TIDEMARK_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a.at(i) + k)),
                                  _mm_loadu_ps(a.at(i + 4) + k), 1);
    }
    const V low = _mm256_unpacklo_ps(x[0], x[1]), high = _mm256_unpackhi_ps(x[0], x[1]);
    const V low2 = _mm256_unpacklo_ps(x[2], x[3]), high2 = _mm256_unpackhi_ps(x[2], x[3]);
    columns[0] = _mm256_shuffle_ps(low, low2, 0x44);
    columns[1] = _mm256_shuffle_ps(low, low2, 0xee);
    columns[2] = _mm256_shuffle_ps(high, high2, 0x44);
    columns[3] = _mm256_shuffle_ps(high, high2, 0xee);
  }

  static void transpose(V (&x)[kLanes]) {
    V y[kLanes];
    TIDEMARK_UNROLL
    for (int i = 0; i < 8; i += 2) {
      y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
      y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    TIDEMARK_UNROLL
    for (int i = 0; i < 8; i += 4) {
      x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
      x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
      x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
      x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
    TIDEMARK_UNROLL
    for (int j = 0; j < 4; ++j) {
      y[j] = _mm256_permute2f128_ps(x[j], x[j + 4], 0x20);
      y[j + 4] = _mm256_permute2f128_ps(x[j], x[j + 4], 0x31);
    }
    TIDEMARK_UNROLL
    for (int j = 0; j < 8; ++j) x[j] = y[j];
  }
};

struct Ints : InFloats<Floats> {
  using Narrow = Ints;
  static void add_product(V a, V b, V& sum) { sum = fma(a, b, sum); }
  static V broadcast(const T* p) { return _mm256_castsi256_ps(_mm256_set1_epi32(*p)); }
  static V fma(V a, V b, V c) {
    const __m256i product = _mm256_mullo_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));
    return add(_mm256_castsi256_ps(product), c);
  }
  static V add(V a, V b) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
  }
};

struct Doubles {
  using T = double;
  using Narrow = Doubles;
  using V = __m256d;
  using Mask = __m256i;
  static constexpr int kLanes = 4;
  static V of(V v) { return v; }
  static Mask mask(int count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static V zero() { return _mm256_setzero_pd(); }
  static V broadcast(const T* p) { return _mm256_broadcast_sd(p); }
  static V load(const T* p) { return _mm256_loadu_pd(p); }
  static V load(const T* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static void store(T* p, V v) { _mm256_storeu_pd(p, v); }
  static void store(T* p, V v, Mask m) { _mm256_maskstore_pd(p, m, v); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static void add_product(V a, V b, V& sum) {
    asm("vfmadd231pd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }

  // Of halves of lanes, which can be picked from anywhere.
  using Places = __m256i;
  static Places places(int each, int i) {
    const __m256i halves = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(_mm256_and_si256(halves, _mm256_set1_epi32(1 - 2 * each)),
                            _mm256_set1_epi32(2 * i));
  }
  static V pick(V v, Places places) {
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), places));
  }
  static V every_other(V first, V last) {
    return _mm256_permute4x64_pd(_mm256_shuffle_pd(first, last, 0xa), 0xd8);
  }

  static constexpr int kTurned = 2;
  template <class Chains>
  static void load_turned(const Chains& a, int64_t k, V (&columns)[kTurned]) {
    V x[2];
    TIDEMARK_UNROLL
    for (int i = 0; i < 2; ++i) {
      x[i] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(a.at(i) + k)),
                                  _mm_loadu_pd(a.at(i + 2) + k), 1);
    }
    columns[0] = _mm256_unpacklo_pd(x[0], x[1]);
    columns[1] = _mm256_unpackhi_pd(x[0], x[1]);
  }

  static void transpose(V (&x)[kLanes]) {
    const V a = _mm256_unpacklo_pd(x[0], x[1]), b = _mm256_unpackhi_pd(x[0], x[1]);
    const V c = _mm256_unpacklo_pd(x[2], x[3]), d = _mm256_unpackhi_pd(x[2], x[3]);
    x[0] = _mm256_permute2f128_pd(a, c, 0x20);
    x[1] = _mm256_permute2f128_pd(b, d, 0x20);
    x[2] = _mm256_permute2f128_pd(a, c, 0x31);
    x[3] = _mm256_permute2f128_pd(b, d, 0x31);
  }
};

}  // namespace

constinit const KernelSet<float> kAvx2F32 = make_kernel_set<Floats, 8, 6>();
constinit const KernelSet<int32_t> kAvx2I32 = make_kernel_set<Ints, 8, 6>();
constinit const KernelSet<double> kAvx2F64 = make_kernel_set<Doubles, 8, 6>();

}  // namespace tidemark::contraction
