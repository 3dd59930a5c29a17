// The attributes of a loop and of its reversal, by name.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark {

struct LoopAttrs {
  // What a loop keeps of its trips for its gradient. As written by the user; where it is
  // differentiated, what was chosen.
  enum class Save : int64_t { automatic, all, every, slots, bytes };

  int64_t carries = 0, slices = 0, stacked = 0;
  Dim trips = 0;  // td::open: no bound is known.
  bool reverse = false, counted = false;
  Save save = Save::automatic;
  int64_t amount = 0;  // Trips, slots or bytes.
  int64_t saved = 0;   // The last of the stacked arrays: those that are there for the gradient.
  int64_t marks = 0;   // The number of that result; 0: there is none.
  int64_t kept = 0;    // A bit for each carry with checkpoints; -1: all of them.

  LoopAttrs() = default;
  explicit LoopAttrs(const Node& node);
  Attrs attrs() const;

  // The input that is the first carry: behind the number of trips where that is one.
  size_t first_carry() const { return counted ? 1 : 0; }
  std::vector<size_t> kept_carries() const;
  // The result that is this stacked array. Marks and checkpoints may stand among them.
  size_t stacked_result(size_t number) const;
  size_t first_checkpoint() const { return static_cast<size_t>(marks) + 1; }
};

// What one loop keeps for its gradient.
struct SaveChoice {
  LoopAttrs::Save save = LoopAttrs::Save::automatic;
  int64_t amount = 0;
  friend bool operator==(const SaveChoice&, const SaveChoice&) = default;
};

// Slots of the checkpoints that marks of this type are for; 0 where they are only a number of
// trips.
int64_t slots_of_marks(const TensorType& marks);

struct ReverseAttrs {
  int64_t carries = 0, backs = 0, slices = 0, stacked = 0;
  Dim trips = 0;
  bool reverse = false, counted = false;
  // For its own gradient: whether what goes back is linear in the backs and in the last `seeds` of
  // the slices, and what the loop was to keep.
  bool linear = false;
  int64_t seeds = 0;
  LoopAttrs::Save save = LoopAttrs::Save::automatic;
  int64_t amount = 0;

  ReverseAttrs() = default;
  explicit ReverseAttrs(const Node& node);
  Attrs attrs() const;
};

}  // namespace tidemark
