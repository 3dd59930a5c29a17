#include "tidemark/compile/frame.h"

namespace tidemark::compile {

int64_t Frame::size() const {
  int64_t size = 1;
  for (const int64_t extent : extents) size *= extent;
  return size;
}

void Frame::add(const ArrayRef& array) {
  const auto b = static_cast<size_t>(buffers++);
  data[b] = array.data;
  strides[b] = array.strides;
  for (int64_t& stride : strides[b]) stride *= size_of(array.dtype);
}

void Frame::collapse(int64_t begin, int64_t end) {
  const auto erase = [&](int64_t axis) {
    extents.erase(static_cast<size_t>(axis));
    for (int b = 0; b < buffers; ++b)
      strides[static_cast<size_t>(b)].erase(static_cast<size_t>(axis));
  };
  for (int64_t axis = end - 1; axis >= begin; --axis) {
    if (extents[static_cast<size_t>(axis)] == 1) {
      erase(axis);
      --end;
    }
  }
  for (int64_t axis = end - 1; axis > begin; --axis) {
    const auto inner = static_cast<size_t>(axis);
    bool even = true;
    for (int b = 0; even && b < buffers; ++b) {
      const Strides& s = strides[static_cast<size_t>(b)];
      even = s[inner - 1] == s[inner] * extents[inner];
    }
    if (!even) continue;
    extents[inner - 1] *= extents[inner];
    for (int b = 0; b < buffers; ++b) {
      Strides& s = strides[static_cast<size_t>(b)];
      s[inner - 1] = s[inner];
    }
    erase(axis);
  }
}

}  // namespace tidemark::compile
