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

// A symmetric matrix, rows from 0 to the end of a vector past the last column, which are zeros; it
// is overwritten. Row j of v becomes the vector of reflector j, whose elements up to j are zeros.
// `spare` has as many elements as a row.
template <class T>
struct Symmetric {
  T* a;
  int64_t a_row, n;
  T* v;
  int64_t v_row;
  T *tau, *spare;
  double *diagonal, *beside;
};

// A matrix with no more columns than rows, as the one above. Row j of `left` and of `right` become
// the vectors of the reflectors of column j and of row j. `spare` has as many elements as two rows
// and one column.
template <class T>
struct Rectangular {
  T* a;
  int64_t a_row, rows, columns;
  T* left;
  int64_t left_row;
  T* right;
  int64_t right_row;
  T *left_tau, *right_tau, *spare;
  double *diagonal, *beside;
};

// The columns of a small matrix as rows of v, which reach to the end of a vector, where they are
// zeros. The upper triangle r has gaps of r_row; rows of q become `vectors` columns of the
// orthogonal factor.
inline constexpr int64_t kSmallSide = 16;
template <class T>
struct Small {
  T* v;
  int64_t v_row, rows, columns;
  T* r;
  int64_t r_row;
  T* q;
  int64_t q_row, vectors;
};

// Squares of the elements of a bidiagonal matrix: n on the diagonal, n - 1 beside it.
struct Bidiagonal {
  const double *diagonal, *beside;
  int64_t n;
};

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
  // row is h. Rows reach to the end of a vector.
  void (*rotate)(T* rows, int64_t row, int64_t count, const T* c, const T* s, int64_t columns);
  // Reflectors that make a matrix tridiagonal, one at a time.
  void (*tridiagonalize)(const Symmetric<T>& work);
  // Reflectors from both sides that make a matrix bidiagonal, one at a time.
  void (*bidiagonalize)(const Rectangular<T>& work);
  // q r of a matrix with at most kSmallSide rows and columns; false if elements are so large or so
  // small that they must be scaled, and v is changed.
  bool (*factor_small)(const Small<T>& work);
  // The singular values of a bidiagonal matrix, in decreasing order. None is above `most`; those
  // below a power of two count as zeros.
  void (*halve)(const Bidiagonal& squares, double most, double* values);
  // Rotations from squares of their cosines, which have the signs of these, and of their sines.
  void (*roots)(const double* cosines, const double* sines, int64_t count, T* c, T* s);
  // The sum of the squares, in f64.
  double (*squares)(const T* x, int64_t count);
  // Rows of x less tau (x . v) v. Rows and v reach to the end of a vector.
  void (*reflect_rows)(const T* v, T tau, T* x, int64_t x_row, int64_t rows, int64_t count);
  // x *= a
  void (*scale)(T a, T* x, int64_t count);
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
