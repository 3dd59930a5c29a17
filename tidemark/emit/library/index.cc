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

// What is fetched ahead stays in the first cache until it is read.
constexpr int64_t kLineBytes = 64, kMostAhead = 16 << 10;

int64_t grain_for(int64_t bytes_each) {
  return std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, bytes_each));
}

int64_t place(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

// f(list), with the elements of `indices` in their own type if that is a usual one. Others are
// looked up one by one, so that there is not a kernel for each.
template <class F>
auto visit(const Indices& indices, const F& f) {
  switch (indices.dtype) {
    case DType::i64:
      return f(reinterpret_cast<const int64_t*>(indices.data));
    case DType::i32:
      return f(reinterpret_cast<const int32_t*>(indices.data));
    case DType::u8:
      return f(reinterpret_cast<const uint8_t*>(indices.data));
    default:
      return f(indices);
  }
}

// f(size), where the sizes of elements are constants, so that a copy is one instruction.
template <class F>
void visit_size(int64_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(std::integral_constant<int64_t, 1>());
    case 2:
      return f(std::integral_constant<int64_t, 2>());
    case 4:
      return f(std::integral_constant<int64_t, 4>());
    case 8:
      return f(std::integral_constant<int64_t, 8>());
    default:
      return f(bytes);
  }
}

// Copies a row. One of at most a line takes no call: it is moved in pieces, the last of which ends
// with the row and may overlap the one before.
void copy_row(std::byte* to, const std::byte* from, int64_t bytes) {
  constexpr int64_t kPiece = 16;
  if (bytes < kPiece || bytes > kLineBytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t at = 0; at + kPiece < bytes; at += kPiece) std::memcpy(to + at, from + at, kPiece);
  std::memcpy(to + bytes - kPiece, from + bytes - kPiece, kPiece);
}
template <int64_t kBytes>
void copy_row(std::byte* to, const std::byte* from, std::integral_constant<int64_t, kBytes>) {
  std::memcpy(to, from, kBytes);
}

// Rows of several lines, which follow one another in any order, are fetched this many ahead: a CPU
// sees where a row lies by its first lines only.
constexpr int64_t kRowsAhead = 2;
void fetch_row(const std::byte* row, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(row + at);
}

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

// Elements that are combined at a time, a vector of 16 bytes after the other: its elements are
// loaded before any is stored, so that compilers use vectors.
constexpr int64_t kTogether = 16;

template <int64_t kCount, class T, class Combination>
void combine_run(T* target, const T* update, Combination combine) {
  constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(T));
#pragma GCC unroll 8
  for (int64_t first = 0; first < kCount; first += kLanes) {
    T results[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) results[i] = combine(target[first + i], update[first + i]);
    for (int64_t i = 0; i < kLanes; ++i) target[first + i] = results[i];
  }
}

}  // namespace

int64_t Indices::operator[](int64_t i) const {
  return visit_dtype(dtype, [&]<class T>(T) -> int64_t {
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(reinterpret_cast<const T*>(data)[i]);
    else
      return 0;
  });
}

int64_t first_outside(const Indices& indices, int64_t size) {
  return visit(indices, [&](const auto& list) -> int64_t {
    // A number of u64 that is read as a negative one is beyond every size.
    const int64_t least = indices.dtype == DType::u64 ? 0 : -size;
    const auto is_outside = [=](int64_t index) { return index < least || index >= size; };
    // Whole blocks first, in a loop without an exit.
    constexpr int64_t kBlock = 256;
    int64_t i = 0;
    for (bool any = false; i + kBlock <= indices.count; i += kBlock) {
      for (int64_t k = 0; k < kBlock; ++k) any |= is_outside(list[i + k]);
      if (any) break;
    }
    for (; i < indices.count; ++i)
      if (is_outside(list[i])) return i;
    return -1;
  });
}

void gather(const std::byte* from, int64_t outer, int64_t size, int64_t inner_bytes,
            const Indices& indices, std::byte* to) {
  const bool has_lines = inner_bytes > kLineBytes && inner_bytes <= kMostAhead / 4;
  const auto copy = [&](const auto& list, auto bytes, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t first = begin % indices.count;
      const int64_t count = std::min(end - begin, indices.count - first);
      const std::byte* const slice = from + begin / indices.count * size * inner_bytes;
      std::byte* const row = to + begin * bytes;
      const auto element = [&](int64_t i) {
        copy_row(row + i * bytes, slice + place(list[first + i], size) * bytes, bytes);
      };
      // Where most lines of a slice are read, in any order, those of the next one are fetched in
      // their order meanwhile. An address beyond the array does no harm.
      const int64_t slice_bytes = size * inner_bytes, ahead = slice_bytes / indices.count;
      if (ahead > 0 && ahead <= kLineBytes && slice_bytes <= kMostAhead) {
        for (int64_t i = 0; i < count; ++i) {
          __builtin_prefetch(slice + slice_bytes + (first + i) * ahead);
          element(i);
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          if (has_lines && i + kRowsAhead < count)
            fetch_row(slice + place(list[first + i + kRowsAhead], size) * bytes, bytes);
          element(i);
        }
      }
      begin += count;
    }
  };
  visit(indices, [&](const auto& list) {
    visit_size(inner_bytes, [&](auto bytes) {
      device::parallel_for(outer * indices.count, grain_for(inner_bytes),
                           [&](int64_t begin, int64_t end, int) { copy(list, bytes, begin, end); });
    });
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
  const int64_t line = shape.rank() == 0 ? 1 : int64_t{shape[-1]};
  const int64_t step = shape.rank() == 0 ? 0 : slices.back();
  const int64_t size = from.shape[axis], stride = from.strides[along];
  // As in `gather`, where lines are picked from rows.
  const int64_t row_bytes = size * element_bytes, ahead = row_bytes / std::max<int64_t>(1, line);
  const bool fetches =
      step == 0 && stride == 1 && ahead > 0 && ahead <= kLineBytes && row_bytes <= kMostAhead;
  const auto pick_line = [&](const auto& list, auto bytes, int64_t slice, int64_t begin,
                             int64_t end) {
    if (fetches && end - begin >= kLineBytes) {
      const std::byte* next = from.data + slice * bytes + row_bytes;
      for (int64_t i = begin; i < end; ++i, next += ahead) {
        __builtin_prefetch(next);
        std::memcpy(to + i * bytes, from.data + (slice + place(list[i], size)) * bytes,
                    static_cast<size_t>(bytes));
      }
      return;
    }
    for (int64_t i = begin; i < end; ++i, slice += step)
      std::memcpy(to + i * bytes, from.data + (slice + place(list[i], size) * stride) * bytes,
                  static_cast<size_t>(bytes));
  };
  // Lines along the last axis: in one, slices are a constant step apart. Lines of the last axis but
  // one follow one another without a division.
  const int64_t lines = shape.rank() < 2 ? 1 : int64_t{shape[-2]};
  const int64_t line_step = shape.rank() < 2 ? 0 : slices[slices.size() - 2];
  const auto pick = [&](const auto& list, auto bytes, int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t slice = 0;
      for (int64_t d = shape.rank(), rest = begin; d-- > 0; rest /= int64_t{shape[d]})
        slice += rest % int64_t{shape[d]} * slices[static_cast<size_t>(d)];
      if (begin % line != 0 || end - begin < line) {
        const int64_t stop = std::min(end, (begin / line + 1) * line);
        pick_line(list, bytes, slice, begin, stop);
        begin = stop;
        continue;
      }
      const int64_t whole = std::min((end - begin) / line, lines - begin / line % lines);
      for (int64_t k = 0; k < whole; ++k, begin += line, slice += line_step)
        pick_line(list, bytes, slice, begin, begin + line);
    }
  };
  visit(indices, [&](const auto& list) {
    visit_size(element_bytes, [&](auto bytes) {
      device::parallel_for(indices.count, grain_for(element_bytes),
                           [&](int64_t begin, int64_t end, int) { pick(list, bytes, begin, end); });
    });
  });
}

void scatter(const Scatter& work, const Indices& indices, const std::byte* updates) {
  visit_dtype(work.dtype, [&](auto element) {
    using T = decltype(element);
    const int64_t size = work.size, inner = work.inner;
    // Each piece owns a range of the inner part of one outer index, so that no two threads write
    // to the same target. Rows stay whole unless threads would have nothing to do: memory is read
    // best in long runs.
    const int64_t least =
        std::max<int64_t>(16, grain_for(indices.count * static_cast<int64_t>(sizeof(T))));
    const int64_t outer = std::max<int64_t>(1, work.outer);  // There may be nothing to write to.
    const int64_t parts = (num_threads() + outer - 1) / outer;
    const int64_t block = std::max(least, ((inner + parts - 1) / parts + 15) / 16 * 16);
    const int64_t blocks = (inner + block - 1) / block;
    with_combination<T>(work.how, [&](auto combine) {
      device::parallel_for(work.outer * blocks, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t o = piece / blocks;
          const int64_t first = piece % blocks * block;
          const int64_t last = std::min(inner, first + block);
          T* const targets = reinterpret_cast<T*>(work.to) + o * size * inner;
          const T* update = reinterpret_cast<const T*>(updates) + o * indices.count * inner;
          visit(indices, [&](const auto& list) {
            if (inner == 1) {
              for (int64_t i = 0; i < indices.count; ++i) {
                T& target = targets[place(list[i], size)];
                target = combine(target, update[i]);
              }
              return;
            }
            for (int64_t i = 0; i < indices.count; ++i, update += inner) {
              T* const target = targets + place(list[i], size) * inner;
              // The next row of a large table is fetched meanwhile.
              const int64_t following = list[std::min(i + 1, indices.count - 1)];
              const T* const next = targets + place(following, size) * inner;
              int64_t n = first;
              for (; n + kTogether <= last; n += kTogether) {
                __builtin_prefetch(next + n);
                combine_run<kTogether>(target + n, update + n, combine);
              }
              for (; n < last; ++n) target[n] = combine(target[n], update[n]);
            }
          });
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
          const int64_t first = o * count * inner;
          const T* update = reinterpret_cast<const T*>(updates) + first;
          visit(indices, [&](const auto& list) {
            for (int64_t i = 0, n = 0; i < count * inner; ++i, ++n) {
              n = n == inner ? 0 : n;
              T& found = target[place(list[first + i], size) * inner + n];
              found = combine(found, update[i]);
            }
          });
        }
      });
    });
  });
}

}  // namespace tidemark::library
