// Random draws and ranges: routines that compute a result from a key or from numbers alone.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

// The routine of `op` is one of random_* or arange.
void run_draw(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
              const ArrayRef& result);

// The key of the data-th child of a random key.
uint64_t fold_key(uint64_t key, uint64_t data);

}  // namespace tidemark::compile
