// New offsets for new sizes, without planning again.
//
// A placement says of every two buffers that are alive together which one is below the other. Keep
// that, and forget the offsets: for any sizes, putting each buffer right above all that are below
// it is a valid placement, found in one pass. It is as good as the first one when all sizes grow
// alike, and mostly close when they do not; where it is not, plan in full.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// Which buffers lie directly below which. "Directly" is enough: whatever is below a buffer is below
// it through a chain of direct neighbours.
struct Relation {
  std::vector<int32_t> order;      // All buffers, each after those below it.
  std::vector<int32_t> starts;     // Of the k-th in `order`: below[starts[k], starts[k + 1]).
  std::vector<int32_t> below;      // Buffers, by index.
  std::vector<int64_t> alignment;  // Of the k-th in `order`.
};

// Of a valid placement. Throws UserError if a buffer has a fixed offset: it could not move.
Relation below_relation(const Problem& problem, const Placement& placement);

// Offsets for these sizes, one per buffer. The second form allocates nothing and gives the
// tidemark.
Placement resized(const Relation& relation, std::span<const int64_t> size_bytes);
int64_t resized(const Relation& relation, std::span<const int64_t> size_bytes,
                std::span<int64_t> offsets);

}  // namespace tidemark::plan
