// The operators of td.Tensor, as slots of its class.
#pragma once

#include <vector>

#include "bindings.h"

namespace tidemark::python {

// Added to the slots of the class.
void add_operator_slots(std::vector<PyType_Slot>& slots);
void add_index_slots(std::vector<PyType_Slot>& slots);

}  // namespace tidemark::python
