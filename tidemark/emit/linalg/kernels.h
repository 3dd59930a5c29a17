// The inner loops of factorizations, once for each instruction set.
//
// Products and sums round separately and in a fixed order, so the bits do not depend on the
// instruction set.
#pragma once

#include <cstdint>

namespace tidemark::factor {

// The widths up to which these loops work by themselves; wider work is cut until it is this narrow,
// and matrix products do the rest.
inline constexpr int64_t kSolveRows = 16;
inline constexpr int64_t kPanel = 8;

template <class T>
struct Kernels {
  // Rows of x become those of the solution of t x = b. `t` holds the triangle: its diagonal as it
  // is, the elements beside it negated. At most kSolveRows rows.
  void (*solve_lower)(const T* t, int64_t t_row, int64_t rows, bool unit, T* x, int64_t x_row,
                      int64_t columns);
  void (*solve_upper)(const T* t, int64_t t_row, int64_t rows, bool unit, T* x, int64_t x_row,
                      int64_t columns);
  // The upper factor of a small symmetric matrix, in place of its upper triangle; false if it is
  // not positive definite.
  bool (*cholesky)(T* a, int64_t a_row, int64_t rows);
  // Gaussian elimination in columns [first, first + columns) of rows that are `width` long; whole
  // rows are exchanged, and their numbers in `order` too. At most kPanel columns.
  void (*eliminate)(T* a, int64_t a_row, int64_t rows, int64_t first, int64_t columns,
                    int64_t width, int64_t* order);
  // The rows h = row 0, row 1, ... in turn: row k = c h + s row k+1, h = c row k+1 - s h; the last
  // row is h.
  void (*rotate)(T* rows, int64_t row, int64_t count, const T* c, const T* s, int64_t columns);
  T (*dot)(const T* a, const T* b, int64_t count);
  // y += a x
  void (*add_scaled)(T a, const T* x, T* y, int64_t count);
  // y = x and y = -x of blocks, transposed.
  void (*transpose)(const T* x, int64_t x_row, int64_t rows, int64_t columns, bool negate, T* y,
                    int64_t y_row);
};

#define TIDEMARK_LINALG_SETS(isa)           \
  namespace isa {                           \
  extern const Kernels<float> kernels_f32;  \
  extern const Kernels<double> kernels_f64; \
  }
TIDEMARK_LINALG_SETS(baseline)
TIDEMARK_LINALG_SETS(avx2)
TIDEMARK_LINALG_SETS(avx512)
#undef TIDEMARK_LINALG_SETS

// Those of this CPU.
template <class T>
const Kernels<T>& kernels();

}  // namespace tidemark::factor
