// Convolutions with few channels in each group, and as many out. Vectors run along the channels,
// which are contiguous, and nothing is copied: the channels of a group are lanes of one vector.
#pragma once

#include "tidemark/emit/contract/contract.h"

namespace tidemark::contraction {

// The number of the size of its groups (tile.h), or -1.
int group_number(const Convolution& convolution);

// Whether the function below serves: the terms are one block of k, and the dtype has tiles.
bool is_depthwise(const Convolution& convolution);

// Needs no scratch.
void convolve_depthwise(const Convolution& convolution, int threads);

}  // namespace tidemark::contraction
