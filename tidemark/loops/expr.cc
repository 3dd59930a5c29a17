#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

enum class Domain : uint8_t { any, floats, numbers, numbers_and_bool, integers, integers_and_bool };

struct ExprInfo {
  const char* name;
  int8_t arity;
  Domain domain;
};

// In the order of ExprOp.
constexpr ExprInfo kInfo[] = {
    {"load", 0, Domain::any},
    {"constant", 0, Domain::any},
    {"scalar", 0, Domain::any},
    {"cell", 0, Domain::any},
    {"index", 0, Domain::any},
    {"cast", 1, Domain::any},
    {"add", 2, Domain::numbers},
    {"subtract", 2, Domain::numbers},
    {"multiply", 2, Domain::numbers},
    {"divide", 2, Domain::floats},
    {"floor_divide", 2, Domain::numbers},
    {"remainder", 2, Domain::numbers},
    {"minimum", 2, Domain::numbers_and_bool},
    {"maximum", 2, Domain::numbers_and_bool},
    {"power", 2, Domain::numbers},
    {"fma", 3, Domain::floats},
    {"negate", 1, Domain::numbers},
    {"absolute", 1, Domain::numbers},
    {"sign", 1, Domain::numbers},
    {"sqrt", 1, Domain::floats},
    {"floor", 1, Domain::numbers},
    {"ceil", 1, Domain::numbers},
    {"round", 1, Domain::numbers},
    {"trunc", 1, Domain::numbers},
    {"exp", 1, Domain::floats},
    {"expm1", 1, Domain::floats},
    {"log", 1, Domain::floats},
    {"log1p", 1, Domain::floats},
    {"sin", 1, Domain::floats},
    {"cos", 1, Domain::floats},
    {"tanh", 1, Domain::floats},
    {"erf", 1, Domain::floats},
    {"erfc", 1, Domain::floats},
    {"equal", 2, Domain::numbers_and_bool},
    {"not_equal", 2, Domain::numbers_and_bool},
    {"less", 2, Domain::numbers_and_bool},
    {"less_equal", 2, Domain::numbers_and_bool},
    {"bit_and", 2, Domain::integers_and_bool},
    {"bit_or", 2, Domain::integers_and_bool},
    {"bit_xor", 2, Domain::integers_and_bool},
    {"bit_not", 1, Domain::integers_and_bool},
    {"shift_left", 2, Domain::integers},
    {"shift_right", 2, Domain::integers},
    {"select", 3, Domain::any},
    {"copysign", 2, Domain::floats},
    {"log2", 1, Domain::floats},
    {"log10", 1, Domain::floats},
};
static_assert(std::size(kInfo) == kExprOps);

const ExprInfo& info(ExprOp op) { return kInfo[static_cast<int>(op)]; }

bool contains(Domain domain, DType dtype) {
  const bool wide_float = dtype == DType::f32 || dtype == DType::f64;
  switch (domain) {
    case Domain::any:
      return true;
    case Domain::floats:
      return wide_float;
    case Domain::numbers:
      return wide_float || is_integer(dtype);
    case Domain::numbers_and_bool:
      return wide_float || is_integer(dtype) || dtype == DType::boolean;
    case Domain::integers:
      return is_integer(dtype);
    case Domain::integers_and_bool:
      return is_integer(dtype) || dtype == DType::boolean;
  }
  return false;
}

bool is_comparison(ExprOp op) { return op >= ExprOp::equal && op <= ExprOp::less_equal; }

}  // namespace

const char* name(ExprOp op) { return info(op).name; }

const char* name(Monoid monoid) {
  constexpr const char* names[] = {"sum", "product", "minimum", "maximum"};
  return names[static_cast<int>(monoid)];
}

int arity(ExprOp op) { return info(op).arity; }

bool is_elementary(ExprOp op) {
  return (op >= ExprOp::exp && op <= ExprOp::erfc) || op == ExprOp::log2 || op == ExprOp::log10;
}

bool is_defined(ExprOp op, DType dtype, DType operand) {
  if (op == ExprOp::index) return dtype == DType::i64;
  if (info(op).arity == 0 || op == ExprOp::cast) return true;
  if (!contains(info(op).domain, operand)) return false;
  return dtype == (is_comparison(op) ? DType::boolean : operand);
}

bool is_defined(Monoid monoid, DType dtype) { return is_defined(combiner(monoid), dtype, dtype); }

int work_of(const Expr& expr) {
  if (arity(expr.op) == 0) return 0;
  if (is_elementary(expr.op)) return 8;
  switch (expr.op) {
    case ExprOp::power:
      return 24;
    case ExprOp::floor_divide:
    case ExprOp::remainder:
      return 8;
    case ExprOp::divide:
    case ExprOp::sqrt:
      return 3;
    default:
      return 1;
  }
}

ExprOp combiner(Monoid monoid) {
  constexpr ExprOp ops[] = {ExprOp::add, ExprOp::multiply, ExprOp::minimum, ExprOp::maximum};
  return ops[static_cast<int>(monoid)];
}

}  // namespace tidemark
