// Decisions about a nest: whether it is compiled, its vector width, and its weight. No LLVM here.
#include "tidemark/emit/llvm/support.h"

#include <algorithm>
#include <bit>

#include "tidemark/loops/expr.h"

namespace tidemark::jit {
namespace {

int64_t weight(const Expr& expr) {
  switch (expr.op) {
    case ExprOp::constant:
    case ExprOp::scalar:
    case ExprOp::cell:
      return 0;
    case ExprOp::divide:
    case ExprOp::sqrt:
      return 3;
    case ExprOp::floor_divide:
    case ExprOp::remainder:
      return 12;
    case ExprOp::power:
      return is_float(expr.dtype) ? 60 : 20;
    case ExprOp::exp:
    case ExprOp::expm1:
    case ExprOp::log:
    case ExprOp::log1p:
    case ExprOp::log2:
    case ExprOp::log10:
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::tanh:
    case ExprOp::erf:
    case ExprOp::erfc:
      return expr.dtype == f64 ? 40 : 20;
    default:
      return is_low_precision(expr.dtype) ? 4 : 1;
  }
}

void add_weight(const Nest& nest, int32_t expr, std::vector<char>& seen, int64_t& total) {
  if (seen[static_cast<size_t>(expr)] != 0) return;
  seen[static_cast<size_t>(expr)] = 1;
  const Expr& node = nest.exprs[static_cast<size_t>(expr)];
  total += weight(node);
  for (const int32_t in : node.in) {
    if (in >= 0) add_weight(nest, in, seen, total);
  }
}

}  // namespace

bool can_compile(const Nest& nest) {
  const auto dtype_of = [&](int32_t expr) { return nest.exprs[static_cast<size_t>(expr)].dtype; };
  for (const Expr& expr : nest.exprs) {
    const int operands = arity(expr.op);
    const DType operand =
        operands == 0 ? expr.dtype : dtype_of(expr.in[static_cast<size_t>(operands - 1)]);
    if (!is_defined(expr.op, expr.dtype, operand)) return false;
  }
  for (const Sweep& sweep : nest.sweeps) {
    for (const Fold& fold : sweep.folds) {
      if (!is_defined(fold.monoid, dtype_of(fold.expr))) return false;
    }
    for (const Store& store : sweep.stores) {
      const BufferRef& buffer = nest.buffers[static_cast<size_t>(store.buffer)];
      if (buffer.columns == BufferRef::Columns::repeat) return false;
    }
  }
  return true;
}

int64_t weight(const Nest& nest, const Sweep& sweep) {
  std::vector<char> seen(nest.exprs.size());
  int64_t total = 0;
  for (const Store& store : sweep.stores) add_weight(nest, store.expr, seen, total);
  for (const Fold& fold : sweep.folds) add_weight(nest, fold.expr, seen, total);
  return total + static_cast<int64_t>(sweep.stores.size() + sweep.folds.size());
}

int64_t choose_width(const Nest& nest, device::Isa isa) {
  const int64_t bytes = isa == device::Isa::avx512 ? 64 : isa == device::Isa::avx2 ? 32 : 16;
  bool has_size[9] = {};
  bool is_heavy_f64 = false;
  for (const Expr& expr : nest.exprs) {
    has_size[size_of(expr.dtype)] |= expr.dtype != boolean;
    is_heavy_f64 |= expr.dtype == f64 && weight(expr) >= 20;
  }
  // Where sizes are mixed, the wider values take two registers each; not where that would spill.
  if (has_size[8] && (is_heavy_f64 || !has_size[4])) return bytes / 8;
  return bytes / (has_size[4] ? 4 : has_size[2] ? 2 : 1);
}

int64_t choose_column_vectors(const Nest& nest, device::Isa isa) {
  int64_t heaviest = 1;
  size_t folds = 1;
  for (const Sweep& sweep : nest.sweeps) {
    heaviest = std::max(heaviest, weight(nest, sweep));
    folds = std::max(folds, sweep.folds.size());
  }
  // Accumulators stay in registers: 32 of them, or 16.
  const int64_t room = (isa == device::Isa::avx512 ? 16 : 8) / static_cast<int64_t>(folds);
  const int64_t wanted = heaviest <= 8 ? 4 : heaviest <= 16 ? 2 : 1;
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(room, 1, wanted))));
}

int64_t choose_column_block(const Nest& nest) {
  int64_t largest = 1;
  for (const Expr& expr : nest.exprs) largest = std::max(largest, size_of(expr.dtype));
  // Memory is read fastest in long runs. Several sweeps over the same rows want them to be in the
  // second cache when they come again.
  const int64_t bytes = nest.sweeps.size() > 1 ? 1024 : 4096;
  return std::max<int64_t>(256, bytes / largest);
}

// The last cell ends with what is written of it: vectors of the row where there is one block, and
// else the levels, which are not padded. The last block goes to no level.
int64_t scratch_bytes(const Nest& nest, int64_t steps, int64_t columns) {
  if (nest.order == Nest::Order::lanes || nest.cells == 0) return 0;
  const int64_t width = std::min(columns, choose_column_block(nest));
  const int64_t row_cells = (width + kLanes - 1) / kLanes * kLanes;
  const int64_t vector = choose_width(nest, device::isa());
  const int64_t vector_cells = (width + vector - 1) / vector * vector;
  const auto blocks = static_cast<uint64_t>((steps + kStepBlock - 1) / kStepBlock);
  const int64_t rows = blocks <= 1 ? 1 : 1 + std::bit_width(blocks);
  int64_t begin = 0, end = 0;
  for (const Sweep& sweep : nest.sweeps) {
    for (const Fold& fold : sweep.folds) {
      const int64_t size = size_of(nest.exprs[static_cast<size_t>(fold.expr)].dtype);
      const int64_t written =
          blocks <= 1 ? vector_cells : row_cells + std::bit_width(blocks - 1) * width;
      end = begin + written * size;
      begin += rows * row_cells * size;
    }
  }
  return end;
}

}  // namespace tidemark::jit
