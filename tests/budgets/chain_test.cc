// What the floor of a chain of layers costs at least: the schedule that computes the fewest layers
// again among all that hold a given number of large values at once, and what plans of `mlp_step`
// and `gpt_step` do at their floor.
#include <gtest/gtest.h>

#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "bench/budget_models.h"

namespace tidemark {
namespace {

// Layer i makes activation i of activation i - 1; activation 0 is an argument. The gradient by
// activation n takes the place of activation n. Each further one is made of the one before, and the
// gradient by the weights of layer i is made of activation i - 1 and the gradient by activation i.
// All else is free, such as bytes of weights' gradients and of where an activation is positive, so
// that no real schedule does less. Gradients are made once.
class Chain {
 public:
  Chain(int layers, int held) : layers_(layers), held_(held) {}

  // The fewest times that layers are computed.
  int least() {
    reach({}, 0);
    while (true) {
      const auto [cost, state] = queue_.top();
      queue_.pop();
      if (cost > best_.at(state)) continue;
      if (state.gradient == 1 && state.pending == 0) return cost;
      visit(state, cost);
    }
  }

 private:
  struct State {
    uint32_t activations = 0;  // That are held, a bit for each.
    uint32_t pending = 0;      // Gradients by activations that their weights' gradient is to read.
    int gradient = 0;          // The one that was made last; 0 before the first.
    auto operator<=>(const State&) const = default;
  };
  static uint32_t bit(int number) { return uint32_t{1} << number; }
  // A gradient is held until the next is made and its weights' gradient has read it.
  static int count(const State& state) {
    return std::popcount(state.activations) +
           (state.gradient == 0 ? 0 : std::popcount(state.pending | bit(state.gradient)));
  }
  static bool has(const State& state, int activation) {
    return activation == 0 || (state.activations & bit(activation)) != 0;
  }

  void reach(const State& state, int cost) {
    if (count(state) > held_) return;
    const auto [known, is_new] = best_.try_emplace(state, cost);
    if (!is_new && known->second <= cost) return;
    known->second = cost;
    queue_.emplace(cost, state);
  }
  void visit(const State& state, int cost) {
    for (int i = 1; i <= layers_; ++i) {
      State next = state;
      next.activations ^= bit(i);
      if (has(state, i))
        reach(next, cost);  // Dropped.
      else if (has(state, i - 1))
        reach(next, cost + 1);
      const bool is_read = (state.pending & bit(i)) != 0 && has(state, i - 1);
      if (is_read) reach({state.activations, state.pending ^ bit(i), state.gradient}, cost);
    }
    if (state.gradient == 0 && has(state, layers_))
      reach({state.activations ^ bit(layers_), bit(layers_), layers_}, cost);
    if (state.gradient > 1 && count(state) < held_)
      reach({state.activations, state.pending | bit(state.gradient - 1), state.gradient - 1}, cost);
  }

  const int layers_, held_;
  std::map<State, int> best_;
  using Queued = std::pair<int, State>;
  std::priority_queue<Queued, std::vector<Queued>, std::greater<>> queue_;
};

TEST(Chain, WithRoomForAllIsComputedOnce) { EXPECT_EQ(Chain(6, 7).least(), 6); }

// After the last gradient, the first layers are computed again for every two layers: with three
// values, only the activation before the one that is wanted can be held as well.
TEST(Chain, OfThreeValuesGoesBackTwoLayersAtATime) {
  EXPECT_EQ(Chain(4, 3).least(), 4 + 1);
  EXPECT_EQ(Chain(6, 3).least(), 6 + 1 + 2);
  EXPECT_EQ(Chain(8, 3).least(), 8 + 1 + 4 + 2);
}

// Four activations of mlp_step do not fit its floor.
TEST(Chain, TheFloorOfMlpStepIsNearTheLeast) {
  const bench::BudgetModel model = bench::find_budget_model("mlp_step")->make({});
  const Plan plan = model.plan({}), floor = plan.within(plan.floor());
  constexpr int64_t activation = 1024 * 512 * sizeof(float);
  ASSERT_LT(floor.peak().count, 4 * activation);
  int64_t again = 0;
  for (const PlanDecision& each : floor.decisions())
    if (each.op == "matmul") again += each.times;
  constexpr int layers = 24;
  const int64_t least = Chain(layers, 3).least() - layers;
  EXPECT_EQ(least, 111);
  EXPECT_GE(again, least);
  EXPECT_LE(again, 1.2 * static_cast<double>(least));
}

// While a part of the logits is computed there are the logits of 256 tokens, the part of their
// gradient, the gradient of the embedding, the last activation and its gradient. Blocks need less
// only if the gradient of a weight is computed as soon as both of its operands exist.
TEST(Chain, TheFloorOfGptStepIsThatOfItsLogits) {
  set_num_threads(1);  // Each has scratch of its own.
  const bench::BudgetModel model = bench::find_budget_model("gpt_step")->make({});
  const Plan plan = model.plan({}), floor = plan.within(plan.floor());
  constexpr int64_t table = 256 * 8192 * sizeof(float), activation = 4 * 256 * 256 * sizeof(float);
  constexpr int64_t least = 3 * table + 2 * activation;
  EXPECT_GE(floor.peak().count, least);
  EXPECT_LE(static_cast<double>(floor.peak().count), 1.02 * least);
  EXPECT_LE(floor.more_work(), 1.15);
}

}  // namespace
}  // namespace tidemark
