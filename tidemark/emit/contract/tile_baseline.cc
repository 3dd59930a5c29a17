// Plain C++, a vector of one lane. Without the instruction an fma is a call into the C library, so
// this is correct but slow.
#include <cmath>
#include <type_traits>

#include "tidemark/emit/contract/tile_kernels.h"
#include "tidemark/types/dtype.h"

namespace tidemark::contraction {
namespace {

template <class Number>
struct Scalar {
  using T = Number;
  using Narrow = Scalar;
  using V = Number;
  using Mask = bool;
  static constexpr int kLanes = 1;
  static V of(V v) { return v; }
  static Mask mask(int count) { return count > 0; }
  static V zero() { return 0; }
  static V broadcast(const T* p) { return *p; }
  static V load(const T* p) { return *p; }
  static V load(const T* p, Mask m) { return m ? *p : V{0}; }
  static void store(T* p, V v) { *p = v; }
  static void store(T* p, V v, Mask m) {
    if (m) *p = v;
  }
  static V fma(V a, V b, V c) {
    if constexpr (std::is_integral_v<V>) {
      return add(static_cast<V>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)), c);
    } else {
      return std::fma(a, b, c);
    }
  }
  static V add(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return static_cast<V>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    } else {
      return a + b;
    }
  }
  static void transpose(V (&)[1]) {}
  static constexpr int kTurned = 1;
  template <class Chains>
  static void load_turned(const Chains& a, int64_t k, V (&columns)[1]) {
    columns[0] = a.at(0)[k];
  }
  static V load_f16(const uint16_t* p, int64_t) { return float_of_f16(*p); }
  static V load_bf16(const uint16_t* p, int64_t) { return float_of_bf16(*p); }
  static void round_f16(const T* from, uint16_t* to, int64_t) { *to = f16_of_float(*from); }
  static void round_bf16(const T* from, uint16_t* to, int64_t) { *to = bf16_of_float(*from); }
};

}  // namespace

constinit const KernelSet<float> kBaselineF32 = make_kernel_set<Scalar<float>, 4, 4, 4, 4>();
constinit const KernelSet<int32_t> kBaselineI32 = make_kernel_set<Scalar<int32_t>, 4, 4, 4, 4>();
constinit const KernelSet<double> kBaselineF64 = make_kernel_set<Scalar<double>, 4, 4, 4, 4>();

}  // namespace tidemark::contraction
