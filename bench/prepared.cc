#include "bench/prepared.h"

#include <bit>
#include <cmath>

namespace tidemark::bench {
namespace {

uint32_t mixed(uint32_t position) {
  position ^= position >> 16;
  position *= 0x7feb352dU;
  position ^= position >> 15;
  position *= 0x846ca68bU;
  return position ^ (position >> 16);
}

// A value for each position, of 24 bits.
template <class Value, class Make>
Tensor filled(const Shape& shape, uint32_t salt, Make make) {
  std::vector<Value> values(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = make(mixed(static_cast<uint32_t>(i) + salt * 0x9e3779b9U) >> 8);
  return constant(values, shape);
}

}  // namespace

Tensor input(const Shape& shape, float scale, uint32_t salt) {
  return filled<float>(shape, salt, [=](uint32_t number) {
    return (static_cast<float>(number) * 0x1p-24F - 0.5F) * scale;
  });
}

Tensor input_below(int32_t count, const Shape& shape, uint32_t salt) {
  const int bits = std::countr_zero(static_cast<uint32_t>(count));
  return filled<int32_t>(
      shape, salt, [=](uint32_t number) { return static_cast<int32_t>(number >> (24 - bits)); });
}

Tensor orthogonal(int64_t size) {
  const float entry = 1 / std::sqrt(static_cast<float>(size));
  std::vector<float> values;
  for (uint64_t i = 0; i < static_cast<uint64_t>(size); ++i) {
    for (uint64_t j = 0; j < static_cast<uint64_t>(size); ++j)
      values.push_back(std::popcount(i & j) % 2 == 0 ? entry : -entry);
  }
  return constant(values, {size, size});
}

}  // namespace tidemark::bench
