// Replaces the open sizes of a graph by the numbers of one call.
#include "tidemark/base/error.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/ops/program.h"

namespace tidemark::compile {
namespace {

class AtSizes {
 public:
  AtSizes(const SizeTable& sizes, std::span<const int64_t> values)
      : sizes_(sizes), values_(values) {}

  void substitute(Node& node) const {
    if (node.op != nullptr && node.op->literal == Literal::size) {
      node.attrs = constant_of(node.attrs);
      node.op = &def_of(&ops::constant);
      return;
    }
    for (TensorType& type : node.results) {
      for (int64_t axis = 0; axis < type.shape.rank(); ++axis)
        type.shape.set(axis, known(type.shape[axis], node));
    }
    node.attrs.change_sizes([&](Dim size) { return known(size, node); });
  }

 private:
  // The number, rounded once to a float dtype. It is not the size of an array and may be negative.
  Attrs constant_of(const Attrs& attrs) const {
    Attrs::Reader read = attrs.read();
    const int64_t number = sizes_.value_of(read.size(), values_);
    const DType dtype = read.dtype();
    return Attrs()
        .add(dtype)
        .add(static_cast<double>(number))
        .add(is_float(dtype) ? int64_t{0} : number);
  }

  Dim known(Dim size, const Node& node) const {
    const Dim known = sizes_.at(size, values_);
    if (size.is_traced() && known.is_open())
      throw UserError(cat(node.op == nullptr ? "function" : node.op->name, ": a size is ",
                          written(known), " in this call: ", sizes_.text(size)),
                      node.source, "sizes go from 0 up: td::larger(size, 0) bounds one");
    return known;
  }

  const SizeTable& sizes_;
  std::span<const int64_t> values_;
};

}  // namespace

Graph at_sizes(const Graph& graph, const SizeTable& sizes, std::span<const int64_t> values) {
  Graph known{.name = graph.name, .nodes = {}, .regions = graph.regions};
  known.nodes.reserve(3 * graph.nodes.size());  // Passes add copies of nodes in groups.
  known.nodes.insert(known.nodes.end(), graph.nodes.begin(), graph.nodes.end());
  const AtSizes at(sizes, values);
  for (Node& node : known.nodes) at.substitute(node);
  return known;
}

}  // namespace tidemark::compile
