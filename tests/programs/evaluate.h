// What a program means: its nodes run one by one, as eager code would. Regions are run by the text
// of ops/program.h, and every op is held against the reference.
#pragma once

#include <vector>

#include "tidemark/api/tensor.h"
#include "tidemark/ir/graph.h"

namespace tidemark::testing {

// The results of the body. Throws what eager code throws (UserError, where an index is out of
// range), and InternalError where an op is further from the reference than it may be.
std::vector<Tensor> evaluate(const Graph& graph, const std::vector<Tensor>& arguments);

}  // namespace tidemark::testing
