#include "tidemark/emit/library/sort.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <compare>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/device/threads.h"

namespace tidemark::library {
namespace {

// Maps elements to unsigned keys in the requested order.
template <class Bits>
struct Order {
  Bits infinity = 0;  // For floats, the bits of infinity: NaNs are above them; else 0.
  Bits flipped = 0;   // For signed integers, the sign bit.
  bool descending = false;

  Bits operator()(Bits bits) const {
    const Bits key = infinity != 0 ? float_key(bits) : static_cast<Bits>(bits ^ flipped);
    return descending ? static_cast<Bits>(~key) : key;
  }

 private:
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  // The bits of negative floats decrease with the value. Both zeros have the same key, and so have
  // all NaNs.
  Bits float_key(Bits bits) const {
    const auto size = static_cast<Bits>(bits & ~kSign);
    if (size > infinity) return std::numeric_limits<Bits>::max();
    if (size == 0) return kSign;
    return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
  }
};

template <class Bits>
Bits load(const std::byte* from) {
  Bits bits;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}

// A key with its position in the row. Positions differ, so no two entries are equal and any sorting
// algorithm is stable.
struct PositionedKey {
  uint64_t word = 0;
  PositionedKey() = default;
  PositionedKey(uint64_t key, int64_t place) : word(key << 32 | static_cast<uint64_t>(place)) {}
  int64_t place() const { return static_cast<int64_t>(word & UINT32_MAX); }
  uint64_t key() const { return word >> 32; }
  friend auto operator<=>(PositionedKey a, PositionedKey b) { return a.word <=> b.word; }
};
struct Wide {
  uint64_t of = 0;
  int64_t where = 0;
  Wide() = default;
  Wide(uint64_t key, int64_t place) : of(key), where(place) {}
  int64_t place() const { return where; }
  uint64_t key() const { return of; }
  friend auto operator<=>(const Wide&, const Wide&) = default;
};
bool fits_packed(const Sorting& work) {
  return size_of(work.x.dtype) <= 4 && work.x.shape[work.axis] <= int64_t{UINT32_MAX};
}

struct Rows {
  int64_t count = 1, inner = 1, length = 1;
  explicit Rows(const Sorting& work) : length(work.x.shape[work.axis]) {
    for (int64_t axis = 0; axis < work.x.rank(); ++axis) {
      if (axis != work.axis) count *= work.x.shape[axis];
      if (axis > work.axis) inner *= work.x.shape[axis];
    }
  }
  // Enough rows that a thread is worth waking.
  int64_t grain() const { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, length)); }
};

// Rows from this length on are sorted by the digits of their keys. Shorter ones are sooner compared
// than digits counted.
constexpr int64_t kLongRow = 48;

bool is_sorted_by_digits(const Sorting& work) {
  return work.count >= kLongRow && work.count == work.x.shape[work.axis];
}

// Short rows whose places nobody wants are sorted many at a time, element i of each beside the
// others' in one column. An element of a row takes 64 bytes of scratch, 16 by digits.
constexpr int64_t kColumn = 64;  // Bytes.
constexpr int64_t kLongInColumns = 128;

bool is_sorted_in_columns(const Sorting& work) {
  const DType dtype = work.x.dtype;
  return work.indices == nullptr && work.count == work.x.shape[work.axis] &&
         work.count <= kLongInColumns &&
         (dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32);
}

// Of a worker: its entries, and as many again to sort by digits; or its columns.
int64_t entry_bytes(const Sorting& work) {
  const auto entry = static_cast<int64_t>(fits_packed(work) ? sizeof(PositionedKey) : sizeof(Wide));
  constexpr int64_t line = 64;
  const int64_t entries = is_sorted_by_digits(work) ? 2 * work.count : work.count;
  const int64_t bytes = (entries * entry + line - 1) / line * line;
  return is_sorted_in_columns(work) ? std::max(bytes, work.count * kColumn) : bytes;
}

// Sorts entries, which come in the order of their places, by the last byte of their keys, then by
// the one before, each time keeping the order of equal ones. Bytes that all keys share are passed
// over. Gives the array that the entries are in at the end.
template <int kBytes, class Count, class Entry>
Entry* sorted_by_digits(Entry* entries, Entry* other, Count count) {
  const auto digit = [](const Entry& entry, int byte) { return entry.key() >> (8 * byte) & 0xff; };
  Count places[kBytes][256] = {};
  for (Count i = 0; i < count; ++i)
    for (int byte = 0; byte < kBytes; ++byte) ++places[byte][digit(entries[i], byte)];
  for (int byte = 0; byte < kBytes; ++byte) {
    Count* const place = places[byte];
    if (place[digit(entries[0], byte)] == count) continue;
    Count before = 0;
    for (int value = 0; value < 256; ++value) before += std::exchange(place[value], before);
    for (Count i = 0; i < count; ++i) other[place[digit(entries[i], byte)]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

template <class Number>
struct Columns {
  static constexpr int64_t kRows = kColumn / int64_t{sizeof(Number)};

  // Sorts each row of the columns by Batcher's merge exchange (Knuth 5.2.2 M), whose comparisons do
  // not depend on the elements.
  static void sort(Number* columns, int64_t length) {
    const auto most = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)) / 2);
    for (int64_t p = most; p > 0; p /= 2) {
      int64_t distance = p, kind = 0;
      for (int64_t q = most;; q /= 2) {
        for (int64_t run = kind; run < length - distance; run += 2 * p)
          for (int64_t i = run; i < std::min(run + p, length - distance); ++i)
            put_in_order(columns + i * kRows, columns + (i + distance) * kRows);
        if (q == p) break;
        distance = q - p;
        kind = p;
      }
    }
  }

  // Whether equal elements have equal bits and all can be compared. Otherwise places decide.
  static bool has_plain_order(const Number* columns, int64_t length) {
    if constexpr (std::is_floating_point_v<Number>) {
      const auto negative_zero = reinterpret_cast<Whole>(-V{});
      Whole strange = {};
      for (int64_t i = 0; i < length * kRows; i += kLanes) {
        V x;
        std::memcpy(&x, columns + i, sizeof(V));
        strange |= (x != x) | (reinterpret_cast<Whole>(x) == negative_zero);
      }
      bool plain = true;
      for (int64_t lane = 0; lane < kLanes; ++lane) plain = plain && strange[lane] == 0;
      return plain;
    }
    return true;
  }

 private:
  // As wide as every CPU has.
  using V [[gnu::vector_size(16)]] = Number;
  using Whole [[gnu::vector_size(16)]] = std::conditional_t<sizeof(Number) == 4, int32_t, int64_t>;
  static constexpr auto kLanes = static_cast<int64_t>(sizeof(V) / sizeof(Number));

  static void put_in_order(Number* low, Number* high) {
#pragma GCC unroll 4
    for (int64_t row = 0; row < kRows; row += kLanes) {
      V a, b;
      std::memcpy(&a, low + row, sizeof(V));
      std::memcpy(&b, high + row, sizeof(V));
      const V least = lesser(a, b), most = greater(a, b);
      std::memcpy(low + row, &least, sizeof(V));
      std::memcpy(high + row, &most, sizeof(V));
    }
  }
  // Not left to the compiler: one selects floats by masks, which takes twice the time.
  static V lesser(V a, V b) {
    if constexpr (std::is_same_v<Number, float>)
      return _mm_min_ps(a, b);
    else if constexpr (std::is_same_v<Number, double>)
      return _mm_min_pd(a, b);
    else
      return b ^ ((a ^ b) & (a < b));
  }
  static V greater(V a, V b) {
    if constexpr (std::is_same_v<Number, float>)
      return _mm_max_ps(a, b);
    else if constexpr (std::is_same_v<Number, double>)
      return _mm_max_pd(a, b);
    else
      return a ^ ((a ^ b) & (a < b));
  }
};

template <class Bits, class Entry>
class Sorter {
 public:
  Sorter(const Sorting& work, const Order<Bits>& order)
      : work_(work),
        order_(order),
        rows_(work),
        stride_(work.x.strides[static_cast<size_t>(work.axis)] * kBytes) {}

  void row(int64_t number, Entry* entries) const {
    const std::byte* const from = work_.x.data + offset_of(number) * kBytes;
    const int64_t kept = work_.count;
    for (int64_t i = 0; i < kept; ++i) entries[i] = entry(from, i);
    if (is_sorted_by_digits(work_))
      entries =
          kept <= int64_t{INT32_MAX}
              ? sorted_by_digits<sizeof(Bits)>(entries, entries + kept, static_cast<int32_t>(kept))
              : sorted_by_digits<sizeof(Bits)>(entries, entries + kept, kept);
    else if (kept == rows_.length)
      std::sort(entries, entries + kept);
    else if (kept <= kFew)
      keep_few(from, entries);
    else
      keep_best(from, entries);
    write(number, from, entries);
  }

  // As many rows as columns have, from this one on. False: they need places, and nothing is done.
  template <class Number>
  bool rows_in_columns(int64_t first, Number* columns) const {
    constexpr int64_t kRows = Columns<Number>::kRows;
    const int64_t length = rows_.length;
    for (int64_t row = 0; row < kRows; ++row) {
      const std::byte* const from = work_.x.data + offset_of(first + row) * kBytes;
      for (int64_t i = 0; i < length; ++i)
        columns[i * kRows + row] = load<Number>(from + i * stride_);
    }
    if (!Columns<Number>::has_plain_order(columns, length)) return false;
    Columns<Number>::sort(columns, length);
    const int64_t step = rows_.inner * kBytes;
    for (int64_t row = 0; row < kRows; ++row) {
      std::byte* to = work_.values + first_result(first + row) * kBytes;
      for (int64_t i = 0; i < length; ++i, to += step) {
        const int64_t from = work_.descending ? length - 1 - i : i;
        std::memcpy(to, columns + from * kRows + row, sizeof(Number));
      }
    }
    return true;
  }

 private:
  static constexpr int64_t kFew = 16;

  Entry entry(const std::byte* from, int64_t i) const {
    return Entry(order_(load<Bits>(from + i * stride_)), i);
  }

  // The best so far are sorted, and a better one moves those behind it.
  void keep_few(const std::byte* from, Entry* entries) const {
    const int64_t kept = work_.count;
    for (int64_t i = 1; i < kept; ++i) put_in_place(entries[i], entries, i);
    each_better(from, entries[kept - 1],
                [&](const Entry& next) { put_in_place(next, entries, kept - 1); });
  }
  static void put_in_place(const Entry entry, Entry* entries, int64_t place) {
    for (; place > 0 && entry < entries[place - 1]; --place) entries[place] = entries[place - 1];
    entries[place] = entry;
  }

  // The best so far form a heap with the worst of them on top.
  void keep_best(const std::byte* from, Entry* entries) const {
    const int64_t kept = work_.count;
    std::make_heap(entries, entries + kept);
    each_better(from, entries[0], [&](const Entry& next) {
      std::pop_heap(entries, entries + kept);
      entries[kept - 1] = next;
      std::push_heap(entries, entries + kept);
    });
    std::sort_heap(entries, entries + kept);
  }

  // Calls f for the entries, in their order, that are better than `worst`, which f may change.
  template <class F>
  void each_better(const std::byte* from, const Entry& worst, const F& f) const {
    for (int64_t i = work_.count; i < rows_.length;) {
      i = after_worse(from, i, worst.place());
      for (const int64_t end = std::min(i + kBlock, rows_.length); i < end; ++i) {
        const Entry next = entry(from, i);
        if (next < worst) f(next);
      }
    }
  }

  // Goes over blocks of the largest elements, in which none is better, as fast as memory is read.
  int64_t after_worse(const std::byte* from, int64_t i, int64_t worst) const {
    if (stride_ != kBytes || !work_.descending) return i;
    switch (work_.x.dtype) {
      case DType::f32:
        return after_at_most<float>(from, i, worst);
      case DType::f64:
        return after_at_most<double>(from, i, worst);
      case DType::i32:
        return after_at_most<int32_t>(from, i, worst);
      default:
        return i;
    }
  }
  template <class Number>
  int64_t after_at_most(const std::byte* from, int64_t i, int64_t worst) const {
    using V [[gnu::vector_size(16)]] = Number;
    constexpr auto kLanes = static_cast<int64_t>(sizeof(V) / sizeof(Number));
    const V bound = load<Number>(from + worst * kBytes) - V{};
    for (; i + kBlock <= rows_.length; i += kBlock) {
      __m128i better = {};
#pragma GCC unroll 8
      for (int64_t j = 0; j < kBlock; j += kLanes) {
        const V x = load<V>(from + (i + j) * kBytes);
        better |= reinterpret_cast<__m128i>(~(x <= bound));  // A NaN is.
      }
      if (_mm_movemask_epi8(better) != 0) break;
    }
    return i;
  }
  static constexpr int64_t kBlock = 16;

  static constexpr auto kBytes = static_cast<int64_t>(sizeof(Bits));

  // The offset of the row's first element, in elements.
  int64_t offset_of(int64_t number) const {
    int64_t offset = 0;
    for (int64_t axis = work_.x.rank() - 1; axis >= 0; --axis) {
      if (axis == work_.axis) continue;
      const int64_t size = work_.x.shape[axis];
      offset += number % size * work_.x.strides[static_cast<size_t>(axis)];
      number /= size;
    }
    return offset;
  }

  // The offset of the row's first result, in elements.
  int64_t first_result(int64_t number) const {
    return number / rows_.inner * work_.count * rows_.inner + number % rows_.inner;
  }

  void write(int64_t number, const std::byte* from, const Entry* entries) const {
    const int64_t inner = rows_.inner, first = first_result(number);
    for (int64_t i = 0; i < work_.count; ++i) {
      const int64_t place = entries[i].place(), to = first + i * inner;
      if (work_.values != nullptr)
        std::memcpy(work_.values + to * kBytes, from + place * stride_, sizeof(Bits));
      if (work_.indices != nullptr) work_.indices[to] = place;
    }
  }

  const Sorting& work_;
  const Order<Bits> order_;
  const Rows rows_;
  const int64_t stride_;  // From one element of a row to the next, in bytes.
};

template <class Number, class Bits, class Entry>
void sort_in_columns(const Sorter<Bits, Entry>& sorter, int64_t begin, int64_t end,
                     std::byte* scratch) {
  constexpr int64_t kRows = Columns<Number>::kRows;
  auto* const entries = reinterpret_cast<Entry*>(scratch);
  while (begin < end) {
    const int64_t after = std::min(end, begin + kRows);
    if (after - begin < kRows || !sorter.rows_in_columns(begin, reinterpret_cast<Number*>(scratch)))
      for (int64_t row = begin; row < after; ++row) sorter.row(row, entries);
    begin = after;
  }
}

template <class Bits, class Entry>
void sort_entries(const Sorting& work, const Order<Bits>& order, int threads, std::byte* scratch) {
  const Rows rows(work);
  const Sorter<Bits, Entry> sorter(work, order);
  const int64_t bytes = entry_bytes(work);
  const DType dtype = work.x.dtype;
  device::parallel_for(rows.count, rows.grain(), threads,
                       [&](int64_t begin, int64_t end, int worker) {
                         std::byte* const mine = scratch + worker * bytes;
                         if (is_sorted_in_columns(work)) {
                           if constexpr (sizeof(Bits) == 4) {
                             if (dtype == DType::f32)
                               return sort_in_columns<float>(sorter, begin, end, mine);
                             return sort_in_columns<int32_t>(sorter, begin, end, mine);
                           } else if constexpr (sizeof(Bits) == 8) {
                             return sort_in_columns<double>(sorter, begin, end, mine);
                           }
                         }
                         auto* const entries = reinterpret_cast<Entry*>(mine);
                         for (int64_t row = begin; row < end; ++row) sorter.row(row, entries);
                       });
}

template <class Bits>
void sort_as(const Sorting& work, Bits infinity, Bits flipped, int threads, std::byte* scratch) {
  const Order<Bits> order{infinity, flipped, work.descending};
  if constexpr (sizeof(Bits) <= 4) {
    if (fits_packed(work)) return sort_entries<Bits, PositionedKey>(work, order, threads, scratch);
  }
  sort_entries<Bits, Wide>(work, order, threads, scratch);
}

}  // namespace

int64_t sort_scratch_bytes(const Sorting& work, int threads) {
  const Rows rows(work);
  if (rows.count == 0 || work.count == 0) return 0;
  return device::workers_of(rows.count, rows.grain(), threads) * entry_bytes(work);
}

void sort(const Sorting& work, int threads, std::byte* scratch) {
  if (Rows(work).count == 0 || work.count == 0) return;
  switch (work.x.dtype) {
    case DType::f16:
      return sort_as<uint16_t>(work, 0x7c00, 0, threads, scratch);
    case DType::bf16:
      return sort_as<uint16_t>(work, 0x7f80, 0, threads, scratch);
    case DType::f32:
      return sort_as<uint32_t>(work, 0x7f800000, 0, threads, scratch);
    case DType::f64:
      return sort_as<uint64_t>(work, uint64_t{0x7ff} << 52, 0, threads, scratch);
    case DType::i8:
      return sort_as<uint8_t>(work, 0, uint8_t{1} << 7, threads, scratch);
    case DType::i16:
      return sort_as<uint16_t>(work, 0, uint16_t{1} << 15, threads, scratch);
    case DType::i32:
      return sort_as<uint32_t>(work, 0, uint32_t{1} << 31, threads, scratch);
    case DType::i64:
      return sort_as<uint64_t>(work, 0, uint64_t{1} << 63, threads, scratch);
    case DType::u16:
      return sort_as<uint16_t>(work, 0, 0, threads, scratch);
    case DType::u32:
      return sort_as<uint32_t>(work, 0, 0, threads, scratch);
    case DType::u64:
      return sort_as<uint64_t>(work, 0, 0, threads, scratch);
    case DType::u8:
    case DType::boolean:
      return sort_as<uint8_t>(work, 0, 0, threads, scratch);
    case DType::c64:
    case DType::c128:
      break;
  }
  TIDEMARK_CHECK(false, "sort knows no ", work.x.dtype);
}

}  // namespace tidemark::library
