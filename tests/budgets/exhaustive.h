// The optimum that budgets are judged by: an exhaustive search over all schedules of a small
// program in which any step may run again.
//
// The program is a pebble game. A pebble is a value that is held in memory. A step may run if all
// values that it reads are held, and then holds the values that it makes; a value may be dropped at
// any time and made again later. The search visits sets of pebbles in the order of the work done so
// far, and so finds the least work within a number of bytes, and by bisection the least number of
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/types/small_vec.h"

namespace tidemark::testing {

struct Game {
  // A made value that may be written over a value that the step reads, if that is dropped there.
  struct Overwrite {
    int made = 0, read = 0;
  };
  struct Step {
    std::vector<int> reads = {};  // Values, each once.
    std::vector<int> makes = {};  // Values; no other step makes them.
    std::vector<Overwrite> overwrites = {};
    int64_t workspace_bytes = 0;  // While it runs.
    int64_t work = 1;
  };
  std::vector<int64_t> bytes = {};  // By value.
  std::vector<Step> steps = {};     // Every value is made before it is read.
  // Each result has a slot, whose bytes are there from the start. Before the result, a slot can
  // hold a value that the result overwrites, and before that one which this value overwrites.
  std::vector<int> results = {};
  std::vector<int> held_at_end = {};  // Values that are copied to results after the last step.
  int64_t copied_bytes = 0;           // Of these results.

  int64_t result_bytes() const;
};

// A value in the arena, or in the slot of a result.
struct Pebble {
  static constexpr int kArena = -1;
  int value = 0;
  int slot = kArena;  // An index into `results`.
};

struct Move {
  int step = 0;
  uint64_t held = 0;  // The pebbles that are held when it begins.
  // For each value that it makes: its pebble, or -1 if it is dropped at once.
  SmallVec<int, 4> placed = {};
  int64_t arena_bytes = 0;  // While it runs.
};

struct PebbleSchedule {
  std::vector<Move> moves = {};
  uint64_t held_at_end = 0;
  int64_t work = 0;
  int64_t peak_bytes = 0;  // The bytes of results included.
};

struct TooManyStates {};

class Exhaustive {
 public:
  // At most 64 pebbles. A search that would visit more states than this gives up: TooManyStates.
  explicit Exhaustive(Game game, int64_t most_states = int64_t{1} << 24);

  // The least work of a schedule within so many bytes, or nothing if there is none.
  std::optional<PebbleSchedule> least_work(int64_t capacity_bytes);
  // A schedule within so many bytes, or nothing if there is none.
  std::optional<PebbleSchedule> any_within(int64_t capacity_bytes);
  // A schedule with the least peak; its work may be more than needed.
  PebbleSchedule least_peak();

  const Game& game() const { return game_; }
  const std::vector<Pebble>& pebbles() const { return pebbles_; }
  // Sets of pebbles visited by all searches.
  int64_t states() const { return states_; }

 private:
  void add_pebbles();

  Game game_;
  std::vector<Pebble> pebbles_;
  int64_t most_states_, states_ = 0;
};

}  // namespace tidemark::testing
