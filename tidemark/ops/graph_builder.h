// Adds nodes to a graph. The type of every node comes from its op's definition, never from the
// caller.
#pragma once

#include "tidemark/ir/graph.h"

namespace tidemark {

class GraphBuilder : public Builder {
 public:
  GraphBuilder(Graph& graph, RegionId region, Source at)
      : graph_(graph), region_(region), at_(at) {}

  Term term(Value value) { return {this, value}; }

  // Appends a node and returns its first result. Operands of a pointwise op are cast to their
  // common dtype, as in a call. Throws UserError if the op does not accept the operands.
  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override;
  Value constant(double number, const TensorType& type) override;
  const TensorType& type(Value value) const override { return graph_.type(value); }

  // One number of rank 0. `real` counts where the dtype is a float, else `whole`.
  Value literal(DType dtype, double real, int64_t whole);
  // A size as a number, i64: a literal, or what an open size is at the call.
  Value size(Dim size);

 private:
  Value apply_pointwise(const OpDef& op, std::span<const Value> operands);
  Value apply_to_pairs(const OpDef& op, std::span<const Value> operands);
  std::vector<TensorType> types_of(std::span<const Value> values) const;
  Value add(const OpDef& op, std::span<const Value> operands, const Attrs& attrs,
            std::vector<TensorType> results);

  Graph& graph_;
  const RegionId region_;
  const Source at_;
};

}  // namespace tidemark
