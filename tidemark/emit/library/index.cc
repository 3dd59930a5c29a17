#include "tidemark/emit/library/index.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tidemark/device/threads.h"

namespace tidemark::library {
namespace {

// Below this many bytes another thread is not worth waking.
constexpr int64_t kGrainBytes = 64 << 10;

int64_t grain_for(int64_t bytes_each) {
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes_each));
}

int64_t place(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// The accumulator type of running sums.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

}  // namespace

int64_t Indices::operator[](int64_t i) const {
  switch (dtype) {
    case DType::i64:
      return reinterpret_cast<const int64_t*>(data)[i];
    case DType::u8:
      return reinterpret_cast<const uint8_t*>(data)[i];
    default:
      return reinterpret_cast<const int32_t*>(data)[i];
  }
}

int64_t first_outside(const Indices& indices, int64_t size) {
  for (int64_t i = 0; i < indices.count; ++i) {
    const int64_t index = indices[i];
    if (index < -size || index >= size) return i;
  }
  return -1;
}

void gather(const std::byte* from, int64_t outer, int64_t size, int64_t inner_bytes,
            const Indices& indices, std::byte* to) {
  device::parallel_for(
      outer * indices.count, grain_for(inner_bytes), [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t o = row / indices.count;
          const int64_t picked = place(indices[row % indices.count], size);
          std::memcpy(to + row * inner_bytes, from + (o * size + picked) * inner_bytes,
                      static_cast<size_t>(inner_bytes));
        }
      });
}

void first_equal(const Indices& indices, int64_t* order, int64_t* to) {
  std::iota(order, order + indices.count, 0);
  std::sort(order, order + indices.count, [&](int64_t a, int64_t b) {
    const int64_t x = indices[a], y = indices[b];
    return x != y ? x < y : a < b;
  });
  for (int64_t i = 0; i < indices.count; ++i) {
    const bool again = i > 0 && indices[order[i]] == indices[order[i - 1]];
    to[order[i]] = again ? to[order[i - 1]] : order[i];
  }
}

void put(std::byte* to, int64_t size, int64_t row_bytes, const Indices& indices,
         const std::byte* from) {
  for (int64_t i = 0; i < indices.count; ++i)
    std::memcpy(to + place(indices[i], size) * row_bytes, from + i * row_bytes,
                static_cast<size_t>(row_bytes));
}

void take_along(const ArrayRef& from, int64_t axis, const Indices& indices, const Shape& shape,
                std::byte* to) {
  const int64_t element_bytes = size_of(from.dtype);
  const auto along = static_cast<size_t>(axis);
  // The beginning of the slice that an element is picked from.
  Strides slices = from.strides;
  slices[along] = 0;
  const auto pick = [&](int64_t begin, int64_t end, int) {
    AxisList at(static_cast<size_t>(shape.rank()));
    int64_t slice = 0;
    for (int64_t d = shape.rank(), rest = begin; d-- > 0; rest /= int64_t{shape[d]}) {
      at[static_cast<size_t>(d)] = rest % int64_t{shape[d]};
      slice += at[static_cast<size_t>(d)] * slices[static_cast<size_t>(d)];
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t picked = place(indices[i], from.shape[axis]) * from.strides[along];
      std::memcpy(to + i * element_bytes, from.data + (slice + picked) * element_bytes,
                  static_cast<size_t>(element_bytes));
      for (int64_t d = shape.rank(); d-- > 0;) {
        const auto axis_d = static_cast<size_t>(d);
        slice += slices[axis_d];
        if (++at[axis_d] < shape[d]) break;
        slice -= at[axis_d] * slices[axis_d];
        at[axis_d] = 0;
      }
    }
  };
  device::parallel_for(indices.count, grain_for(element_bytes), pick);
}

void scatter_add(DType dtype, std::byte* to, int64_t outer, int64_t size, int64_t inner,
                 const Indices& indices, const std::byte* updates) {
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    // Each piece owns a range of the inner part of one outer index, so that no two threads add to
    // the same target.
    const int64_t block =
        std::max<int64_t>(16, grain_for(indices.count * static_cast<int64_t>(sizeof(T))));
    const int64_t blocks = (inner + block - 1) / block;
    device::parallel_for(outer * blocks, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t o = piece / blocks;
        const int64_t first = piece % blocks * block;
        const int64_t last = std::min(inner, first + block);
        for (int64_t i = 0; i < indices.count; ++i) {
          T* target = reinterpret_cast<T*>(to) + (o * size + place(indices[i], size)) * inner;
          const T* update = reinterpret_cast<const T*>(updates) + (o * indices.count + i) * inner;
          for (int64_t n = first; n < last; ++n) target[n] = plus(target[n], update[n]);
        }
      }
    });
  });
}

void scatter_add_along(DType dtype, std::byte* to, int64_t outer, int64_t size, int64_t inner,
                       const Indices& indices, int64_t count, const std::byte* updates) {
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    device::parallel_for(outer, grain_for(count * inner * static_cast<int64_t>(sizeof(T))),
                         [&](int64_t begin, int64_t end, int) {
                           for (int64_t o = begin; o < end; ++o) {
                             T* target = reinterpret_cast<T*>(to) + o * size * inner;
                             for (int64_t i = 0; i < count * inner; ++i) {
                               const int64_t at = o * count * inner + i;
                               T& sum = target[place(indices[at], size) * inner + i % inner];
                               sum = plus(sum, reinterpret_cast<const T*>(updates)[at]);
                             }
                           }
                         });
  });
}

void cumsum(DType dtype, const std::byte* from, int64_t outer, int64_t count, int64_t inner,
            bool reverse, std::byte* to) {
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    const int64_t row_bytes = count * static_cast<int64_t>(sizeof(T));
    device::parallel_for(outer * inner, grain_for(row_bytes), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t base = row / inner * count * inner + row % inner;
        const T* x = reinterpret_cast<const T*>(from) + base;
        T* y = reinterpret_cast<T*>(to) + base;
        Wide<T> total{};
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = (reverse ? count - 1 - i : i) * inner;
          total = plus(total, static_cast<Wide<T>>(x[at]));
          y[at] = static_cast<T>(total);
        }
      }
    });
  });
}

}  // namespace tidemark::library
