// Calls that are carried out at once: bytes are taken or reused, kernels run. Internal to the
// library.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/tensor/call.h"

namespace tidemark::detail {

// The result; nothing of an op that has none. No trace and no tape hears of it.
Tensor run_now(const OpCall& call);

// Those results of an op with several whose bits `wanted` has; the others are nothing.
std::vector<Tensor> run_results_now(const OpCall& call, uint32_t wanted);

// The same elements one after another: the tensor itself where they are.
Tensor packed(const Tensor& tensor, Source at);

}  // namespace tidemark::detail
