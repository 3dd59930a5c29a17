// Convolutions with few outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tidemark/emit/contract/contract.h"

namespace tidemark::contraction {

// Whether most lanes of a vector of outputs would be idle, and pixels can take their place.
bool has_few_outputs(const Convolution& convolution);

int64_t few_outputs_scratch_bytes(const Convolution& convolution, int threads);
void convolve_few_outputs(const Convolution& convolution, int threads, std::byte* scratch);

}  // namespace tidemark::contraction
