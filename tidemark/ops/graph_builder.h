// Builds nodes of a graph. The op types every node: the caller says what it computes, and never
// which type that has.
#pragma once

#include "tidemark/ir/graph.h"

namespace tidemark {

class GraphBuilder : public Builder {
 public:
  GraphBuilder(Graph& graph, RegionId region, Source at)
      : graph_(graph), region_(region), at_(at) {}

  Term term(Value value) { return {this, value}; }

  // The first result of the node it appends. Operands of a pointwise op are cast to the dtype that
  // they have together, as in a call. A UserError where the op does not take the operands.
  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override;
  Value constant(double number, const TensorType& type) override;
  const TensorType& type(Value value) const override { return graph_.type(value); }

  // One number of rank 0. `real` counts where the dtype is a float, else `whole`.
  Value literal(DType dtype, double real, int64_t whole);
  // A size as a number, i64: a literal, or what an open size is at the call.
  Value size(Dim size);

 private:
  Value apply_pointwise(const OpDef& op, std::span<const Value> operands);
  std::vector<TensorType> types_of(std::span<const Value> values) const;
  Value add(const OpDef& op, std::span<const Value> operands, const Attrs& attrs,
            std::vector<TensorType> results);

  Graph& graph_;
  const RegionId region_;
  const Source at_;
};

}  // namespace tidemark
