// OutOfMemory: the machine or the limit has no room for an allocation.
#pragma once

#include <atomic>
#include <cstdint>

#include "tidemark/base/error.h"
#include "tidemark/device/pool.h"
#include "tidemark/device/storage.h"

namespace tidemark {

namespace device {

// A description of a storage for messages. Sizes after the sixth axis are not stored.
struct Description {
  static constexpr int kSizes = 6;
  DType dtype = DType::u8;
  int32_t rank = 0;
  int64_t sizes[kSizes] = {};

  static Description of(const Purpose& purpose);
};

// The content of an OutOfMemory, in a fixed number of bytes.
struct OutOfMemoryRecord {
  static constexpr int kListed = 5;
  struct Holder {
    Description what;
    Source at = Source::none();
    ByteClass byte_class = ByteClass::temporaries;
    int64_t bytes = 0;
  };
  Description what;
  Source at = Source::none();
  Refusal why = Refusal::limit;
  int64_t asked = 0, limit = 0, in_use = 0, cached = 0;
  Holder largest[kListed];
  int listed = 0;
  // The queue that the request has waited in (wait_queue.h), if it was one of a call that waits.
  struct Wait {
    int64_t most_ns = 0;     // How long it was allowed to wait.
    int64_t calls = 0;       // In the queue when the time was up, itself included.
    int64_t place = 0;       // Its own place among them, from 1 on.
    int64_t bytes = 0;       // That they ask for, all together.
    int64_t longest_ns = 0;  // The time that the first of them has waited.
  };
  Wait wait;
};

// Throws OutOfMemory for a call that has waited for so many bytes.
[[noreturn]] void refuse_after(const OutOfMemoryRecord::Wait& wait, int64_t bytes, Source at);

}  // namespace device

// Thrown before anything has changed, so the next call works. The text is written by the first call
// of what(), into the object itself: nothing here needs the heap, and no tensor is kept alive.
class OutOfMemory : public DeviceError {
 public:
  explicit OutOfMemory(const device::OutOfMemoryRecord& record);
  OutOfMemory(const OutOfMemory& other);

  // The bytes of the request, the limit, and the bytes that were in use.
  Bytes asked() const { return record_.asked; }
  Bytes limit() const { return record_.limit; }
  Bytes in_use() const { return record_.in_use; }
  // Whether the limit has no room now, but has room for the request if others release theirs.
  bool may_wait() const {
    return record_.why == device::Refusal::limit && record_.asked <= record_.limit;
  }

  const char* what() const noexcept override;

 private:
  device::OutOfMemoryRecord record_;
  // Empty, being written, readable: two threads may read the same exception.
  mutable std::atomic<int> text_state_{0};
  mutable char text_[1536];
};

}  // namespace tidemark
