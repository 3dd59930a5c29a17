#include "tidemark/compile/cpu/chunks.h"

#include <algorithm>

#include "tidemark/base/error.h"
#include "tidemark/compile/cpu/launch.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {
namespace {

template <class T>
T combined(Monoid monoid, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return monoid == Monoid::minimum ? (a && b) : (a || b);
  } else {
    switch (monoid) {
      case Monoid::minimum:
        return a != a ? a : a < b ? a : b;
      case Monoid::maximum:
        return a != a ? a : a > b ? a : b;
      default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
      return static_cast<T>(monoid == Monoid::sum ? x + y : x * y);
    } else {
      return monoid == Monoid::sum ? a + b : a * b;
    }
  }
}

}  // namespace

int64_t chunk_length(Nest::Order order, int64_t length, int64_t rows, int64_t columns,
                     int threads) {
  const bool lanes = order == Nest::Order::lanes;
  const int64_t pieces = lanes ? rows : rows * ((columns + kColumnBlock - 1) / kColumnBlock);
  if (pieces >= threads || threads == 1 || columns == 0) return 0;
  int64_t chunk = lanes ? kLaneBlock : kStepBlock;
  while (chunk * columns < 32768 || length / chunk > 512) chunk *= 2;
  return length < 4 * chunk ? 0 : chunk;
}

void combine_chunks(Monoid monoid, const ArrayRef& partials, const ArrayRef& result) {
  if (WorkspacePart::preparing()) return;
  const device::FloatEnvironment ieee;
  const int64_t rows = partials.shape[0], chunks = partials.shape[1], columns = partials.shape[2];
  visit_dtype(partials.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_arithmetic_v<T>) {
      for (int64_t row = 0; row < rows; ++row) {
        T* const from = reinterpret_cast<T*>(partials.data) + row * chunks * columns;
        for (int64_t apart = 1; apart < chunks; apart *= 2) {
          for (int64_t chunk = 0; chunk + apart < chunks; chunk += 2 * apart) {
            T* const left = from + chunk * columns;
            const T* const right = left + apart * columns;
            for (int64_t column = 0; column < columns; ++column)
              left[column] = combined<T>(monoid, left[column], right[column]);
          }
        }
        std::copy_n(from, columns, reinterpret_cast<T*>(result.data) + row * columns);
      }
    } else {
      TIDEMARK_CHECK(false, "partial results are never 16-bit floats");
    }
  });
}

}  // namespace tidemark::compile
