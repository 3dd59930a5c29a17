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

int64_t collapse_axes(AxisList& extents, std::span<Strides> strides, int64_t begin, int64_t end) {
  const auto erase = [&](int64_t axis) {
    extents.erase(static_cast<size_t>(axis));
    for (Strides& s : strides) s.erase(static_cast<size_t>(axis));
    --end;
  };
  for (int64_t axis = end - 1; axis >= begin; --axis) {
    if (extents[static_cast<size_t>(axis)] == 1) erase(axis);
  }
  for (int64_t axis = end - 1; axis > begin; --axis) {
    const auto inner = static_cast<size_t>(axis);
    bool even = true;
    for (const Strides& s : strides) {
      even = s[inner - 1] == s[inner] * extents[inner];
      if (!even) break;
    }
    if (!even) continue;
    extents[inner - 1] *= extents[inner];
    for (Strides& s : strides) s[inner - 1] = s[inner];
    erase(axis);
  }
  return end;
}

}  // namespace tidemark::compile
