// Counters of one MemoryScope. An account outlives its scope object while bytes credit it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tidemark::device {

struct ScopeAccount {
  ScopeAccount(std::string name, ScopeAccount* parent);

  const std::string name;
  ScopeAccount* const parent;  // Held by a reference.
  std::atomic<int64_t> references{1};
  std::atomic<bool> closed{false};
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
};

// Add to (or take from) the account and all that enclose it.
void credit(ScopeAccount* scope, int64_t bytes) noexcept;

void retain(ScopeAccount* scope);
void release(ScopeAccount* scope) noexcept;

// Makes an account within the scope that runs on this thread, and runs it. Throws std::bad_alloc.
ScopeAccount* open_scope(std::string name);
// Ends it, in any order and on any thread. This thread goes on in the innermost scope that is still
// open; another one, on which it runs, finds out when it next opens or closes a scope.
void close_scope(ScopeAccount* scope) noexcept;

// The scope that runs on this thread, or null; the thread holds a reference on it. Setting needs
// the thread's record, which may throw std::bad_alloc.
ScopeAccount* current_scope();
void set_current_scope(ScopeAccount* scope);

}  // namespace tidemark::device
