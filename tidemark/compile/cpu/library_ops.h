// Ops with precompiled kernels: concat and padding, indexing, running sums, transforms, draws;
// contractions and linear algebra through contract_ops.h and linalg_ops.h.
#pragma once

#include <span>

#include "tidemark/loops/sampling.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

// Results are dense. An unused result has no data; ops with a single result always get it. A
// UserError (an index out of range) is thrown before anything is written.
void run_library(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at);

// The bytes of workspace it needs.
int64_t library_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                          std::span<const ArrayRef> results);

// Dense images, [n, h, w, c], with the bits of `resample` along the height and then along the
// width.
void run_resample_images(const ArrayRef& images, Sampling sampling, bool antialias,
                         const ArrayRef& result);

}  // namespace tidemark::compile
