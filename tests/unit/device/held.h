// Storages for tests: a handle that gives back what it holds.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "tidemark/device/account.h"
#include "tidemark/device/out_of_memory.h"
#include "tidemark/device/pool.h"
#include "tidemark/device/storage.h"

namespace tidemark::device {

class Held {
 public:
  Held() = default;
  explicit Held(Cell* cell) : cell_(cell) {}
  Held(Held&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(cell_, other.cell_);
    other.reset();
    return *this;
  }
  ~Held() { reset(); }

  void reset() {
    if (cell_ != nullptr) release(cell_->storage);
    cell_ = nullptr;
  }
  Cell* operator->() const { return cell_; }
  Cell* get() const { return cell_; }
  std::byte* data() const { return cell_->storage.data; }

 private:
  Cell* cell_ = nullptr;
};

inline Held make(int64_t bytes, Source at = Source::here(),
                 ByteClass byte_class = ByteClass::temporaries) {
  const int64_t sizes[] = {bytes};
  return Held(allocate(bytes, {DType::u8, sizes, at, byte_class}));
}

// Several in one reservation.
inline std::vector<Held> make_all(std::initializer_list<int64_t> bytes,
                                  Source at = Source::here()) {
  std::vector<AllocationRequest> wanted;
  for (const int64_t each : bytes) wanted.push_back({.bytes = each, .purpose = {.at = at}});
  std::vector<Held> held;
  held.reserve(wanted.size());  // Before: what throws here must hold nothing.
  allocate_all(wanted);
  for (const AllocationRequest& each : wanted) held.emplace_back(each.cell);
  return held;
}

inline int64_t in_use() { return counters.in_use.load(); }
inline int64_t cached() { return counters.cached.load(); }
inline int64_t peak() { return counters.peak.load(); }

// Sets a limit for as long as it exists, starting from an empty cache.
class LimitGuard {
 public:
  explicit LimitGuard(int64_t bytes) : before_(limit_bytes()) {
    release_cached();
    set_limit_bytes(bytes);
  }
  ~LimitGuard() { set_limit_bytes(before_); }

 private:
  int64_t before_;
};

}  // namespace tidemark::device
