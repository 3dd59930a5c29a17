// Matrix products and convolutions of arrays, and the workspace that they take.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

// With `add`, the product is added to the result.
int64_t matmul_workspace(std::span<const ArrayRef> operands, const ArrayRef& result,
                         bool add = false);
void run_matmul(std::span<const ArrayRef> operands, const ArrayRef& result, bool add = false);
// Of the rows of the first operand from the columns of the second.
int64_t distances_workspace(std::span<const ArrayRef> operands, const ArrayRef& result);
void run_distances(std::span<const ArrayRef> operands, const ArrayRef& result);
// The first operand plus the product of the others; in place if the result has its bytes.
void run_accumulate(std::span<const ArrayRef> operands, const ArrayRef& result);

int64_t conv_workspace(std::span<const ArrayRef> operands, const Attrs& attrs,
                       const ArrayRef& result);
void run_conv(std::span<const ArrayRef> operands, const Attrs& attrs, const ArrayRef& result);
// As run_accumulate, of a convolution that adds up channel by channel.
void run_accumulate_conv2d(std::span<const ArrayRef> operands, const Attrs& attrs,
                           const ArrayRef& result);

}  // namespace tidemark::compile
