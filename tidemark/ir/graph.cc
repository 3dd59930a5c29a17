#include "tidemark/ir/graph.h"

#include <algorithm>
#include <unordered_map>

#include "tidemark/base/error.h"

namespace tidemark {

Value Graph::add_parameter(RegionId region, const TensorType& type, Source at) {
  const auto number = static_cast<int32_t>(nodes.size());
  Node node;
  node.results.push_back(type);
  node.source = at;
  nodes.push_back(std::move(node));
  const Value value{number, 0};
  regions[static_cast<size_t>(region)].parameters.push_back(value);
  return value;
}

int32_t Graph::add_node(RegionId region, Node node) {
  const auto number = static_cast<int32_t>(nodes.size());
  nodes.push_back(std::move(node));
  regions[static_cast<size_t>(region)].nodes.push_back(number);
  return number;
}

Value Graph::add(RegionId region, const OpDef& op, std::span<const Value> inputs,
                 const Attrs& attrs, const TensorType& type, Source at) {
  Node node;
  node.op = &op;
  node.attrs = attrs;
  node.inputs = SmallVec<Value, 3>(inputs);
  node.results.push_back(type);
  node.source = at;
  return {add_node(region, std::move(node)), 0};
}

RegionId Graph::add_region() {
  regions.emplace_back();
  return static_cast<RegionId>(regions.size() - 1);
}

namespace {

// Copies regions depth first.
class Compactor {
 public:
  explicit Compactor(Graph&& from) : from_(std::move(from)), number_(from_.nodes.size(), -1) {}

  Graph run() {
    to_.name = from_.name;
    size_t listed = 0;
    for (const Region& region : from_.regions)
      listed += region.parameters.size() + region.nodes.size();
    to_.nodes.reserve(listed);
    to_.regions.reserve(from_.regions.size());
    copy(Graph::kBody, Graph::kBody);
    return std::move(to_);
  }

 private:
  Value moved(Value value) const {
    return {number_[static_cast<size_t>(value.node)], value.result};
  }
  void copy(RegionId source, RegionId target) {
    const Region& region = from_.regions[static_cast<size_t>(source)];
    reserve(target, region);
    for (const Value parameter : region.parameters) {
      number_[static_cast<size_t>(parameter.node)] =
          to_.add_parameter(target, from_.type(parameter), from_.node(parameter).source).node;
    }
    for (const int32_t old : region.nodes) {
      Node& node = from_.nodes[static_cast<size_t>(old)];
      for (Value& input : node.inputs) input = moved(input);
      // Regions first: a node gets its number after the nodes it contains.
      for (RegionId& inner : node.regions) {
        const RegionId fresh = to_.add_region();
        copy(inner, fresh);
        inner = fresh;
      }
      number_[static_cast<size_t>(old)] = static_cast<int32_t>(to_.nodes.size());
      to_.regions[static_cast<size_t>(target)].nodes.push_back(number_[static_cast<size_t>(old)]);
      to_.nodes.push_back(std::move(node));
    }
    for (const Value result : region.results)
      to_.regions[static_cast<size_t>(target)].results.push_back(moved(result));
  }
  void reserve(RegionId target, const Region& like) {
    Region& region = to_.regions[static_cast<size_t>(target)];
    region.parameters.reserve(like.parameters.size());
    region.nodes.reserve(like.nodes.size());
    region.results.reserve(like.results.size());
  }

  Graph from_;
  Graph to_;
  std::vector<int32_t> number_;
};

// Copies regions. Both graphs may be the same one, so nodes are taken by value: adding a node may
// move all others.
class Appender {
 public:
  Appender(const Graph& from, Graph& to, bool (*leave_out)(const Node& node))
      : from_(from), to_(to), leave_out_(leave_out) {}

  std::vector<Value> append(RegionId id, RegionId into, std::span<const Value> parameters) {
    const Region region = from_.regions[static_cast<size_t>(id)];
    for (size_t i = 0; i < parameters.size(); ++i) map_[region.parameters[i].node] = parameters[i];
    for (const int32_t old : region.nodes) {
      Node node = from_.nodes[static_cast<size_t>(old)];
      if (leave_out_(node)) continue;
      for (Value& input : node.inputs) input = moved(input);
      for (RegionId& inner : node.regions) inner = copy(inner);
      map_[old] = {to_.add_node(into, std::move(node)), 0};
    }
    std::vector<Value> results;
    for (const Value result : region.results) results.push_back(moved(result));
    return results;
  }

  RegionId copy(RegionId id) {
    const RegionId fresh = to_.add_region();
    const std::vector<Value> old = from_.regions[static_cast<size_t>(id)].parameters;
    std::vector<Value> parameters;
    for (const Value each : old)
      parameters.push_back(
          to_.add_parameter(fresh, TensorType(from_.type(each)), from_.node(each).source));
    const std::vector<Value> results = append(id, fresh, parameters);
    to_.regions[static_cast<size_t>(fresh)].results = results;
    return fresh;
  }

 private:
  Value moved(Value value) const {
    const Value first = map_.at(value.node);
    return {first.node, static_cast<int16_t>(first.result + value.result)};
  }

  const Graph& from_;
  Graph& to_;
  bool (*leave_out_)(const Node& node);
  std::unordered_map<int32_t, Value> map_;
};

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), region_of_(graph.nodes.size(), -1), owned_(graph.regions.size()) {}
  void run() { visit(Graph::kBody); }

 private:
  void read(Value value, RegionId region) const {
    TIDEMARK_CHECK(value.node >= 0 && value.node < static_cast<int32_t>(graph_.nodes.size()),
                   "value of node ", value.node, ", of ", graph_.nodes.size());
    TIDEMARK_CHECK(region_of_[static_cast<size_t>(value.node)] == region, "node ", value.node,
                   " is read in region ", region, " before it is made there");
    TIDEMARK_CHECK(
        value.result >= 0 && value.result < static_cast<int64_t>(graph_.node(value).results.size()),
        "node ", value.node, " has no result ", value.result);
  }
  void claim(int32_t node, RegionId region) {
    TIDEMARK_CHECK(region_of_[static_cast<size_t>(node)] < 0, "node ", node, " is listed twice");
    region_of_[static_cast<size_t>(node)] = region;
  }
  void visit(RegionId id) {
    TIDEMARK_CHECK(id >= 0 && id < static_cast<RegionId>(graph_.regions.size()), "region ", id);
    TIDEMARK_CHECK(!owned_[static_cast<size_t>(id)], "two nodes share region ", id);
    owned_[static_cast<size_t>(id)] = true;
    const Region& region = graph_.regions[static_cast<size_t>(id)];
    for (const Value parameter : region.parameters) claim(parameter.node, id);
    for (const int32_t number : region.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      TIDEMARK_CHECK(node.op != nullptr, "node ", number, " has no op");
      for (const Value input : node.inputs) read(input, id);
      for (const RegionId inner : node.regions) visit(inner);
      claim(number, id);
    }
    for (const Value result : region.results) read(result, id);
  }

  const Graph& graph_;
  std::vector<RegionId> region_of_;
  std::vector<bool> owned_;  // By region.
};

}  // namespace

Graph compact(Graph graph) {
  verify(graph);
  return Compactor(std::move(graph)).run();
}

RegionId copy_region(Graph& graph, RegionId region, bool (*leave_out)(const Node& node)) {
  return Appender(graph, graph, leave_out).copy(region);
}

std::vector<Value> append_copy(const Graph& from, RegionId region, Graph& to, RegionId into,
                               std::span<const Value> parameters,
                               bool (*leave_out)(const Node& node)) {
  return Appender(from, to, leave_out).append(region, into, parameters);
}

std::vector<int32_t> count_uses(const Graph& graph) {
  std::vector<int32_t> uses(graph.nodes.size());
  for (const Region& region : graph.regions) {
    for (const int32_t number : region.nodes) {
      for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs)
        ++uses[static_cast<size_t>(input.node)];
    }
    for (const Value result : region.results) ++uses[static_cast<size_t>(result.node)];
  }
  return uses;
}

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace tidemark
