// Copies between a strided block of a buffer and a register, whose elements are contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tidemark/device/kernel.h"

namespace tidemark::tile {

// Rows x steps x columns of elements; strides are in bytes, of either sign or zero.
struct Extents {
  int64_t rows = 1, steps = 1, columns = 1;
  int64_t count() const { return rows * steps * columns; }
};

// Whether the elements of a block are contiguous in the order of a register.
bool is_contiguous(const Extents& block, const Movement& by, int64_t size);

void gather(std::byte* to, const std::byte* from, const Extents& block, const Movement& by,
            int64_t size);
void scatter(std::byte* to, const std::byte* from, const Extents& block, const Movement& by,
             int64_t size);

}  // namespace tidemark::tile
