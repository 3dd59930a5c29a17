// Stack memory for the registers of one interpreted call.
//
// So a program's memory is the same whether its kernels are interpreted or compiled, and an
// interpreted call neither allocates nor waits for the pool.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::tile {

// The usual size, and the maximum for nests whose shortest registers need more.
inline constexpr int64_t kUsualScratch = int64_t{256} << 10;
inline constexpr int64_t kMostScratch = int64_t{1} << 20;

template <int64_t kBytes, class Run>
[[gnu::noinline]] void with_bytes_on_stack(const Run& run) {
  alignas(64) std::byte scratch[kBytes];
  run(scratch);
}

// Calls run(scratch) with at least this many bytes, aligned to 64. At most kMostScratch.
template <class Run>
void with_scratch(int64_t bytes, const Run& run) {
  constexpr int64_t kFew = int64_t{16} << 10, kSome = int64_t{64} << 10;
  if (bytes <= kFew) return with_bytes_on_stack<kFew>(run);
  if (bytes <= kSome) return with_bytes_on_stack<kSome>(run);
  if (bytes <= kUsualScratch) return with_bytes_on_stack<kUsualScratch>(run);
  with_bytes_on_stack<kMostScratch>(run);
}

}  // namespace tidemark::tile
