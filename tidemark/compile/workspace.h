// Memory for the length of one op.
//
// Eager code takes it from the pool. A step of a compiled program has its part of the call's arena;
// how much that is, the `_workspace` functions say from shapes and layouts alone. Before a program
// runs for the first time, each of its steps is prepared: the same code runs with
// `WorkspacePart::preparing`, makes the kernels that it will use, and launches nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tidemark/ir/term.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::device {
struct Cell;
}

namespace tidemark::compile {

// Stands for memory where only layouts matter.
inline std::byte* const kNowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 20);

// Of a value that fills its memory, wherever that will be.
ArrayRef dense_layout(const TensorType& type);

// While it exists, workspaces of this thread come from here, last taken first given back.
class WorkspacePart {
 public:
  // Prepares: counts, and gives no memory.
  WorkspacePart() : WorkspacePart(nullptr, 0) {}
  WorkspacePart(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes), previous_(current_) {
    current_ = this;
  }
  ~WorkspacePart() { current_ = previous_; }
  WorkspacePart(const WorkspacePart&) = delete;
  WorkspacePart& operator=(const WorkspacePart&) = delete;

  // Null in eager code.
  static WorkspacePart* current() { return current_; }
  // Whether ops are only to make their kernels. Nothing may be read or written then.
  static bool preparing() { return current_ != nullptr && current_->data_ == nullptr; }

  // The most bytes that were taken at once.
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

// The most that any number of threads up to this needs: a plan for many threads holds on fewer, and
// is never smaller than theirs, though pieces of work are smaller where more threads share it.
template <class Bytes>
int64_t most_with_fewer(int threads, Bytes bytes) {
  int64_t most = 0;
  for (int fewer = 1; fewer <= threads; ++fewer) most = std::max<int64_t>(most, bytes(fewer));
  return most;
}

// A dense array in a workspace.
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
