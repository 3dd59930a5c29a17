#include "tidemark/types/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tidemark/types/stored.h"

namespace tidemark {
namespace {

// The value of f16 bits by the formula of the standard, in double.
double f16_by_formula(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Integers, HaveTheLimitsOfTheirTypes) {
  for (int i = 0; i < kStoredDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    visit_stored(dtype, [&]<class T>(T) {
      EXPECT_EQ(size_of(dtype), static_cast<int64_t>(sizeof(T))) << dtype;
      EXPECT_EQ(dtype_of<T>, dtype);
      EXPECT_EQ(is_integer(dtype), std::is_integral_v<T> && !(std::is_same_v<T, bool>)) << dtype;
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        EXPECT_EQ(is_signed_integer(dtype), Limits::is_signed) << dtype;
        EXPECT_EQ(static_cast<T>(least_of(dtype)), Limits::min()) << dtype;
        EXPECT_EQ(static_cast<T>(most_of(dtype)), Limits::max()) << dtype;
      }
    });
  }
  EXPECT_TRUE(fits(-128, DType::i8));
  EXPECT_FALSE(fits(-129, DType::i8));
  EXPECT_FALSE(fits(128, DType::i8));
  EXPECT_FALSE(fits(-1, DType::u64));
  EXPECT_TRUE(fits(INT64_MAX, DType::u64));
  EXPECT_FALSE(fits(65536, DType::u16));
}

TEST(F16, EveryValueConvertsBothWays) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float_of_f16(half);
    if (std::isnan(f16_by_formula(half))) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(float_of_f16(f16_of_float(value)))) << bits;
    } else {
      EXPECT_EQ(value, f16_by_formula(half)) << bits;
      EXPECT_EQ(f16_of_float(value), half) << bits;
    }
  }
}

TEST(F16, RoundsToNearestEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = f16_by_formula(static_cast<uint16_t>(bits));
    const double high = f16_by_formula(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // Exact: one more bit.
    EXPECT_EQ(f16_of_float(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(f16_of_float(std::nextafter(middle, 0.0F)), bits) << bits;
    EXPECT_EQ(f16_of_float(std::nextafter(middle, 1e9F)), bits + 1) << bits;
  }
  EXPECT_EQ(f16_of_float(65520.0F), 0x7c00);
  EXPECT_EQ(f16_of_float(std::nextafter(65520.0F, 0.0F)), 0x7bff);
}

TEST(Bf16, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(bf16_of_float(1.0F), 0x3f80);
  EXPECT_EQ(bf16_of_float(std::bit_cast<float>(0x3f808000U)), 0x3f80);
  EXPECT_EQ(bf16_of_float(std::bit_cast<float>(0x3f818000U)), 0x3f82);
  EXPECT_EQ(bf16_of_float(std::bit_cast<float>(0x7f7fffffU)), 0x7f80);
  EXPECT_TRUE(std::isnan(float_of_bf16(bf16_of_float(std::bit_cast<float>(0x7f800001U)))));
}

TEST(DType, PrintsBooleanAsBool) { EXPECT_EQ(cat(DType::boolean, " ", DType::bf16), "bool bf16"); }

}  // namespace
}  // namespace tidemark
