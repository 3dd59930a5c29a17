// Memory queries: the bytes that tensors hold, by owner and source line, and the limit.
//
// Counters are exact and always on. A tensor's bytes are counted from its creation to its release:
// `x = {}` shows in `memory::current()` in the same statement. docs/memory.md lists what is counted
// and what is not.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tidemark/base/text.h"
#include "tidemark/device/out_of_memory.h"
#include "tidemark/device/storage.h"

namespace tidemark {

namespace memory {

// Bytes of live tensors, rounded up to 64 each.
Bytes current();
// The largest value of `current()` since the start or since `reset_peak()`.
Bytes peak();
// Resets `peak()` to `current()`.
void reset_peak();
// Bytes released by tensors and cached for the next ones, in whole pages. current() + cached()
// never exceeds the limit.
Bytes cached();
// Memory that tensors refer to but do not own: borrowed from the caller, or mapped files. It is
// counted nowhere else.
Bytes borrowed();
// The part of `current()` that belongs to one class.
Bytes of(ByteClass byte_class);
// Returns all cached bytes to the system; the result is their number.
Bytes release();

// The most that tensors and cache may hold together. Initially 90 % of the least of the cgroup's
// memory limit, RLIMIT_AS and the available memory.
Bytes limit();
// Sets the limit, and returns cached bytes to the system as needed. Live tensors stay; a limit
// below them only refuses new ones. A limit that is not positive is a UserError.
void set_limit(Bytes bytes, Source at = Source::here());

// The calls that wait for memory (FunctionOptions::when_full), at this moment and so far.
struct Waiting {
  int64_t calls = 0;      // That wait now.
  Bytes bytes;            // That they ask for, all together.
  double longest_ms = 0;  // The time that the first of them has waited.
  int64_t served = 0;     // Calls that found room after a wait.
  int64_t refused = 0;    // Calls whose time was up.
};
Waiting waiting();
std::ostream& operator<<(std::ostream& out, const Waiting& waiting);

// Allocates from the caller's resource from now on; null means Tidemark's own allocator. Returns
// the previous one. Accounts and limit stay exact. Blocks are returned to the resource they came
// from, which must outlive them. Data of up to 64 bytes are stored in the tensor's own record and
// do not use the resource. The resource is called from any thread.
std::pmr::memory_resource* set_resource(std::pmr::memory_resource* resource);

// Pages of machine code that kernels hold.
Bytes code();

// Who holds what, by source line.
struct LiveRow {
  std::string line;   // "train.cc:41"; "?" if the line is unknown.
  Bytes bytes;        // Of tensors made on this line and alive.
  int64_t count = 0;  // The number of these tensors.
  Bytes viewed;       // Bytes that live views made on this line refer to.
  Bytes pinned;       // Bytes that these views keep alive, counted once for each view.
};
// Largest first. Prints as a table.
struct Live {
  std::vector<LiveRow> rows;
  Bytes total;
};
Live live();
std::ostream& operator<<(std::ostream& out, const Live& live);

// One row of the process's memory. A negative row corrects those above it: see `Ledger`.
struct LedgerRow {
  std::string name;
  int64_t bytes = 0;
};
// Every resident page of the process, by owner. Exact at a moment when no other thread allocates:
// the rows from `arguments` to `cache` add up to what is held, `untouched` corrects them to the
// pages that are resident, and all rows together are `resident`.
struct Ledger {
  std::vector<LedgerRow> rows;
  Bytes held;      // current() + cached()
  Bytes resident;  // Pages of the process in memory.

  // The bytes of a row; an unknown name is a UserError.
  int64_t of(const std::string& name) const;
};
Ledger ledger();
std::ostream& operator<<(std::ostream& out, const Ledger& ledger);

}  // namespace memory

// Counts allocations while it exists, on its thread and on the workers that serve it. Scopes nest:
// a byte counts in the innermost one and in all around it. When a tensor is released, later or on
// another thread, it is subtracted from the scopes it was made in.
//
//   td::MemoryScope scope("epoch");
//   train();
//   std::cout << scope.peak();
class MemoryScope {
 public:
  explicit MemoryScope(std::string name);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  const std::string& name() const;
  // The bytes allocated in the scope that are alive now, and their peak.
  Bytes current() const;
  Bytes peak() const;

 private:
  device::ScopeAccount* account_;
};

}  // namespace tidemark
