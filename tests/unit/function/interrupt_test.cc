// Work that is stopped from outside leaves everything as if it had not begun.
#include "tidemark/base/interrupt.h"

#include <gtest/gtest.h>

#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;

struct Stop {};

int64_t polls_left = 0;
void stop_at_last() {
  if (polls_left-- == 0) throw Stop();
}

// While it lives, poll number `polls` stops the work.
class StopAt {
 public:
  explicit StopAt(int64_t polls) {
    polls_left = polls;
    td::set_interrupt_check(stop_at_last, 0);
  }
  ~StopAt() { td::set_interrupt_check(nullptr); }
  StopAt(const StopAt&) = delete;
  StopAt& operator=(const StopAt&) = delete;
};

// Runs `work` stopped at its first poll, its second and so on, until it is not stopped any more;
// the number of times it was.
template <class Work, class After>
int64_t stop_everywhere(Work work, After after_stop) {
  for (int64_t number = 0;; ++number) {
    const StopAt stop(number);
    try {
      work();
      return number;
    } catch (const Stop&) {
      td::set_interrupt_check(nullptr);
      after_stop();
    }
  }
}

TEST(Interrupt, OfALoopLeavesNothingAndTheCallWorksAgain) {
  const auto f = td::function([](const td::Tensor& x) {
    return td::fori_loop(
        0, 100, [](const td::Tensor&, const td::Tensor& y) { return td::tanh(y); }, x);
  });
  const td::Tensor x = td::full({64}, 0.5), wanted = f(x);
  const td::Bytes before = td::memory::current();
  td::Tensor got;
  const int64_t stops = stop_everywhere(
      [&] { got = f(x); }, [&] { EXPECT_EQ(td::memory::current(), before) << "nothing is held"; });
  EXPECT_GE(stops, 100) << "each trip can be stopped";
  EXPECT_TRUE(td::identical(got, wanted));
}

TEST(Interrupt, LeavesEveryVariableAsItWas) {
  const td::Variable v(td::ones({1000})), w(td::ones({1000}));
  const auto f = td::function([=](const td::Tensor& x) {
    v.assign_add(1);
    const td::Tensor y = td::fori_loop(
        0, 20, [](const td::Tensor&, const td::Tensor& each) { return td::tanh(each); }, x);
    w.assign_add(y);
    return td::while_loop([](const td::Tensor& i) { return i < 20; },
                          [](const td::Tensor& i) { return i + 1; }, td::constant(0));
  });
  const td::Tensor x = td::zeros({1000});
  f(x);
  const td::Tensor was = td::add(v.value(), 0), was_w = td::add(w.value(), 0);
  stop_everywhere([&] { f(x); },
                  [&] {
                    EXPECT_TRUE(td::identical(v.value(), was));
                    EXPECT_TRUE(td::identical(w.value(), was_w));
                  });
  EXPECT_TRUE(td::identical(v.value(), was + 1));
}

TEST(Interrupt, OfTheCompilerLeavesAFunctionThatWorks) {
  int64_t stops = 0;
  for (int64_t number = 0; number < 1000; number += 7) {
    const auto f =
        td::function([](const td::Tensor& x) { return td::softmax(td::matmul(x, x) + 1.0) * 3.0; });
    const td::Tensor x = td::ones({8, 8});
    bool stopped = false;
    {
      const StopAt stop(number);
      try {
        f(x);
      } catch (const Stop&) {
        stopped = true;
      }
    }
    EXPECT_NEAR(td::sum(f(x)).item<double>(), 24.0, 1e-4);
    if (!stopped) break;
    ++stops;
  }
  EXPECT_GT(stops, 1);
}

TEST(Interrupt, OfTheCompilerMayComeAtEveryOp) {
  constexpr int64_t ops = 200, most = 1'000'000;
  const auto f = td::function([](td::Tensor x) {
    for (int64_t i = 0; i < ops; ++i) x = i % 2 == 0 ? td::matmul(x, x) : td::tanh(x);
    return x;
  });
  const td::Tensor x = td::ones({8, 8});
  const StopAt stop(most);
  f(x);
  const int64_t polls = most - polls_left;
  f(x);
  EXPECT_GE(polls - (most - polls_left - polls), 2 * ops) << "without those of the run";
}

TEST(Interrupt, OfEagerLoops) {
  const auto run = [] {
    (void)td::fori_loop(
        0, 10, [](const td::Tensor&, const td::Tensor& y) { return y + 1; }, td::zeros({4}));
    (void)td::map_fn([](const td::Tensor& row) { return row * 2; }, td::ones({10, 4}));
  };
  const td::Bytes before = td::memory::current();
  EXPECT_EQ(stop_everywhere(run, [&] { EXPECT_EQ(td::memory::current(), before); }), 20);
}

TEST(Interrupt, OfFitComesBetweenBatches) {
  td::nn::Sequential model{td::nn::Dense(4)};
  const std::vector<std::pair<td::Tensor, td::Tensor>> batches(
      3, {td::ones({2, 4}), td::zeros({2, 4})});
  const td::nn::FitOptions options{.loss = td::nn::losses::mse,
                                   .optimizer = td::nn::SGD(),
                                   .epochs = 2,
                                   .progress = td::nn::Progress::none};
  td::nn::fit(model, batches, options);
  {
    const StopAt stop(1);
    EXPECT_THROW(td::nn::fit(model, batches, options), Stop);
  }
  EXPECT_EQ(td::nn::fit(model, batches, options).epochs.size(), 2U);
}

}  // namespace
