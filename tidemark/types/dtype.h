// The element types, and plain C++ types for each.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "tidemark/base/error.h"

namespace tidemark {

enum class DType : uint8_t {
  f16,
  bf16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  c64,   // Pairs of f32: the real and the imaginary part.
  c128,  // Pairs of f64.
};
using enum DType;
// The dtypes that kernels compute in. Complex numbers come after them: they are stored, and
// computed with as pairs of reals (docs/decisions/0033-complex-dtypes.md).
inline constexpr int kDTypes = 13;
inline constexpr int kStoredDTypes = 15;

// "f32"; `boolean` prints "bool", which is a keyword of C++.
const char* name(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);

constexpr int64_t size_of(DType dtype) {
  constexpr int8_t sizes[kStoredDTypes] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};
  return sizes[static_cast<int>(dtype)];
}
constexpr bool is_float(DType dtype) { return dtype <= DType::f64; }
constexpr bool is_low_precision(DType dtype) { return dtype <= DType::bf16; }
constexpr bool is_integer(DType dtype) { return dtype >= DType::i8 && dtype <= DType::u64; }
constexpr bool is_signed_integer(DType dtype) { return dtype >= DType::i8 && dtype <= DType::i64; }
constexpr bool is_unsigned_integer(DType dtype) {
  return dtype >= DType::u8 && dtype <= DType::u64;
}
constexpr bool is_complex(DType dtype) { return dtype >= DType::c64; }
// Whether gradients go through values of this dtype.
constexpr bool is_differentiable(DType dtype) { return is_float(dtype) || is_complex(dtype); }
// The dtype of the parts of complex numbers; of any other dtype, itself.
constexpr DType part_dtype(DType dtype) {
  return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
}
// The complex dtype that holds numbers of a dtype; c128 if that needs more than f32.
constexpr DType complex_dtype(DType dtype) {
  return dtype == DType::f64 || dtype == DType::c128 ? DType::c128 : DType::c64;
}
// Sums and products of integers and bools are this wide, so that they rarely wrap.
constexpr DType widened_integer(DType dtype) { return dtype == DType::u64 ? dtype : DType::i64; }

// Storage of the two 16-bit float formats. They convert through float, rounding to nearest even.
float float_of_f16(uint16_t bits);
uint16_t f16_of_float(float value);
constexpr float float_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
constexpr uint16_t bf16_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // A NaN keeps its top bits and stays quiet; rounding it as a number could make it an infinity.
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) : bits(f16_of_float(value)) {}
  explicit operator float() const { return float_of_f16(bits); }
};
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) : bits(bf16_of_float(value)) {}
  explicit operator float() const { return float_of_bf16(bits); }
};

template <class T>
concept Number = std::is_arithmetic_v<T>;
template <class T>
concept ComplexNumber =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<unsigned long long> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::c64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::c128;
};
}  // namespace detail

template <class T>
concept Element = requires { detail::DTypeOf<std::remove_cv_t<T>>::value; };
template <Element T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

// Calls f with a value-initialised element of the C++ type behind `dtype`, which is one that
// kernels compute in.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16:
      return f(float16{});
    case DType::bf16:
      return f(bfloat16{});
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i8:
      return f(int8_t{});
    case DType::i16:
      return f(int16_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::u16:
      return f(uint16_t{});
    case DType::u32:
      return f(uint32_t{});
    case DType::u64:
      return f(uint64_t{});
    case DType::boolean:
      return f(bool{});
    case DType::c64:
    case DType::c128:
      break;
  }
  check_failed(__FILE__, __LINE__, "dtype", cat("no kernel computes in ", name(dtype)));
}

// Whether an integer dtype holds `number`. Of a bool, any number is the truth value.
bool fits(int64_t number, DType dtype);
// The least and the largest number of an integer dtype; those of u64 cut off to 64 bits.
int64_t least_of(DType dtype);
int64_t most_of(DType dtype);

}  // namespace tidemark
