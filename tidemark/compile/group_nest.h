// A schedule written as loop nests.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/passes/schedule.h"

namespace tidemark::compile {

// What a buffer of a group's nest holds.
struct GroupBuffer {
  enum class Kind : uint8_t { load, result, kept, cell } kind = Kind::load;
  int32_t index = 0;  // Of the schedule's loads; a result's number; a member; a cell.
  DType dtype = DType::f32;
  bool by_row = false;
};

struct GroupNest {
  Nest nest;  // How buffers move along columns is for the caller to say.
  std::vector<GroupBuffer> buffers;
  std::vector<uint64_t> scalars;
  std::vector<Monoid> monoids;  // Of each cell.
  std::vector<DType> cell_dtypes;
};

// The whole group.
GroupNest group_nest(const Graph& graph, const passes::Schedule& schedule);

// The same in two parts, for a group of one sweep whose rows are cut into chunks: the first stores
// the cells of a chunk; the second, pointwise over rows (and columns), goes on from whole cells.
GroupNest chunk_nest(const Graph& graph, const passes::Schedule& schedule);
GroupNest finish_nest(const Graph& graph, const passes::Schedule& schedule);

}  // namespace tidemark::compile
