#include "tidemark/passes/residuals.h"

#include <algorithm>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

constexpr int kDeepest = 4;
// The longest chain of draws, each from the previous key, that is rematerialized.
constexpr int kFarthest = 64;

// Whether rematerializing costs nothing, or no more than reading the value.
bool is_made_again(const Node& node) {
  return node.op != nullptr && (node.op->view != nullptr || node.op->family == Family::random ||
                                node.op->family == Family::source);
}

}  // namespace

std::vector<bool> forward_nodes(const Graph& graph, const Region& region) {
  std::vector<bool> is_forward(graph.nodes.size(), true);
  for (const int32_t number : region.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    bool forward = node.gradient_of == nullptr;
    for (const Value input : node.inputs)
      forward = forward && is_forward[static_cast<size_t>(input.node)];
    is_forward[static_cast<size_t>(number)] = forward;
  }
  return is_forward;
}

bool is_converted_parameter(const Graph& graph, const Region& region, Value value) {
  const Node& node = graph.node(value);
  if (node.op == nullptr || node.op->self != &ops::cast) return false;
  Value from = node.inputs[0];
  while (graph.node(from).op != nullptr && graph.node(from).op->view != nullptr)
    from = graph.node(from).inputs[0];
  return is_float(graph.type(from).dtype) && is_float(graph.type(value).dtype) &&
         std::find(region.parameters.begin(), region.parameters.end(), from) !=
             region.parameters.end();
}

Residuals::Residuals(const Graph& graph, RegionId region, std::vector<bool> is_forward,
                     Rematerialize allowed)
    : graph_(graph), region_(region), is_forward_(std::move(is_forward)), allowed_(allowed) {
  const Region& all = graph.regions[static_cast<size_t>(region)];
  size_t values = 0;
  for (const Node& node : graph.nodes) {
    first_value_.push_back(values);
    values += node.results.size();
  }
  kept_.resize(values);
  firm_.resize(values);
  origin_.resize(graph.nodes.size());
  is_parameter_.resize(graph.nodes.size());
  for (const Value parameter : all.parameters)
    is_parameter_[static_cast<size_t>(parameter.node)] = true;
  for (const int32_t number : all.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->view != nullptr) origin_[static_cast<size_t>(number)] = origin(node.inputs[0]);
  }
  for (const int32_t number : all.nodes) {
    if (is_forward_[static_cast<size_t>(number)]) continue;
    if (allowed == Rematerialize::in_kernels)
      keep_for_others(graph.nodes[static_cast<size_t>(number)]);
  }
  for (const int32_t number : all.nodes) {
    if (is_forward_[static_cast<size_t>(number)]) continue;
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs) need(input);
  }
  for (const Value result : all.results) {
    need(result);
    if (has(result)) firm_[number(result)] = true;  // It is stored anyway.
  }
  drop_what_others_give();
  keep_narrower();
}

// Values that are read, possibly through views, by an op that is not elementwise.
void Residuals::keep_for_others(const Node& reader) {
  const Family family = reader.op->family;
  if (family == Family::pointwise || family == Family::reduce || family == Family::row ||
      reader.op->view != nullptr)
    return;
  for (Value value : reader.inputs) {
    value = origin(value);
    if (!is_forward_[static_cast<size_t>(value.node)] || is_parameter(value) ||
        is_made_again(graph_.node(value)) || is_converted(value))
      continue;
    firm_[number(value)] = true;
    keep(value);
  }
}

void Residuals::keep(Value value) {
  if (has(value)) return;
  kept_[number(value)] = true;
  list_.push_back(value);
}

void Residuals::need(Value value) {
  if (!is_forward_[static_cast<size_t>(value.node)] || costs_nothing(value)) return;
  value = origin(value);
  if (costs_nothing(value)) return;
  if (!is_made_again(graph_.node(value))) return keep(value);
  // A draw, whose key may be stored.
  for (const Value input : graph_.node(value).inputs)
    if (const Value key = origin(input); !costs_nothing(key)) keep(key);
}

// A value may have been requested before its inputs were: the latest are processed first.
void Residuals::drop_what_others_give() {
  std::vector<Value> latest = list_;
  std::sort(latest.begin(), latest.end(), [](Value a, Value b) { return a.node > b.node; });
  for (const Value value : latest) {
    if (firm_[number(value)]) continue;
    kept_[number(value)] = false;
    if (!costs_nothing(value)) kept_[number(value)] = true;
  }
  std::vector<bool> listed(kept_.size());
  std::erase_if(list_, [&](Value value) {
    if (!has(value) || listed[number(value)]) return true;
    listed[number(value)] = true;
    return false;
  });
}

bool Residuals::is_converted(Value value) const {
  return is_converted_parameter(graph_, graph_.regions[static_cast<size_t>(region_)], value);
}

int64_t Residuals::bytes(Value value) const { return known_bytes(graph_.type(value)); }

// Follows elementwise ops backwards from a value, the latest first, until one large value with
// fewer bytes is left. Visited values with at most a quarter of the elements come after it.
std::vector<Value> Residuals::narrower(Value kept) const {
  const auto is_large = [&](Value value) {
    return 4 * bytes(value) * size_of(graph_.type(kept).dtype) >
           bytes(kept) * size_of(graph_.type(value).dtype);
  };
  std::set<Key> large = {key(kept)}, small;
  for (int steps = 0, free = 0; steps <= kDeepest && free <= kFarthest && !large.empty();) {
    const Value value{large.rbegin()->first, large.rbegin()->second};
    const Node& node = graph_.node(value);
    const bool again = is_made_again(node);
    if (large.size() == 1 && !again && bytes(value) < bytes(kept)) {
      std::vector<Value> found = {value};
      for (const Key& each : small) found.push_back({each.first, each.second});
      return found;
    }
    if (is_parameter(value) || node.op == nullptr) break;
    if (!again && node.op->family != Family::pointwise) break;
    ++(again ? free : steps);
    large.erase(key(value));
    for (const Value input : node.inputs) (is_large(input) ? large : small).insert(key(input));
  }
  return {};
}

void Residuals::keep_narrower() {
  const std::vector<Value> kept = list_;
  for (auto each = kept.rbegin(); each != kept.rend(); ++each) {
    if (firm_[number(*each)]) continue;
    const std::vector<Value> others = narrower(*each);
    int64_t cost = 0;
    for (const Value other : others)
      if (!has(other) && !is_parameter(other)) cost += bytes(other);
    if (others.empty() || cost >= bytes(*each)) continue;
    kept_[number(*each)] = false;
    for (const Value other : others) need(other);
  }
  drop_what_others_give();
}

bool Residuals::costs_nothing(Value value) const {
  std::vector<Value> read;
  if (!is_made(value, 0, 0, read)) return false;
  if (allowed_ == Rematerialize::anywhere) return true;
  const auto elements = [&](Value each) {
    const Shape& shape = graph_.type(each).shape;
    return shape.is_open() ? 0 : shape.size();
  };
  const int64_t size = elements(value);
  return std::count_if(read.begin(), read.end(),
                       [&](Value each) { return 4 * elements(each) > size; }) <= 1;
}

bool Residuals::is_made(Value shown, int depth, int draws, std::vector<Value>& read) const {
  const Value value = origin(shown);
  const Node& node = graph_.node(value);
  if (is_parameter(value) || has(value)) {
    if (std::find(read.begin(), read.end(), value) == read.end()) read.push_back(value);
    return true;
  }
  if (node.op == nullptr) return false;
  if (is_made_again(node)) {
    if (draws == kFarthest) return false;
    ++draws;
  } else {
    if (node.op->family != Family::pointwise || depth == kDeepest) return false;
    ++depth;
  }
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value input) { return is_made(input, depth, draws, read); });
}

Value Residuals::origin(Value value) const {
  const Value found = origin_[static_cast<size_t>(value.node)];
  return found.node < 0 ? value : found;
}

}  // namespace tidemark::passes
