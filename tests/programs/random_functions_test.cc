// Random functions, run at once and compiled, at one size after another through one function whose
// sizes become open: the same bits, the same lines printed in the same order, the same checks that
// fail, and the same state. Arguments are given away at random, maps have random chunks.
//
// 150 functions; 3,000 with TIDEMARK_TEST_COUNTS=full; by hand with TIDEMARK_FUZZ and
// TIDEMARK_FUZZ_SEED, as for programs_test. A function that fails is made small, and printed as a
// program.
#include <gtest/gtest.h>

#include <random>

#include "tests/programs/judge_function.h"
#include "tests/programs/seeds.h"
#include "tests/programs/seen.h"
#include "tidemark/compile/cpu/kernels.h"

namespace tidemark {
namespace {

namespace td = tidemark;
using testing::FunctionJudge;
using testing::RandomFunction;
using testing::Seeds;
using testing::seeds_to_try;
using testing::Seen;
using testing::seen;

// Of a function that eager code refuses at every size, so that no result is compared.
constexpr std::string_view kRefused = "refused";

// What is wrong with a function, or nothing, and its program.
std::string failure(const RandomFunction& random, std::string* text) {
  std::mt19937_64 draws(random.seed);
  compile::set_emitter(random.seed % 10 == 0 ? compile::Emitter::llvm : compile::Emitter::tile);
  set_num_threads(1 + static_cast<int>(random.seed % 3));
  const Variable eager_state(zeros({}), {.name = "state"}), state(zeros({}), {.name = "state"});
  const auto compiled =
      td::function([&](const Tensor& x, const Tensor& y) { return random(x, y, state); },
                   {.jit = random.seed % 4 != 0});
  std::string wrong;
  bool ran = false;
  for (const int64_t n : {5, 8, 3, 8, 12, 33, 2}) {
    const auto key = static_cast<uint64_t>(n);
    Tensor x = td::random::normal({n, 6}, {.key = td::random::Key(key)});
    Tensor y = td::random::normal({n}, {.key = td::random::Key(key + 100)});
    const Tensor before = state.value();
    const Seen expected = seen([&] { return random(x, y, eager_state); });
    const bool gives_x = draws() % 2 == 0, gives_y = draws() % 2 == 0;
    const Seen got = seen([&] {
      // Copies, so that whoever is given away is nobody else's.
      return compiled(gives_x ? x + 0 : x, gives_y ? y + 0 : y);
    });
    wrong = difference(expected, got);
    ran = ran || expected.error.empty();
    if (wrong.empty() && !got.error.empty() && !identical(before, state.value()))
      wrong = "state: a call that failed changed it";
    if (wrong.empty() && got.error.empty() && !identical(eager_state.value(), state.value()))
      wrong = cat("state: eager ", eager_state.value(), ", compiled ", state.value());
    if (!wrong.empty()) {
      wrong += cat(", for n = ", n);
      break;
    }
    eager_state.assign(state.value());  // Eager code changes it before a check fails.
  }
  if (text != nullptr) *text = compiled.text("trace");
  compile::set_emitter(compile::Emitter::automatic);
  return wrong.empty() && !ran ? std::string(kRefused) : wrong;
}

TEST(RandomFunctions, GiveTheBitsOfEagerCodeAtEverySize) {
  const Seeds seeds = seeds_to_try({.usual = 150, .full = 3000});
  const FunctionJudge judge(failure);
  int64_t ran = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const RandomFunction random(seed);
    const std::string wrong = judge.failure_of(random);
    ran += wrong == kRefused ? 0 : 1;
    if (!wrong.empty() && wrong != kRefused) judge.report(random, wrong);
  }
  EXPECT_GE(ran, seeds.count() * 3 / 4) << "too few functions run";
}

// The sizes are of no use to the test where a function reads them.
TEST(RandomFunctions, KeepTheirSizesOpen) {
  const auto is_open = [](const RandomFunction& random) {
    const Variable state(zeros({}), {.name = "state"});
    const auto compiled =
        td::function([&](const Tensor& x, const Tensor& y) { return random(x, y, state); });
    for (const int64_t n : {5, 8, 12, 33, 9})
      seen([&] { return compiled(td::ones({n, 6}) * 0.1, td::ones({n}) * 0.1); });
    return compiled.cache_info().traces == 2;
  };
  int64_t open = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) open += is_open(RandomFunction(seed)) ? 1 : 0;
  EXPECT_GE(open, 25);
}

}  // namespace
}  // namespace tidemark
