// Reserve memory for LLVM, used if the C library has none left.
//
// LLVM ends the process when an allocation fails, and is left in an inconsistent state if one
// throws. Its calls of malloc and operator new come here instead (cmake/llvm_part.sh): while a
// Reserve exists, allocations of its thread that the C library refuses are served from pages that
// were mapped before LLVM began. So a compile is either refused before it starts, or completes. See
// docs/decisions/0017.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::jit {

class Reserve {
 public:
  // Throws std::bad_alloc if the system refuses the pages. They are touched only when needed.
  explicit Reserve(int64_t bytes);
  // Pages that LLVM still uses stay mapped until it frees them.
  ~Reserve();
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

 private:
  int block_;
  int previous_;
};

}  // namespace tidemark::jit
