// Memory that LLVM falls back on where the C library has none.
//
// LLVM ends the process when an allocation fails, or is left half-done where one throws. Its calls
// of malloc and operator new come here instead (cmake/llvm_part.sh): while a Reserve exists, what
// the C library refuses its thread is taken from pages that were mapped before LLVM began. So a
// compile is refused before it starts, or it ends. See docs/decisions/0017.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::jit {

class Reserve {
 public:
  // Throws std::bad_alloc where the system refuses the pages. They are touched only in need.
  explicit Reserve(int64_t bytes);
  // What LLVM still holds of them stays mapped until it lets go.
  ~Reserve();
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

 private:
  int block_;
  int previous_;
};

}  // namespace tidemark::jit
