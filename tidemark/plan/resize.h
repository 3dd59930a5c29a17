// New offsets for new sizes, without planning again.
//
// A placement defines, for every two buffers that are alive together, which one is below the other.
// This relation is kept and the offsets are dropped: for any sizes, putting each buffer right above
// all that are below it is a valid placement, found in one pass. If all sizes grow alike it is as
// good as the original, and otherwise mostly close; if it is not, plan again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// The buffers directly below each buffer. Direct neighbours are enough: every buffer below another
// is connected to it by a chain of them.
struct Relation {
  std::vector<int32_t> order;      // All buffers, each after those below it.
  std::vector<int32_t> starts;     // Of the k-th in `order`: below[starts[k], starts[k + 1]).
  std::vector<int32_t> below;      // Buffers, by index.
  std::vector<int64_t> alignment;  // Of the k-th in `order`.
};

// The relation of a valid placement. Throws UserError if a buffer has a fixed offset, since it
// could not move.
Relation below_relation(const Problem& problem, const Placement& placement);

// Offsets for these sizes, one per buffer. The second form allocates nothing and returns the
// tidemark.
Placement resized(const Relation& relation, std::span<const int64_t> size_bytes);
int64_t resized(const Relation& relation, std::span<const int64_t> size_bytes,
                std::span<int64_t> offsets);

}  // namespace tidemark::plan
