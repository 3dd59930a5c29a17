// Schedules of a chain of layers and its gradient, whose optimum is known: with room for `slots`
// more activations than none, the fewest layers that run again follow from where the first of them
// is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tidemark/fit/exact.h"
#include "tidemark/fit/rematerialize.h"

namespace tidemark::fit {
namespace {

constexpr int32_t kLayers = 16;

// Layer i makes activation i from the one before. The gradient walks back: the step of layer i
// reads its input and the gradient of its output, and writes over the latter.
RegionModel chain(int32_t layers = kLayers) {
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
  for (int32_t i = 1; i < layers; ++i) activations.push_back(add({activations.back()}, {}));
  int32_t gradient = add({activations.back()}, {});
  for (int32_t i = layers - 1; i-- > 0;)
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

// The most bytes of values at once, each held from where it is made to its last reader before it is
// made again.
int64_t most_held(const RegionModel& model, const std::vector<int32_t>& steps) {
  int64_t most = 0;
  std::set<int32_t> held;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto step = [&](size_t at) { return model.steps[static_cast<size_t>(steps[at])]; };
    for (const int32_t read : step(i).reads) EXPECT_TRUE(held.contains(read)) << i;
    const auto is_read_later = [&](int32_t value) {
      for (size_t later = i + 1; later < steps.size(); ++later) {
        const NumberList& reads = step(later).reads;
        if (std::find(reads.begin(), reads.end(), value) != reads.end()) return true;
        if (step(later).first_value == value) return false;
      }
      return false;
    };
    int64_t overwritten = 0;
    for (const int32_t value : step(i).overwrites) overwritten += is_read_later(value) ? 0 : 1;
    held.insert(step(i).first_value);
    const int64_t given = std::count_if(held.begin(), held.end(), [&](int32_t value) {
      return model.values[static_cast<size_t>(value)].is_given;
    });
    most = std::max(most, std::ssize(held) - given - overwritten);
    std::erase_if(held, [&](int32_t value) { return !is_read_later(value); });
  }
  return most;
}

// It may make the first state again, too, which the recurrence holds. A longer chain has too many
// sets of values to look at within a few bytes.
TEST(Exact, NeedsNoMoreThanTheRecurrenceOfAShortChain) {
  constexpr int32_t layers = 10;
  const RegionModel model = chain(layers);
  ASSERT_TRUE(is_searchable(model));
  for (const int64_t slots : {1, 2, 3, 4, 5}) {
    const auto steps = least_work(model, 3 + slots);
    ASSERT_TRUE(steps.has_value()) << slots;
    EXPECT_LE(std::ssize(*steps) - std::ssize(model.steps), fewest(layers, slots) - (layers - 1));
    EXPECT_LE(most_held(model, *steps), 3 + slots);
  }
}

}  // namespace
}  // namespace tidemark::fit
