// A* over the sets of values that are held. A step may run if its operands are held; values are
// dropped only where it would not fit otherwise, since holding more never costs work.
#include "tidemark/fit/exact.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace tidemark::fit {
namespace {

using Set = uint64_t;  // Of values.
constexpr size_t kMostValues = 64, kMostSteps = 48;
constexpr size_t kMostMoves = 200'000;  // Looked at; a few hundredths of a second.

Set bit(int32_t value) { return Set{1} << value; }

class Search {
 public:
  Search(const RegionModel& model, int64_t limit) : model_(model), limit_(limit) {
    for (size_t v = 0; v < model.values.size(); ++v)
      if (model.values[v].is_given) goal_ |= bit(static_cast<int32_t>(v));
    for (const ModelStep& step : model.steps) {
      Move& move = moves_.emplace_back();
      move.work = std::llround(step.cost.seconds * 1e12);
      for (const int32_t read : step.reads) move.reads |= bit(read);
      for (int32_t r = 0; r < step.values; ++r) move.makes |= bit(step.first_value + r);
    }
    for (size_t v = 0; v < model.values.size(); ++v)
      if (!model.values[v].is_given) largest_first_.push_back(bit(static_cast<int32_t>(v)));
    std::stable_sort(largest_first_.begin(), largest_first_.end(),
                     [&](Set a, Set b) { return bytes_of(a) > bytes_of(b); });
  }

  std::optional<std::vector<int32_t>> run() {
    reach({0, 0, -1}, 0);
    while (!queue_.empty() && looked_at_ < kMostMoves) {
      const Set set = std::get<Set>(queue_.top());
      queue_.pop();
      State& state = states_[set];
      if (state.is_done) continue;
      state.is_done = true;
      if ((set & goal_) == goal_) return path_to(set);
      expand(set, state.work);
    }
    return {};
  }

 private:
  struct Move {
    Set reads = 0, makes = 0;
    int64_t work = 0;  // In picoseconds: sums of whole numbers are equal where schedules are.
  };
  struct State {
    int64_t work = 0;
    Set from = 0;
    int32_t step = -1;  // That led here.
    bool is_done = false;
  };
  // The least work that a schedule through the set can have, then that of its rest: of those that
  // promise the same, the one that is closest to the end comes first.
  using Queued = std::tuple<int64_t, int64_t, Set>;

  int64_t bytes_of(Set set) const {
    int64_t bytes = 0;
    for (; set != 0; set &= set - 1) {
      const ModelValue& value = model_.values[static_cast<size_t>(std::countr_zero(set))];
      if (!value.is_given) bytes += value.bytes;
    }
    return bytes;
  }

  // Steps that make results which are not there yet have to run at least once, and so have those
  // that make what such steps read and is not there.
  int64_t least_to_come(Set set) const {
    int64_t work = 0;
    Set missing = goal_ & ~set;
    for (size_t s = moves_.size(); s-- > 0;) {
      if ((moves_[s].makes & missing) == 0) continue;
      work += moves_[s].work;
      missing |= moves_[s].reads & ~set;
    }
    return work;
  }

  // The values that steps on the way to the missing results can read, and all results.
  Set wanted(Set set) {
    const auto [known, is_new] = wanted_.try_emplace(set & goal_, goal_);
    if (!is_new) return known->second;
    Set values = goal_ & ~set;
    for (size_t s = moves_.size(); s-- > 0;)
      if ((moves_[s].makes & values) != 0) values |= moves_[s].reads;
    return known->second |= values;
  }

  // What nobody reads any more is dropped.
  void reach(const State& state, Set with_unwanted) {
    const Set set = with_unwanted & wanted(with_unwanted);
    const auto [known, is_new] = states_.try_emplace(set, state);
    if (!is_new) {
      if (known->second.is_done || known->second.work <= state.work) return;
      known->second = state;
    }
    const int64_t to_come = least_to_come(set);
    queue_.emplace(state.work + to_come, to_come, set);
  }

  void expand(Set set, int64_t work) {
    for (size_t s = 0; s < moves_.size(); ++s)
      if ((moves_[s].reads & ~set) == 0 && (moves_[s].makes & ~set) != 0) run_step(set, s, work);
  }

  // Without an operand that a result overwrites, and with each.
  void run_step(Set set, size_t s, int64_t work) {
    const ModelStep& step = model_.steps[s];
    const int64_t made = bytes_of(moves_[s].makes & ~set);
    const int64_t needed = bytes_of(set) + made + step.inside.bytes + model_.offset[s];
    const State next{work + moves_[s].work, set, static_cast<int32_t>(s)};
    const auto run = [&](Set gone) {
      const int64_t excess = needed - std::min(made, bytes_of(gone)) - limit_;
      find_droppable(set & ~gone & ~moves_[s].reads);
      drop(next, set & ~gone, 0, excess);
    };
    run(0);
    Set all = 0;
    for (const int32_t read : step.overwrites)
      if (!model_.values[static_cast<size_t>(read)].is_given) all |= bit(read);
    for (const Set gone : overwritten(step, all)) run(gone);
  }

  void find_droppable(Set set) {
    droppable_.clear();
    for (const Set value : largest_first_)
      if ((set & value) != 0) droppable_.push_back({value, bytes_of(value)});
    int64_t rest = 0;
    for (size_t i = droppable_.size(); i-- > 0;)
      droppable_[i].with_rest = rest += droppable_[i].bytes;
  }

  // Runs the step after each set of drops that makes it fit. The largest come first, so that none
  // of a set is to spare: without the last one it does not fit.
  void drop(const State& next, Set set, size_t first, int64_t excess) {
    ++looked_at_;
    if (excess <= 0) return reach(next, set | moves_[static_cast<size_t>(next.step)].makes);
    for (size_t i = first; i < droppable_.size() && droppable_[i].with_rest >= excess; ++i)
      drop(next, set & ~droppable_[i].value, i + 1, excess - droppable_[i].bytes);
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
      steps.push_back(state.step);
      set = state.from;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const RegionModel& model_;
  const int64_t limit_;
  Set goal_ = 0;
  std::vector<Move> moves_;
  std::vector<Set> largest_first_;  // The values that can be dropped.
  struct Droppable {
    Set value = 0;
    int64_t bytes = 0, with_rest = 0;  // With those that follow.
  };
  std::vector<Droppable> droppable_;  // For the step that is looked at.
  size_t looked_at_ = 0;              // Sets of drops.
  std::unordered_map<Set, State> states_;
  std::unordered_map<Set, Set> wanted_;  // By the results that are there.
  std::priority_queue<Queued, std::vector<Queued>, std::greater<>> queue_;
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
