// Numbers become elements, and composites compute their constants, in plain IEEE arithmetic
// whatever modes the caller has set. (tests/sweep does the same for every op.)
#include <gtest/gtest.h>

#include <cfenv>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"

namespace tidemark {
namespace {

namespace td = tidemark;

std::vector<Tensor> results() {
  const Tensor x = random::uniform({5, 300}, {.key = random::Key(1)});
  const Tensor few = x[{0, Slice{.end = 7}}], low = cast(x, DType::f16);
  const random::Key key(2);
  return {x * 0.1,
          few * 0.1,
          low * 0.1,
          x + Tensor(0.7),
          full({3}, 0.1),
          full({3}, 0.1, DType::bf16),
          constant({0.1, 0.2}),
          arange(0, 1, 0.1),
          linspace(0, 0.1, 17),
          pad(few, {{1, 1}}, 0.3),
          where(x > 0.5, x, 0.1),
          clip(x, 0.1, 0.7),
          mean(x),
          mean(low, 1),
          td::std(x, 0),
          norm(x),
          logsumexp(x, 1),
          gelu(x),
          leaky_relu(x - 0.5, 0.1),
          layer_norm(x),
          attention(x[{td::all, Slice{.end = 7}}], x[{td::all, Slice{.end = 7}}], x),
          dropout(x, {.rate = 0.3, .key = key}),
          random::normal({70}, {.mean = 0.1, .stddev = 0.3, .key = key}),
          random::uniform({70}, {.low = 0.1, .high = 0.7, .dtype = DType::f16, .key = key}),
          avg_pool(reshape(x, {1, 5, 300, 1})),
          sum(repeat(constant({0.1F}), 1000))};
}

class Modes : public testing::TestWithParam<int> {};

TEST_P(Modes, OfTheCallerChangeNoBit) {
  const std::vector<Tensor> plain = results();
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(GetParam());
  const std::vector<Tensor> changed = results();
  EXPECT_EQ(std::fegetround(), GetParam());
  std::fesetenv(&before);
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_TRUE(identical(plain[i], changed[i])) << "result " << i;
}

INSTANTIATE_TEST_SUITE_P(Rounding, Modes, testing::Values(FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO));

}  // namespace
}  // namespace tidemark
