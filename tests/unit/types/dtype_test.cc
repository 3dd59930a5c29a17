#include "tidemark/types/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

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
