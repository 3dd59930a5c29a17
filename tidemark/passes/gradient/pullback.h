// Applies the gradient rules of ops. A rule is written on Terms: here they are values of a graph,
// on an eager tape they are tensors.
#pragma once

#include <span>
#include <vector>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/gradient/scope_builder.h"

namespace tidemark::passes {

// A call of an op as its gradient rule sees it.
struct RuleApplication {
  const OpDef& op;
  const Attrs& attrs;
  std::span<const Term> operands;
  std::span<const Term> results;
  Source at;
};
// The gradients of the wanted operands, given those of the results, of which all but one may be
// empty. An element is empty if the rule gives no gradient. Throws a UserError if the op is not
// differentiable.
std::vector<Term> apply_rule(const RuleApplication& application, std::vector<Term> gradients,
                             const std::vector<bool>& wanted);

// The same for a node of `scope`; the nodes of the gradient are added to `into`.
ScopedValues pull_back(RegionScope* scope, int32_t node, const ScopeBuilder& into,
                       const ScopedValues& gradients, const std::vector<bool>& wanted);

// A rule for certain operands: found by running it once on a graph and removing dead nodes.
struct RuleForm {
  uint32_t read = 0;  // The values that it reads: a bit for each operand, then for each result.
  // Whether it is a chain of several elementwise ops and sums: passes over memory that a program
  // would make one of.
  bool is_chain = false;
};
RuleForm form_of_rule(const OpDef& op, const Attrs& attrs, std::span<const TensorType> operands,
                      std::span<const TensorType> results, const std::vector<bool>& wanted);

// Whether the gradient of the first operand may stay row-sparse, with rows at the indices of the
// second operand.
bool gives_rows(const OpDef& op, const Attrs& attrs);

}  // namespace tidemark::passes
