// A loop nest: one kernel, independent of the emitter.
//
// A nest runs over rows x steps x columns. For each row it runs its sweeps in order; a sweep visits
// every (step, column) of the row, evaluates expressions, stores elements and reduces ("folds")
// values into cells. The shape of cells depends on `order`:
//
//   lanes     a cell is one value per row, folded along the columns (steps = 1).
//   columns   a cell is one value per (row, column), folded along the steps.
//
// A cell may be read by the sweeps after the one that folds it, and by `finish`, which stores
// results once per row (lanes) or once per row and column (columns). A nest without cells is a
// plain pointwise kernel. Softmax of a row is three sweeps: fold the maximum; store exp(x - cell 0)
// and fold its sum; store the product with 1 / cell 1.
//
// The order of a fold is part of its meaning, whatever emits it and however many threads run it:
//
//   lanes     blocks of 4096 columns; in a block, 64 lanes, lane j folding columns j, j + 64, ...
//   in
//             order, starting from the monoid's identity; then lane j takes lane j + 32, then j +
//             16, 8, 4, 2, 1. Absent columns of the last block fold nothing.
//   columns   blocks of 256 steps, folded in order starting from the identity.
//   both      the results of blocks are combined pairwise by position: `pairwise.h`.
//
// Extents, strides and pointers are arguments of the call (`device/kernel.h`), so one kernel serves
// every size. What is fixed here, besides the expressions, is how each buffer moves along columns.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/types/dtype.h"

namespace tidemark {

inline constexpr int64_t kLanes = 64;
inline constexpr int64_t kLaneBlock = 4096;
inline constexpr int64_t kStepBlock = 256;

// The operation of an expression. Operands have the expression's dtype unless stated otherwise;
// integers wrap.
enum class ExprOp : uint8_t {
  load,      // ref: buffer; the element at the current row, step and column.
  constant,  // bits: the value, in the low bytes.
  scalar,    // ref: which of the call's run-time numbers, held in the low bytes of its word.
  cell,      // ref: the finished cell of an earlier sweep.
  index,     // i64: index_base + row * index_row + column (lanes), index_base + step (columns).

  cast,  // From the operand's dtype. Float to integer truncates and saturates, NaN gives 0; to
         // bool: != 0.

  add,
  subtract,
  multiply,
  divide,        // Floats only.
  floor_divide,  // Integers: towards minus infinity, by zero gives 0. Floats: `divmod.h`.
  remainder,     // Has the sign of the divisor; integers: by zero gives 0. Floats: `divmod.h`.
  minimum,
  maximum,  // NaN if either is; maximum = isnan(a) ? a : a > b ? a : b, minimum likewise with <.
  power,    // Floats: math.h. Integers: by squaring, negative exponents give 0 except for
            // bases 1 and -1.
  fma,
  negate,
  absolute,
  sign,  // -1, 0, 1; NaN stays NaN.
  sqrt,
  floor,
  ceil,
  round,
  trunc,  // round: half to even. Integers: unchanged.
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tanh,
  erf,
  erfc,  // math.h.

  equal,
  not_equal,
  less,
  less_equal,  // bool, from two operands of one dtype.
  bit_and,
  bit_or,
  bit_xor,
  bit_not,  // On bool: the logical ones (bit_not gives 1 - x).
  shift_left,
  shift_right,  // Arithmetic; counts outside [0, width) act like width.
  select,       // operands: bool, then two of the expression's dtype.

  copysign,  // Floats: the size of the first with the sign of the second.
  log2,
  log10,  // math.h.
};

struct Expr {
  ExprOp op = ExprOp::constant;
  DType dtype = DType::f32;
  std::array<int32_t, 3> in = {-1, -1, -1};  // Earlier expressions.
  int32_t ref = 0;
  uint64_t bits = 0;
  friend bool operator==(const Expr&, const Expr&) = default;
};

enum class Monoid : uint8_t { sum, product, minimum, maximum };

struct BufferRef {
  DType dtype = DType::f32;
  enum class Columns : uint8_t { unit, repeat, strided } columns = Columns::unit;
  bool written = false;
  // Store past the caches. Only for a written buffer with unit columns whose rows start on 64
  // bytes.
  bool streaming = false;
  friend bool operator==(const BufferRef&, const BufferRef&) = default;
};

struct Store {
  int32_t buffer = 0, expr = 0;
  friend bool operator==(const Store&, const Store&) = default;
};
struct Fold {
  int32_t cell = 0, expr = 0;  // The accumulator has the expression's dtype.
  Monoid monoid = Monoid::sum;
  friend bool operator==(const Fold&, const Fold&) = default;
};
struct Sweep {
  std::vector<Store> stores;
  std::vector<Fold> folds;
  friend bool operator==(const Sweep&, const Sweep&) = default;
};

struct Nest {
  enum class Order : uint8_t { lanes, columns } order = Order::lanes;
  std::vector<BufferRef> buffers;
  std::vector<Expr> exprs;  // In order of dependence.
  std::vector<Sweep> sweeps;
  // Their expressions read cells, constants, scalars, and the elements of buffers at column 0
  // (lanes) or at step 0 (columns).
  std::vector<Store> finish;
  int32_t cells = 0;
  friend bool operator==(const Nest&, const Nest&) = default;
};

// Equal nests have equal hashes.
uint64_t hash(const Nest& nest);
// As text: one line per expression, store and fold.
std::string to_text(const Nest& nest);
// Throws InternalError if a nest breaks the rules above (operand order, dtypes, cells read early).
void verify(const Nest& nest);

// The value a fold starts from, in the low bytes of a word.
uint64_t identity_bits(Monoid monoid, DType dtype);

}  // namespace tidemark
