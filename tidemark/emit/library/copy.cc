#include "tidemark/emit/library/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tidemark::library {
namespace {

// Blocks whose lines, of both sides, fit into the first cache and its table of pages.
constexpr int64_t kBlock = 64;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof(T));
}

// A square of elements that is transposed in registers of 16 bytes; for small elements, one.
template <class T>
struct Square {
  static constexpr int64_t kSide = 1;
  static void move(const std::byte* from, int64_t, std::byte* to, int64_t) {
    store(to, load<T>(from));
  }
};

template <>
struct Square<uint32_t> {
  static constexpr int64_t kSide = 4;
  using V [[gnu::vector_size(16)]] = uint32_t;
  static void turn(V (&x)[kSide]) {
    const V ab = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
    const V cd = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
    const V ab2 = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
    const V cd2 = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    x[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    x[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    x[2] = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    x[3] = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
  }
  static void move(const std::byte* from, int64_t from_column, std::byte* to, int64_t to_row) {
    V x[kSide] = {load<V>(from), load<V>(from + from_column), load<V>(from + 2 * from_column),
                  load<V>(from + 3 * from_column)};
    turn(x);
    store(to, x[0]);
    store(to + to_row, x[1]);
    store(to + 2 * to_row, x[2]);
    store(to + 3 * to_row, x[3]);
  }
};

template <>
struct Square<uint64_t> {
  static constexpr int64_t kSide = 2;
  using V [[gnu::vector_size(16)]] = uint64_t;
  static void move(const std::byte* from, int64_t from_column, std::byte* to, int64_t to_row) {
    const V a = load<V>(from), b = load<V>(from + from_column);
    store(to, __builtin_shufflevector(a, b, 0, 2));
    store(to + to_row, __builtin_shufflevector(a, b, 1, 3));
  }
};

template <class T>
void turn_block(const Turn& work, int64_t row, int64_t column) {
  constexpr int64_t kSide = Square<T>::kSide, kSize = sizeof(T);
  const int64_t row_end = std::min(row + kBlock, work.rows);
  const int64_t column_end = std::min(column + kBlock, work.columns);
  const auto from = [&](int64_t r, int64_t c) {
    return work.from + r * kSize + c * work.from_column;
  };
  const auto to = [&](int64_t r, int64_t c) { return work.to + r * work.to_row + c * kSize; };
  int64_t r = row;
  for (; r + kSide <= row_end; r += kSide) {
    int64_t c = column;
    for (; c + kSide <= column_end; c += kSide)
      Square<T>::move(from(r, c), work.from_column, to(r, c), work.to_row);
    for (; c < column_end; ++c) {
      for (int64_t i = r; i < r + kSide; ++i) store(to(i, c), load<T>(from(i, c)));
    }
  }
  for (; r < row_end; ++r) {
    for (int64_t c = column; c < column_end; ++c) store(to(r, c), load<T>(from(r, c)));
  }
}

// The same with lines of `from` read whole, a few columns at a time.
template <class T>
void turn_block_by_lines(const Turn& work, int64_t row, int64_t column) {
  constexpr int64_t kSide = Square<T>::kSide, kSize = sizeof(T);
  constexpr int64_t kLine = std::max<int64_t>(kSide, 64 / kSize);
  const int64_t row_end = std::min(row + kBlock, work.rows);
  const int64_t column_end = std::min(column + kBlock, work.columns);
  const auto from = [&](int64_t r, int64_t c) {
    return work.from + r * kSize + c * work.from_column;
  };
  const auto to = [&](int64_t r, int64_t c) { return work.to + r * work.to_row + c * kSize; };
  for (int64_t r = row; r < row_end; r += kLine) {
    const int64_t line_end = std::min(r + kLine, row_end);
    const int64_t squares_end = r + (line_end - r) / kSide * kSide;
    int64_t c = column;
    for (; c + kSide <= column_end; c += kSide) {
      for (int64_t i = r; i < squares_end; i += kSide)
        Square<T>::move(from(i, c), work.from_column, to(i, c), work.to_row);
      for (int64_t i = squares_end; i < line_end; ++i)
        for (int64_t j = c; j < c + kSide; ++j) store(to(i, j), load<T>(from(i, j)));
    }
    for (; c < column_end; ++c)
      for (int64_t i = r; i < line_end; ++i) store(to(i, c), load<T>(from(i, c)));
  }
}

// Lines that are a multiple of this apart share a few places of the caches, and leave them before
// their next elements are wanted.
constexpr int64_t kAlias = 4096;

template <class T>
void turn_all(const Turn& work) {
  const int64_t apart = std::abs(work.from_column);
  const bool by_lines = apart % kAlias == 0 && std::abs(work.to_row) < apart;
  for (int64_t row = 0; row < work.rows; row += kBlock) {
    for (int64_t column = 0; column < work.columns; column += kBlock) {
      if (by_lines)
        turn_block_by_lines<T>(work, row, column);
      else
        turn_block<T>(work, row, column);
    }
  }
}

// A row is some blocks, of which the last may overlap the one before: all are read before one is
// written.
template <int64_t kBytes>
struct Block {
  std::byte bytes[kBytes];
};
template <int64_t kBytes, int blocks = 2>
void copy_rows_of(const Rows& all) {
  const Rows work = all;  // What is stored may lie anywhere but here.
  const std::byte* from = work.from;
  std::byte* to = work.to;
  const int64_t last = work.bytes - kBytes;
  for (int64_t row = 0; row < work.rows; ++row, from += work.from_row, to += work.to_row) {
    Block<kBytes> read[blocks];
#pragma GCC unroll 4
    for (int i = 0; i < blocks; ++i)
      read[i] = load<Block<kBytes>>(from + (i + 1 < blocks ? i * kBytes : last));
#pragma GCC unroll 4
    for (int i = 0; i < blocks; ++i) store(to + (i + 1 < blocks ? i * kBytes : last), read[i]);
  }
}

// A vector for each row, of which the next row overwrites what is too much.
template <class T>
void repeat_elements_of(const Rows& all) {
  const Rows work = all;
  using V [[gnu::vector_size(kMostRepeatedBytes)]] = T;
  const int64_t tight = std::min(work.rows, (kMostRepeatedBytes - 1) / work.bytes + 1);
  const std::byte* from = work.from;
  std::byte* to = work.to;
  int64_t row = 0;
  for (; row < work.rows - tight; ++row, from += work.from_row, to += work.bytes)
    store(to, V{} + load<T>(from));
  for (; row < work.rows; ++row, from += work.from_row, to += work.bytes) {
    const V value = V{} + load<T>(from);
    std::memcpy(to, &value, static_cast<std::size_t>(work.bytes));
  }
}

template <class T>
void reverse_elements(const std::byte* from, std::byte* to, int64_t begin, int64_t count) {
  for (int64_t i = begin; i < count; ++i)
    store(to + i * static_cast<int64_t>(sizeof(T)),
          load<T>(from - i * static_cast<int64_t>(sizeof(T))));
}

// A line of the caches at a time, then four elements.
void reverse_words(const std::byte* from, std::byte* to, int64_t count, int64_t next) {
  using V [[gnu::vector_size(16)]] = uint32_t;
  const auto reverse_four = [&](int64_t i) {
    const V four = load<V>(from - 4 * (i + 3));
    store(to + 4 * i, __builtin_shufflevector(four, four, 3, 2, 1, 0));
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __builtin_prefetch(from - 4 * (i + 15) + next);
    reverse_four(i);
    reverse_four(i + 4);
    reverse_four(i + 8);
    reverse_four(i + 12);
  }
  for (; i + 4 <= count; i += 4) reverse_four(i);
  reverse_elements<uint32_t>(from, to, i, count);
}

}  // namespace

void turn(const Turn& work, int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return turn_all<uint8_t>(work);
    case 2:
      return turn_all<uint16_t>(work);
    case 4:
      return turn_all<uint32_t>(work);
    default:
      return turn_all<uint64_t>(work);
  }
}

void reverse(const std::byte* from, std::byte* to, int64_t count, int64_t element_bytes,
             int64_t next) {
  switch (element_bytes) {
    case 1:
      return reverse_elements<uint8_t>(from, to, 0, count);
    case 2:
      return reverse_elements<uint16_t>(from, to, 0, count);
    case 4:
      return reverse_words(from, to, count, next);
    default:
      return reverse_elements<uint64_t>(from, to, 0, count);
  }
}

void copy_rows(const Rows& work) {
  if (work.bytes < 2) return copy_rows_of<1>(work);
  if (work.bytes < 4) return copy_rows_of<2>(work);
  if (work.bytes < 8) return copy_rows_of<4>(work);
  if (work.bytes < 16) return copy_rows_of<8>(work);
  if (work.bytes <= 32) return copy_rows_of<16>(work);
  if (work.bytes <= 48) return copy_rows_of<16, 3>(work);
  copy_rows_of<16, 4>(work);
}

void repeat_elements(const Rows& work, int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return repeat_elements_of<uint8_t>(work);
    case 2:
      return repeat_elements_of<uint16_t>(work);
    case 4:
      return repeat_elements_of<uint32_t>(work);
    default:
      return repeat_elements_of<uint64_t>(work);
  }
}

void turn_few(const Turn& work, const int64_t* to_rows) {
  using S = Square<uint32_t>;
  constexpr int64_t kSize = sizeof(uint32_t);
  int64_t r = 0;
  for (; r + S::kSide <= work.rows; r += S::kSide) {
    const std::byte* const from = work.from + r * kSize;
    int64_t c = 0;
    for (; c + S::kSide <= work.columns; c += S::kSide) {
      S::V square[S::kSide];
      for (int64_t i = 0; i < S::kSide; ++i)
        square[i] = load<S::V>(from + (c + i) * work.from_column);
      S::turn(square);
      for (int64_t i = 0; i < S::kSide; ++i) store(work.to + to_rows[r + i] + c * kSize, square[i]);
    }
    for (; c < work.columns; ++c)
      for (int64_t i = 0; i < S::kSide; ++i)
        store(work.to + to_rows[r + i] + c * kSize,
              load<uint32_t>(from + i * kSize + c * work.from_column));
  }
  for (; r < work.rows; ++r)
    for (int64_t c = 0; c < work.columns; ++c)
      store(work.to + to_rows[r] + c * kSize,
            load<uint32_t>(work.from + r * kSize + c * work.from_column));
}

}  // namespace tidemark::library
