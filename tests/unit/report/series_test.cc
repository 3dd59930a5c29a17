// The rule by which a number grows, on numbers alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tidemark/report/series.h"

namespace td = tidemark;
using td::Growth;

namespace {

Growth of(int64_t steps, const std::function<int64_t(int64_t)>& value, int64_t slack = 0) {
  td::report::Series series;
  for (int64_t step = 1; step <= steps; ++step) series.add(step, value(step));
  return series.growth(steps, slack);
}

TEST(Series, CannotTellBeforeItHasFourWindows) {
  const auto rising = [](int64_t step) { return step; };
  for (int64_t steps = 0; steps < 32; ++steps)
    EXPECT_EQ(of(steps, rising), Growth::cannot_tell) << steps;
  for (int64_t steps = 32; steps < 3000; ++steps)
    ASSERT_EQ(of(steps, rising), Growth::growing) << steps;
}

TEST(Series, FindsWhatComesOnceInAThousandSteps) {
  const auto slow = [](int64_t step) { return 64 * (step / 1000); };
  EXPECT_EQ(of(999, slow), Growth::flat);
  EXPECT_EQ(of(1 << 14, slow), Growth::growing);
  for (int64_t steps = 16'500; steps < 140'000; steps += 2'317)
    EXPECT_EQ(of(steps, slow), Growth::growing) << steps;
}

TEST(Series, IsFlatWhereItStaysOrGoesUpAndDown) {
  for (int64_t steps = 32; steps < 5000; steps += 61) {
    EXPECT_EQ(of(steps, [](int64_t) { return 7; }), Growth::flat) << steps;
    EXPECT_EQ(of(steps, [](int64_t step) { return step == 1 ? 0 : 7; }), Growth::flat) << steps;
    EXPECT_NE(of(steps, [](int64_t step) { return step % 8; }), Growth::growing) << steps;
    EXPECT_EQ(of(steps, [](int64_t step) { return -step; }), Growth::flat) << steps;
  }
}

TEST(Series, NeverTakesASawToothForGrowthOnceItHasFallenTwice) {
  for (const int64_t period : {2, 3, 7, 10, 33, 100, 1000}) {
    for (int64_t steps = std::max<int64_t>(32, 4 * period); steps < 16 * period; ++steps) {
      const Growth seen = of(steps, [&](int64_t step) { return step % period; });
      ASSERT_NE(seen, Growth::growing) << "period " << period << ", step " << steps;
      if (steps > 8 * period) steps += period / 3;
    }
  }
}

TEST(Series, IsFlatAgainOnceABufferIsFull) {
  for (const int64_t size : {10, 50, 100, 1000}) {
    const auto filling = [&](int64_t step) { return std::min(step, size); };
    for (int64_t steps = std::max<int64_t>(32, 3 * size); steps < 20 * size; steps += size)
      EXPECT_EQ(of(steps, filling), Growth::flat) << size << ", step " << steps;
  }
}

TEST(Series, CannotTellOfWhatHasJustBegun) {
  const auto late = [](int64_t step) { return std::max<int64_t>(0, step - 450); };
  EXPECT_EQ(of(450, late), Growth::flat);
  EXPECT_EQ(of(600, late), Growth::cannot_tell);
  EXPECT_EQ(of(4096, late), Growth::growing);
}

TEST(Series, LeavesOutWhatIsWithinTheSlack) {
  const auto rising = [](int64_t step) { return step; };
  EXPECT_EQ(of(128, rising, 1000), Growth::flat);
  EXPECT_EQ(of(1 << 15, rising, 100), Growth::growing);
}

TEST(Series, KnowsTheRate) {
  td::report::Series series;
  for (int64_t step = 1; step <= 1000; ++step) series.add(step, 640 + 40 * step);
  EXPECT_EQ(series.per_step(1000), 40);
  EXPECT_EQ(series.now(), 40'640);
}

TEST(Series, MetLateWasNothingBefore) {
  td::report::Series series(500);
  for (int64_t step = 500; step <= 1100; ++step) series.add(step, 7);
  EXPECT_NE(series.growth(1100), Growth::growing);
  for (int64_t step = 1101; step <= 5000; ++step) series.add(step, 7);
  EXPECT_EQ(series.growth(5000), Growth::flat);
}

}  // namespace
