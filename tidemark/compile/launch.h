// Running a kernel over a frame: splitting it for threads and for caches. Nothing here can change a
// bit, since pieces are cut only where the kernel's meaning is cut already.
#pragma once

#include <span>

#include "tidemark/compile/frame.h"
#include "tidemark/compile/kernels.h"

namespace tidemark::compile {

// A nest without cells. The frame's last axis are the columns.
void launch_pointwise(CachedKernel& kernel, const Frame& frame, std::span<const uint64_t> scalars);

// A nest with cells in the order of lanes: the last axis is folded; one result per index of the
// rest.
void launch_lanes(CachedKernel& kernel, const Frame& frame);

// The columns one thread takes at a time: 4 KiB of each row of f32.
inline constexpr int64_t kColumnBlock = 1024;

// A nest with cells in the order of columns: the last axis are the columns, the one before is
// folded.
void launch_columns(CachedKernel& kernel, const Frame& frame);

}  // namespace tidemark::compile
