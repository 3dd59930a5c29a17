#include "tidemark/compile/pipeline.h"
#include "tidemark/ops/program.h"

namespace tidemark::compile {
namespace {

// The size, rounded once to a float dtype.
Attrs constant_of(const Attrs& known) {
  Attrs::Reader read = known.read();
  const int64_t size = read.size();
  const DType dtype = read.dtype();
  return Attrs().add(dtype).add(static_cast<double>(size)).add(is_float(dtype) ? int64_t{0} : size);
}

}  // namespace

Graph at_sizes(const Graph& graph, const SizeTable& sizes, std::span<const int64_t> values) {
  Graph known = graph;
  for (Node& node : known.nodes) {
    for (TensorType& type : node.results) {
      for (int64_t axis = 0; axis < type.shape.rank(); ++axis)
        type.shape.set(axis, sizes.at(type.shape[axis], values));
    }
    if (node.op == nullptr) continue;
    node.attrs.change_sizes([&](Dim size) { return sizes.at(size, values); });
    if (node.op->self == &ops::size_value) {
      node.attrs = constant_of(node.attrs);
      node.op = &def_of(&ops::constant);
    }
  }
  return known;
}

}  // namespace tidemark::compile
