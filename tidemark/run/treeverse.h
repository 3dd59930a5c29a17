// Which states of a loop are kept, so that it can be walked backwards in bounded memory.
//
// A trip of a loop starts from a state. Going back over trip t needs the state it started from;
// where that is not kept, trips are run again from the nearest checkpoint before it. With s slots,
// the state at the start among them, and n trips known, no schedule runs fewer trips again than
// this one: a stretch is cut where both parts can be walked back with as many repetitions as the
// whole (the binomial schedule). Where n is not known, checkpoints are thinned as the loop goes on;
// while n is at most (s + 1)(s + 2) / 2 that costs no more.
#pragma once

#include <cstdint>
#include <optional>

namespace tidemark::run {

// The trips to run, besides one for each trip gone back over, with so many slots.
int64_t fewest_advances(int64_t trips, int64_t slots);

// The same with a checkpoint each `every` trips and room for all states between two of them.
int64_t advances_every(int64_t trips, int64_t every);

// Where a stretch of trips is cut: its start is a checkpoint, one of the `slots` it has. From 1 up
// to trips - 1; needs 2 of both.
int64_t next_checkpoint(int64_t trips, int64_t slots);

// The checkpoints of a loop, in words that lie in memory somewhere: 2 for each slot. The state at
// the start is always one of them and has no row; row 0 is for a state on the way; rows 1 up to
// slots - 1 are for checkpoints.
class Marks {
 public:
  struct Mark {
    int64_t trip = 0;  // It is the state at the start of this trip.
    int64_t row = 0;
  };
  static constexpr int64_t kStart = -1;  // The row of the state at the start.

  Marks(int64_t* words, int64_t slots) : words_(words), slots_(slots) {}
  // No checkpoint yet.
  void clear();
  int64_t trips() const { return words_[0]; }
  void set_trips(int64_t trips) { words_[0] = trips; }
  int64_t used() const { return words_[1]; }
  int64_t free() const { return slots_ - 1 - used(); }
  int64_t slots() const { return slots_; }
  // By number, 0 up to used() - 1, as they follow each other in the loop.
  Mark mark(int64_t number) const { return {words_[2 + 2 * number], words_[3 + 2 * number]}; }
  // The last one; the start where there is none.
  Mark last() const { return used() == 0 ? Mark{0, kStart} : mark(used() - 1); }
  // Takes a free row for a state behind the last one; gives that row.
  int64_t push(int64_t trip);
  void pop() { --words_[1]; }
  void drop(int64_t number);

 private:
  int64_t* words_;  // Trips, marks in use, then trip and row of each mark; free rows come last.
  int64_t slots_;
};

// Says as a loop goes on which states to keep.
class Keeper {
 public:
  // `trips`: -1 where not known. `every`: 0, or a checkpoint each so many trips.
  Keeper(Marks marks, int64_t trips, int64_t every);
  // Called as each trip starts: the state to keep now, if any, and its row. It is that which the
  // trip starts from, or that of the trip before.
  std::optional<Marks::Mark> at_start_of(int64_t trip);

 private:
  void find_next();
  std::optional<Marks::Mark> before_start_of(int64_t trip);
  bool thin_out(int64_t state);

  Marks marks_;
  int64_t trips_, every_;
  int64_t next_ = -1;        // Where the number of trips is known.
  int64_t repetitions_ = 2;  // How often a trip may have to be run in all, else.
};

// What walking back does next: from a state that is kept, run some trips, then either keep the
// state reached or go back over the trip that starts from it.
struct ReverseMove {
  static constexpr int64_t kNoRow = -2;  // On the way: in no row that is kept.
  int64_t from = 0, from_row = 0;
  int64_t to = 0, to_row = kNoRow;
  bool goes_back = false;  // Over trip `to`.
};

class Reversal {
 public:
  // Row 0 holds the state that the last trip started from.
  explicit Reversal(Marks marks) : marks_(marks), left_(marks.trips()) {}
  // Nothing when all trips have been gone back over.
  std::optional<ReverseMove> next();

 private:
  ReverseMove go_back(ReverseMove move);

  Marks marks_;
  int64_t left_;  // Trips not yet gone back over.
  bool is_first_ = true;
};

}  // namespace tidemark::run
