#include "tidemark/device/account.h"

#include <pthread.h>
#include <sys/single_threaded.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/made_once.h"
#include "tidemark/device/charge.h"
#include "tidemark/device/limit.h"
#include "tidemark/device/line_account.h"
#include "tidemark/device/scope.h"
#include "tidemark/device/thread_record.h"

namespace tidemark {

const char* name(ByteClass byte_class) {
  constexpr const char* names[kByteClasses] = {"arguments", "outputs",     "variables",
                                               "saved",     "temporaries", "workspace",
                                               "constants", "packed",      "shadow"};
  return names[static_cast<int>(byte_class)];
}

namespace device {

constinit Counters counters;

namespace detail {
constinit thread_local ThreadRecord* thread_record = nullptr;
}

namespace {

constexpr size_t kLineBuckets = 1024;

// Constant-initialised and never destroyed, so that tensors in static storage are counted from the
// first to the last.
struct Registry {
  Lock lock;
  ThreadRecord* records = nullptr;
  ThreadRecord* spare = nullptr;  // Records of threads that ended.
  LineAccount* lines[kLineBuckets] = {};
  LineAccount* newest = nullptr;  // Head of the list of all lines.
  // Counts of threads that ended or never had a record.
  std::atomic<int64_t> classes[kClassShares] = {};
};
constinit Registry registry;

// --- Thread records -------------------------------------------------------------------------

void fold(LineShare& share) {
  LineAccount* const account = share.account.load(std::memory_order_relaxed);
  if (account == nullptr) return;
  for (int i = 0; i < kLineSums; ++i) {
    account->sums[i].fetch_add(share.sums[i].take(), std::memory_order_relaxed);
  }
  share.account.store(nullptr, std::memory_order_relaxed);
  share.file = nullptr;
}

void unlink(ThreadRecord& record) {
  ThreadRecord** at = &registry.records;
  while (*at != &record) at = &(*at)->next;
  *at = record.next;
}

// Runs after all C++ thread-local objects of the thread are destroyed, so that tensors among them
// still find the record.
void thread_ended(void* pointer) {
  ThreadRecord& record = *static_cast<ThreadRecord*>(pointer);
  give_cells_back(record);
  release(std::exchange(record.scope, nullptr));
  forget_calls(record.calls);
  const std::lock_guard guard(registry.lock);
  for (LineShare& share : record.lines) fold(share);
  for (int i = 0; i < kClassShares; ++i) {
    registry.classes[i].fetch_add(record.classes[i].take(), std::memory_order_relaxed);
  }
  unlink(record);
  record.next = registry.spare;
  registry.spare = &record;
  detail::thread_record = nullptr;
}

struct EndedKey {
  pthread_key_t key{};
  EndedKey() {
    if (pthread_key_create(&key, thread_ended) != 0) throw std::bad_alloc();
  }
  ~EndedKey() { pthread_key_delete(key); }
  EndedKey(const EndedKey&) = delete;
  EndedKey& operator=(const EndedKey&) = delete;
};

pthread_key_t ended_key() {
  static constinit MadeOnce<EndedKey> made;
  return made.get().key;
}

ThreadRecord* take_spare() {
  const std::lock_guard guard(registry.lock);
  ThreadRecord* const record = registry.spare;
  if (record != nullptr) registry.spare = record->next;
  return record;
}

// --- Lines ----------------------------------------------------------------------------------

size_t line_bucket(Source at) {
  size_t hash = at.line;
  for (const char* c = at.file; *c != '\0'; ++c) hash = hash * 31 + static_cast<unsigned char>(*c);
  return hash % kLineBuckets;
}

LineAccount* known_line(size_t bucket, Source at) {
  for (LineAccount* line = registry.lines[bucket]; line != nullptr; line = line->next) {
    if (line->at.line == at.line && std::strcmp(line->at.file, at.file) == 0) return line;
  }
  return nullptr;
}

std::unique_ptr<char[]> copy_of(const char* text) {
  const size_t size = std::strlen(text) + 1;
  std::unique_ptr<char[]> copy(new char[size]);
  std::memcpy(copy.get(), text, size);
  return copy;
}

LineAccount& intern(Source at) {
  const size_t bucket = line_bucket(at);
  const std::lock_guard guard(registry.lock);
  if (LineAccount* const line = known_line(bucket, at)) return *line;
  auto file = copy_of(at.file);
  auto function = copy_of(at.function);
  auto* const line = new LineAccount{Source::here(file.get(), at.line, function.get()),
                                     line_slot(at.file, at.line)};
  (void)file.release();
  (void)function.release();
  line->next = registry.lines[bucket];
  registry.lines[bucket] = line;
  line->older = registry.newest;
  line->number = line->older == nullptr ? 0 : line->older->number + 1;
  registry.newest = line;
  return *line;
}

int64_t sum_of_class(int index) {
  const std::lock_guard guard(registry.lock);
  int64_t sum = registry.classes[index].load(std::memory_order_relaxed);
  for (const ThreadRecord* record = registry.records; record != nullptr; record = record->next) {
    sum += record->classes[index].get();
  }
  return sum;
}

LineSums sums_of(const LineAccount& line) {
  int64_t sums[kLineSums];
  for (int i = 0; i < kLineSums; ++i) sums[i] = line.sums[i].load(std::memory_order_relaxed);
  for (const ThreadRecord* record = registry.records; record != nullptr; record = record->next) {
    // All slots: a line of a header has a different file-name address in each file that includes
    // it.
    for (const LineShare& share : record->lines) {
      if (share.account.load(std::memory_order_relaxed) != &line) continue;
      for (int i = 0; i < kLineSums; ++i) sums[i] += share.sums[i].get();
    }
  }
  return {sums[kLineBytes], sums[kLineCount], sums[kLineViewed], sums[kLinePinned]};
}

}  // namespace

ThreadRecord& detail::make_thread_record() {
  const pthread_key_t key = ended_key();
  ThreadRecord* record = take_spare();
  if (record == nullptr) record = new ThreadRecord;
  {
    const std::lock_guard guard(registry.lock);
    record->next = registry.records;
    registry.records = record;
  }
  detail::thread_record = record;
  if (pthread_setspecific(key, record) != 0) {
    thread_ended(record);
    throw std::bad_alloc();
  }
  return *record;
}

void detail::replace_line(LineShare& share, Source at) {
  LineAccount& account = intern(at);
  fold(share);
  share.file = at.file;
  share.line = at.line;
  share.account.store(&account, std::memory_order_relaxed);
}

void detail::add_to_class_of_all(int index, int64_t amount) noexcept {
  registry.classes[index].fetch_add(amount, std::memory_order_relaxed);
}

Source source_of(const Storage& storage) {
  return storage.line != nullptr ? storage.line->at : Source::none();
}

int64_t bytes_of(ByteClass byte_class) { return sum_of_class(static_cast<int>(byte_class)); }

void check_accounts() {
#ifdef TIDEMARK_DEBUG
  // With more threads, another one may be between its two additions.
  if (__libc_single_threaded == 0) return;
  int64_t sum = 0;
  for (int i = 0; i < kByteClasses; ++i) sum += sum_of_class(i);
  TIDEMARK_CHECK(sum == counters.in_use.load(), "classes hold ", sum, " bytes, in use are ",
                 counters.in_use.load());
#endif
}

int64_t small_bytes() { return sum_of_class(kSmallShare); }

std::vector<LineReport> lines_now() {
  for (size_t room = 64;; room *= 2) {
    std::vector<LineReport> reports;
    reports.reserve(room);
    const std::lock_guard guard(registry.lock);
    bool fits = true;
    for (const LineAccount* bucket : registry.lines) {
      for (const LineAccount* line = bucket; line != nullptr; line = line->next) {
        const LineSums sums = sums_of(*line);
        if (sums.empty()) continue;
        fits = fits && reports.size() < room;
        if (fits) reports.push_back({line->at, sums});
      }
    }
    if (fits) return reports;
  }
}

namespace {

size_t count_lines() {
  const std::lock_guard guard(registry.lock);
  return registry.newest == nullptr ? 0 : registry.newest->number + size_t{1};
}

// Visits each slot once, instead of all slots for each line.
void add_shares(const ThreadRecord& record, std::vector<LineSums>& by_number) {
  for (const LineShare& share : record.lines) {
    const LineAccount* const line = share.account.load(std::memory_order_relaxed);
    if (line == nullptr || line->number >= by_number.size()) continue;
    LineSums& sums = by_number[line->number];
    sums.bytes += share.sums[kLineBytes].get();
    sums.count += share.sums[kLineCount].get();
    sums.viewed += share.sums[kLineViewed].get();
    sums.pinned += share.sums[kLinePinned].get();
  }
}

}  // namespace

void read_lines(std::vector<LineSums>& by_number) {
  by_number.resize(count_lines());
  const std::lock_guard guard(registry.lock);
  for (const LineAccount* line = registry.newest; line != nullptr; line = line->older) {
    if (line->number >= by_number.size()) continue;  // First used after the list was sized.
    int64_t sums[kLineSums];
    for (int i = 0; i < kLineSums; ++i) sums[i] = line->sums[i].load(std::memory_order_relaxed);
    by_number[line->number] = {sums[kLineBytes], sums[kLineCount], sums[kLineViewed],
                               sums[kLinePinned]};
  }
  for (const ThreadRecord* record = registry.records; record != nullptr; record = record->next)
    add_shares(*record, by_number);
}

Source line_at(uint32_t number) {
  const std::lock_guard guard(registry.lock);
  const LineAccount* line = registry.newest;
  while (line != nullptr && line->number != number) line = line->older;
  return line == nullptr ? Source::none() : line->at;
}

uint32_t line_number(const Storage& storage) { return storage.line->number; }

int64_t limit_bytes() {
  int64_t limit = counters.limit.load(std::memory_order_relaxed);
  if (limit != 0) return limit;
  const int64_t wanted = default_limit_bytes();
  // The first thread to arrive decides: available memory changes between calls.
  counters.limit.compare_exchange_strong(limit, wanted, std::memory_order_relaxed);
  return counters.limit.load(std::memory_order_relaxed);
}

void reset_peak() {
  int64_t peak = counters.peak.load(std::memory_order_relaxed);
  if (peak > counters.highest.load(std::memory_order_relaxed)) {
    counters.highest.store(peak, std::memory_order_relaxed);
  }
  counters.peak.store(counters.in_use.load(std::memory_order_relaxed), std::memory_order_relaxed);
  raise_peak();
}

int64_t highest_in_use() {
  return std::max(counters.peak.load(std::memory_order_relaxed),
                  counters.highest.load(std::memory_order_relaxed));
}

// --- Scopes ---------------------------------------------------------------------------------

ScopeAccount::ScopeAccount(std::string name, ScopeAccount* parent)
    : name(std::move(name)), parent(parent) {
  if (parent != nullptr) retain(parent);
}

void retain(ScopeAccount* scope) { scope->references.fetch_add(1, std::memory_order_relaxed); }

void release(ScopeAccount* scope) noexcept {
  while (scope != nullptr && scope->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    ScopeAccount* const parent = scope->parent;
    delete scope;
    scope = parent;
  }
}

void credit(ScopeAccount* scope, int64_t bytes) noexcept {
  for (; scope != nullptr; scope = scope->parent) {
    const int64_t now = scope->current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = scope->peak.load(std::memory_order_relaxed);
    while (now > peak && !scope->peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
}

namespace {

// An account holds a reference to its parent, so the whole chain exists while its innermost account
// is held.
ScopeAccount* innermost_open(ScopeAccount* scope) {
  while (scope != nullptr && scope->closed.load(std::memory_order_relaxed)) scope = scope->parent;
  return scope;
}

void run_scope(ThreadRecord& record, ScopeAccount* scope) noexcept {
  if (scope != nullptr) retain(scope);
  release(std::exchange(record.scope, scope));
}

}  // namespace

ScopeAccount* current_scope() {
  const ThreadRecord* const record = thread_record_or_null();
  return record != nullptr ? record->scope : nullptr;
}

void set_current_scope(ScopeAccount* scope) { run_scope(thread_record(), scope); }

ScopeAccount* open_scope(std::string name) {
  ThreadRecord& record = thread_record();
  auto* const scope = new ScopeAccount(std::move(name), innermost_open(record.scope));
  run_scope(record, scope);
  return scope;
}

void close_scope(ScopeAccount* scope) noexcept {
  scope->closed.store(true, std::memory_order_relaxed);
  ThreadRecord* const record = thread_record_or_null();
  if (record != nullptr) run_scope(*record, innermost_open(record->scope));
  release(scope);
}

void lock_records() { registry.lock.lock(); }
void unlock_records() { registry.lock.unlock(); }

}  // namespace device
}  // namespace tidemark
