// Makes a worker thread charge the MemoryScope of the thread it works for.
#pragma once

#include <memory>

#include "tidemark/device/scope.h"

namespace tidemark::detail {

// A reference to the innermost MemoryScope of this thread; null if there is none.
std::shared_ptr<device::ScopeAccount> scope_of_this_thread();

// While it lives, allocations of this thread count in that scope.
class WorkerScope {
 public:
  explicit WorkerScope(const std::shared_ptr<device::ScopeAccount>& scope);
  ~WorkerScope();
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;
};

}  // namespace tidemark::detail
