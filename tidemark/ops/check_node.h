// What a node must be before anybody trusts it.
//
// Rules of the catalogue take attributes as the api has checked them: an axis that exists, lists of
// the right length. What comes from outside (a file, a fuzzer) has met no such check; it is made
// here.
#pragma once

#include <vector>

#include "tidemark/ir/graph.h"

namespace tidemark {

// The types that the node's results must have. Throws UserError where its operands, attributes or
// regions are not what its op asks for. The node need not be in a region yet.
std::vector<TensorType> check_node(const Graph& graph, const Node& node);

// Throws UserError where a type has a negative size or more bytes than machines have.
void check_type(const TensorType& type);

}  // namespace tidemark
