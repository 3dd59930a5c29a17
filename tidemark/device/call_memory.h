// Memory for lists that live no longer than a call.
//
// Each thread keeps what its calls needed, at most as much as the largest of them, so that a call
// like one before takes nothing from the heap. Given back in any order, best the last one first.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tidemark::device {

// Throws std::bad_alloc. Aligned for any plain type.
std::byte* take_call_memory(size_t bytes);
// On the thread that took it.
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

// A list on the stack of the thread that made it, which alone may change or drop it.
template <class T>
using CallList = std::vector<T, CallAllocator<T>>;

// What a thread keeps. In the order they are filled; those behind `now` are empty.
struct CallMemory {
  struct Block;
  Block* first = nullptr;
  Block* now = nullptr;
  size_t taken = 0;  // Pieces that are not given back.
};
// The thread ends: its blocks serve the next one.
void forget_calls(CallMemory& memory) noexcept;

}  // namespace tidemark::device
