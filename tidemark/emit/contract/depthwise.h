// Convolutions with one channel in and one out of each group. Vectors run along the channels, which
// are contiguous, and nothing is copied.
#pragma once

#include "tidemark/emit/contract/contract.h"

namespace tidemark::contraction {

// Whether the functions below serve: the taps are one block of k, and the dtype has tiles.
bool is_depthwise(const Convolution& convolution);

// Needs no scratch.
void convolve_depthwise(const Convolution& convolution, int threads);

}  // namespace tidemark::contraction
