// The CPU's backend, which computes in the host's memory.
#pragma once

#include "tidemark/compile/backend.h"

namespace tidemark::compile {

// Makes kernels for this machine and runs them on the threads of this process. It may also be
// registered for another memory that the CPU can access while a task runs (device::Memory::run).
const Backend& cpu_backend();

}  // namespace tidemark::compile
