// Regions under construction, one inside another.
//
// Regions are closed: a value of an enclosing region becomes a parameter of every region in
// between. A literal or a view may be repeated there instead.
#pragma once

#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/ir/value_key.h"

namespace tidemark {

struct RegionScope {
  Graph* graph = nullptr;
  RegionScope* outer = nullptr;  // Null: the region is the body of the graph.
  RegionId region = Graph::kBody;
  // Values of the outer region that this region takes as parameters, in order.
  std::vector<Value> captured = {};
  // By value of the outer region: the parameter, or the copy, that stands for it here.
  std::map<ValueKey, Value> parameter_of = {};
};

// A new region inside another.
RegionScope inner_scope(RegionScope& outer);
bool is_inside(const RegionScope* scope, const RegionScope* outer);

// How literals and views of outer regions are passed in: repeated, or as parameters. A tape
// distinguishes values, so while one records, each is a separate parameter.
enum class Views : uint8_t { made_again, handed_in };

// A value of `owner`'s region in `scope`'s region, which is the same or is inside it.
Value handed_in(Value value, const RegionScope* owner, RegionScope* scope, Views views);

// Gives all regions the same captured values in the same order, after the parameters that each
// declares, and returns these values.
std::vector<Value> unify_captures(std::initializer_list<std::pair<RegionScope*, size_t>> scopes);

// Adds a node to a scope's region. Throws a UserError if it has more results than a node can have.
int32_t add_control(const RegionScope& scope, Node node, Source at);

}  // namespace tidemark
