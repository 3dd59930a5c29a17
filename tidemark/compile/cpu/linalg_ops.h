// Factorizations and solvers, and the workspace that they take.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

bool is_linalg(Routine routine);
int64_t linalg_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                         std::span<const ArrayRef> results);
void run_linalg(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                std::span<const ArrayRef> results);

}  // namespace tidemark::compile
