// A budget bounds what a call adds at once: what does not fit is refused before anything happens,
// with the numbers and with remedies that work.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;
using td::Tensor;

namespace {

Tensor softmax_sum(const Tensor& x) { return td::sum(td::softmax(x)); }

int64_t floor_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const td::OverBudget& error) {
    return error.floor().count;
  }
  return -1;
}

// As it stands in the documents, but for what is printed.
TEST(Budget, TheExampleOfTheDocumentsRuns) {
  std::ostringstream out;
  td::memory::set_limit(2_GiB);
  td::MemoryScope scope("epoch");
  auto f = td::function([](const td::Tensor& x) { return td::sum(td::softmax(x)); });
  td::Plan plan = f.plan(td::spec({4096, 32768}));
  out << plan.peak() << plan.floor() << plan.of(td::ByteClass::temporaries) << '\n' << plan;
  td::Bytes floor = 0;
  try {
    f.plan(td::spec({4096, 32768}), {.budget = 1_KiB});
  } catch (const td::OverBudget& error) {
    floor = error.floor();
  }  // the least that would fit
  EXPECT_EQ(floor, plan.floor());
  EXPECT_EQ(scope.peak().count, 0) << "a plan allocates nothing";
  std::vector<td::Tensor> kept;
  out << td::memory::watch(50, [&] { kept.push_back(td::ones({100, 100})); }) << scope.peak()
      << td::memory::live();
  EXPECT_EQ(scope.peak().count, 50 * 40'000);
}

TEST(Budget, OfAPlanIsTheLeastThatFitsAndNotAByteLess) {
  const td::MachineCode machine;
  const auto f = td::function(softmax_sum);
  const td::Bytes peak = f.plan(td::spec({64, 1000})).peak();
  EXPECT_EQ(f.plan(td::spec({64, 1000}), {.budget = peak}).peak(), peak);
  const auto refused = [&] { f.plan(td::spec({64, 1000}), {.budget = peak - 1}); };
  EXPECT_EQ(floor_of(refused), peak.count);
}

TEST(Budget, ACallAboveItChangesNothing) {
  const td::MachineCode machine;
  const td::Variable v(td::zeros({1000}), {.name = "v"});
  bool printed = false;
  const auto make = [&](td::Bytes budget) {
    return td::function(
        [v, &printed](const Tensor& x) {
          printed = true;
          v.assign_add(td::exp(x));
          return td::cumsum(x * 2);
        },
        {.name = "step", .budget = budget});
  };
  const Tensor x = td::ones({1000});
  const int64_t peak = td::function([v](const Tensor& x) {
                         v.assign_add(td::exp(x));
                         return td::cumsum(x * 2);
                       })
                           .plan(td::spec({1000}))
                           .peak()
                           .count;
  const auto tight = make(peak - 1);
  const td::Bytes before = td::memory::current();
  td::memory::reset_peak();
  EXPECT_EQ(floor_of([&] { tight(x); }), peak);
  EXPECT_TRUE(printed) << "it was traced";
  EXPECT_EQ(td::memory::peak(), before) << "nothing was allocated";
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(1000, 0.0F));
  EXPECT_EQ(floor_of([&] { tight(x); }), peak) << "the second call is refused, too";
  EXPECT_EQ(floor_of([&] { tight.profile(x); }), peak);
  const auto wide = make(peak);
  td::memory::reset_peak();
  const Tensor y = wide(x);
  EXPECT_EQ((td::memory::peak() - before).count, peak) << "and what fits takes just that";
}

TEST(Budget, IsCheckedAtEachNewSize) {
  const td::MachineCode machine;
  const auto f = td::function([](const Tensor& x) { return td::exp(x); },
                              {.budget = 64_KiB, .input_signature = {td::spec({td::open, 256})}});
  const Tensor small = td::ones({64, 256}), large = td::ones({65, 256});
  f(small);
  EXPECT_EQ(floor_of([&] { f(large); }), 65 * 1024);
  EXPECT_TRUE(td::identical(f(small), td::exp(small)));
  EXPECT_EQ(f.cache_info().traces, 1);
  const td::Plan plan = f.plan(td::spec({td::open, 256}), {.budget = 1_MiB});
  EXPECT_EQ(plan.at({1024}).peak(), 1_MiB);
  EXPECT_EQ(floor_of([&] { plan.at({1025}); }), 1025 * 1024);
}

TEST(Budget, BoundsCopiesOfVariablesThatSomebodyHolds) {
  const td::MachineCode machine;
  const td::Variable v(td::zeros({256}), {.name = "v"});
  const auto add =
      td::function([v](const Tensor& x) { v.assign_add(x); }, {.name = "add", .budget = 512_B});
  const Tensor x = td::ones({256});
  add(x);
  {
    const Tensor held = v.value();
    const auto call = [&] { add(x); };
    const std::string line = "budget_test.cc:" + std::to_string(__LINE__ - 1);
    EXPECT_EQ(td::error_of<td::OverBudget>(call),
              "add: needs 1024 bytes at once, the budget is 512 bytes: 1024 of them are copies of "
              "Variables whose tensors are still held (v)\n  at " +
                  line +
                  "\n  let go of tensors read from them before the call; .budget = 1024_B fits");
  }
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(256, 1.0F));
  add(x);
}

TEST(Budget, HoldsForWhatAGradientMakesOfTheFunction) {
  const td::MachineCode machine;
  const auto loss = [](const Tensor& x) { return td::sum(td::exp(td::sin(x)) * td::tanh(x)); };
  const auto f = td::function(loss, {.name = "loss", .budget = 1_KiB});
  const Tensor x = td::ones({1000});
  f(x);  // Alone it needs a number.
  td::GradientTape tape;
  tape.watch(x);
  const std::string text = td::error_of<td::OverBudget>([&] { tape.gradient(f(x), x); });
  EXPECT_TRUE(text.starts_with("the gradient of loss: needs at least 3.9 KiB, ")) << text;
}

}  // namespace
