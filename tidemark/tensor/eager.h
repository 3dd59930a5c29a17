// Eager execution: allocates or reuses memory and runs the kernel. Internal to the library.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/tensor/call.h"

namespace tidemark::detail {

// The result; empty for an op that has none. Neither traces nor tapes record the call.
Tensor run_now(const OpCall& call);

// The results whose bit is set in `wanted`; the others are empty.
std::vector<Tensor> run_results_now(const OpCall& call, uint32_t wanted);

}  // namespace tidemark::detail
