// Products of the integers without tiles: sums wrap, so any order gives the same result.
#pragma once

#include "tidemark/emit/contract/contract.h"

namespace tidemark::contraction {

void contract_integers(const Contraction& contraction);
void convolve_integers(const Convolution& convolution);

}  // namespace tidemark::contraction
