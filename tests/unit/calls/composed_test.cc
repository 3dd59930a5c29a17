// Functions of several ops that eager code has called often run as one program.
#include "tidemark/tensor/composed.h"

#include <gtest/gtest.h>

#include <functional>

#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

struct Composite {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& y)> call;
};

const std::vector<Composite>& composites() {
  static const std::vector<Composite> all = {
      {"nextafter", [](const Tensor& x, const Tensor& y) { return nextafter(x, y); }},
      {"nan_to_num", [](const Tensor& x, const Tensor&) { return nan_to_num(x, {.nan = 3}); }},
      {"leaky_relu", [](const Tensor& x, const Tensor&) { return leaky_relu(x, 0.3); }},
      {"isclose", [](const Tensor& x, const Tensor& y) { return isclose(x, y, {.rtol = 0.4}); }},
      {"allclose", [](const Tensor& x, const Tensor& y) { return allclose(x, y); }},
      {"mean", [](const Tensor& x, const Tensor&) { return mean(x, 0); }},
      {"var", [](const Tensor& x, const Tensor&) { return var(x, -1, keepdims); }},
      {"std", [](const Tensor& x, const Tensor&) { return std(x); }},
      {"logsumexp", [](const Tensor& x, const Tensor&) { return logsumexp(x, -1); }},
      {"norm", [](const Tensor& x, const Tensor&) { return norm(x, -1); }},
      {"layer_norm", [](const Tensor& x,
                        const Tensor& y) { return layer_norm(x, {.scale = y[0], .bias = y[1]}); }},
      {"rms_norm", [](const Tensor& x, const Tensor&) { return rms_norm(x); }},
      {"mse", [](const Tensor& x, const Tensor& y) { return mse(x, y); }},
      {"cumlogsumexp",
       [](const Tensor& x, const Tensor&) { return cumlogsumexp(x, 1, {.exclusive = true}); }},
      {"complex product",
       [](const Tensor& x, const Tensor& y) {
         return view_as_real(complex(x, y) * complex(y, x));
       }},
      {"dropout", [](const Tensor& x,
                     const Tensor&) { return dropout(x, {.rate = 0.25, .key = random::Key(3)}); }},
      {"exponential",
       [](const Tensor& x, const Tensor&) {
         return random::exponential(x.shape(), {.rate = 3, .key = random::Key(1)});
       }},
      {"laplace",
       [](const Tensor& x, const Tensor&) {
         return random::laplace(x.shape(), {.mean = 3, .key = random::Key(1)});
       }},
      {"truncated_normal", [](const Tensor& x, const Tensor&) {
         return random::truncated_normal(x.shape(), {.low = 6, .high = 7, .key = random::Key(1)});
       }}};
  return all;
}

Tensor draws(const Shape& shape, uint64_t seed) {
  return random::uniform(shape, {.low = -2, .high = 2, .key = random::Key(seed)});
}

// More calls than it takes until there is a program.
constexpr int kMany = 5000;

TEST(Composed, HasTheSameBitsFromTheFirstCallToTheLast) {
  for (const Composite& each : composites()) {
    SCOPED_TRACE(each.name);
    const Tensor x = draws({5, 7}, 1), y = draws({5, 7}, 2);
    const Tensor first = each.call(x, y);
    for (int i = 0; i < kMany; ++i) each.call(x, y);
    EXPECT_TRUE(identical(first, each.call(x, y)));
    const Tensor x2 = draws({5, 7}, 3), y2 = draws({5, 7}, 4);
    EXPECT_TRUE(identical(each.call(x2, y2), function([&](const Tensor& a, const Tensor& b) {
                            return each.call(a, b);
                          })(x2, y2)));
  }
}

TEST(Composed, TakesOperandsInAnyOrderAndOfAnyType) {
  const Tensor x = draws({40, 30}, 1);
  for (const Tensor& given : {transpose(x), flip(x, 0), cast(x, f64), cast(x, bf16), x[3]}) {
    const Tensor first = norm(given, -1), next = nextafter(given, zeros_like(given));
    for (int i = 0; i < kMany; ++i) {
      norm(given, -1);
      nextafter(given, zeros_like(given));
    }
    EXPECT_TRUE(identical(first, norm(given, -1)));
    EXPECT_TRUE(identical(next, nextafter(given, zeros_like(given))));
  }
}

// Options are part of what a program depends on.
TEST(Composed, KeepsOptionsApart) {
  const Tensor x = draws({6}, 1);
  for (int i = 0; i < kMany; ++i) leaky_relu(x, 0.25);
  EXPECT_TRUE(identical(leaky_relu(x, 0.5), where(x >= 0, x, x * 0.5)));
  EXPECT_TRUE(identical(leaky_relu(x, 0.25), where(x >= 0, x, x * 0.25)));
}

TEST(Composed, IsRecordedOpByOp) {
  const Tensor x = draws({6}, 1);
  for (int i = 0; i < kMany; ++i) leaky_relu(x, 0.25);
  GradientTape tape;
  tape.watch(x);
  const Tensor slope = tape.gradient(leaky_relu(x, 0.25), x);
  EXPECT_TRUE(identical(slope, where(x >= 0, ones_like(x), 0.25)));
}

// One pass over memory has no values in between.
TEST(Composed, NeedsNoBytesBesideItsResult) {
  const Tensor x = draws({1 << 20}, 1), y = draws({1 << 20}, 2);
  for (int i = 0; i < 8; ++i) nextafter(x, y);
  memory::reset_peak();
  const Bytes before = memory::current();
  const Tensor result = nextafter(x, y);
  EXPECT_LE(memory::peak(), before + Bytes(4 << 20) + 64_KiB);
}

}  // namespace
}  // namespace tidemark
