// Which operands of a node its results can overwrite.
#pragma once

#include <algorithm>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::passes {

// A result of an elementwise node can overwrite an operand of the same shape and element size, at
// most one for each result. `holder_of` gives the number of what holds an operand's bytes, or -1 if
// these must stay; the numbers of those that can be overwritten are appended, each once.
template <class HolderOf, class List>
void find_overwritten(const Graph& graph, const Node& node, HolderOf holder_of, List& found) {
  if (node.op->family != Family::pointwise && node.op->flow != Flow::group) return;
  std::vector<bool> taken(node.results.size());
  for (const Value input : node.inputs) {
    const int32_t holder = holder_of(input);
    if (holder < 0 || std::find(found.begin(), found.end(), holder) != found.end()) continue;
    const TensorType& read = graph.type(input);
    for (size_t r = 0; r < taken.size(); ++r) {
      const TensorType& type = node.results[r];
      if (taken[r] || type.shape != read.shape || size_of(type.dtype) != size_of(read.dtype))
        continue;
      taken[r] = true;
      found.push_back(holder);
      break;
    }
  }
}

}  // namespace tidemark::passes
