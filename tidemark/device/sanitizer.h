// Tells the address sanitizer which bytes must not be accessed, and the leak sanitizer where to
// look for pointers.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define TIDEMARK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIDEMARK_ASAN 1
#endif
#endif

#ifdef TIDEMARK_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

#include <cstddef>
#include <cstdint>

namespace tidemark::device {

inline void forbid([[maybe_unused]] const void* begin, [[maybe_unused]] int64_t bytes) {
#ifdef TIDEMARK_ASAN
  ASAN_POISON_MEMORY_REGION(begin, static_cast<size_t>(bytes));
#endif
}
inline void allow([[maybe_unused]] const void* begin, [[maybe_unused]] int64_t bytes) {
#ifdef TIDEMARK_ASAN
  ASAN_UNPOISON_MEMORY_REGION(begin, static_cast<size_t>(bytes));
#endif
}
// Mapped pages may hold the only pointers to heap objects.
inline void look_into([[maybe_unused]] const void* begin, [[maybe_unused]] int64_t bytes) {
#ifdef TIDEMARK_ASAN
  __lsan_register_root_region(begin, static_cast<size_t>(bytes));
#endif
}

}  // namespace tidemark::device
