// The CPU, which computes in the host's memory.
#pragma once

#include "tidemark/compile/backend.h"

namespace tidemark::compile {

// Kernels made for this machine, on the threads of this process. Other memories that the CPU can
// reach while a task runs (device::Memory::run) may register it too.
const Backend& cpu_backend();

}  // namespace tidemark::compile
