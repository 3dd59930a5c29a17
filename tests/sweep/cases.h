// What the sweep runs: for every op of the catalogue a list of cases. Families whose call is known
// (pointwise, reductions, rows) need nothing but the definition; the others have a table of
// attributes each, found by the op's name.
#pragma once

#include <string>
#include <vector>

#include "tests/sweep/values.h"

namespace tidemark::sweep {

struct Case {
  const OpDef* op = nullptr;
  std::vector<Tensor> operands;
  Attrs attrs;
  std::string text;  // For people: dtypes, shapes, layouts.
  int result = 0;    // Which one is looked at, of an op that has several.
};

// Every case of an op; none where the sweep does not know how to call it.
std::vector<Case> cases_of(const OpDef& op);
// A few large ones, with work for several threads.
std::vector<Case> large_cases_of(const OpDef& op);
// In f64 and small, where the op is differentiable: for gradients.
std::vector<Case> smooth_cases_of(const OpDef& op);

// "matmul f32[2, 3] f32[3, 4] stepped"
std::string described(const Case& c);

// ---- running ------------------------------------------------------------------------------------

// As a user's call does it, by the tiny path where that applies.
Tensor run(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, int result = 0);
inline Tensor run_case(const Case& c) { return run(*c.op, c.operands, c.attrs, c.result); }
// By a kernel, whatever the size.
Tensor run_kernel(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                  int result = 0);
inline Tensor run_case_kernel(const Case& c) {
  return run_kernel(*c.op, c.operands, c.attrs, c.result);
}
// The truth, or nothing where the op has no reference (draws).
Tensor expected(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                int result = 0);

}  // namespace tidemark::sweep
