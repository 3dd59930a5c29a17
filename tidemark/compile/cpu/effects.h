// Runs effect ops (prints and checks), for eager code and programs alike.
#pragma once

#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::compile {

// Throws a UserError if a check fails.
void run_effect(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs, Source at);

}  // namespace tidemark::compile
