// Memory for lists that live no longer than one call.
//
// Each thread keeps the memory that its largest call needed, so that a repeated call allocates
// nothing on the heap. Pieces may be given back in any order; the cheapest order is last in, first
// out.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tidemark::device {

// Throws std::bad_alloc. Aligned for any plain type.
std::byte* take_call_memory(size_t bytes);
// On the thread that took the memory.
void give_call_memory(std::byte* data, size_t bytes) noexcept;

template <class T>
struct CallAllocator {
  using value_type = T;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  CallAllocator() = default;
  template <class U>
  CallAllocator(const CallAllocator<U>&) {}
  T* allocate(size_t count) { return reinterpret_cast<T*>(take_call_memory(count * sizeof(T))); }
  void deallocate(T* data, size_t count) noexcept {
    give_call_memory(reinterpret_cast<std::byte*>(data), count * sizeof(T));
  }
  friend bool operator==(CallAllocator, CallAllocator) { return true; }
};

// A list that belongs to the thread that made it: no other thread may change or destroy it.
template <class T>
using CallList = std::vector<T, CallAllocator<T>>;

// The blocks that a thread keeps, in the order in which they are filled; those after `now` are
// empty.
struct CallMemory {
  struct Block;
  Block* first = nullptr;
  Block* now = nullptr;
  size_t taken = 0;  // Pieces that have not been given back.
};
// Called when the thread ends: the next thread reuses its blocks.
void forget_calls(CallMemory& memory) noexcept;

}  // namespace tidemark::device
