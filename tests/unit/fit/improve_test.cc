// Schedules of a chain of layers and its gradient, whose optimum is known: with room for `slots`
// more activations than none, the fewest layers that run again follow from where the first of them
// is kept.
#include <gtest/gtest.h>

#include <algorithm>

#include "tidemark/fit/rematerialize.h"

namespace tidemark::fit {
namespace {

constexpr int32_t kLayers = 16;

// Layer i makes activation i from the one before. The gradient walks back: the step of layer i
// reads its input and the gradient of its output, and writes over the latter.
RegionModel chain() {
  RegionModel model;
  const auto add = [&](NumberList reads, NumberList overwrites) {
    const auto number = static_cast<int32_t>(model.steps.size());
    ModelStep step;
    step.node = number;
    step.reads = std::move(reads);
    step.overwrites = std::move(overwrites);
    step.first_value = number;
    step.values = 1;
    step.cost.seconds = 1;
    step.can_repeat = true;
    model.steps.push_back(step);
    model.values.push_back({.step = number, .bytes = 1});
    model.offset.push_back(0);
    model.position.push_back(number);
    return number;
  };
  std::vector<int32_t> activations = {add({}, {})};
  for (int32_t i = 1; i < kLayers; ++i) activations.push_back(add({activations.back()}, {}));
  int32_t gradient = add({activations.back()}, {});
  for (int32_t i = kLayers - 1; i-- > 0;)
    gradient = add({activations[static_cast<size_t>(i)], gradient}, {gradient});
  model.values.back().is_given = true;
  return model;
}

// The least work of going back over `layers` from a state that is there, with room for so many
// states in between.
int64_t fewest(int64_t layers, int64_t slots) {
  if (layers <= 1) return 0;
  if (slots == 0) return layers * (layers - 1) / 2;
  int64_t least = layers * layers;
  for (int64_t kept = 1; kept < layers; ++kept)
    least = std::min(least, kept + fewest(layers - kept, slots - 1) + fewest(kept, slots));
  return least;
}

double again_within(int64_t bytes, bool improved) {
  const RegionModel model = chain();
  Timeline timeline(model);
  EXPECT_TRUE(rematerialize(model, timeline, bytes)) << bytes;
  if (improved) improve(model, timeline);
  EXPECT_LE(timeline.peak(), bytes);
  return timeline.seconds_again();
}

TEST(Improve, ComesCloseToTheOptimumOfAChain) {
  double greedy = 0, improved = 0, best = 0;
  for (const int64_t slots : {3, 4, 5}) {
    // Of what stands there without any: an activation, the one that is made of it, the gradient.
    const int64_t bytes = 3 + slots;
    greedy += again_within(bytes, false);
    improved += again_within(bytes, true);
    best += static_cast<double>(fewest(kLayers, slots) - (kLayers - 1));
  }
  EXPECT_LE(improved, greedy);
  EXPECT_LE(improved, 1.1 * best);
}

TEST(Improve, GivesTheSameScheduleEachTime) {
  EXPECT_EQ(again_within(7, true), again_within(7, true));
}

}  // namespace
}  // namespace tidemark::fit
