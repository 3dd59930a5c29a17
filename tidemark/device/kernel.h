// What can be called: machine code or an interpreted nest, and its calling convention.
//
// Kernels never allocate: pointers come in, and somebody else decided where they point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidemark {

// How far a buffer moves, in bytes, from one row, step or column to the next.
struct Movement {
  int64_t row = 0, step = 0, column = 0;
};

// The bytes a buffer may touch; only the checking interpreter looks.
struct Extent {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

struct KernelArgs {
  int64_t rows = 1, steps = 1, columns = 1;
  std::byte* const* buffers = nullptr;    // Element (0, 0, 0) of each buffer of the nest.
  const Movement* movements = nullptr;    // One per buffer.
  const uint64_t* scalars = nullptr;      // Run-time numbers, one word each.
  int64_t index_base = 0, index_row = 0;  // See ExprOp::index.
  std::byte* scratch = nullptr;           // scratch_bytes, aligned to 64.
  const Extent* extents = nullptr;        // Null, or one per buffer: check every access.
  // 0: buffers that could be stored past the caches are not, since what they hold was just read.
  int64_t streams = 1;
};

struct Kernel {
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  void operator()(const KernelArgs& args) const { run(*this, args); }

  void (*run)(const Kernel& self, const KernelArgs& args) = nullptr;
  int64_t scratch_bytes = 0;
  int64_t code_bytes = 0;
};

}  // namespace tidemark
