#include "tidemark/train/averages.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using nn::EMA;
using nn::ReduceLROnPlateau;

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "averages_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

double first(const Variable& v) { return v.value()[0].item<double>(); }

TEST(Averages, FollowTheFormulaInEagerCodeAndInFunctions) {
  for (const bool warm_up : {false, true}) {
    for (const bool compiled : {false, true}) {
      const Variable v(full({4}, 8.0, f64), {.name = "v"});
      const EMA average(std::vector{v}, {.decay = 0.75, .warm_up = warm_up});
      const auto step = [=] {
        v.assign_add(1.0);
        average.update();
      };
      const auto program = function(step);
      double value = 8, mean = 8;
      for (int i = 0; i < 6; ++i) {
        compiled ? program() : step();
        value += 1;
        const double decay = warm_up ? std::min(0.75, (1.0 + i) / (10.0 + i)) : 0.75;
        mean = decay * mean + (1 - decay) * value;
      }
      average.swap();
      EXPECT_NEAR(first(v), mean, 1e-12) << warm_up << compiled;
      average.swap();
      EXPECT_EQ(first(v), 14);
      EXPECT_EQ(average.updates.value().item<int>(), 6);
    }
  }
}

TEST(Averages, UpdateInPlaceAndAreSaved) {
  const MachineCode machine;
  const Variable v(ones({1 << 16}), {.name = "v"});
  const std::map<std::string, Variable> model = {{"v", v}};
  const EMA average(model);
  const auto step = function([=] { average.update(); });
  step();
  EXPECT_LE(step.plan().peak().count, 512);
  average.update();
  const Bytes before = memory::current();
  memory::reset_peak();
  average.update();
  EXPECT_EQ(memory::current(), before);
  EXPECT_LE((memory::peak() - before).count, 4096);
  std::vector<std::string> names;
  for (const auto& [name, variable] : nn::named_variables(average)) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"updates", "average/v"}));
  const std::string file = testing::TempDir() + "averages.safetensors";
  io::Checkpoint({{"average", average}}).save(file);
  io::Checkpoint({{"average", average}}).load(file);
}

TEST(Averages, SayWhatIsWrong) {
  const std::string at = "\n  at averages_test.cc:\n  ";
  EXPECT_EQ(said([] { EMA(std::vector<Variable>(), {.decay = 1}); }),
            "EMA: .decay is 1" + at + "give a number from 0 to below 1");
  EXPECT_EQ(said([] { EMA(nn::Dense(3)); }),
            "EMA: the model has no trainable Variable with a shape" + at +
                "call the model, or td::nn::build, before its EMA is made");
  EXPECT_EQ(said([] { ReduceLROnPlateau(nn::SGD(), {.factor = 1}); }),
            "ReduceLROnPlateau: .factor is 1" + at + "give a number between 0 and 1");
  EXPECT_EQ(said([] { ReduceLROnPlateau(nn::SGD(), {.patience = -1}); }),
            "ReduceLROnPlateau: .patience is -1, .cooldown 0" + at + "give 0 or more epochs");
}

TEST(Plateau, LowersTheRateAfterEpochsWithoutAnImprovement) {
  const nn::SGD optimizer({.learning_rate = 1});
  const ReduceLROnPlateau plateau(optimizer, {.factor = 0.5, .patience = 1, .cooldown = 2});
  const std::vector<double> losses = {3, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1};
  std::vector<double> rates;
  for (const double loss : losses) {
    plateau.update(loss);
    rates.push_back(optimizer.learning_rate.value().item<double>());
  }
  // Two bad epochs, then two that do not count, then two bad ones again.
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25}));
  const std::string file = testing::TempDir() + "plateau.safetensors";
  io::Checkpoint({{"plateau", plateau}}).save(file);
  const ReduceLROnPlateau other(optimizer);
  io::Checkpoint({{"plateau", other}}).load(file);
  EXPECT_EQ(other.best.value().item<double>(), 1);
}

TEST(Plateau, StopsAtTheLeastRate) {
  const nn::SGD optimizer({.learning_rate = 1});
  const ReduceLROnPlateau plateau(optimizer, {.patience = 0, .least_rate = 0.0625});
  plateau.update(1);
  EXPECT_TRUE(plateau.update(1));
  EXPECT_FALSE(plateau.update(1) && plateau.update(1));
  EXPECT_EQ(optimizer.learning_rate.value().item<double>(), 0.0625);
}

}  // namespace
}  // namespace tidemark
