// Copies that a kernel would read across rows: transposes and reversals.
#pragma once

#include <cstdint>

#include "tidemark/compile/frame.h"

namespace tidemark::compile {

// Copies buffer 0 of a frame to buffer 1, whose last axis is dense, if a routine does that better
// than a kernel; returns false if not. Needs no workspace.
bool copy_in_other_order(const Frame& frame, int64_t element_bytes);

}  // namespace tidemark::compile
