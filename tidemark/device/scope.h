// Counters of one MemoryScope. An account outlives its scope object as long as bytes are credited
// to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tidemark::device {

struct ScopeAccount {
  ScopeAccount(std::string name, ScopeAccount* parent);

  const std::string name;
  ScopeAccount* const parent;  // Holds a reference.
  std::atomic<int64_t> references{1};
  std::atomic<bool> closed{false};
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
};

// Adds to (or subtracts from) the account and all accounts that enclose it.
void credit(ScopeAccount* scope, int64_t bytes) noexcept;

void retain(ScopeAccount* scope);
void release(ScopeAccount* scope) noexcept;

// Opens an account inside the current scope of this thread, and makes it current. Throws
// std::bad_alloc.
ScopeAccount* open_scope(std::string name);
// Closes an account, in any order and on any thread. The innermost scope that is still open becomes
// current on this thread; another thread on which the scope was current notices when it next opens
// or closes a scope.
void close_scope(ScopeAccount* scope) noexcept;

// The current scope of this thread, or null; the thread holds a reference to it. Setting it needs
// the thread's record, so it may throw std::bad_alloc.
ScopeAccount* current_scope();
void set_current_scope(ScopeAccount* scope);

}  // namespace tidemark::device
