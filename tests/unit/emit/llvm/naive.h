// What a nest means, as the plainest loops that say so: one element at a time, every value of an
// expression computed anew. Shares the elementary functions (`loops/math.h`) and nothing else with
// what it tests.
#pragma once

#include "tidemark/device/kernel.h"
#include "tidemark/loops/nest.h"

namespace tidemark::naive {

void run(const Nest& nest, const KernelArgs& args);

}  // namespace tidemark::naive
