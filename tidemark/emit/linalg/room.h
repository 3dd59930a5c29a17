// What a factorization works with: matrices, scratch, and matrix products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/linalg/kernels.h"

namespace tidemark::factor {

// A matrix in memory; strides are in elements.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t row = 0;     // From one row to the next.
  int64_t column = 1;  // From one column to the next.

  T& operator()(int64_t i, int64_t j) const { return data[i * row + j * column]; }
  T* line(int64_t i) const { return data + i * row; }
  Matrix part(int64_t i, int64_t j, int64_t m, int64_t n) const {
    return {data + i * row + j * column, m, n, row, column};
  }
  Matrix turned() const { return {data, columns, rows, column, row}; }
};

template <class T>
void copy(const Matrix<T>& from, const Matrix<T>& to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    if (from.column == 1 && to.column == 1)
      std::copy_n(from.line(i), from.columns, to.line(i));
    else
      for (int64_t j = 0; j < from.columns; ++j) to(i, j) = from(i, j);
  }
}
template <class T>
void fill(const Matrix<T>& to, T value) {
  for (int64_t i = 0; i < to.rows; ++i) {
    if (to.column == 1)
      std::fill_n(to.line(i), to.columns, value);
    else
      for (int64_t j = 0; j < to.columns; ++j) to(i, j) = value;
  }
}
template <class T>
void set_identity(const Matrix<T>& to) {
  fill(to, T{0});
  for (int64_t i = 0; i < std::min(to.rows, to.columns); ++i) to(i, i) = 1;
}

// Scratch, last in, first out, and the products that use it. Algorithms run twice: with a Room that
// only counts the bytes that they take, for which they skip everything that reads or writes
// elements, and with one that has so many.
class Room {
 public:
  // An address that is never read, to which offsets are added.
  static inline std::byte* const kNowhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 20);

  explicit Room(int threads) : threads_(threads) {}
  Room(int threads, std::byte* data) : threads_(threads), data_(data), counts_(false) {}

  bool counts() const { return counts_; }
  int64_t most() const { return most_; }

  // Elements that are there until the Taken ends, or a matrix of them. The rows of a matrix are an
  // odd number of cache lines apart, so that a column is spread over all of a cache.
  template <class T>
  class Taken {
   public:
    Taken(Room& room, int64_t count)
        : room_(room), bytes_(lined(count * static_cast<int64_t>(sizeof(T)))) {
      data_ = reinterpret_cast<T*>(room.take(bytes_));
    }
    Taken(Room& room, int64_t rows, int64_t columns) : Taken(room, rows * row_of(columns)) {}
    ~Taken() { room_.taken_ -= bytes_; }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    T* data() const { return data_; }
    Matrix<T> matrix(int64_t rows, int64_t columns) const {
      return {data_, rows, columns, row_of(columns)};
    }

   private:
    static int64_t row_of(int64_t columns) {
      constexpr int64_t line = 64 / sizeof(T);
      return ((columns + line - 1) / line | 1) * line;
    }
    Room& room_;
    int64_t bytes_;
    T* data_;
  };

  // c = a b, or c += a b. The columns of c are adjacent.
  template <class T>
  void multiply(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& c, bool add = false) {
    if (c.rows == 0 || c.columns == 0 || (add && a.columns == 0)) return;
    const Contraction work{.m = c.rows,
                           .n = c.columns,
                           .k = a.columns,
                           .a = ref(a),
                           .b = ref(b),
                           .c = ref(c),
                           .add = add};
    const int64_t bytes = lined(contract_scratch_bytes(work, threads_));
    std::byte* const scratch = take(bytes);
    if (!counts_) contract(work, threads_, scratch);
    taken_ -= bytes;
  }

 private:
  static int64_t lined(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  template <class T>
  static MatrixRef ref(const Matrix<T>& x) {
    return {reinterpret_cast<std::byte*>(x.data), sizeof(T) == 4 ? DType::f32 : DType::f64, x.row,
            x.column};
  }
  std::byte* take(int64_t bytes) {
    std::byte* const at = counts_ ? kNowhere : data_ + taken_;
    taken_ += bytes;
    most_ = std::max(most_, taken_);
    return at;
  }

  int threads_;
  std::byte* data_ = nullptr;
  bool counts_ = true;
  int64_t taken_ = 0, most_ = 0;
};

}  // namespace tidemark::factor
