#include "tidemark/function/in_bf16.h"

#include "tidemark/base/error.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/text/text.h"

namespace tidemark::detail {
namespace {

DType narrowed(DType dtype) { return dtype == DType::f32 ? DType::bf16 : dtype; }

Attrs narrowed(const Node& node) {
  Attrs made;
  Attrs::Reader read = node.attrs.read();
  for (const AttrDef& each : node.op->attrs) {
    switch (each.kind) {
      case AttrKind::dtype:
        made.add(narrowed(read.dtype()));
        break;
      case AttrKind::integers:
      case AttrKind::text:
        made.add(read.integers());
        break;
      case AttrKind::size:
        made.add(read.size());
        break;
      case AttrKind::sizes:
        made.add(read.sizes());
        break;
      default:
        made.add(read.integer());
    }
  }
  return made;
}

}  // namespace

std::optional<Graph> in_bf16(Graph graph) try {
  bool is_changed = false;
  for (Node& node : graph.nodes) {
    if (node.op != nullptr) node.attrs = narrowed(node);
    for (TensorType& type : node.results) {
      is_changed = is_changed || type.dtype == DType::f32;
      type.dtype = narrowed(type.dtype);
    }
  }
  if (!is_changed) return {};
  parse_graph(to_text(graph), "bf16");  // Which checks the types of all nodes.
  return graph;
} catch (const UserError&) {
  return {};
}

}  // namespace tidemark::detail
