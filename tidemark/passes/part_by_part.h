// Replaces the nodes of a cut by a map or a loop over the parts of an axis.
#pragma once

#include "tidemark/ir/graph.h"
#include "tidemark/passes/cut.h"

namespace tidemark::passes {

struct Parts {
  int64_t units = 1;  // The units of a part; the last part may have fewer.
  int64_t all = 1;
  // Whether a sum whose transpose is a result of the region is carried as that result, so that the
  // gradient does not exist twice. Every part transposes it twice.
  bool carries_results = false;

  int64_t count() const { return all / units; }  // Of whole ones.
  int64_t rest() const { return all % units; }
};

// `of` is the node that the control flow is named after: it has its line. Returns false, and
// changes nothing, if that would reorder effects.
bool compute_part_by_part(Graph& graph, const RegionFacts& facts, const CutSet& cut,
                          const Parts& parts, int32_t of);

}  // namespace tidemark::passes
