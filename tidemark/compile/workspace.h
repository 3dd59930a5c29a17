// Workspace: temporary memory of one op.
//
// Eager code takes it from the pool. A step of a compiled program has a part of the call's arena,
// whose size the `_workspace` functions compute from shapes and layouts alone. Before a program
// first runs, each of its steps is prepared: the same code runs while `WorkspacePart::preparing` is
// true, makes the kernels that it will use, and launches nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "tidemark/ir/term.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::device {
struct Cell;
}

namespace tidemark::compile {

// A placeholder address, if only layouts matter.
inline std::byte* const kNowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 20);

// The layout of a value that fills its memory, whose address is not known yet.
ArrayRef dense_layout(const TensorType& type);

// While it exists, workspaces of this thread come from this memory, last in, first out.
class WorkspacePart {
 public:
  // For preparing: counts bytes and provides no memory.
  WorkspacePart() : WorkspacePart(nullptr, 0) {}
  WorkspacePart(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes), previous_(current_) {
    current_ = this;
  }
  ~WorkspacePart() { current_ = previous_; }
  WorkspacePart(const WorkspacePart&) = delete;
  WorkspacePart& operator=(const WorkspacePart&) = delete;

  // Null in eager code.
  static WorkspacePart* current() { return current_; }
  // Whether ops only make their kernels. They must not read or write arrays then.
  static bool preparing() { return current_ != nullptr && current_->data_ == nullptr; }

  // The peak of the bytes taken.
  int64_t most() const { return most_; }

 private:
  friend class Workspace;
  static constinit thread_local WorkspacePart* current_;
  std::byte* data_;
  int64_t bytes_;
  int64_t taken_ = 0, most_ = 0;
  WorkspacePart* previous_;
};

class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(int64_t bytes);
  ~Workspace() { give_back(); }
  Workspace(Workspace&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        part_(std::exchange(other.part_, nullptr)),
        cell_(std::exchange(other.cell_, nullptr)) {}
  Workspace& operator=(Workspace&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(part_, other.part_);
    std::swap(cell_, other.cell_);
    return *this;
  }
  std::byte* data() const { return data_; }

 private:
  void give_back();
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  WorkspacePart* part_ = nullptr;
  device::Cell* cell_ = nullptr;
};

// The most workspace that any number of threads up to this needs. So a plan for many threads also
// holds for fewer, although pieces of work get larger with fewer threads.
template <class Bytes>
int64_t most_with_fewer(int threads, Bytes bytes) {
  int64_t most = 0;
  for (int fewer = 1; fewer <= threads; ++fewer) most = std::max<int64_t>(most, bytes(fewer));
  return most;
}

// The most threads, halved as often as necessary, whose workspace has at most so many bytes; one if
// that has more too.
template <class Bytes>
int threads_within(int threads, std::optional<int64_t> most_bytes, Bytes bytes) {
  while (most_bytes && threads > 1 && bytes(threads) > *most_bytes) threads /= 2;
  return threads;
}

// A dense array in workspace memory.
class Temporary {
 public:
  Temporary(DType dtype, Shape shape);
  static int64_t bytes(DType dtype, const Shape& shape);
  const ArrayRef& ref() const { return ref_; }

 private:
  Workspace memory_;
  ArrayRef ref_;
};

}  // namespace tidemark::compile
