// Applies the gradient rules of ops. A rule is written on Terms: here they are values of a graph,
// on an eager tape they are tensors.
#pragma once

#include <span>
#include <vector>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/gradient/scope_builder.h"

namespace tidemark::passes {

// An application of an op as its gradient rule sees it.
struct RuleApplication {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Term> operands;
  std::span<const Term> results;
  Source at;
};
// The gradients by those operands that are wanted, given those of the results, of which all but one
// may be nothing; nothing where a rule gives none. A UserError where the op has no gradient.
std::vector<Term> apply_rule(const RuleApplication& application, std::vector<Term> gradients,
                             const std::vector<bool>& wanted);

// The same on values of a graph, for a node of `scope`: what the rule makes goes to `into`.
ScopedValues pull_back(RegionScope* scope, int32_t node, const ScopeBuilder& into,
                       const ScopedValues& gradients, const std::vector<bool>& wanted);

// What the rule reads by value for these operands, one bit each; the results have the bits behind
// the last operand. Found by running the rule once on a graph and removing dead nodes.
uint32_t read_by_rule(const OpDef& op, const Attrs& attrs, std::span<const TensorType> operands,
                      std::span<const TensorType> results, const std::vector<bool>& wanted);

// Whether the gradient by the first operand can stay the list of slices that the second names, as
// that of a looked-up Variable does.
bool gives_rows(const OpDef& op, const Attrs& attrs);

}  // namespace tidemark::passes
