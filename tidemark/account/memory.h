// How many bytes tensors hold, who holds them, and how many they may hold.
//
// Counters are exact and always on. A tensor's bytes are counted from the line that makes it to the
// line that lets it go: `x = {}` shows in `memory::current()` in the same statement. docs/memory.md
// tells what is counted and what is not.
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
// The most that `current()` has been since the start, or since `reset_peak()`.
Bytes peak();
// From now on `peak()` is of what follows; it starts at `current()`.
void reset_peak();
// Bytes given back by tensors and kept for the next, in whole pages. current() + cached() never
// exceeds the limit.
Bytes cached();
// Memory of others that tensors show: borrowed from the caller, or mapped files. It is counted in
// nothing else here.
Bytes borrowed();
// The part of `current()` that belongs to one class.
Bytes of(ByteClass byte_class);
// Gives all cached bytes back to the system and returns how many that was.
Bytes release();

// The most that tensors and cache may hold together. At the start: 90 % of the least of the
// cgroup's memory limit, RLIMIT_AS and the memory available then.
Bytes limit();
// Sets the limit; gives cached bytes back where it is now lower. Live tensors stay, and a limit
// below them only refuses new ones. A limit that is not positive is a UserError.
void set_limit(Bytes bytes, Source at = Source::here());

// Takes blocks from the caller's own allocator from now on; null goes back to Tidemark's. Returns
// the one used before. Accounts and limit stay exact; blocks go back to where they came from, so
// that a resource has to outlive the tensors made from it. Data of up to 64 bytes stand in a
// tensor's own record and are not taken from it. The resource is called from any thread.
std::pmr::memory_resource* set_resource(std::pmr::memory_resource* resource);

// Pages of machine code that kernels hold.
Bytes code();

// Who holds what, by source line.
struct LiveRow {
  std::string line;   // "train.cc:41"; "?" where no line is known.
  Bytes bytes;        // Of tensors made on this line and alive.
  int64_t count = 0;  // How many they are.
  Bytes viewed;       // Bytes that live views made on this line show.
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

// Counts what is allocated while it exists, on its thread and on the workers that serve it. Scopes
// nest: a byte counts in the innermost and in all around it. A tensor that is let go later, or on
// another thread, is taken off the scopes that it was made in.
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
  // Bytes made in the scope that are alive now, and the most they were at once.
  Bytes current() const;
  Bytes peak() const;

 private:
  device::ScopeAccount* account_;
};

}  // namespace tidemark
