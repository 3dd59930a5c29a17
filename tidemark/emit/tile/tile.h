// Loop nests run by a precompiled vector interpreter: ready at once, a few times slower than
// compiled code, with the same bits.
#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/kernel.h"
#include "tidemark/emit/tile/tile_function.h"
#include "tidemark/loops/nest.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark {

// A kernel that evaluates the nest a block of elements at a time, each op by one instruction. With
// args.extents set it checks every access, and throws InternalError at one that leaves its buffer.
std::unique_ptr<Kernel> make_tile_kernel(const Nest& nest);
std::unique_ptr<Kernel> make_tile_kernel(const Nest& nest, device::Isa isa);

// A loop on few numbers, the same way.
std::unique_ptr<Kernel> make_tile_recurrence(const Recurrence& recurrence, device::Isa isa);

}  // namespace tidemark
