// The operations of one lane of a vector, shared by kernels, the polynomials in `math.h` and tests;
// here for plain C++ numbers. `emit/llvm` has the same functions for LLVM values.
//
// Code written once as a template over V (float, double, or an LLVM vector) therefore gives the
// same bits everywhere: each function below rounds once, and compilers do not contract them.
//
//   like(x, c)              the constant c in x's type
//   + - * / and unary -     IEEE for floats, wrapping for integers
//   fma(a, b, c)            one rounding
//   abs, sqrt, floor, ceil, trunc, round_even, copysign(magnitude, sign)
//   fmod(a, b)              exact, so any right implementation gives these bits
//   less(a, b), less_equal, equal, is_nan(a)      masks; combined by both, either, no,
//                           equal_masks
//   select(mask, a, b)
//   bits(x) / from_bits(i)  float <-> integer of the same width
//   to_int(x)               truncates; the value must fit the integer of the same width
//   to_float(i)             integer to float of the same width
//   shift_left(i, n), shift_right(i, n) (arithmetic), shift_right_logical(i, n)   n is a plain int
//   bit_and(i, j), bit_or(i, j), bit_xor(i, j)
//   widen(x), narrow(x)     float -> double, double -> float; narrow(i): the low 32 bits of 64
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

// Kernels are compiled once per instruction set from the same templates. A function that is not
// inlined would be one symbol with several bodies, of which the linker might keep one that this CPU
// cannot run. So functions are always inlined, even without optimisation.
#define TIDEMARK_INLINE [[gnu::always_inline]] inline

namespace tidemark::lane {

template <std::floating_point T>
using IntOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <std::integral T>
using FloatOf = std::conditional_t<sizeof(T) == 4, float, double>;

template <std::floating_point T>
TIDEMARK_INLINE constexpr T like(T, double constant) {
  return static_cast<T>(constant);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T like(T, int64_t constant) {
  return static_cast<T>(constant);
}

TIDEMARK_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TIDEMARK_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <std::floating_point T>
TIDEMARK_INLINE constexpr T abs(T a) {
  return __builtin_fabs(a);
}
template <>
TIDEMARK_INLINE constexpr float abs(float a) {
  return __builtin_fabsf(a);
}
TIDEMARK_INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
TIDEMARK_INLINE double sqrt(double a) { return __builtin_sqrt(a); }
TIDEMARK_INLINE float floor(float a) { return __builtin_floorf(a); }
TIDEMARK_INLINE double floor(double a) { return __builtin_floor(a); }
TIDEMARK_INLINE float ceil(float a) { return __builtin_ceilf(a); }
TIDEMARK_INLINE double ceil(double a) { return __builtin_ceil(a); }
TIDEMARK_INLINE float trunc(float a) { return __builtin_truncf(a); }
TIDEMARK_INLINE double trunc(double a) { return __builtin_trunc(a); }
// The environment rounds to nearest even whenever a kernel runs.
TIDEMARK_INLINE float round_even(float a) { return __builtin_rintf(a); }
TIDEMARK_INLINE double round_even(double a) { return __builtin_rint(a); }
TIDEMARK_INLINE float fmod(float a, float b) { return __builtin_fmodf(a, b); }
TIDEMARK_INLINE double fmod(double a, double b) { return __builtin_fmod(a, b); }
TIDEMARK_INLINE float copysign(float magnitude, float sign) {
  return __builtin_copysignf(magnitude, sign);
}
TIDEMARK_INLINE double copysign(double magnitude, double sign) {
  return __builtin_copysign(magnitude, sign);
}

template <class T>
  requires std::is_arithmetic_v<T>
TIDEMARK_INLINE constexpr bool less(T a, T b) {
  return a < b;
}
template <class T>
  requires std::is_arithmetic_v<T>
TIDEMARK_INLINE constexpr bool less_equal(T a, T b) {
  return a <= b;
}
template <class T>
  requires std::is_arithmetic_v<T>
TIDEMARK_INLINE constexpr bool equal(T a, T b) {
  return a == b;
}
template <std::floating_point T>
TIDEMARK_INLINE constexpr bool is_nan(T a) {
  return a != a;
}
TIDEMARK_INLINE constexpr bool both(bool a, bool b) { return a & b; }
TIDEMARK_INLINE constexpr bool either(bool a, bool b) { return a | b; }
TIDEMARK_INLINE constexpr bool no(bool a) { return !a; }
TIDEMARK_INLINE constexpr bool equal_masks(bool a, bool b) { return a == b; }
template <class T>
  requires std::is_arithmetic_v<T>
TIDEMARK_INLINE constexpr T select(bool mask, T a, T b) {
  return mask ? a : b;
}

template <std::floating_point T>
TIDEMARK_INLINE constexpr IntOf<T> bits(T a) {
  return __builtin_bit_cast(IntOf<T>, a);
}
template <std::integral T>
TIDEMARK_INLINE constexpr FloatOf<T> from_bits(T a) {
  return __builtin_bit_cast(FloatOf<T>, a);
}
template <std::floating_point T>
TIDEMARK_INLINE constexpr IntOf<T> to_int(T a) {
  return static_cast<IntOf<T>>(a);
}
template <std::integral T>
TIDEMARK_INLINE constexpr FloatOf<T> to_float(T a) {
  return static_cast<FloatOf<T>>(a);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T shift_left(T a, int n) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << n);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T shift_right(T a, int n) {
  return static_cast<T>(a >> n);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T shift_right_logical(T a, int n) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) >> n);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <std::integral T>
TIDEMARK_INLINE constexpr T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
TIDEMARK_INLINE constexpr double widen(float a) { return a; }
TIDEMARK_INLINE constexpr float narrow(double a) { return static_cast<float>(a); }
TIDEMARK_INLINE constexpr int32_t narrow(int64_t a) { return static_cast<int32_t>(a); }

}  // namespace tidemark::lane
