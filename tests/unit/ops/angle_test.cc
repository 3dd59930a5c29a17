// Against the C library in a wider type: the recipes of atan2, log2 and tan are what the reference
// interpreter evaluates too, so it cannot judge them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/ops/ulps.h"
#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"

namespace tidemark {
namespace {

TEST(Atan2, IsAccurateInEveryDirection) {
  const auto truth = [](long double y, long double x) { return std::atan2(y, x); };
  for (const double size : {1e-3, 1.0, 1e3}) {
    const Tensor y = drawn(f64, -size, size, 1), x = drawn(f64, -1, 1, 2);
    EXPECT_LE(worst_of<double>(atan2(y, x), y, x, truth), 3.0) << size;
    const Tensor b = cast(y, f32), a = cast(x, f32);
    EXPECT_LE(worst_of<float>(atan2(b, a), b, a, truth), 0.5001) << size;
  }
}

TEST(Atan2, GoesByTheSignsOfZerosAndInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  const double values[] = {0.0, -0.0, 1.0, -1.0, inf, -inf, 5e-324, -5e-324, 1.7e308, NAN};
  for (const double y : values) {
    for (const double x : values) {
      const double got = atan2(constant(y, f64), constant(x, f64)).item<double>();
      const double want = std::atan2(y, x);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << y << ", " << x;
        continue;
      }
      EXPECT_DOUBLE_EQ(got, want) << y << ", " << x;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << y << ", " << x;
    }
  }
}

TEST(Log2, IsAccurateAndWholeAtPowersOfTwo) {
  const auto truth = [](long double x, long double) { return std::log2(x); };
  const Tensor x = drawn(f64, 1e-3, 1e3, 3), a = cast(x, f32);
  EXPECT_LE(worst_of<double>(log2(x), x, x, truth), 2.0);
  EXPECT_LE(worst_of<float>(log2(a), a, a, truth), 0.5001);
  for (int n = -140; n < 128; ++n)
    EXPECT_EQ(log2(constant(std::ldexp(1.0, n), f32)).item<double>(), n);
}

TEST(Tan, IsAccurate) {
  const auto truth = [](long double x, long double) { return std::tan(x); };
  for (const double size : {1.0, 100.0}) {
    const Tensor x = drawn(f64, -size, size, 4), a = cast(x, f32);
    EXPECT_LE(worst_of<double>(tan(x), x, x, truth), 4.0) << size;
    EXPECT_LE(worst_of<float>(tan(a), a, a, truth), 4.0) << size;
  }
}

}  // namespace
}  // namespace tidemark
