// The bytes that containers hold on the heap: each list counts with its capacity.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark {

template <class T>
int64_t heap_bytes(const std::vector<T>& list) {
  return static_cast<int64_t>(list.capacity() * sizeof(T));
}
inline int64_t heap_bytes(const std::string& text) {
  constexpr size_t kInside = 15;
  return text.capacity() > kInside ? static_cast<int64_t>(text.capacity() + 1) : 0;
}
// The lists themselves, plus the bytes that `of` returns for each item.
template <class T, class Of>
int64_t heap_bytes(const std::vector<T>& list, Of of) {
  int64_t bytes = heap_bytes(list);
  for (const T& item : list) bytes += of(item);
  return bytes;
}

}  // namespace tidemark
