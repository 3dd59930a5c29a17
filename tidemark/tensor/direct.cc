#include "tidemark/tensor/direct.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "tidemark/device/threads.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {
namespace {

template <class T>
std::span<T> elements_of(const Tensor& dense, Source at) {
  return {reinterpret_cast<T*>(array_of(dense, at).data), static_cast<size_t>(dense.size())};
}

Tensor zeroed(const Shape& shape, Source at) {
  Tensor made = make_tensor(DType::i64, shape, at);
  std::ranges::fill(elements_of<int64_t>(made, at), 0);
  return made;
}

// The places of the true elements of a stretch, of at most 256. The next place is written before it
// is known whether it counts: hits at random would mislead a branch.
struct Stretch {
  static constexpr int64_t kMost = 256;
  int64_t places[kMost + 1];
  int64_t count = 0;

  Stretch(const uint8_t* hits, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      places[count] = i;
      count += hits[i] != 0 ? 1 : 0;
    }
  }
};

// Whether there is none. Masks are often nearly empty.
bool is_clear(const uint8_t* hits, int64_t count) {
  uint64_t any = 0, word = 0;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::memcpy(&word, hits + i, sizeof(word));
    any |= word;
  }
  for (; i < count; ++i) any |= hits[i];
  return any == 0;
}

int64_t count_true(std::span<const uint8_t> hits) {
  int64_t count = 0;
  for (const uint8_t hit : hits) count += hit != 0 ? 1 : 0;
  return count;
}

// Row by row of the last axis, with the indices of the other axes in `outer`.
void write_indices(std::span<const uint8_t> hits, const Shape& shape, int64_t* to) {
  const int64_t rank = shape.rank(), columns = shape[-1];
  std::vector<int64_t> outer(static_cast<size_t>(rank - 1), 0);
  for (size_t first = 0; first < hits.size(); first += static_cast<size_t>(columns)) {
    const uint8_t* const row = hits.data() + first;
    for (int64_t begin = 0; begin < columns; begin += Stretch::kMost) {
      const int64_t end = std::min(columns, begin + Stretch::kMost);
      if (is_clear(row + begin, end - begin)) continue;
      const Stretch found(row, begin, end);
      for (int64_t i = 0; i < found.count; ++i) {
        for (const int64_t index : outer) *to++ = index;
        *to++ = found.places[i];
      }
    }
    for (int64_t axis = rank - 2; axis >= 0; --axis) {
      if (++outer[static_cast<size_t>(axis)] < shape[axis]) break;
      outer[static_cast<size_t>(axis)] = 0;
    }
  }
}

// NaNs count as equal.
template <class T>
bool differ(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return differ(static_cast<float>(a), static_cast<float>(b));
  else
    return a != b && !(a != a && b != b);
}

template <class T>
int64_t count_runs(std::span<const T> sorted) {
  int64_t count = 1;
  for (size_t i = 1; i < sorted.size(); ++i) count += differ(sorted[i], sorted[i - 1]) ? 1 : 0;
  return count;
}

}  // namespace

bool is_plain(const Tensor& x) {
  return !is_observed({&x}) && TensorState::of(x)->kind == TensorState::Kind::concrete;
}

Tensor true_indices(const Tensor& hits, Source at) {
  const Tensor flat = dense(hits, at);
  const auto list = elements_of<const uint8_t>(flat, at);
  Tensor made = make_tensor(DType::i64, {count_true(list), hits.rank()}, at);
  if (hits.rank() > 0 && made.size() > 0)
    write_indices(list, hits.shape(), elements_of<int64_t>(made, at).data());
  return made;
}

Distinct distinct(const Tensor& list, const Shape& shape, Source at) {
  const Tensors both =
      bind_results(def_of(&ops::sort), {&list, 1}, Attrs().add(int64_t{0}).add(false), 0b11, at);
  const device::FloatEnvironment ieee;
  const auto order = elements_of<const int64_t>(both[1], at);
  Tensor inverse = make_tensor(DType::i64, shape, at);
  const auto rank_of = elements_of<int64_t>(inverse, at);
  return visit_dtype(list.dtype(), [&]<class T>(T) -> Distinct {
    const auto sorted = elements_of<const T>(both[0], at);
    const int64_t count = count_runs<T>(sorted);
    Tensor values = make_tensor(list.dtype(), {count}, at), counts = zeroed({count}, at);
    const auto value = elements_of<T>(values, at);
    const auto occurs = elements_of<int64_t>(counts, at);
    size_t rank = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      rank += i > 0 && differ(sorted[i], sorted[i - 1]) ? 1 : 0;
      value[rank] = sorted[i];
      ++occurs[rank];
      rank_of[static_cast<size_t>(order[i])] = static_cast<int64_t>(rank);
    }
    return {values, inverse, counts, literal(DType::i64, 0, count, at)};
  });
}

Tensor occurrences(const Tensor& numbers, int64_t length, Source at) {
  const Tensor list = dense(numbers, at);
  Tensor made = zeroed({length}, at);
  int64_t* const counts = elements_of<int64_t>(made, at).data();
  const auto end = static_cast<uint64_t>(length);
  for (const int64_t number : elements_of<const int64_t>(list, at))
    if (static_cast<uint64_t>(number) < end) ++counts[number];
  return made;
}

namespace {

// Bin b holds edges[b] <= x < edges[b + 1], the last one its upper end too. The bin that equal
// widths give is right but for rounding.
template <class T>
void count_between(std::span<const T> list, std::span<const T> edges, int64_t* counts) {
  const auto bins = static_cast<int64_t>(edges.size()) - 1;
  const T low = edges.front(), high = edges.back();
  const T per_width = static_cast<T>(bins) / (high - low);
  for (const T x : list) {
    if (!(x >= low && x <= high)) continue;
    auto bin = std::min(bins - 1, static_cast<int64_t>((x - low) * per_width));
    while (edges[static_cast<size_t>(bin)] > x) --bin;
    while (bin + 1 < bins && edges[static_cast<size_t>(bin) + 1] <= x) ++bin;
    ++counts[bin];
  }
}

}  // namespace

std::optional<Tensor> between_edges(const Tensor& list, const Tensor& edges, Source at) {
  if (!is_plain(list) || !is_plain(edges)) return {};
  const device::FloatEnvironment ieee;
  const Tensor given = dense(list, at), ends = dense(edges, at);
  return visit_dtype(list.dtype(), [&]<class T>(T) -> std::optional<Tensor> {
    if constexpr (std::is_floating_point_v<T>) {
      const auto all = elements_of<const T>(ends, at);
      const T width = all.back() - all.front();
      if (!(width > 0) || !std::isfinite(width) ||
          !std::isfinite(static_cast<T>(all.size()) / width))
        return {};
      Tensor made = zeroed({edges.size() - 1}, at);
      count_between(elements_of<const T>(given, at), all, elements_of<int64_t>(made, at).data());
      return made;
    } else {
      return {};
    }
  });
}

// ---- matrices -----------------------------------------------------------------------------------

namespace {

// Below this many bytes another thread is not worth waking.
constexpr int64_t kGrainBytes = 64 << 10;

bool has_plain_zero(DType dtype) { return dtype != DType::boolean && !is_complex(dtype); }

std::byte* bytes_of(const Tensor& dense, Source at) { return array_of(dense, at).data; }

}  // namespace

std::optional<Tensor> within_band(const Tensor& x, Band band, Source at) {
  if (!is_plain(x) || !has_plain_zero(x.dtype())) return {};
  const Tensor given = dense(x, at);
  Tensor made = make_tensor(x.dtype(), x.shape(), at);
  const std::byte* const from = bytes_of(given, at);
  std::byte* const to = bytes_of(made, at);
  const int64_t rows = x.shape()[-2], columns = x.shape()[-1];
  if (rows * columns == 0) return made;
  const int64_t size = size_of(x.dtype()), row_bytes = columns * size;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / row_bytes);
  device::parallel_for(x.size() / columns, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t row = line % rows;
      // Not below 0 or above the row, whatever the band.
      const int64_t first = std::clamp(band.least, -row, columns - row) + row;
      const int64_t last = std::clamp(band.most, -row - 1, columns - row - 1) + row + 1;
      const int64_t kept = std::max(first, last) * size, start = first * size;
      std::byte* const out = to + line * row_bytes;
      std::memset(out, 0, static_cast<size_t>(start));
      std::memcpy(out + start, from + line * row_bytes + start, static_cast<size_t>(kept - start));
      std::memset(out + kept, 0, static_cast<size_t>(row_bytes - kept));
    }
  });
  return made;
}

std::optional<Tensor> on_diagonal(const Tensor* vector, DType dtype, const Shape& shape,
                                  int64_t offset, Source at) {
  if (is_observed({}) || (vector != nullptr && !is_plain(*vector)) || !has_plain_zero(dtype))
    return {};
  const Tensor given = vector != nullptr ? dense(*vector, at) : Tensor();
  Tensor made = make_tensor(dtype, shape, at);
  const int64_t columns = shape[-1], row_bytes = std::max<int64_t>(1, columns * size_of(dtype));
  device::parallel_for(shape[0], std::max<int64_t>(1, kGrainBytes / row_bytes),
                       [to = bytes_of(made, at), row_bytes](int64_t begin, int64_t end, int) {
                         std::memset(to + begin * row_bytes, 0,
                                     static_cast<size_t>((end - begin) * row_bytes));
                       });
  if (made.size() == 0) return made;
  visit_dtype(dtype, [&]<class T>(T) {
    T* const to = reinterpret_cast<T*>(bytes_of(made, at));
    const T* const from =
        vector != nullptr ? reinterpret_cast<const T*>(bytes_of(given, at)) : nullptr;
    const int64_t first = std::max<int64_t>(0, -offset);
    for (int64_t row = first; row < shape[0] && row + offset < columns; ++row)
      to[row * columns + row + offset] = from != nullptr ? from[row - first] : static_cast<T>(1);
  });
  return made;
}

std::optional<Tensor> cross_products(const Tensor& a, const Tensor& b, Source at) {
  const bool alike = a.dtype() == b.dtype() && a.shape() == b.shape();
  if (!alike || !is_plain(a) || !is_plain(b)) return {};
  return visit_dtype(a.dtype(), [&]<class T>(T) -> std::optional<Tensor> {
    if constexpr (std::is_floating_point_v<T>) {
      const Tensor left = dense(a, at), right = dense(b, at);
      Tensor made = make_tensor(a.dtype(), a.shape(), at);
      const T* const x = elements_of<const T>(left, at).data();
      const T* const y = elements_of<const T>(right, at).data();
      T* const to = elements_of<T>(made, at).data();
      device::parallel_for(a.size() / 3, kGrainBytes / 12, [=](int64_t begin, int64_t end, int) {
        for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
          to[i] = x[i + 1] * y[i + 2] - x[i + 2] * y[i + 1];
          to[i + 1] = x[i + 2] * y[i] - x[i] * y[i + 2];
          to[i + 2] = x[i] * y[i + 1] - x[i + 1] * y[i];
        }
      });
      return made;
    } else {
      return {};
    }
  });
}

// ---- complex numbers ----------------------------------------------------------------------------

namespace {

// A register of pairs (re, im), two of c64 or one of c128.
template <class T>
struct Pairs {
  static constexpr int64_t kLanes = 16 / sizeof(T);
  using V [[gnu::vector_size(16)]] = T;
  V lanes;

  static Pairs at(const T* from) {
    Pairs made;
    std::memcpy(&made.lanes, from, sizeof(V));
    return made;
  }
  void put(T* to) const { std::memcpy(to, &lanes, sizeof(V)); }
  // (re, -im) and (-re, im).
  Pairs conjugate() const { return sign_turned(1); }
  Pairs mirrored() const { return sign_turned(0); }
  Pairs operator*(const Pairs& by) const {
    Pairs across{spread<0>(by.lanes) * lanes};
    const Pairs along{spread<1>(by.lanes) * exchanged()};
    // re = a.re b.re - a.im b.im, im = a.im b.re + a.re b.im.
    across.lanes = across.lanes + along.mirrored().lanes;
    return across;
  }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using B [[gnu::vector_size(16)]] = Bits;

  Pairs sign_turned(int64_t part) const {
    B signs = {};
    for (int64_t i = part; i < kLanes; i += 2) signs[i] = Bits{1} << (8 * sizeof(T) - 1);
    return {std::bit_cast<V>(std::bit_cast<B>(lanes) ^ signs)};
  }
  V exchanged() const {
    if constexpr (kLanes == 4)
      return __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2);
    else
      return __builtin_shufflevector(lanes, lanes, 1, 0);
  }
  template <int part>
  static V spread(V x) {
    if constexpr (kLanes == 4)
      return __builtin_shufflevector(x, x, part, part, 2 + part, 2 + part);
    else
      return __builtin_shufflevector(x, x, part, part);
  }
};

// made[i] = f(pairs of a, pairs of b), a register at a time. The last number of c64 may be alone.
template <class T, class F>
void for_pairs(const T* a, const T* b, T* made, int64_t begin, int64_t end, const F& f) {
  constexpr int64_t kLanes = Pairs<T>::kLanes;
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) f(Pairs<T>::at(a + i), Pairs<T>::at(b + i)).put(made + i);
  if (i == end) return;
  T left[kLanes] = {}, right[kLanes] = {};
  std::copy(a + i, a + end, left);
  std::copy(b + i, b + end, right);
  f(Pairs<T>::at(left), Pairs<T>::at(right)).put(left);
  std::copy(left, left + (end - i), made + i);
}

template <class F>
Tensor by_pairs(const Tensor& a, const Tensor& b, const F& f, Source at) {
  const Tensor left = dense(a, at), right = dense(b, at);
  Tensor made = make_tensor(a.dtype(), a.shape(), at);
  const auto run = [&]<class T>(T) {
    const T* const x = elements_of<const T>(left, at).data();
    const T* const y = elements_of<const T>(right, at).data();
    T* const to = elements_of<T>(made, at).data();
    device::parallel_for(a.size(), kGrainBytes / 16, [=](int64_t begin, int64_t end, int) {
      for_pairs<T>(x, y, to, 2 * begin, 2 * end, f);
    });
  };
  if (a.dtype() == DType::c64)
    run(float{});
  else
    run(double{});
  return made;
}

}  // namespace

std::optional<Tensor> conjugates(const Tensor& z, Source at) {
  if (!is_plain(z)) return {};
  return by_pairs(z, z, [](const auto& a, const auto&) { return a.conjugate(); }, at);
}

std::optional<Tensor> complex_products(const Tensor& a, const Tensor& b, Source at) {
  const bool alike = a.dtype() == b.dtype() && a.shape() == b.shape();
  if (!alike || !is_plain(a) || !is_plain(b)) return {};
  return by_pairs(a, b, [](const auto& x, const auto& y) { return x * y; }, at);
}

}  // namespace tidemark::detail
