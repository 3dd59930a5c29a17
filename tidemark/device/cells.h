// Visits every live tensor, for the growth detector.
#pragma once

#include "tidemark/device/storage.h"
#include "tidemark/device/threads.h"

namespace tidemark::device {

// Visits the cell of every tensor, view and borrowed memory. Exact while no other thread creates or
// releases tensors; otherwise a cell may be seen half changed. `visit` must not create tensors.
void for_each_cell(FunctionRef<void(const Cell&)> visit);

}  // namespace tidemark::device
