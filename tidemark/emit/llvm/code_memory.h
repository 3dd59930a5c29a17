// Memory for compiled code: one mapping per module, its instructions and constants together, so
// that a small kernel takes one page. Written while it is data, then made executable and read-only.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <memory>

namespace tidemark::jit {

// Pages of code, given back when this dies.
class Code {
 public:
  explicit Code(int64_t bytes);  // Throws std::bad_alloc when the system refuses.
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  bool make_executable();

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Gives JITLink the one mapping of one module.
class CodeMemory final : public llvm::jitlink::JITLinkMemoryManager {
 public:
  using JITLinkMemoryManager::allocate;
  using JITLinkMemoryManager::deallocate;
  void allocate(const llvm::jitlink::JITLinkDylib*, llvm::jitlink::LinkGraph& graph,
                OnAllocatedFunction on_allocated) override;
  void deallocate(std::vector<FinalizedAlloc> allocations,
                  OnDeallocatedFunction on_deallocated) override;

  std::shared_ptr<Code> code;
};

}  // namespace tidemark::jit
