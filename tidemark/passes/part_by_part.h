// Puts a map, or a loop, over parts of an axis in the place of nodes that work part by part.
#pragma once

#include "tidemark/ir/graph.h"
#include "tidemark/passes/cut.h"

namespace tidemark::passes {

struct Parts {
  int64_t units = 1;  // Of a part; the last one may have fewer.
  int64_t all = 1;

  int64_t count() const { return all / units; }  // Of whole ones.
  int64_t rest() const { return all % units; }
};

// False where that would change the order of effects: then nothing is done.
bool compute_part_by_part(Graph& graph, const RegionFacts& facts, const Cut& cut,
                          const Parts& parts);

}  // namespace tidemark::passes
