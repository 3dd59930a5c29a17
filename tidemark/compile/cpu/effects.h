// What effect ops do: the same in eager code and in programs.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

// Throws a UserError where a check fails.
void run_effect(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs, Source at);

}  // namespace tidemark::compile
