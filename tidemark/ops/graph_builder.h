// Builds nodes of a graph. Every node is typed by its op: whoever adds one says what it computes,
// and never what type that has.
#pragma once

#include "tidemark/ir/graph.h"

namespace tidemark {

class GraphBuilder : public Builder {
 public:
  GraphBuilder(Graph& graph, RegionId region, Source at)
      : graph_(graph), region_(region), at_(at) {}

  Term term(Value value) { return {this, value}; }

  // The first result of the node it appends. A UserError where the op does not take the operands.
  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override;
  Value constant(double number, const TensorType& type) override;
  const TensorType& type(Value value) const override { return graph_.type(value); }

 private:
  Graph& graph_;
  const RegionId region_;
  const Source at_;
};

}  // namespace tidemark
