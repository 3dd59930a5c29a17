// Giving back Python's objects from threads that may not hold the GIL.
#pragma once

#include <functional>

namespace tidemark::python {

// Runs `release` now if this thread holds the GIL, else soon on the main thread: waiting for the
// GIL in the destructor of a tensor could wait for a thread that waits for this one.
void release_with_gil(std::function<void()> release);

}  // namespace tidemark::python
