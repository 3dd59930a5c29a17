// Against the C library in a wider type, or against identities where it has no such function: the
// recipes are what the reference interpreter evaluates too, so it cannot judge them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/unit/ops/ulps.h"
#include "tidemark/api/create.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/ops.h"

namespace tidemark {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  const UnaryOp& op;
  long double (*truth)(long double);
  double low, high;
  double ulps;         // In f64.
  double narrow_ulps;  // In f32.
};

TEST(Special, FunctionsAreAccurate) {
  const Case cases[] = {
      {acos, [](long double x) { return std::acos(x); }, -1, 1, 4, 2.5},
      {acosh, [](long double x) { return std::acosh(x); }, 1, 3, 3, 3},
      {acosh, [](long double x) { return std::acosh(x); }, 1e8, 1e18, 3, 3},
      {asin, [](long double x) { return std::asin(x); }, -1, 1, 4, 2.5},
      {asinh, [](long double x) { return std::asinh(x); }, -2, 2, 3, 3},
      {asinh, [](long double x) { return std::asinh(x); }, -1e12, 1e12, 3, 3},
      {atan, [](long double x) { return std::atan(x); }, -10, 10, 3, 2.5},
      {atanh, [](long double x) { return std::atanh(x); }, -1, 1, 3, 3},
      {cosh, [](long double x) { return std::cosh(x); }, -80, 80, 5, 5},
      {lgamma, [](long double x) { return std::lgamma(x); }, 8, 50, 4, 0.51},
      {log10, [](long double x) { return std::log10(x); }, 1e-3, 1e3, 3, 0.51},
      {sinh, [](long double x) { return std::sinh(x); }, -1, 1, 4, 4},
      {sinh, [](long double x) { return std::sinh(x); }, -80, 80, 5, 5},
  };
  for (const Case& each : cases) {
    const auto truth = [&each](long double x, long double) { return each.truth(x); };
    const Tensor x = drawn(f64, each.low, each.high, 1), narrow = cast(x, f32);
    EXPECT_LE(worst_of<double>(each.op(x), x, x, truth), each.ulps) << each.op.name;
    EXPECT_LE(worst_of<float>(each.op(narrow), narrow, narrow, truth), each.narrow_ulps)
        << each.op.name << " of f32";
  }
}

// Below 8 a logarithm is subtracted, so that zeros at 1 and 2 leave an absolute error.
TEST(Special, LgammaHasASmallAbsoluteErrorEverywhere) {
  const Tensor x = drawn(f64, -6, 10, 4);
  const std::vector<double> xs = x.to_vector<double>(), ys = lgamma(x).to_vector<double>();
  for (size_t i = 0; i < xs.size(); ++i) {
    const long double want = std::lgamma(static_cast<long double>(xs[i]));
    ASSERT_NEAR(ys[i], static_cast<double>(want), 2e-14 + std::fabs(ys[i]) * 1e-15) << xs[i];
  }
}

// The distance of y from the inverse of erf at x, in units of the last place: the slope of erf says
// how far an error in y moves erf(y).
double ulps_from_inverse(double x, long double y) {
  const long double error = x < 0 ? (1 + x) - std::erfc(-y) : std::erfc(y) - (1 - x);
  const long double slope = 2 / std::sqrt(std::numbers::pi_v<long double>) * std::exp(-y * y);
  return static_cast<double>(std::fabs(error / slope / y)) / 0x1p-52;
}

TEST(Special, ErfinvInvertsErf) {
  const Tensor x = drawn(f64, -1, 1, 2);
  const std::vector<double> xs = x.to_vector<double>(), ys = erfinv(x).to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < xs.size(); ++i) worst = std::max(worst, ulps_from_inverse(xs[i], ys[i]));
  EXPECT_LE(worst, 4.0);
  for (int bits = 10; bits <= 53; ++bits) {  // Near the end, where 1 - |x| has few bits.
    const double near = 1 - std::ldexp(1.0, -bits);
    EXPECT_LE(ulps_from_inverse(near, erfinv(constant(near, f64)).item<double>()), 8.0) << bits;
  }
  EXPECT_EQ(erfinv(constant(1.0, f64)).item<double>(), kInfinity);
  EXPECT_EQ(erfinv(constant(-1.0, f64)).item<double>(), -kInfinity);
  EXPECT_TRUE(std::isnan(erfinv(constant(1.5, f64)).item<double>()));
  EXPECT_TRUE(std::signbit(erfinv(constant(-0.0, f64)).item<double>()));
}

TEST(Special, ErfinvOfF32IsThatOfF64) {
  const Tensor near_ends = 1.0 - exp(-drawn(f64, 0, 16.5, 8)), middle = drawn(f64, -1, 1, 9);
  for (const Tensor& wide : {middle, near_ends, middle * 1e-30}) {
    const Tensor x = cast(wide, f32);
    const std::vector<float> ys = erfinv(x).to_vector<float>();
    const std::vector<double> want = erfinv(cast(x, f64)).to_vector<double>();
    for (size_t i = 0; i < ys.size(); ++i) {
      if (std::isinf(want[i])) continue;
      ASSERT_LE(ulps_apart(ys[i], static_cast<long double>(want[i])), 4.0) << want[i];
    }
  }
}

TEST(Special, ValuesOfF32AtTheEdges) {
  const float values[] = {0.0F,  -0.0F, 1.0F,  -1.0F,  0.5F, -0.5F,    1e-45F,    -1e-45F,
                          1e30F, -2.5F, -3.0F, 1e-38F, 2.0F, INFINITY, -INFINITY, NAN};
  struct {
    const UnaryOp& op;
    double (*truth)(double);
  } const cases[] = {{acos, std::acos},   {asin, std::asin}, {atan, std::atan},
                     {log10, std::log10}, {log2, std::log2}, {lgamma, std::lgamma},
                     {sin, std::sin},     {erfc, std::erfc}};
  for (const auto& each : cases) {
    for (const float x : values) {
      const auto want = static_cast<float>(each.truth(x));
      const float got = each.op(constant(x, f32)).item<float>();
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << each.op.name << " of " << x;
        continue;
      }
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << each.op.name << " of " << x;
      if (std::isinf(want))
        EXPECT_EQ(got, want) << each.op.name << " of " << x;
      else
        EXPECT_LE(ulps_apart(got, want), 4.0) << each.op.name << " of " << x;
    }
  }
  for (const float x : {1.0F, -1.0F})
    EXPECT_EQ(erfinv(constant(x, f32)).item<float>(), x * INFINITY);
  EXPECT_TRUE(std::isnan(erfinv(constant(1.5, f32)).item<float>()));
  EXPECT_TRUE(std::signbit(erfinv(constant(-0.0, f32)).item<float>()));
}

TEST(Special, ValuesAtTheEdges) {
  const double values[] = {0.0,   -0.0,   1.0,   -1.0, kInfinity, -kInfinity, 5e-324, 1e-300,
                           710.0, -710.0, 1e300, 0.5,  -0.5,      -2.5,       -3.0,   NAN};
  struct {
    const UnaryOp& op;
    double (*truth)(double);
  } const cases[] = {{acos, std::acos},   {acosh, std::acosh},   {asin, std::asin},
                     {asinh, std::asinh}, {atan, std::atan},     {atanh, std::atanh},
                     {cosh, std::cosh},   {lgamma, std::lgamma}, {log10, std::log10},
                     {sinh, std::sinh}};
  for (const auto& each : cases) {
    for (const double x : values) {
      const double got = each.op(constant(x, f64)).item<double>(), want = each.truth(x);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << each.op.name << "(" << x << ") = " << got;
      } else if (std::isinf(want)) {
        EXPECT_EQ(got, want) << each.op.name << "(" << x << ")";
      } else {
        EXPECT_NEAR(got, want, std::fabs(want) * 2e-15 + 4e-15) << each.op.name << "(" << x << ")";
        const bool has_sign = want == 0 && &each.op != &lgamma;
        EXPECT_TRUE(!has_sign || std::signbit(got) == std::signbit(want))
            << each.op.name << "(" << x << ")";
      }
    }
  }
}

TEST(Special, GammaFunctionsKeepTheirRecurrences) {
  const Tensor x = drawn(f64, -20.25, 20, 3);
  const auto largest = [](const Tensor& values) { return max(abs(values)).item<double>(); };
  // digamma(x + 1) - digamma(x) = 1 / x, and minus its derivative for trigamma. The pole at hand
  // decides the size of the terms.
  const Tensor size = 1 + square(digamma(x)) + square(digamma(x + 1));
  EXPECT_LE(largest((digamma(x + 1) - digamma(x) - 1 / x) / size), 1e-12);
  const Tensor large = 1 + square(trigamma(x)) + square(trigamma(x + 1));
  EXPECT_LE(largest((trigamma(x + 1) - trigamma(x) + 1 / square(x)) / large), 1e-12);
  // Known values: -gamma, and pi^2 / 6.
  EXPECT_NEAR(digamma(constant(1.0, f64)).item<double>(), -std::numbers::egamma, 1e-15);
  EXPECT_NEAR(trigamma(constant(1.0, f64)).item<double>(), std::numbers::pi * std::numbers::pi / 6,
              1e-14);
  EXPECT_EQ(digamma(constant(0.0, f64)).item<double>(), -kInfinity);
  EXPECT_TRUE(std::isnan(digamma(constant(-2.0, f64)).item<double>()));
}

TEST(Special, BitCountCountsBits) {
  for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{255}, int64_t{1} << 40,
                              std::numeric_limits<int64_t>::min(), int64_t{0x123456789abcdef}}) {
    EXPECT_EQ(bit_count(constant(value, i64)).item<int64_t>(),
              std::popcount(static_cast<uint64_t>(value)));
    const auto narrow = static_cast<int32_t>(value);
    EXPECT_EQ(bit_count(constant(narrow, i32)).item<int64_t>(),
              std::popcount(static_cast<uint32_t>(narrow)));
    EXPECT_EQ(bit_count(cast(constant(value & 255, i64), u8)).item<int64_t>(),
              std::popcount(static_cast<uint8_t>(value)));
  }
}

TEST(Special, FunctionsOfTwoAtTheEdges) {
  const double values[] = {0.0, -0.0, 1.0, -3.0, 1e300, -1e-300, kInfinity, -kInfinity, NAN};
  for (const double a : values) {
    for (const double b : values) {
      const Tensor x = constant(a, f64), y = constant(b, f64);
      EXPECT_DOUBLE_EQ(hypot(x, y).item<double>() == kInfinity, std::hypot(a, b) == kInfinity);
      if (std::isfinite(a) && std::isfinite(b)) {
        EXPECT_DOUBLE_EQ(hypot(x, y).item<double>(), std::hypot(a, b)) << a << ", " << b;
      }
      if (!std::isnan(a) && !std::isnan(b)) {
        const double signed_size = copysign(x, y).item<double>();
        EXPECT_EQ(signed_size, std::copysign(a, b));
        EXPECT_EQ(std::signbit(signed_size), std::signbit(b));
      }
    }
  }
  EXPECT_EQ(logaddexp(constant(-kInfinity, f64), constant(-kInfinity, f64)).item<double>(),
            -kInfinity);
  EXPECT_EQ(logaddexp(constant(kInfinity, f64), constant(kInfinity, f64)).item<double>(),
            kInfinity);
  EXPECT_EQ(logaddexp(constant(kInfinity, f64), constant(-kInfinity, f64)).item<double>(),
            kInfinity);
  EXPECT_DOUBLE_EQ(logaddexp(constant(1000.0, f64), constant(1000.0, f64)).item<double>(),
                   1000 + std::numbers::ln2);
  EXPECT_EQ(xlogy(constant(0.0, f64), constant(0.0, f64)).item<double>(), 0);
  EXPECT_TRUE(std::isnan(xlogy(constant(0.0, f64), constant(NAN, f64)).item<double>()));
  EXPECT_DOUBLE_EQ(xlogy(constant(2.0, f64), constant(3.0, f64)).item<double>(), 2 * std::log(3));
}

TEST(Special, SlopesAreFiniteWhereTheFunctionHasAKink) {
  const auto slope = [](const Tensor& x) {
    return grad([](const Tensor& a) { return hypot(a, 0.0); })(x).item<double>();
  };
  EXPECT_EQ(slope(constant(0.0, f64)), 0);
  EXPECT_EQ(slope(constant(-2.0, f64)), -1);
  const auto half = grad([](const Tensor& a) { return logaddexp(a, constant(-kInfinity, f64)); });
  EXPECT_EQ(half(constant(-kInfinity, f64)).item<double>(), 0.5);
  const auto bend = grad(grad([](const Tensor& a) { return logaddexp(a, constant(3.0, f64)); }));
  EXPECT_DOUBLE_EQ(bend(constant(3.0, f64)).item<double>(), 0.25);
}

// From mpmath, to 40 digits.
TEST(Special, PolygammaIsAccurate) {
  const struct {
    double n, x, want;
  } cases[] = {
      {1, 1, 1.6449340668482264365},           {1, 0.25, 17.197329154507110739},
      {1, 3.75, 0.30533985269025307549},       {1, 20, 0.051270822935203119832},
      {1, -0.5, 8.9348022005446793094},        {1, -2.25, 19.379410511869137363},
      {1, -10.25, 19.646252424622652795},      {1, -1000.125, 67.392875027605748849},
      {2, 1, -2.4041138063191885708},          {2, 0.25, -129.32773993753692033},
      {2, 3.75, -0.092546338515899269635},     {2, 20, -0.0026281224023146545934},
      {2, -0.5, -0.8287966442343199956},       {2, -2.25, 123.89694977406016558},
      {2, -10.25, 124.01647202148710492},      {2, -1000.125, 1022.294389885717788},
      {3, 1, 6.4939394022668291491},           {3, 0.25, 1538.782144009188396},
      {3, 3.75, 0.055705260745394508779},      {3, 20, 0.00026937422133963891459},
      {3, -0.5, 193.40909103400243724},        {3, -2.25, 1558.45502318871434},
      {3, -10.25, 1558.5438535364058987},      {3, -1000.125, 24591.002324557825265},
      {5, 1, 122.08116743813389677},           {5, 0.25, 491552.51376768129205},
      {5, 3.75, 0.059358455450244511851},      {5, 20, 8.4842662061582300714e-6},
      {5, -0.5, 15371.113548602435496},        {5, -2.25, 492231.13550447009079},
      {5, -10.25, 492231.26694516501703},      {5, -1000.125, 31457611.06576496661},
      {10, 1, -3630593.311606628713},          {10, 0.25, -15220290667405.549981},
      {10, 3.75, -1.9098218059243471589},      {10, 20, -4.5103770549818432264e-8},
      {10, -0.5, -42108.858768975491797},      {10, -2.25, 15220204740659.352777},
      {10, -10.25, 15220204740668.341084},     {10, -1000.125, 31171154632675905.381},
      {30, 1, -2.6525285993570947629e+32},     {30, 0.25, -1.2232629049437614748e+51},
      {30, 3.75, -425575597567903.81276},      {30, 20, -1.5940266862141501435e-8},
      {30, -0.5, -9.2221270661620558271e+26},  {30, -2.25, 1.2232629049437594944e+51},
      {30, -10.25, 1.2232629049437594944e+51}, {30, -1000.125, 2.6269370855717061268e+60},
  };
  for (const auto& each : cases) {
    const double got = polygamma(constant(each.n, f64), constant(each.x, f64)).item<double>();
    EXPECT_LE(std::fabs(got / each.want - 1), 3e-14) << each.n << ", " << each.x;
    const float narrow =
        polygamma(constant(each.n, f32), cast(constant(each.x, f64), f32)).item<float>();
    if (each.x == static_cast<float>(each.x) && std::fabs(each.want) < 1e38) {
      EXPECT_FLOAT_EQ(narrow, static_cast<float>(each.want)) << each.n << ", " << each.x;
    }
  }
  const auto at = [](double n, double x) {
    return polygamma(constant(n, f64), constant(x, f64)).item<double>();
  };
  EXPECT_EQ(at(0, 2.5), digamma(constant(2.5, f64)).item<double>());
  EXPECT_EQ(at(1, 0), kInfinity);
  EXPECT_EQ(at(2, 0), -kInfinity);
  EXPECT_EQ(at(1, -3), kInfinity);
  EXPECT_EQ(at(3, kInfinity), 0);
  EXPECT_TRUE(std::isnan(at(-1, 2)));
  EXPECT_TRUE(std::isnan(at(1, NAN)));
}

// The slope of each is the next one.
TEST(Special, LgammaHasSlopesOfEveryOrder) {
  const Tensor x = drawn(f64, 0.5, 6, 3);
  const auto first = grad([](const Tensor& a) { return sum(lgamma(a)); });
  const auto second = grad([&](const Tensor& a) { return sum(first(a)); });
  const auto third = grad([&](const Tensor& a) { return sum(second(a)); });
  const auto fourth = grad([&](const Tensor& a) { return sum(third(a)); });
  EXPECT_TRUE(identical(first(x), digamma(x)));
  EXPECT_TRUE(identical(second(x), trigamma(x)));
  EXPECT_TRUE(allclose(third(x), polygamma(2, x), {.rtol = 1e-14}).item<bool>());
  EXPECT_TRUE(allclose(fourth(x), polygamma(3, x), {.rtol = 1e-14}).item<bool>());
}

template <class T>
void expect_neighbours(DType dtype) {
  using Limits = std::numeric_limits<T>;
  std::vector<double> values = {0.0, -0.0, Limits::denorm_min(), 3 * Limits::denorm_min(), 1.0,
                                1.5, 2.0,  Limits::max(),        Limits::infinity(),       NAN};
  // Around the borders between the three ways to the neighbour.
  for (int power = std::numeric_limits<T>::min_exponent - 3;
       power < Limits::min_exponent + 2 * Limits::digits + 3; ++power)
    for (const double factor : {1.0, 1.0 - 0x1p-20, 1.25})
      values.push_back(std::ldexp(factor, power));
  for (size_t i = 0, count = values.size(); i < count; ++i) values.push_back(-values[i]);
  for (const double a : values) {
    for (const double b : {-2.0 * a, 2.0 * a, a, -kInfinity, kInfinity, 0.0, std::nan("")}) {
      const T x = static_cast<T>(a), y = static_cast<T>(b);
      const T got = nextafter(constant(x, dtype), constant(y, dtype)).template item<T>();
      const T want = std::nextafter(x, y);
      EXPECT_TRUE(got == want || (got != got && want != want)) << x << " to " << y << ": " << got;
      EXPECT_TRUE(want != want || std::signbit(got) == std::signbit(want)) << x << " to " << y;
    }
  }
}

TEST(Special, NextafterGivesTheNeighbour) {
  expect_neighbours<double>(f64);
  expect_neighbours<float>(f32);
  // All numbers of f16 from 0 up, in order.
  std::vector<double> all;
  for (int step = 0; step < 1024; ++step) all.push_back(std::ldexp(step, -24));
  for (int power = -14; power <= 15; ++power)
    for (int step = 0; step < 1024; ++step) all.push_back(std::ldexp(1024 + step, power - 10));
  const auto count = static_cast<int64_t>(all.size());
  const Tensor numbers = cast(constant(all), f16);
  EXPECT_TRUE(
      identical(nextafter(numbers[Slice{.end = count - 1}], INFINITY), numbers[Slice{.begin = 1}]));
  EXPECT_TRUE(
      identical(nextafter(numbers[Slice{.begin = 1}], -1.0), numbers[Slice{.end = count - 1}]));
  EXPECT_EQ(nextafter(numbers[-1], INFINITY).item<double>(), kInfinity);
  EXPECT_EQ(nextafter(cast(constant(1.0), bf16), 2).item<double>(), 1 + 0x1p-7);
  EXPECT_EQ(nextafter(cast(constant(1.0), bf16), 0).item<double>(), 1 - 0x1p-8);
  const auto slope = grad([](const Tensor& a) { return nextafter(a, 10.0); });
  EXPECT_EQ(slope(constant(1.5)).item<double>(), 1);
}

}  // namespace
}  // namespace tidemark
