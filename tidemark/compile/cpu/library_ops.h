// Ops whose kernels are precompiled: pieces, indexing, running sums, contractions, draws.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

// Results are dense. One that nobody wants has no data; ops with one result are always given it. A
// UserError (an index out of range) comes before anything is written.
void run_library(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at);

// What it takes while it runs, beside its operands and results.
int64_t library_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                          std::span<const ArrayRef> results);

}  // namespace tidemark::compile
