// A* over the sets of values that are held. A step may run if its operands are held; values are
// dropped only where a step would not fit otherwise, since holding more never costs work.
#include "tidemark/fit/exact.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>

namespace tidemark::fit {
namespace {

using Set = uint64_t;  // Of values.
constexpr size_t kMostValues = 64, kMostSteps = 48;
constexpr size_t kMostStates = 20'000;

Set bit(int32_t value) { return Set{1} << value; }

class Search {
 public:
  Search(const RegionModel& model, int64_t limit) : model_(model), limit_(limit) {
    for (size_t v = 0; v < model.values.size(); ++v)
      if (model.values[v].is_given) goal_ |= bit(static_cast<int32_t>(v));
    for (const ModelStep& step : model.steps) {
      Move& move = moves_.emplace_back();
      for (const int32_t read : step.reads) move.reads |= bit(read);
      for (int32_t r = 0; r < step.values; ++r) move.makes |= bit(step.first_value + r);
    }
  }

  std::optional<std::vector<int32_t>> run() {
    reach({0, 0, -1}, 0);
    while (!queue_.empty() && states_.size() < kMostStates) {
      const auto [bound, set] = queue_.top();
      queue_.pop();
      State& state = states_[set];
      if (state.is_done) continue;
      state.is_done = true;
      if ((set & goal_) == goal_) return path_to(set);
      expand(set, state.seconds);
    }
    return {};
  }

 private:
  struct Move {
    Set reads = 0, makes = 0;
  };
  struct State {
    double seconds = 0;
    Set from = 0;
    int32_t step = -1;  // That led here; -1: a value was dropped.
    bool is_done = false;
  };
  using Bound = std::pair<double, Set>;

  int64_t bytes_of(Set set) const {
    int64_t bytes = 0;
    for (; set != 0; set &= set - 1) {
      const ModelValue& value = model_.values[static_cast<size_t>(std::countr_zero(set))];
      if (!value.is_given) bytes += value.bytes;
    }
    return bytes;
  }

  // Results that are not there yet have to be made at least once.
  double least_to_come(Set set) const {
    double seconds = 0;
    for (size_t s = 0; s < moves_.size(); ++s)
      if ((moves_[s].makes & goal_ & ~set) != 0) seconds += model_.steps[s].cost.seconds;
    return seconds;
  }

  void reach(const State& state, Set set) {
    const auto [known, is_new] = states_.try_emplace(set, state);
    if (!is_new) {
      if (known->second.is_done || known->second.seconds <= state.seconds) return;
      known->second = state;
    }
    queue_.push({state.seconds + least_to_come(set), set});
  }

  void expand(Set set, double seconds) {
    bool is_tight = false;
    const int64_t held = bytes_of(set);
    for (size_t s = 0; s < moves_.size(); ++s) {
      const Move& move = moves_[s];
      if ((move.reads & ~set) != 0 || (move.makes & ~set) == 0) continue;
      is_tight = !run_step(set, held, s, seconds) || is_tight;
    }
    if (!is_tight) return;
    for (Set rest = set & ~goal_; rest != 0; rest &= rest - 1)
      reach({seconds, set, -1}, set & ~(rest & (~rest + 1)));
  }

  // With each operand that a result can overwrite, and without. Returns false if it does not fit.
  bool run_step(Set set, int64_t held, size_t s, double seconds) {
    const ModelStep& step = model_.steps[s];
    const int64_t made = bytes_of(moves_[s].makes & ~set);
    const int64_t beside = step.inside.bytes + model_.offset[s];
    const State next{seconds + step.cost.seconds, set, static_cast<int32_t>(s)};
    const bool fits = held + made + beside <= limit_;
    if (fits) reach(next, set | moves_[s].makes);
    Set all = 0;
    for (const int32_t read : step.overwrites)
      if (!model_.values[static_cast<size_t>(read)].is_given) all |= bit(read);
    for (const Set gone : overwritten(step, all)) {
      const int64_t reused = std::min(made, bytes_of(gone));
      if (held + made - reused + beside <= limit_) reach(next, (set & ~gone) | moves_[s].makes);
    }
    return fits;
  }
  std::vector<Set> overwritten(const ModelStep& step, Set all) const {
    std::vector<Set> sets;
    for (const int32_t read : step.overwrites)
      if ((all & bit(read)) != 0) sets.push_back(bit(read));
    if (sets.size() > 1) sets.push_back(all);
    return sets;
  }

  std::vector<int32_t> path_to(Set set) const {
    std::vector<int32_t> steps;
    while (set != 0) {
      const State& state = states_.at(set);
      if (state.step >= 0) steps.push_back(state.step);
      set = state.from;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const RegionModel& model_;
  const int64_t limit_;
  Set goal_ = 0;
  std::vector<Move> moves_;
  std::unordered_map<Set, State> states_;
  std::priority_queue<Bound, std::vector<Bound>, std::greater<>> queue_;
};

}  // namespace

bool is_searchable(const RegionModel& model) {
  return model.values.size() <= kMostValues && model.steps.size() <= kMostSteps &&
         std::all_of(model.steps.begin(), model.steps.end(),
                     [](const ModelStep& step) { return step.can_repeat && step.values > 0; }) &&
         std::all_of(model.readable_until.begin(), model.readable_until.end(),
                     [](int32_t until) { return until == kNever; });
}

std::optional<std::vector<int32_t>> least_work(const RegionModel& model, int64_t limit) {
  return Search(model, limit).run();
}

}  // namespace tidemark::fit
