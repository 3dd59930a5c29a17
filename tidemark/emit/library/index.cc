#include "tidemark/emit/library/index.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tidemark/device/threads.h"
#include "tidemark/emit/library/arithmetic.h"

namespace tidemark::library {
namespace {

// Below this many bytes another thread is not worth waking.
constexpr int64_t kGrainBytes = 64 << 10;

int64_t grain_for(int64_t bytes_each) {
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes_each));
}

int64_t place(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

// Calls f with the function that combines two elements.
template <class T, class F>
void with_combination(Combine how, F f) {
  switch (how) {
    case Combine::add:
      return f([](T a, T b) { return plus(a, b); });
    case Combine::multiply:
      return f([](T a, T b) { return times(a, b); });
    case Combine::maximum:
      return f([](T a, T b) { return replaces<true>(a, b) ? b : a; });
    case Combine::minimum:
      return f([](T a, T b) { return replaces<false>(a, b) ? b : a; });
  }
}

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

void scatter(const Scatter& work, const Indices& indices, const std::byte* updates) {
  visit_dtype(work.dtype, [&](auto element) {
    using T = decltype(element);
    const int64_t size = work.size, inner = work.inner;
    // Each piece owns a range of the inner part of one outer index, so that no two threads write
    // to the same target.
    const int64_t block =
        std::max<int64_t>(16, grain_for(indices.count * static_cast<int64_t>(sizeof(T))));
    const int64_t blocks = (inner + block - 1) / block;
    with_combination<T>(work.how, [&](auto combine) {
      device::parallel_for(work.outer * blocks, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t o = piece / blocks;
          const int64_t first = piece % blocks * block;
          const int64_t last = std::min(inner, first + block);
          for (int64_t i = 0; i < indices.count; ++i) {
            T* target =
                reinterpret_cast<T*>(work.to) + (o * size + place(indices[i], size)) * inner;
            const T* update = reinterpret_cast<const T*>(updates) + (o * indices.count + i) * inner;
            for (int64_t n = first; n < last; ++n) target[n] = combine(target[n], update[n]);
          }
        }
      });
    });
  });
}

void scatter_along(const Scatter& work, const Indices& indices, int64_t count,
                   const std::byte* updates) {
  visit_dtype(work.dtype, [&](auto element) {
    using T = decltype(element);
    const int64_t size = work.size, inner = work.inner;
    const int64_t grain = grain_for(count * inner * static_cast<int64_t>(sizeof(T)));
    with_combination<T>(work.how, [&](auto combine) {
      device::parallel_for(work.outer, grain, [&](int64_t begin, int64_t end, int) {
        for (int64_t o = begin; o < end; ++o) {
          T* target = reinterpret_cast<T*>(work.to) + o * size * inner;
          for (int64_t i = 0; i < count * inner; ++i) {
            const int64_t at = o * count * inner + i;
            T& found = target[place(indices[at], size) * inner + i % inner];
            found = combine(found, reinterpret_cast<const T*>(updates)[at]);
          }
        }
      });
    });
  });
}

}  // namespace tidemark::library
