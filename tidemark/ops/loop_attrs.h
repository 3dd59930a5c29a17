// The attributes of `loop` and `reverse_loop`, by name.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark {

struct LoopAttrs {
  // What a loop stores of its trips for its gradient: the user's choice; once the loop is
  // differentiated, the choice that was made.
  enum class Save : int64_t { automatic, all, every, slots, bytes };

  int64_t carries = 0, slices = 0, stacked = 0;
  Dim trips = 0;  // td::open: no bound is known.
  bool reverse = false, counted = false;
  Save save = Save::automatic;
  int64_t amount = 0;  // Trips, slots or bytes.
  int64_t saved = 0;   // How many of the last stacked arrays are residuals of the gradient.
  int64_t marks = 0;   // The index of the result that holds the marks; 0: none does.
  int64_t kept = 0;    // A bit for each carry with checkpoints; -1: all of them.

  LoopAttrs() = default;
  explicit LoopAttrs(const Node& node);
  Attrs attrs() const;

  // The input that holds the first carry; input 0 is the number of trips if `counted`.
  size_t first_carry() const { return counted ? 1 : 0; }
  std::vector<size_t> kept_carries() const;
  // The result that holds this stacked array; marks and checkpoints may come before it.
  size_t stacked_result(size_t number) const;
  size_t first_checkpoint() const { return static_cast<size_t>(marks) + 1; }
};

// What one loop stores for its gradient.
struct SaveChoice {
  LoopAttrs::Save save = LoopAttrs::Save::automatic;
  int64_t amount = 0;
  friend bool operator==(const SaveChoice&, const SaveChoice&) = default;
};

// The number of checkpoint slots that marks of this type describe; 0 if they are only a number of
// trips.
int64_t slots_of_marks(const TensorType& marks);

// Whether the loop that a reverse_loop goes back over has a condition, so that it keeps checkpoints
// without knowing how many trips it will run.
bool keeps_online(const Graph& graph, const Node& reverse_loop);

struct ReverseAttrs {
  int64_t carries = 0, backs = 0, slices = 0, stacked = 0;
  Dim trips = 0;
  bool reverse = false, counted = false;
  // For the gradient of the reverse_loop itself: whether its backward region is linear in the backs
  // and in the last `seeds` slices, and what the loop was asked to save.
  bool linear = false;
  int64_t seeds = 0;
  LoopAttrs::Save save = LoopAttrs::Save::automatic;
  int64_t amount = 0;

  ReverseAttrs() = default;
  explicit ReverseAttrs(const Node& node);
  Attrs attrs() const;
};

}  // namespace tidemark
