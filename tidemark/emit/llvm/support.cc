// What is compiled, how wide, and how heavy it is. No LLVM here.
#include "tidemark/emit/llvm/support.h"

#include <algorithm>

#include "tidemark/emit/llvm/helpers.h"

namespace tidemark::jit {
namespace {

bool moves_low_precision(ExprOp op) {
  return op == ExprOp::load || op == ExprOp::constant || op == ExprOp::scalar ||
         op == ExprOp::cast || op == ExprOp::select;
}

bool takes_bool(ExprOp op) {
  switch (op) {
    case ExprOp::load:
    case ExprOp::constant:
    case ExprOp::scalar:
    case ExprOp::cell:
    case ExprOp::cast:
    case ExprOp::minimum:
    case ExprOp::maximum:
    case ExprOp::equal:
    case ExprOp::not_equal:
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::bit_and:
    case ExprOp::bit_or:
    case ExprOp::bit_xor:
    case ExprOp::bit_not:
    case ExprOp::select:
      return true;
    default:
      return false;
  }
}

bool has_math(ExprOp op, DType dtype) {
  switch (op) {
    case ExprOp::exp:
    case ExprOp::log:
    case ExprOp::tanh:
      return dtype == f32;
    case ExprOp::expm1:
    case ExprOp::log1p:
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::erf:
      return false;
    case ExprOp::power:
      return !is_float(dtype);
    default:
      return true;
  }
}

bool can_compile(const Expr& expr, const Nest& nest) {
  if (is_low_precision(expr.dtype) && !moves_low_precision(expr.op)) return false;
  if (expr.dtype == boolean && !takes_bool(expr.op)) return false;
  const bool compares = expr.op == ExprOp::equal || expr.op == ExprOp::not_equal ||
                        expr.op == ExprOp::less || expr.op == ExprOp::less_equal;
  if (compares && is_low_precision(nest.exprs[static_cast<size_t>(expr.in[0])].dtype)) return false;
  return has_math(expr.op, expr.dtype);
}

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
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::tanh:
    case ExprOp::erf:
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
  for (const Expr& expr : nest.exprs) {
    if (!can_compile(expr, nest)) return false;
  }
  for (const Sweep& sweep : nest.sweeps) {
    for (const Fold& fold : sweep.folds) {
      if (pairwise(fold.monoid, nest.exprs[static_cast<size_t>(fold.expr)].dtype).push == nullptr) {
        return false;
      }
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
  const int64_t wanted = heaviest <= 4 ? 8 : heaviest <= 8 ? 4 : heaviest <= 16 ? 2 : 1;
  return std::max<int64_t>(1, std::min(room, wanted));
}

}  // namespace tidemark::jit
