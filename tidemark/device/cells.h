// Every tensor there is, for whoever looks for what grows.
#pragma once

#include "tidemark/device/storage.h"
#include "tidemark/device/threads.h"

namespace tidemark::device {

// Visits the cell of every tensor, view and borrowed memory. Exact while no other thread makes
// tensors or lets them go; what another does meanwhile may be seen half done. `visit` may make
// no tensor.
void for_each_cell(FunctionRef<void(const Cell&)> visit);

}  // namespace tidemark::device
