// Which buffers hold what the way to a result leaves for its gradient: the class `saved`.
#include "tidemark/compile/lowerer.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::compile {
namespace {

// A node that is part of a gradient: this one or one inside it, if possible one that reads the
// input. Null where there is none.
const Node* in_gradient(const Graph& graph, const Node& node, size_t input) {
  if (node.gradient_of != nullptr) return &node;
  const Node* any = nullptr;
  for (const RegionId id : node.regions) {
    const Region& region = graph.regions[static_cast<size_t>(id)];
    for (const int32_t number : region.nodes) {
      const Node& inner = graph.nodes[static_cast<size_t>(number)];
      const Node* const found = in_gradient(graph, inner, SIZE_MAX);
      if (found == nullptr) continue;
      any = found;
      for (const Value read : inner.inputs)
        if (input < region.parameters.size() && read == region.parameters[input]) return found;
    }
  }
  return any;
}

}  // namespace

// A gradient's nodes, and all that is computed of them, come behind the way to the result. What
// they read of that way was kept for them. Asked before a node is emitted: it may then work in
// place of what it reads.
void Lowerer::count_what_is_saved_for(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  is_behind_.resize(graph_.nodes.size());
  bool behind = in_gradient(graph_, node, 0) != nullptr;
  for (const Value input : node.inputs) behind |= is_behind_[static_cast<size_t>(input.node)];
  is_behind_[static_cast<size_t>(number)] = behind;
  for (size_t i = 0; i < node.inputs.size() && behind; ++i) {
    const Value input = node.inputs[i];
    const int32_t held = is_constant(input) ? kNone : memory_of(root(input));
    if (is_behind_[static_cast<size_t>(input.node)] || held < 0) continue;
    const Node* const reader = in_gradient(graph_, node, i);
    for (const int32_t which : memory(held).buffers) {
      run::Buffer& buffer = program_->buffers[static_cast<size_t>(which)];
      if (buffer.byte_class == ByteClass::temporaries) buffer.byte_class = ByteClass::saved;
      if (buffer.byte_class != ByteClass::saved || reader == nullptr) continue;
      buffer.saved_for = reader->gradient_of->name;
      buffer.saved_at = reader->source;
    }
  }
}

}  // namespace tidemark::compile
