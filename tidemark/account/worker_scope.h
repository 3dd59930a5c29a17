// The MemoryScope of a thread, on a thread that works for it.
#pragma once

#include <memory>

#include "tidemark/device/scope.h"

namespace tidemark::detail {

// The innermost MemoryScope of this thread, held; null where there is none.
std::shared_ptr<device::ScopeAccount> scope_of_this_thread();

// What this thread makes counts in that scope, for its life.
class WorkerScope {
 public:
  explicit WorkerScope(const std::shared_ptr<device::ScopeAccount>& scope);
  ~WorkerScope();
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;
};

}  // namespace tidemark::detail
