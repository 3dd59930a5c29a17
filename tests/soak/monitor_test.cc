// Whoever watches for growth does not grow.
#include <gtest/gtest.h>

#include "tests/soak/counted_heap.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

TEST(Monitor, HoldsTheSameBytesAfterAnyNumberOfSteps) {
  Tensor x = td::ones({100});
  const auto f = td::function([](const Tensor& x) { return td::tanh(x); });
  td::StepMonitor monitor;
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      x = f(x);
      monitor.step();
    }
  };
  run(200);
  const int64_t heap = td::testing::live_heap_bytes(), held = td::memory::current().count;
  run(5000);
  EXPECT_EQ(td::testing::live_heap_bytes(), heap);
  EXPECT_EQ(td::memory::current().count, held);
  EXPECT_EQ(monitor.report().verdict(), td::Growth::flat);
}

}  // namespace
