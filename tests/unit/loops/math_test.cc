// Errors of `loops/math.h` in units in the last place, against the C library one format wider: its
// own error is a thousandth of a unit or less.
//
// Functions of one f32 are tried on all 2^32 arguments when TIDEMARK_TEST_COUNTS is `full`, on one
// in a thousand otherwise.
#include "tidemark/loops/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/loops/math_batch.h"

namespace tidemark::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool full_counts() {
  const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
  return counts != nullptr && std::string_view(counts) == "full";
}

struct NamedBatch {
  const char* isa;
  const MathBatch* batch;
};

// What this CPU can run, narrowest first.
std::vector<NamedBatch> batches() {
  std::vector<NamedBatch> found = {{"baseline", &baseline::math_batch}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back({"avx2", &avx2::math_batch});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      found.push_back({"avx512", &avx512::math_batch});
    }
  }
  return found;
}
const MathBatch& widest() {
  static const MathBatch& batch = *batches().back().batch;
  return batch;
}

// |got - want| in units of the last place that T has at want. An infinite result counts as the
// power of two that overflowed, so one at the edge of the range is judged like its neighbours.
template <class T, class Wide>
double error_ulp(T got, Wide want) {
  if (std::isnan(got) || std::isnan(want)) {
    return std::isnan(got) && std::isnan(want) ? 0 : kInfinity;
  }
  using Limits = std::numeric_limits<T>;
  const Wide top = std::ldexp(Wide{1}, Limits::max_exponent);
  if (std::isinf(got)) {
    if (std::signbit(got) != std::signbit(want) || std::abs(want) < Limits::max()) return kInfinity;
    if (std::abs(want) >= top) return 0;
  } else if (std::isinf(want)) {
    return kInfinity;
  }
  const Wide value = std::isinf(got) ? std::copysign(top, Wide{got}) : Wide{got};
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::min(exponent, Limits::max_exponent);
  const int lowest = Limits::min_exponent - Limits::digits;
  const int last = want == 0 ? lowest : std::max(exponent - Limits::digits, lowest);
  return static_cast<double>(std::ldexp(std::abs(value - want), -last));
}

// A sequence that is the same in every run (splitmix64).
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }
  double between(double low, double high) {
    return low + static_cast<double>(bits() >> 11) * 0x1p-53 * (high - low);
  }

 private:
  uint64_t state_;
};

// One function, its stated bounds, and where its results may lie.
struct Row {
  Function function;
  const char* name;
  double bound_f32, bound_f64;
  double least, greatest;
  double (*wider_f32)(double);
  long double (*wider_f64)(long double);
  std::vector<double> ends_f64;  // Arguments are drawn between each two neighbours.
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row kRows[] = {
    {Function::exp, "exp", 1, 1.2, 0, kInfinity, std::exp, std::exp, {-750, -1, 1, 712}},
    {Function::expm1, "expm1", 2, 2.5, -1, kInfinity, std::expm1, std::expm1, {-40, -1, 1, 712}},
    {Function::log, "log", 1, 1, -kInfinity, kInfinity, std::log, std::log, {0, 0.9, 1.1, 1e300}},
    {Function::log1p,
     "log1p",
     1.5,
     1.5,
     -kInfinity,
     kInfinity,
     std::log1p,
     std::log1p,
     {-1, -0.1, 0.5, 1e300}},
    {Function::log2,
     "log2",
     0.501,
     2,
     -kInfinity,
     kInfinity,
     std::log2,
     std::log2,
     {0, 0.9, 1.1, 1e300}},
    {Function::log10,
     "log10",
     0.501,
     2,
     -kInfinity,
     kInfinity,
     std::log10,
     std::log10,
     {0, 0.9, 1.1, 1e300}},
    {Function::sin, "sin", 1.6, 1, -1, 1, std::sin, std::sin, {-1e300, -10, 10, 0x1p60}},
    {Function::cos, "cos", 1.6, 1, -1, 1, std::cos, std::cos, {-1e300, -10, 10, 0x1p60}},
    {Function::tanh, "tanh", 2.6, 3, -1, 1, std::tanh, std::tanh, {-20, -1, 1, 20}},
    {Function::erf, "erf", 2, 2, -1, 1, std::erf, std::erf, {-6.5, -1, 1, 6.5}},
    {Function::erfc, "erfc", 5, 7, 0, 2, std::erfc, std::erfc, {-6.5, -1, 1, 6.5, 27}},
};

class EveryFunction : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Math, EveryFunction, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

// Keeps the worst argument seen, and says so when it is over the bound.
template <class T>
struct Worst {
  double error = 0;
  T at = 0, got = 0;
  void see(double candidate, T argument, T result) {
    if (candidate <= error) return;
    error = candidate;
    at = argument;
    got = result;
  }
  void expect_within(double bound) const {
    testing::Test::RecordProperty("worst_ulp", std::to_string(error));
    EXPECT_LE(error, bound) << std::hexfloat << "at " << at << ", got " << got;
  }
};

TEST_P(EveryFunction, OfF32StaysWithinItsBound) {
  const Row& row = GetParam();
  const uint64_t stride = full_counts() ? 1 : 1021;
  constexpr int64_t kBlock = 4096;
  std::vector<float> in, out(kBlock);
  Worst<float> worst;
  for (uint64_t next = 0; next < uint64_t{1} << 32;) {
    in.clear();
    for (; std::ssize(in) < kBlock && next < uint64_t{1} << 32; next += stride) {
      in.push_back(std::bit_cast<float>(static_cast<uint32_t>(next)));
    }
    widest().unary_f32(row.function, in.data(), out.data(), std::ssize(in));
    for (size_t i = 0; i < in.size(); ++i) {
      const double want = row.wider_f32(in[i]);
      // What is rounded right is within half a unit: once that was seen, measuring it tells
      // nothing.
      if (worst.error < 0.5 || out[i] != static_cast<float>(want)) {
        worst.see(error_ulp(out[i], want), in[i], out[i]);
      }
      ASSERT_FALSE(out[i] < row.least || out[i] > row.greatest) << in[i] << " gives " << out[i];
    }
  }
  worst.expect_within(row.bound_f32);
}

TEST_P(EveryFunction, OfF64StaysWithinItsBound) {
  const Row& row = GetParam();
  const bool angle = row.function == Function::sin || row.function == Function::cos;
  Sequence sequence(7);
  Worst<double> worst;
  std::vector<double> in, out;
  for (int block = 0; block < (full_counts() ? 2000 : 40); ++block) {
    in.clear();
    for (int i = 0; i < 5000; ++i) {
      for (size_t k = 0; k + 1 < row.ends_f64.size(); ++k) {
        in.push_back(sequence.between(row.ends_f64[k], row.ends_f64[k + 1]));
      }
      in.push_back(std::bit_cast<double>(sequence.bits()));
      // Next to multiples of pi/2, where almost everything cancels.
      if (angle) in.push_back(std::floor(std::exp2(sequence.between(0, 53))) * 0x1.921fb54442d18p0);
    }
    out.resize(in.size());
    widest().unary_f64(row.function, in.data(), out.data(), std::ssize(in));
    for (size_t i = 0; i < in.size(); ++i) {
      worst.see(error_ulp(out[i], row.wider_f64(in[i])), in[i], out[i]);
      ASSERT_FALSE(out[i] < row.least || out[i] > row.greatest) << in[i] << " gives " << out[i];
    }
  }
  worst.expect_within(row.bound_f64);
}

TEST_P(EveryFunction, HasTheSameBitsOnEveryInstructionSet) {
  const Row& row = GetParam();
  Sequence sequence(11);
  std::vector<float> narrow;
  std::vector<double> wide;
  for (int i = 0; i < 100'000; ++i) {
    narrow.push_back(std::bit_cast<float>(static_cast<uint32_t>(sequence.bits())));
    narrow.push_back(static_cast<float>(sequence.between(-10, 10)));
    wide.push_back(std::bit_cast<double>(sequence.bits()));
    wide.push_back(sequence.between(-10, 10));
  }
  std::vector<float> narrow_want(narrow.size()), narrow_got(narrow.size());
  std::vector<double> wide_want(wide.size()), wide_got(wide.size());
  widest().unary_f32(row.function, narrow.data(), narrow_want.data(), std::ssize(narrow));
  widest().unary_f64(row.function, wide.data(), wide_want.data(), std::ssize(wide));
  // Which NaN an operation gives is left open.
  for (const auto& [isa, batch] : batches()) {
    batch->unary_f32(row.function, narrow.data(), narrow_got.data(), std::ssize(narrow));
    batch->unary_f64(row.function, wide.data(), wide_got.data(), std::ssize(wide));
    for (size_t i = 0; i < narrow.size(); ++i) {
      if (std::isnan(narrow_got[i]) && std::isnan(narrow_want[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(narrow_got[i]), std::bit_cast<uint32_t>(narrow_want[i]))
          << isa << " at " << narrow[i];
    }
    for (size_t i = 0; i < wide.size(); ++i) {
      if (std::isnan(wide_got[i]) && std::isnan(wide_want[i])) continue;
      ASSERT_EQ(std::bit_cast<uint64_t>(wide_got[i]), std::bit_cast<uint64_t>(wide_want[i]))
          << isa << " at " << wide[i];
    }
  }
}

// Powers: arguments of several kinds, all of which have results across the whole range.
template <class T>
void draw_power_arguments(Sequence& sequence, std::vector<T>& x, std::vector<T>& y) {
  const double reach = std::numeric_limits<T>::max_exponent;
  x.clear();
  y.clear();
  const auto push = [&](double base, double exponent) {
    x.push_back(static_cast<T>(base));
    y.push_back(static_cast<T>(exponent));
  };
  for (int i = 0; i < 5000; ++i) {
    push(sequence.between(0, 10), sequence.between(-0.4 * reach, 0.4 * reach));
    push(1 + sequence.between(-1e-4, 1e-4), sequence.between(-1e7, 1e7));
    push(std::exp2(sequence.between(-reach, reach)), sequence.between(-2, 2));
    push(sequence.between(-10, 10), std::round(sequence.between(-50, 50)));
    const uint64_t bits_x = sequence.bits();
    const uint64_t bits_y = sequence.bits();
    if constexpr (sizeof(T) == 4) {
      push(std::bit_cast<float>(static_cast<uint32_t>(bits_x)),
           std::bit_cast<float>(static_cast<uint32_t>(bits_y)));
    } else {
      push(std::bit_cast<double>(bits_x), std::bit_cast<double>(bits_y));
    }
  }
}

template <class T, class Wide>
void expect_powers_within(double bound,
                          void (*MathBatch::*power)(const T*, const T*, T*, int64_t)) {
  Sequence sequence(13);
  Worst<T> worst;
  std::vector<T> x, y, out, same;
  for (int block = 0; block < (full_counts() ? 2000 : 40); ++block) {
    draw_power_arguments(sequence, x, y);
    out.resize(x.size());
    same.resize(x.size());
    (widest().*power)(x.data(), y.data(), out.data(), std::ssize(x));
    for (size_t i = 0; i < x.size(); ++i) {
      worst.see(error_ulp(out[i], std::pow(Wide{x[i]}, Wide{y[i]})), x[i], out[i]);
    }
    if (block >= 4) continue;
    for (const auto& [isa, batch] : batches()) {
      (batch->*power)(x.data(), y.data(), same.data(), std::ssize(same));
      for (size_t i = 0; i < same.size(); ++i) {
        if (std::isnan(same[i]) && std::isnan(out[i])) continue;
        ASSERT_EQ(same[i], out[i]) << isa << ": " << x[i] << " to the " << y[i];
      }
    }
  }
  worst.expect_within(bound);
}

TEST(Power, OfF32StaysWithinItsBound) {
  expect_powers_within<float, double>(0.6, &MathBatch::power_f32);
}
TEST(Power, OfF64StaysWithinItsBound) {
  expect_powers_within<double, long double>(1.5, &MathBatch::power_f64);
}

// IEEE 754's table for pow is the C library's too; signs of zeros are part of it.
TEST(Power, HasTheSpecialValuesOfIeee) {
  const double values[] = {0,   -0.0, 1,    -1,    2,    -2,    3,    -3,        0.5,       -0.5,
                           1.5, -1.5, 1e30, -1e30, 1e-3, -1e-3, kNan, kInfinity, -kInfinity};
  for (const double x : values) {
    for (const double y : values) {
      const double want = std::pow(x, y);
      const auto want_f32 = std::pow(static_cast<float>(x), static_cast<float>(y));
      const double got = math::power_f64(x, y);
      const float got_f32 = math::power_f32(static_cast<float>(x), static_cast<float>(y));
      EXPECT_LE(error_ulp(got, static_cast<long double>(want)), 2) << x << " " << y;
      EXPECT_LE(error_ulp(got_f32, static_cast<double>(want_f32)), 2) << x << " " << y;
      if (std::isnan(want)) continue;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " " << y;
      EXPECT_EQ(std::signbit(got_f32), std::signbit(want_f32)) << x << " " << y;
    }
  }
}

struct Exact {
  Function function;
  double in, out;
};

// Arguments whose results are known to the last bit in both widths.
const Exact kExact[] = {
    {Function::exp, 0, 1},
    {Function::exp, -0.0, 1},
    {Function::exp, kInfinity, kInfinity},
    {Function::exp, -kInfinity, 0},
    {Function::exp, 1e30, kInfinity},
    {Function::exp, -1e30, 0},
    {Function::exp, kNan, kNan},
    {Function::expm1, 0, 0},
    {Function::expm1, -0.0, -0.0},
    {Function::expm1, kInfinity, kInfinity},
    {Function::expm1, -kInfinity, -1},
    {Function::expm1, -1e30, -1},
    {Function::expm1, 0x1p-149, 0x1p-149},
    {Function::expm1, kNan, kNan},
    {Function::log, 1, 0},
    {Function::log, 0, -kInfinity},
    {Function::log, -0.0, -kInfinity},
    {Function::log, -1, kNan},
    {Function::log, -0x1p-149, kNan},
    {Function::log, -kInfinity, kNan},
    {Function::log, kInfinity, kInfinity},
    {Function::log, kNan, kNan},
    {Function::log1p, 0, 0},
    {Function::log1p, -0.0, -0.0},
    {Function::log1p, -1, -kInfinity},
    {Function::log1p, -2, kNan},
    {Function::log1p, -kInfinity, kNan},
    {Function::log1p, kInfinity, kInfinity},
    {Function::log1p, -0x1p-149, -0x1p-149},
    {Function::log1p, kNan, kNan},
    {Function::log2, 1, 0},
    {Function::log2, 8, 3},
    {Function::log2, 0, -kInfinity},
    {Function::log2, -1, kNan},
    {Function::log2, kInfinity, kInfinity},
    {Function::log2, kNan, kNan},
    {Function::log10, 1, 0},
    {Function::log10, -0.0, -kInfinity},
    {Function::log10, -0x1p-149, kNan},
    {Function::log10, kInfinity, kInfinity},
    {Function::log10, kNan, kNan},
    {Function::sin, 0, 0},
    {Function::sin, -0.0, -0.0},
    {Function::sin, 0x1p-149, 0x1p-149},
    {Function::sin, kInfinity, kNan},
    {Function::sin, -kInfinity, kNan},
    {Function::sin, kNan, kNan},
    {Function::cos, 0, 1},
    {Function::cos, -0.0, 1},
    {Function::cos, 0x1p-149, 1},
    {Function::cos, kInfinity, kNan},
    {Function::cos, -kInfinity, kNan},
    {Function::cos, kNan, kNan},
    {Function::tanh, 0, 0},
    {Function::tanh, -0.0, -0.0},
    {Function::tanh, 0x1p-149, 0x1p-149},
    {Function::tanh, 30, 1},
    {Function::tanh, -30, -1},
    {Function::tanh, kInfinity, 1},
    {Function::tanh, -kInfinity, -1},
    {Function::tanh, kNan, kNan},
    {Function::erf, 0, 0},
    {Function::erf, -0.0, -0.0},
    {Function::erf, 7, 1},
    {Function::erf, -7, -1},
    {Function::erf, kInfinity, 1},
    {Function::erf, -kInfinity, -1},
    {Function::erf, kNan, kNan},
    {Function::erfc, 0, 1},
    {Function::erfc, -0.0, 1},
    {Function::erfc, 28, 0},
    {Function::erfc, -28, 2},
    {Function::erfc, kInfinity, 0},
    {Function::erfc, -kInfinity, 2},
    {Function::erfc, kNan, kNan},
};

template <class T>
void expect_exact(const Exact& row, T got, const char* isa) {
  if (std::isnan(row.out)) {
    EXPECT_TRUE(std::isnan(got)) << isa << " at " << row.in << ", got " << got;
    return;
  }
  EXPECT_EQ(got, static_cast<T>(row.out)) << isa << " at " << row.in;
  EXPECT_EQ(std::signbit(got), std::signbit(row.out)) << isa << " at " << row.in;
}

TEST(Math, HasExactSpecialValues) {
  for (const auto& [isa, batch] : batches()) {
    for (const Exact& row : kExact) {
      SCOPED_TRACE(static_cast<int>(row.function));
      const auto narrow = static_cast<float>(row.in);
      float narrow_out = 0;
      double wide_out = 0;
      batch->unary_f32(row.function, &narrow, &narrow_out, 1);
      batch->unary_f64(row.function, &row.in, &wide_out, 1);
      expect_exact(row, narrow_out, isa);
      expect_exact(row, wide_out, isa);
    }
  }
}

TEST(Math, LogarithmsOfPowersOfTheirBaseAreWhole) {
  for (int k = -149; k <= 127; ++k)
    EXPECT_EQ(math::log2_f32(std::ldexp(1.0F, k)), static_cast<float>(k));
  double power = 1;
  for (int k = 0; k <= 10; ++k, power *= 10)
    EXPECT_EQ(math::log10_f32(static_cast<float>(power)), static_cast<float>(k));
}

// What kernels compute where every lane allows it.
TEST(Math, ShortFormsHaveTheBitsOfTheirFunctions) {
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (math::exp_is_ordinary_f32(x)) {
      ASSERT_EQ(math::exp_ordinary_f32(x), math::exp_f32(x)) << x;
    }
    if (math::erfc_is_ordinary_f32(x)) {
      ASSERT_EQ(math::erfc_ordinary_f32(x), math::erfc_f32(x)) << x;
    }
    if (math::is_near_angle_f32(x)) {
      ASSERT_EQ(math::sin_near_f32(x), math::sin_f32(x)) << x;
      ASSERT_EQ(math::cos_near_f32(x), math::cos_f32(x)) << x;
    }
    if (math::is_moderate_angle_f32(x)) {
      ASSERT_EQ(math::sin_moderate_f32(x), math::sin_f32(x)) << x;
      ASSERT_EQ(math::cos_moderate_f32(x), math::cos_f32(x)) << x;
    }
    if (!math::log_is_ordinary_f32(x)) continue;
    ASSERT_EQ(math::log_ordinary_f32(x), math::log_f32(x)) << x;
    ASSERT_EQ(math::log2_ordinary_f32(x), math::log2_f32(x)) << x;
    ASSERT_EQ(math::log10_ordinary_f32(x), math::log10_f32(x)) << x;
  }
}

TEST(Math, ShortFormsOfF64HaveTheBitsOfTheirFunctions) {
  Sequence sequence(17);
  for (int i = 0; i < 300'000; ++i) {
    const double x = i % 2 == 0 ? std::bit_cast<double>(sequence.bits()) : sequence.between(0, 20);
    const double y = i % 3 == 0 ? std::round(sequence.between(-9, 9)) : sequence.between(-90, 90);
    if (math::exp_is_ordinary_f64(x)) {
      ASSERT_EQ(math::exp_ordinary_f64(x), math::exp_f64(x)) << x;
    }
    if (math::exp_is_ordinary_f64(8 * y)) {
      ASSERT_EQ(math::exp_ordinary_f64(8 * y), math::exp_f64(8 * y)) << 8 * y;
    }
    if (math::log_is_ordinary_f64(x)) {
      ASSERT_EQ(math::log_ordinary_f64(x), math::log_f64(x)) << x;
    }
    const auto power = math::power_ordinary_f64(x, y);
    if (power.is_ordinary) {
      ASSERT_EQ(power.value, math::power_f64(x, y)) << x << " to the " << y;
    }
  }
  for (const double x : {0x1p-1022, 0.5, 1.0, 2.0, 0x1.fffffffffffffp1023}) {
    EXPECT_EQ(math::log_ordinary_f64(x), math::log_f64(x));
    EXPECT_EQ(math::power_ordinary_f64(x, 0.0).value, 1);
    EXPECT_EQ(math::power_ordinary_f64(x, -0.0).value, 1);
    EXPECT_EQ(math::power_ordinary_f64(1.0, 2 * std::log(x)).value, 1);
  }
}

TEST(Math, UnderflowsGradually) {
  EXPECT_EQ(math::exp_f32(-103.0F), std::exp(-103.0F));
  EXPECT_GT(math::exp_f32(-103.9F), 0);
  EXPECT_EQ(math::exp_f32(-104.1F), 0);
  EXPECT_GT(math::exp_f64(-745.1), 0);
  EXPECT_EQ(math::exp_f64(-745.2), 0);
  EXPECT_EQ(math::power_f32(2.0F, -149.0F), 0x1p-149F);
  EXPECT_EQ(math::power_f64(2.0, -1074.0), 0x1p-1074);
}

// The double nearest to a multiple of pi/2, relative to its own size: it is 2^-61 away.
TEST(Math, TheHardestAngleIsReducedToTheLastBit) {
  const double angle = 0x1.6ac5b262ca1ffp+849;
  EXPECT_LE(error_ulp(math::cos_f64(angle), std::cos(static_cast<long double>(angle))), 1);
  EXPECT_LT(std::abs(math::cos_f64(angle)), 0x1p-60);
  EXPECT_EQ(math::sin_f64(angle), 1);
}

}  // namespace
}  // namespace tidemark::test
