#include "tidemark/run/treeverse.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tidemark/base/error.h"

namespace tidemark::run {
namespace {

constexpr int64_t kMany = int64_t{1} << 60;

// The number of trips that can be reversed with this many slots if each is repeated at most
// `repetitions` times: the binomial coefficient (slots + repetitions over slots), at most kMany.
int64_t reach(int64_t slots, int64_t repetitions) {
  if (repetitions < 0) return 0;
  int64_t value = 1;
  for (int64_t i = 1; i <= std::min(slots, repetitions); ++i) {
    const int64_t factor = std::max(slots, repetitions) + i;
    if (value > kMany / factor) return kMany;
    value = value * factor / i;
  }
  return value;
}

int64_t repetitions_for(int64_t trips, int64_t slots) {
  int64_t repetitions = 0;
  while (reach(slots, repetitions) < trips) ++repetitions;
  return repetitions;
}

}  // namespace

int64_t fewest_advances(int64_t trips, int64_t slots) {
  if (trips <= 1) return 0;
  if (slots == 1) return trips * (trips - 1) / 2;
  const int64_t repetitions = repetitions_for(trips, slots);
  return repetitions * trips - reach(slots + 1, repetitions - 1);
}

int64_t advances_every(int64_t trips, int64_t every) {
  if (trips <= 1) return 0;
  const int64_t stretches = (trips + every - 1) / every;
  const int64_t last = trips - (stretches - 1) * every;
  // The state that the last trip starts from is still there.
  return trips - 1 + (stretches - 1) * (every - 1) + std::max<int64_t>(0, last - 2);
}

int64_t repeated_trips(int64_t trips, int64_t slots, int64_t every) {
  if (trips <= 1) return 0;
  const int64_t all = every > 0 ? advances_every(trips, every)
                                : fewest_advances(trips, std::max<int64_t>(1, slots));
  return all - (trips - 1);
}

int64_t next_checkpoint(int64_t trips, int64_t slots) {
  TIDEMARK_CHECK(trips >= 2 && slots >= 2, trips, " trips, ", slots, " slots");
  const int64_t repetitions = repetitions_for(trips, slots);
  // The largest first part whose rest can be reversed with one slot less, and which needs no more
  // repetitions itself.
  const int64_t cut =
      std::min(reach(slots, repetitions - 1), trips - reach(slots - 1, repetitions - 1));
  return std::clamp<int64_t>(cut, 1, trips - 1);
}

// ---- marks --------------------------------------------------------------------------------------

void Marks::clear() {
  words_[0] = words_[1] = 0;
  for (int64_t i = 0; i + 1 < slots_; ++i) {
    words_[2 + 2 * i] = 0;
    words_[3 + 2 * i] = i + 1;
  }
}

int64_t Marks::push(int64_t trip) {
  const int64_t number = words_[1]++;
  words_[2 + 2 * number] = trip;
  return words_[3 + 2 * number];
}

void Marks::drop(int64_t number) {
  int64_t* const at = words_ + 2 + 2 * number;
  std::rotate(at, at + 2, words_ + 2 + 2 * used());
  pop();
}

// ---- forward ------------------------------------------------------------------------------------

Keeper::Keeper(Marks marks, int64_t trips, int64_t every)
    : marks_(marks), trips_(trips), every_(every) {
  marks_.clear();
  find_next();
}

void Keeper::find_next() {
  const int64_t at = marks_.last().trip;
  const bool more = every_ == 0 && trips_ - at >= 2 && marks_.free() > 0;
  next_ = more ? at + next_checkpoint(trips_ - at, marks_.free() + 1) : -1;
}

std::optional<Marks::Mark> Keeper::at_start_of(int64_t trip) {
  if (every_ > 0) {
    if (trip == 0 || trip % every_ != 0 || marks_.free() == 0) return {};
  } else if (trips_ >= 0) {
    if (trip != next_) return {};
  } else {
    return before_start_of(trip);
  }
  const int64_t row = marks_.push(trip);
  find_next();
  return Marks::Mark{trip, row};
}

// A state is kept one trip later, when it is clear that its trip was not the last: the state of the
// last trip needs no checkpoint.
std::optional<Marks::Mark> Keeper::before_start_of(int64_t trip) {
  const int64_t state = trip - 1;
  if (state < 1 || marks_.slots() == 1) return {};
  if (marks_.free() == 0 && !thin_out(state)) {
    if (state - marks_.last().trip < repetitions_) return {};
    do {
      ++repetitions_;
    } while (!thin_out(state));
  }
  return Marks::Mark{state, marks_.push(state)};
}

// Drops the first checkpoint between two ranges of trips that can be reversed as one. The last
// range ends at `state`.
bool Keeper::thin_out(int64_t state) {
  int64_t before = 0;
  for (int64_t i = 0; i < marks_.used(); ++i) {
    const int64_t end = i + 1 < marks_.used() ? marks_.mark(i + 1).trip : state;
    // When this range is reversed, the slots of all later checkpoints are free again.
    if (end - before <= reach(marks_.slots() - i, repetitions_ - 1)) {
      marks_.drop(i);
      return true;
    }
    before = marks_.mark(i).trip;
  }
  return false;
}

// ---- backward -----------------------------------------------------------------------------------

ReverseMove Reversal::go_back(ReverseMove move) {
  move.goes_back = true;
  left_ = move.to;
  if (marks_.used() > 0 && marks_.last().trip == left_) marks_.pop();
  return move;
}

std::optional<ReverseMove> Reversal::next() {
  if (left_ == 0) return {};
  if (std::exchange(is_first_, false))
    return go_back({.from = left_ - 1, .from_row = 0, .to = left_ - 1});
  const Marks::Mark last = marks_.last();
  ReverseMove move{.from = last.trip, .from_row = last.row};
  const int64_t trips = left_ - last.trip;
  if (trips == 1 || marks_.free() == 0) {
    move.to = left_ - 1;
    return go_back(move);
  }
  move.to = last.trip + next_checkpoint(trips, marks_.free() + 1);
  move.to_row = marks_.push(move.to);
  return move;
}

// ---- both ---------------------------------------------------------------------------------------

int64_t repeated_trips_online(int64_t trips, int64_t slots) {
  constexpr int64_t kMostWalked = int64_t{1} << 16;
  const bool is_optimal = trips <= (slots + 1) * (slots + 2) / 2;
  if (slots < 1 || is_optimal || trips > kMostWalked) return repeated_trips(trips, slots, 0);
  std::vector<int64_t> words(static_cast<size_t>(2 * slots));
  const Marks marks(words.data(), slots);
  Keeper keeper(marks, -1, 0);
  for (int64_t trip = 0; trip < trips; ++trip) keeper.at_start_of(trip);
  words[0] = trips;
  int64_t repeated = 0;
  Reversal reversal(marks);
  while (const auto move = reversal.next()) repeated += move->to - move->from;
  return repeated;
}

}  // namespace tidemark::run
