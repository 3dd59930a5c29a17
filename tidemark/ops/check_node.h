// Validation of a node that comes from outside: a file, a fuzzer.
//
// The rules of op definitions assume that the public API has validated the attributes: axes exist,
// lists have the right length. Nodes that do not come from the API are validated here.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark {

// The types that the node's results must have. Throws UserError if its operands, attributes or
// regions are invalid for its op. The node need not be in a region yet.
std::vector<TensorType> check_node(const Graph& graph, const Node& node);

// Throws UserError if a type has a negative size or more bytes than a machine can address.
void check_type(const TensorType& type);

}  // namespace tidemark
