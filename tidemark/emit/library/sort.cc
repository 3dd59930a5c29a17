#include "tidemark/emit/library/sort.h"

#include <algorithm>
#include <compare>
#include <cstring>
#include <limits>
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

// Of a worker: its entries, and as many again to sort by digits.
int64_t entry_bytes(const Sorting& work) {
  const auto entry = static_cast<int64_t>(fits_packed(work) ? sizeof(PositionedKey) : sizeof(Wide));
  constexpr int64_t line = 64;
  const int64_t entries = is_sorted_by_digits(work) ? 2 * work.count : work.count;
  return (entries * entry + line - 1) / line * line;
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

 private:
  static constexpr int64_t kFew = 16;

  Entry entry(const std::byte* from, int64_t i) const {
    return Entry(order_(load<Bits>(from + i * stride_)), i);
  }

  // The best so far are sorted, and a better one moves those behind it.
  void keep_few(const std::byte* from, Entry* entries) const {
    const int64_t kept = work_.count;
    std::sort(entries, entries + kept);
    for (int64_t i = kept; i < rows_.length; ++i) {
      const Entry next = entry(from, i);
      if (!(next < entries[kept - 1])) continue;
      int64_t place = kept - 1;
      for (; place > 0 && next < entries[place - 1]; --place) entries[place] = entries[place - 1];
      entries[place] = next;
    }
  }

  // The best so far form a heap with the worst of them on top.
  void keep_best(const std::byte* from, Entry* entries) const {
    const int64_t kept = work_.count;
    std::make_heap(entries, entries + kept);
    for (int64_t i = kept; i < rows_.length; ++i) {
      const Entry next = entry(from, i);
      if (!(next < entries[0])) continue;
      std::pop_heap(entries, entries + kept);
      entries[kept - 1] = next;
      std::push_heap(entries, entries + kept);
    }
    std::sort_heap(entries, entries + kept);
  }

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

  void write(int64_t number, const std::byte* from, const Entry* entries) const {
    const int64_t inner = rows_.inner;
    const int64_t first = number / inner * work_.count * inner + number % inner;
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

template <class Bits, class Entry>
void sort_entries(const Sorting& work, const Order<Bits>& order, int threads, std::byte* scratch) {
  const Rows rows(work);
  const Sorter<Bits, Entry> sorter(work, order);
  const int64_t bytes = entry_bytes(work);
  device::parallel_for(rows.count, rows.grain(), threads,
                       [&](int64_t begin, int64_t end, int worker) {
                         auto* entries = reinterpret_cast<Entry*>(scratch + worker * bytes);
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
