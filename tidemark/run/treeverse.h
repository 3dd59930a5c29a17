// Checkpoint schedules: which states of a loop to keep, so that its gradient can visit the trips in
// reverse order in bounded memory.
//
// The gradient of trip t needs the state that the trip started from. If that state was not kept,
// trips are repeated from the nearest checkpoint before it. There are s slots for states, one of
// them for the initial state. If the number of trips n is known, the binomial schedule is used,
// which repeats the fewest trips: it cuts a range of trips so that both parts need at most as many
// repetitions as the whole. If n is unknown, the loop drops checkpoints as it goes on; up to n = (s
// + 1)(s + 2) / 2 this repeats no more trips.
#pragma once

#include <cstdint>
#include <optional>

namespace tidemark::run {

// The fewest trips that must run with this many slots, before the gradient and for it. The
// gradient's own run of each trip is not counted.
int64_t fewest_advances(int64_t trips, int64_t slots);

// The same with one checkpoint per `every` trips, and slots for all states between two checkpoints.
int64_t advances_every(int64_t trips, int64_t every);

// The trips that the gradient repeats after the loop has run each of them once: with one checkpoint
// per `every` trips, or with this many slots if that is 0.
int64_t repeated_trips(int64_t trips, int64_t slots, int64_t every);

// The same with this many slots if the loop did not know how many trips it would run. Of more than
// 2^16 trips those of the binomial schedule, which are fewer.
int64_t repeated_trips_online(int64_t trips, int64_t slots);

// Where the binomial schedule puts the next checkpoint in a range of trips, counted from the start
// of the range, which is itself a checkpoint in one of the `slots`. Between 1 and trips - 1. Both
// arguments are at least 2.
int64_t next_checkpoint(int64_t trips, int64_t slots);

// The checkpoints of a loop, stored in the caller's memory as 2 words per slot. The initial state
// is always a checkpoint and has no row. Row 0 is scratch for the state being computed; rows 1 to
// slots - 1 hold checkpoints.
class Marks {
 public:
  struct Mark {
    int64_t trip = 0;  // The trip that starts from this state.
    int64_t row = 0;
  };
  static constexpr int64_t kStart = -1;  // Stands for the row of the initial state.

  Marks(int64_t* words, int64_t slots) : words_(words), slots_(slots) {}
  // Removes all checkpoints.
  void clear();
  int64_t trips() const { return words_[0]; }
  void set_trips(int64_t trips) { words_[0] = trips; }
  int64_t used() const { return words_[1]; }
  int64_t free() const { return slots_ - 1 - used(); }
  int64_t slots() const { return slots_; }
  // The checkpoint with this number, from 0 to used() - 1, in the order of the trips.
  Mark mark(int64_t number) const { return {words_[2 + 2 * number], words_[3 + 2 * number]}; }
  // The last checkpoint, or the initial state if there is none.
  Mark last() const { return used() == 0 ? Mark{0, kStart} : mark(used() - 1); }
  // Adds a checkpoint after the last one and returns its row.
  int64_t push(int64_t trip);
  void pop() { --words_[1]; }
  void drop(int64_t number);

 private:
  // The number of trips, of marks in use, then trip and row of each mark, then the free rows.
  int64_t* words_;
  int64_t slots_;
};

// Decides during the forward loop which states to keep.
class Keeper {
 public:
  // `trips` is -1 if unknown. `every` is 0, or keeps one checkpoint per so many trips.
  Keeper(Marks marks, int64_t trips, int64_t every);
  // Called at the start of each trip. Returns the state to keep now, if any, and its row: the one
  // that this trip starts from, or the one that the trip before started from.
  std::optional<Marks::Mark> at_start_of(int64_t trip);

 private:
  void find_next();
  std::optional<Marks::Mark> before_start_of(int64_t trip);
  bool thin_out(int64_t state);

  Marks marks_;
  int64_t trips_, every_;
  int64_t next_ = -1;        // The next trip to keep, if the number of trips is known.
  int64_t repetitions_ = 2;  // If it is not known: how often a trip may run in total.
};

// One move of the reverse pass: from a kept state, run trips [from, to). Then either keep the state
// that was reached, or compute the gradient of trip `to`.
struct ReverseMove {
  static constexpr int64_t kNoRow = -2;  // The state is in scratch memory, in no checkpoint's row.
  int64_t from = 0, from_row = 0;
  int64_t to = 0, to_row = kNoRow;
  bool goes_back = false;  // Compute the gradient of trip `to`.
};

class Reversal {
 public:
  // Row 0 must hold the state that the last trip started from.
  explicit Reversal(Marks marks) : marks_(marks), left_(marks.trips()) {}
  // Empty when the gradients of all trips are done.
  std::optional<ReverseMove> next();

 private:
  ReverseMove go_back(ReverseMove move);

  Marks marks_;
  int64_t left_;  // Trips whose gradient is not done.
  bool is_first_ = true;
};

}  // namespace tidemark::run
