// Finds the buffers that the forward pass saves for the backward pass: ByteClass::saved.
#include <algorithm>

#include "tidemark/layout/builder.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::compile {
namespace {

// This node, or a node in its regions, that is part of a gradient; null if there is none.
const Node* in_gradient(const Graph& graph, const Node& node) {
  if (node.gradient_of != nullptr) return &node;
  for (const RegionId id : node.regions) {
    for (const int32_t number : graph.regions[static_cast<size_t>(id)].nodes) {
      const Node* const found = in_gradient(graph, graph.nodes[static_cast<size_t>(number)]);
      if (found != nullptr) return found;
    }
  }
  return nullptr;
}

// For each input of a fusion group: the first gradient node that reads it, directly or through
// views; null if there is none.
std::vector<const Node*> gradients_in_group(const Graph& graph, const Node& group) {
  const Region& region = graph.regions[static_cast<size_t>(group.regions[0])];
  std::vector<const Node*> readers(region.parameters.size());
  std::vector<std::pair<Value, size_t>> shown;  // Inputs and views of them, each with the input.
  for (size_t i = 0; i < region.parameters.size(); ++i) shown.emplace_back(region.parameters[i], i);
  for (const int32_t number : region.nodes) {
    const Node& inner = graph.nodes[static_cast<size_t>(number)];
    const bool is_view = inner.gradient_of == nullptr && inner.op->view != nullptr;
    if (inner.gradient_of == nullptr && !is_view) continue;
    for (const Value value : inner.inputs) {
      const auto found = std::find_if(shown.begin(), shown.end(),
                                      [&](const auto& each) { return each.first == value; });
      if (found == shown.end()) continue;
      const size_t input = found->second;
      if (is_view)
        shown.emplace_back(Value{number, 0}, input);
      else if (readers[input] == nullptr)
        readers[input] = &inner;
    }
  }
  return readers;
}

}  // namespace

// A fusion group may end the forward pass and begin the backward pass, so each result is examined
// separately.
void LayoutBuilder::find_behind_in(const Node& group, int32_t number) {
  const Region& region = graph_.regions[static_cast<size_t>(group.regions[0])];
  for (size_t i = 0; i < region.parameters.size(); ++i)
    is_behind_[static_cast<size_t>(id(region.parameters[i]))] = is_behind(group.inputs[i]);
  for (const int32_t inner : region.nodes) {
    const Node& node = graph_.nodes[static_cast<size_t>(inner)];
    is_behind_[static_cast<size_t>(id({inner, 0}))] =
        node.gradient_of != nullptr || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                   [&](Value input) { return is_behind(input); });
  }
  for (size_t r = 0; r < region.results.size(); ++r)
    is_behind_[static_cast<size_t>(id({number, static_cast<int16_t>(r)}))] =
        is_behind(region.results[r]);
}

// Gradient nodes, and all nodes that depend on them, belong to the backward pass. Forward values
// that gradient nodes read are saved values. This runs before a node is added, since the node may
// overwrite its operands.
void LayoutBuilder::count_what_is_saved_for(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  is_behind_.resize(views_.size());
  const bool is_group = node.op->flow == Flow::group;
  const Node* const inside = is_group ? nullptr : in_gradient(graph_, node);
  if (is_group) {
    find_behind_in(node, number);
  } else {
    const bool behind =
        inside != nullptr || std::any_of(node.inputs.begin(), node.inputs.end(),
                                         [&](Value input) { return is_behind(input); });
    for (size_t r = 0; r < node.results.size(); ++r)
      is_behind_[static_cast<size_t>(id({number, static_cast<int16_t>(r)}))] = behind;
  }
  std::vector<const Node*> readers;
  if (is_group) readers = gradients_in_group(graph_, node);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value input = node.inputs[i];
    const int32_t held = is_constant(input) || is_behind(input) ? kNone : memory_of(root(input));
    if (held < 0) continue;
    // Nodes that depend on gradients, such as the step of an optimizer, do not count as readers.
    const Node* const reader = is_group ? readers[i] : inside;
    if (reader == nullptr) continue;
    for (const int32_t which : memory(held).buffers) {
      run::Buffer& buffer = program_->buffers[static_cast<size_t>(which)];
      if (buffer.byte_class == ByteClass::temporaries) buffer.byte_class = ByteClass::saved;
      if (buffer.byte_class != ByteClass::saved) continue;
      buffer.saved_for = reader->gradient_of->name;
      buffer.saved_at = reader->source;
    }
  }
}

}  // namespace tidemark::compile
