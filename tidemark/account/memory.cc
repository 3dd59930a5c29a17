#include "tidemark/account/memory.h"

#include <algorithm>
#include <iomanip>
#include <memory>
#include <ostream>

#include "tidemark/base/error.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/device/account.h"
#include "tidemark/device/ledger.h"
#include "tidemark/device/pool.h"
#include "tidemark/device/scope.h"
#include "tidemark/device/wait_queue.h"

namespace tidemark {
namespace memory {
namespace {

LiveRow row_of(const device::LineReport& report) {
  return {report.at.known() ? report.at.text() : "?", report.sums.bytes, report.sums.count,
          report.sums.viewed, report.sums.pinned};
}

// Sorted by the bytes that a line keeps alive, then by name, so that equal programs print equal
// tables.
bool comes_first(const LiveRow& a, const LiveRow& b) {
  if (a.bytes != b.bytes) return a.bytes > b.bytes;
  if (a.pinned != b.pinned) return a.pinned > b.pinned;
  return a.line < b.line;
}

template <class Value>
void cell(std::ostream& out, const Value& value, int width) {
  out << std::right << std::setw(width) << cat(value);
}

void add(Ledger& ledger, const char* name, int64_t bytes) { ledger.rows.push_back({name, bytes}); }

// The bytes of tensors and cache, and their difference from the pool's resident pages.
void add_held(Ledger& ledger, const device::ResidentPages& pages, int64_t small) {
  int64_t in_use = 0;
  for (int i = 0; i < kByteClasses; ++i) {
    const auto byte_class = static_cast<ByteClass>(i);
    const int64_t bytes = device::bytes_of(byte_class);
    in_use += bytes;
    add(ledger, name(byte_class), bytes);
  }
  const int64_t held = in_use + cached().count;
  const int64_t foreign = device::foreign_bytes();
  const int64_t pool = pages.ours[static_cast<int>(device::MappingOwner::pool)];
  add(ledger, "cache", cached().count);
  // Data stored in cells are in the pages of handles, and blocks of a user's resource in the user's
  // pages.
  add(ledger, "untouched", pool + small + foreign - held);
  if (foreign != 0) add(ledger, "in the user's resource", -foreign);
  ledger.held = held;
}

}  // namespace

Bytes current() { return device::counters.in_use.load(std::memory_order_relaxed); }
Bytes peak() { return device::counters.peak.load(std::memory_order_relaxed); }
void reset_peak() { device::reset_peak(); }
Bytes cached() { return device::counters.cached.load(std::memory_order_relaxed); }
Bytes borrowed() { return device::counters.borrowed.load(std::memory_order_relaxed); }
Bytes of(ByteClass byte_class) { return device::bytes_of(byte_class); }
Bytes release() { return device::release_cached(); }
Bytes code() { return compile::code_bytes(); }
Bytes limit() { return device::limit_bytes(); }

void set_limit(Bytes bytes, Source at) {
  if (bytes.count <= 0) {
    throw UserError(cat("set_limit: ", bytes, " is not a limit"), at,
                    "give a positive number of bytes");
  }
  device::set_limit_bytes(bytes.count);
}

Waiting waiting() {
  const device::WaitingCalls now = device::waiting_calls();
  return {.calls = now.calls,
          .bytes = now.bytes,
          .longest_ms = static_cast<double>(now.longest_ns) / 1e6,
          .served = now.served,
          .refused = now.refused};
}

std::ostream& operator<<(std::ostream& out, const Waiting& waiting) {
  out << waiting.calls << (waiting.calls == 1 ? " call waits" : " calls wait") << " for "
      << waiting.bytes;
  if (waiting.calls > 0) out << ", the first for " << waiting.longest_ms << " ms";
  return out << "; " << waiting.served << " served after a wait, " << waiting.refused
             << " refused after it";
}

std::pmr::memory_resource* set_resource(std::pmr::memory_resource* resource) {
  return device::set_resource(resource);
}

Live live() {
  Live live;
  for (const device::LineReport& report : device::lines_now()) {
    live.rows.push_back(row_of(report));
    live.total = live.total + report.sums.bytes;
  }
  std::sort(live.rows.begin(), live.rows.end(), comes_first);
  return live;
}

std::ostream& operator<<(std::ostream& out, const Live& live) {
  size_t width = 5;
  for (const LiveRow& row : live.rows) width = std::max(width, row.line.size());
  const auto name_width = static_cast<int>(width);
  out << std::left << std::setw(name_width) << "line";
  for (const char* title : {"bytes", "count", "viewed", "pinned"}) cell(out, title, 12);
  for (const LiveRow& row : live.rows) {
    out << '\n' << std::left << std::setw(name_width) << row.line;
    cell(out, row.bytes, 12);
    cell(out, row.count, 12);
    cell(out, row.viewed, 12);
    cell(out, row.pinned, 12);
  }
  out << '\n' << std::left << std::setw(name_width) << "total";
  cell(out, live.total, 12);
  return out << '\n';
}

Ledger ledger() {
  Ledger ledger;
  ledger.rows.reserve(32);
  const device::ResidentPages pages = device::resident_pages();
  const auto ours = [&](device::MappingOwner owner) { return pages.ours[static_cast<int>(owner)]; };
  const int64_t small = device::small_bytes();
  add_held(ledger, pages, small);
  add(ledger, "code", ours(device::MappingOwner::code));
  add(ledger, "stacks", ours(device::MappingOwner::stacks));
  add(ledger, "handles", ours(device::MappingOwner::handles) - small);
  add(ledger, "heap", pages.heap);
  add(ledger, "image", pages.image);
  add(ledger, "mapped files", pages.files);
  add(ledger, "outside", pages.outside);
  ledger.resident = pages.total();
  return ledger;
}

int64_t Ledger::of(const std::string& name) const {
  for (const LedgerRow& row : rows) {
    if (row.name == name) return row.bytes;
  }
  throw UserError(cat("ledger: there is no row '", name, "'"), Source::none(),
                  "print the ledger to see its rows");
}

std::ostream& operator<<(std::ostream& out, const Ledger& ledger) {
  const auto line = [&](const std::string& name, Bytes bytes) {
    out << std::left << std::setw(24) << name;
    cell(out, bytes, 12);
    cell(out, bytes.count, 16);
    out << '\n';
  };
  for (const LedgerRow& row : ledger.rows) {
    if (row.bytes != 0) line(row.name, row.bytes);
  }
  line("resident", ledger.resident);
  line("  of it held", ledger.held);
  return out;
}

}  // namespace memory

MemoryScope::MemoryScope(std::string name) : account_(device::open_scope(std::move(name))) {}
MemoryScope::~MemoryScope() { device::close_scope(account_); }

const std::string& MemoryScope::name() const { return account_->name; }
Bytes MemoryScope::current() const { return account_->current.load(std::memory_order_relaxed); }
Bytes MemoryScope::peak() const { return account_->peak.load(std::memory_order_relaxed); }

}  // namespace tidemark
