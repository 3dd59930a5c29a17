#include "tidemark/account/worker_scope.h"

namespace tidemark::detail {

std::shared_ptr<device::ScopeAccount> scope_of_this_thread() {
  device::ScopeAccount* const scope = device::current_scope();
  if (scope == nullptr) return nullptr;
  device::retain(scope);
  return {scope, [](device::ScopeAccount* held) { device::release(held); }};
}

WorkerScope::WorkerScope(const std::shared_ptr<device::ScopeAccount>& scope) {
  if (scope != nullptr) device::set_current_scope(scope.get());
}

WorkerScope::~WorkerScope() {
  if (device::current_scope() != nullptr) device::set_current_scope(nullptr);
}

}  // namespace tidemark::detail
