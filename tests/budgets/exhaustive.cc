#include "tests/budgets/exhaustive.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark::testing {
namespace {

using Set = uint64_t;  // Of pebbles, or of values.

Set one(int number) { return Set{1} << number; }

template <class Visit>
void for_each(Set set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

// One search. States are sets of pebbles; an edge runs a step, after drops that it needs to fit.
//
// Whatever can follow a state can follow one that holds more. So drops are as late and as few as
// possible; and where only the existence of a schedule is asked for, a step that fits without any
// drop is the only one to try.
class Search {
 public:
  enum class For { least_work, existence };
  struct Limits {
    int64_t arena_bytes = 0;
    int64_t states = 0;
  };

  Search(const Game& game, const std::vector<Pebble>& pebbles, Limits limits, For aim)
      : game_(game), pebbles_(pebbles), limits_(limits), aim_(aim) {
    of_value_.resize(game.bytes.size());
    in_slot_.resize(game.results.size());
    for (size_t p = 0; p < pebbles.size(); ++p) {
      const Set self = one(static_cast<int>(p));
      of_value_[static_cast<size_t>(pebbles[p].value)] |= self;
      if (pebbles[p].slot == Pebble::kArena)
        in_arena_ |= self;
      else
        in_slot_[static_cast<size_t>(pebbles[p].slot)] |= self;
    }
    for (size_t k = 0; k < game.results.size(); ++k)
      finished_ |= of_value_[static_cast<size_t>(game.results[k])] & in_slot_[k];
  }

  std::optional<PebbleSchedule> run() {
    reach(0, {});
    while (!queue_.empty()) {
      const Set state = std::get<Set>(queue_.top());
      queue_.pop();
      Reached& reached = reached_.at(state);
      if (std::exchange(reached.is_visited, true)) continue;
      if (is_end(state)) return schedule_to(state);
      visit(state, reached.work);
    }
    return {};
  }

  int64_t states() const { return static_cast<int64_t>(reached_.size()); }

 private:
  struct Reached {
    int64_t work = 0;
    Set from = 0;
    Move move = {};
    bool is_visited = false;
  };
  // The places of the values that a step makes, as far as they are chosen.
  struct Placing {
    SmallVec<int, 4> pebbles = {};  // -1: a second copy, which is dropped at once.
    Set consumed = 0;               // Pebbles that are overwritten.
    int64_t new_bytes = 0;          // In the arena.
  };

  struct Drops {
    Set may_drop = 0;
    int64_t may_free = 0;  // The bytes of all of them.
    Set dropped = 0;
  };

  const Game::Step& step() const { return game_.steps[static_cast<size_t>(step_)]; }
  const Pebble& pebble(int number) const { return pebbles_[static_cast<size_t>(number)]; }
  int64_t bytes_of(int value) const { return game_.bytes[static_cast<size_t>(value)]; }
  Set pebbles_of(int value) const { return of_value_[static_cast<size_t>(value)]; }
  int64_t arena_bytes_of(Set pebbles) const {
    int64_t bytes = 0;
    for_each(pebbles & in_arena_, [&](int p) { bytes += bytes_of(pebble(p).value); });
    return bytes;
  }
  bool is_held(int value, Set state) const { return (pebbles_of(value) & state) != 0; }
  bool is_finished(size_t result, Set state) const {
    return (state & finished_ & in_slot_[result]) != 0;
  }
  bool is_end(Set state) const {
    return (state & finished_) == finished_ &&
           std::all_of(game_.held_at_end.begin(), game_.held_at_end.end(),
                       [&](int value) { return is_held(value, state); });
  }

  // ---- what is still wanted

  Set unfinished_results(Set state) const {
    Set values = 0;
    for (size_t k = 0; k < game_.results.size(); ++k)
      if (!is_finished(k, state)) values |= one(game_.results[k]);
    return values;
  }

  // Pebbles that an unfinished result depends on, and slots.
  Set wanted(Set state) {
    const auto [known, is_new] = wanted_.try_emplace(state & finished_, ~in_arena_);
    if (!is_new) return known->second;
    Set values = unfinished_results(state);
    for (const int value : game_.held_at_end) values |= one(value);
    for (auto step = game_.steps.rbegin(); step != game_.steps.rend(); ++step)
      for (const int made : step->makes)
        if ((values & one(made)) != 0)
          for (const int read : step->reads) values |= one(read);
    for_each(values, [&](int value) { known->second |= pebbles_of(value); });
    return known->second;
  }

  // The work of the steps that must run at least once from here on: those that make results that
  // are missing, and those that make what such steps read and is not held.
  int64_t least_work_from(Set state) const {
    Set missing = unfinished_results(state);
    const auto miss = [&](int value) {
      if (!is_held(value, state)) missing |= one(value);
    };
    for (const int value : game_.held_at_end) miss(value);
    int64_t work = 0;
    for (auto step = game_.steps.rbegin(); step != game_.steps.rend(); ++step) {
      const bool must_run = std::any_of(step->makes.begin(), step->makes.end(),
                                        [&](int made) { return (missing & one(made)) != 0; });
      if (!must_run) continue;
      work += step->work;
      for (const int read : step->reads) miss(read);
    }
    return work;
  }

  // ---- moves

  void visit(Set state, int64_t work) {
    from_ = state;
    work_ = work;
    SmallVec<int, 16> possible;
    for (step_ = 0; step_ < static_cast<int>(game_.steps.size()); ++step_) {
      if (!std::all_of(step().reads.begin(), step().reads.end(),
                       [&](int read) { return is_held(read, state); }))
        continue;
      if (aim_ == For::existence && runs_freely()) return;
      possible.push_back(step_);
    }
    for (const int each : possible) {
      step_ = each;
      place_results({});
    }
  }

  // Runs the step if that only adds pebbles: nothing is dropped or overwritten, and no slot is
  // taken that another value could use.
  bool runs_freely() {
    Placing placing;
    for (const int made : step().makes) {
      const Set all = pebbles_of(made), arena = all & in_arena_;
      if (arena == 0 && (all & from_) == 0) {
        placing.pebbles.push_back(std::countr_zero(all));
      } else {
        placing.pebbles.push_back((all & from_) != 0 ? -1 : std::countr_zero(arena));
        placing.new_bytes += bytes_of(made);
      }
    }
    if (excess_of(placing) > 0) return false;
    return run_step(placing, from_);
  }

  // Tries all places for the next value that the step makes.
  void place_results(const Placing& placing) {
    if (placing.pebbles.size() == step().makes.size()) return drop_and_run(placing);
    const int made = step().makes[placing.pebbles.size()];
    place_in_slots(placing, made);
    const Set arena = pebbles_of(made) & in_arena_;
    if (arena == 0 && !is_held(made, from_)) return;
    const int pebble = arena == 0 ? -1 : std::countr_zero(arena);
    Placing next = placing;
    next.pebbles.push_back(pebble);
    next.new_bytes += bytes_of(made);
    place_results(next);
    for (const Game::Overwrite& over : step().overwrites) {
      const Set read = pebbles_of(over.read) & in_arena_ & from_ & ~placing.consumed;
      if (over.made != made || read == 0) continue;
      next = placing;
      next.pebbles.push_back(pebble);
      next.consumed |= read;
      place_results(next);
    }
  }

  // In a slot that is empty, or over a value in it that the step reads.
  void place_in_slots(const Placing& placing, int made) {
    for_each(pebbles_of(made) & ~in_arena_ & ~from_, [&](int chosen) {
      const int slot = pebble(chosen).slot;
      const Set there = from_ & in_slot_[static_cast<size_t>(slot)] & ~placing.consumed;
      const auto is_overwritten = [&](const Game::Overwrite& over) {
        return over.made == made && (pebbles_of(over.read) & there) != 0;
      };
      const auto is_there = [&](int other) { return other >= 0 && pebble(other).slot == slot; };
      if (std::any_of(placing.pebbles.begin(), placing.pebbles.end(), is_there)) return;
      if (there != 0 &&
          std::none_of(step().overwrites.begin(), step().overwrites.end(), is_overwritten))
        return;
      Placing next = placing;
      next.pebbles.push_back(chosen);
      next.consumed |= there;
      place_results(next);
    });
  }

  int64_t excess_of(const Placing& placing) const {
    return arena_bytes_of(from_) + placing.new_bytes + step().workspace_bytes - limits_.arena_bytes;
  }

  void drop_and_run(const Placing& placing) {
    Set may_drop = from_ & in_arena_ & ~placing.consumed;
    for (const int read : step().reads)
      if ((pebbles_of(read) & from_ & ~in_arena_) == 0) may_drop &= ~pebbles_of(read);
    drop(placing, {.may_drop = may_drop, .may_free = arena_bytes_of(may_drop)}, excess_of(placing));
  }

  // Tries all sets of drops of which each is necessary.
  void drop(const Placing& placing, const Drops& drops, int64_t excess) {
    if (excess <= 0) {
      bool is_minimal = true;
      for_each(drops.dropped,
               [&](int p) { is_minimal = is_minimal && excess + bytes_of(pebble(p).value) > 0; });
      if (is_minimal) run_step(placing, from_ & ~drops.dropped);
      return;
    }
    if (drops.may_free < excess) return;
    const int next = std::countr_zero(drops.may_drop);
    const int64_t bytes = bytes_of(pebble(next).value);
    Drops rest{drops.may_drop & ~one(next), drops.may_free - bytes, drops.dropped};
    drop(placing, rest, excess);
    rest.dropped |= one(next);
    drop(placing, rest, excess - bytes);
  }

  // Whether that makes something.
  bool run_step(const Placing& placing, Set held) {
    Set made = 0;
    for (const int pebble : placing.pebbles)
      if (pebble >= 0) made |= one(pebble);
    Set after = (held & ~placing.consumed) | made;
    after &= wanted(after);
    if ((after & ~from_) == 0) return false;
    Reached reached{.work = work_ + step().work, .from = from_};
    reached.move = {.step = step_, .held = held};
    for (const int pebble : placing.pebbles)
      reached.move.placed.push_back(pebble >= 0 && (held & one(pebble)) != 0 ? -1 : pebble);
    reached.move.arena_bytes = arena_bytes_of(held) + placing.new_bytes + step().workspace_bytes;
    reach(after, reached);
    return true;
  }

  void reach(Set state, const Reached& reached) {
    const auto [known, is_new] = reached_.try_emplace(state, reached);
    if (!is_new) {
      if (aim_ == For::existence || known->second.work <= reached.work) return;
      known->second = reached;
    }
    if (states() > limits_.states) throw TooManyStates();
    const int64_t to_do = least_work_from(state);
    queue_.emplace(aim_ == For::existence ? to_do : reached.work + to_do, to_do, state);
  }

  // ---- the way back

  PebbleSchedule schedule_to(Set state) const {
    PebbleSchedule schedule{.held_at_end = state, .work = reached_.at(state).work};
    for (const Reached* at = &reached_.at(state); at->work > 0; at = &reached_.at(at->from))
      schedule.moves.push_back(at->move);
    std::reverse(schedule.moves.begin(), schedule.moves.end());
    int64_t arena_bytes = 0;
    for (const Move& move : schedule.moves) arena_bytes = std::max(arena_bytes, move.arena_bytes);
    schedule.peak_bytes = game_.result_bytes() + arena_bytes;
    return schedule;
  }

  const Game& game_;
  const std::vector<Pebble>& pebbles_;
  const Limits limits_;
  const For aim_;
  std::vector<Set> of_value_, in_slot_;
  Set in_arena_ = 0, finished_ = 0;
  std::unordered_map<Set, Reached> reached_;
  std::unordered_map<Set, Set> wanted_;  // By the results that are finished.
  // The least work that a schedule through the state can have, then that of its rest.
  using Queued = std::tuple<int64_t, int64_t, Set>;
  std::priority_queue<Queued, std::vector<Queued>, std::greater<>> queue_;
  // The move that is being made.
  Set from_ = 0;
  int64_t work_ = 0;
  int step_ = 0;
};

// The bytes of all possible pebbles in the arena at once are enough for every schedule.
int64_t bytes_of_everything(const Game& game) {
  int64_t bytes = 2 * std::accumulate(game.bytes.begin(), game.bytes.end(), int64_t{0});
  for (const Game::Step& step : game.steps) bytes += step.workspace_bytes;
  return bytes;
}

// All sums of sizes are multiples of it.
int64_t common_unit(const Game& game) {
  int64_t unit = 0;
  for (const int64_t bytes : game.bytes) unit = std::gcd(unit, bytes);
  for (const Game::Step& step : game.steps) unit = std::gcd(unit, step.workspace_bytes);
  return std::max<int64_t>(unit, 1);
}

}  // namespace

int64_t Game::result_bytes() const {
  int64_t total = copied_bytes;
  for (const int value : results) total += bytes[static_cast<size_t>(value)];
  return total;
}

Exhaustive::Exhaustive(Game game, int64_t most_states)
    : game_(std::move(game)), most_states_(most_states) {
  add_pebbles();
}

// A result whose slot holds nothing else is made there; other values may lie in the arena too.
void Exhaustive::add_pebbles() {
  const auto is_result = [&](int value) {
    return std::find(game_.results.begin(), game_.results.end(), value) != game_.results.end();
  };
  std::vector<Pebble> in_slots;
  std::vector<bool> needs_arena(game_.bytes.size(), true);
  for (size_t k = 0; k < game_.results.size(); ++k) {
    std::vector<int> chain = {game_.results[k]};  // What the slot can hold.
    for (size_t i = 0; i < chain.size(); ++i) {
      in_slots.push_back({chain[i], static_cast<int>(k)});
      for (const Game::Step& step : game_.steps)
        for (const Game::Overwrite& over : step.overwrites)
          if (over.made == chain[i] && !is_result(over.read) &&
              std::find(chain.begin(), chain.end(), over.read) == chain.end())
            chain.push_back(over.read);
    }
    needs_arena[static_cast<size_t>(game_.results[k])] = chain.size() > 1;
  }
  for (size_t v = 0; v < game_.bytes.size(); ++v)
    if (needs_arena[v]) pebbles_.push_back({static_cast<int>(v)});
  pebbles_.insert(pebbles_.end(), in_slots.begin(), in_slots.end());
  TIDEMARK_CHECK(pebbles_.size() <= 64, pebbles_.size(), " pebbles are more than 64");
}

std::optional<PebbleSchedule> Exhaustive::least_work(int64_t capacity_bytes) {
  Search search(game_, pebbles_, {capacity_bytes - game_.result_bytes(), most_states_},
                Search::For::least_work);
  std::optional<PebbleSchedule> found = search.run();
  states_ += search.states();
  return found;
}

std::optional<PebbleSchedule> Exhaustive::any_within(int64_t capacity_bytes) {
  Search search(game_, pebbles_, {capacity_bytes - game_.result_bytes(), most_states_},
                Search::For::existence);
  std::optional<PebbleSchedule> found = search.run();
  states_ += search.states();
  return found;
}

PebbleSchedule Exhaustive::least_peak() {
  const int64_t unit = common_unit(game_), results = game_.result_bytes();
  std::optional<PebbleSchedule> best = any_within(results + bytes_of_everything(game_));
  int64_t refused = -1, fits = (best->peak_bytes - results) / unit;  // In units of the arena.
  while (fits - refused > 1) {
    const int64_t middle = refused + (fits - refused) / 2;
    if (auto found = any_within(results + middle * unit)) {
      best = std::move(found);
      fits = (best->peak_bytes - results) / unit;
    } else {
      refused = middle;
    }
  }
  return *std::move(best);
}

}  // namespace tidemark::testing
