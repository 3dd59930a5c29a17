// A kernel, machine code or an interpreted loop nest, and its calling convention.
//
// Kernels never allocate: they are given pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidemark {

// The distance in bytes from one row, step or column of a buffer to the next.
struct Movement {
  int64_t row = 0, step = 0, column = 0;
};

// The bytes that a kernel may access in a buffer; read only by the interpreter that checks
// accesses.
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
  const Extent* extents = nullptr;        // If not null, one per buffer: every access is checked.
  // 0: no non-temporal stores, because the buffer's bytes were just read and are in the cache.
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
