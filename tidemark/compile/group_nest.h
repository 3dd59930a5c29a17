// Writes the schedule of a fusion group as loop nests.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

// The content of one buffer of a group's nest.
struct GroupBuffer {
  enum class Kind : uint8_t { load, result, kept, cell } kind = Kind::load;
  // The number of the schedule's load, of the result, of the member or of the cell, by kind.
  int32_t index = 0;
  DType dtype = DType::f32;
  bool by_row = false;
};

struct GroupNest {
  Nest nest;  // Without the movement of buffers along columns, which the caller sets.
  std::vector<GroupBuffer> buffers;
  std::vector<uint64_t> scalars;
  std::vector<Monoid> monoids;  // One for each cell.
  std::vector<DType> cell_dtypes;
};

// Merges equal expressions and removes unused ones, so that equivalent nests are equal and share a
// kernel.
void tidy(Nest& nest);

// The whole group.
GroupNest group_nest(const Graph& graph, const passes::Schedule& schedule);

// The same in two parts, for a group of one sweep whose rows are cut into chunks. The first part
// stores the cells of a chunk; the second, which is pointwise over rows (and columns), continues
// from the combined cells.
GroupNest chunk_nest(const Graph& graph, const passes::Schedule& schedule);
GroupNest finish_nest(const Graph& graph, const passes::Schedule& schedule);

}  // namespace tidemark::compile
