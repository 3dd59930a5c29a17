#include "tidemark/ops/typing.h"
#include "tidemark/base/made_once.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr int kind(DType dtype) {
  return dtype == DType::boolean ? 0 : is_integer(dtype) ? 1 : is_float(dtype) ? 2 : 3;
}

// The narrowest dtype that holds both; no integer holds u64 and negative numbers, so f64 does.
DType promote_integers(DType a, DType b) {
  if (is_signed_integer(a) == is_signed_integer(b)) return std::max(a, b);
  const DType with_sign = is_signed_integer(a) ? a : b, without = is_signed_integer(a) ? b : a;
  if (size_of(without) < size_of(with_sign)) return with_sign;
  constexpr DType wider[] = {DType::i16, DType::i32, DType::i64, DType::f64};
  return wider[static_cast<int>(without) - static_cast<int>(DType::u8)];
}

}  // namespace

DType default_dtype(Weak weak) {
  switch (weak) {
    case Weak::boolean:
      return DType::boolean;
    case Weak::integer:
      return DType::i32;
    case Weak::complex:
      return DType::c64;
    default:
      return DType::f32;
  }
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) return complex_dtype(promote(part_dtype(a), part_dtype(b)));
  if (kind(a) != kind(b)) return kind(a) > kind(b) ? a : b;
  if (is_float(a)) {
    if (is_low_precision(a) && is_low_precision(b))
      return DType::f32;  // Neither f16 nor bf16 holds the other.
    return std::max(a, b);
  }
  return promote_integers(a, b);
}

DType promote(std::span<const OperandType> operands) {
  bool found = false;
  DType common = DType::boolean;
  Weak weak = Weak::no;
  for (const OperandType& operand : operands) {
    if (operand.weak != Weak::no) {
      weak = std::max(weak, operand.weak);
      continue;
    }
    common = found ? promote(common, operand.dtype) : operand.dtype;
    found = true;
  }
  if (!found) return default_dtype(weak);
  if (weak == Weak::complex) return complex_dtype(common);
  // A number of a higher kind than every tensor brings its default dtype; otherwise the tensors
  // decide.
  if (weak != Weak::no && kind(default_dtype(weak)) > kind(common)) return default_dtype(weak);
  return common;
}

DType admit(const OpDef& op, DType common, Source at) {
  if (is_complex(common)) refuse_complex(op.on_complex, op.name, at);
  const auto refuse = [&](const char* wants, const char* remedy) -> DType {
    throw UserError(cat(op.name, ": takes ", wants, ", got ", common), at, remedy);
  };
  switch (op.accepts) {
    case TypeSet::any:
      return common;
    case TypeSet::booleans:
      return DType::boolean;
    case TypeSet::floats:
      return is_float(common) ? common : DType::f32;
    case TypeSet::numbers:
      if (common != DType::boolean) return common;
      return refuse("numbers", "cast it first: td::cast(x, td::i32)");
    case TypeSet::integers:
      if (is_integer(common)) return common;
      return refuse("integers", "cast it first: td::cast(x, td::i32)");
    case TypeSet::bits:
      if (!is_float(common)) return common;
      return refuse("integers or bool", "cast it first: td::cast(x, td::i32)");
  }
  return common;
}

void refuse_complex(OnComplex how, std::string_view op, Source at) {
  if (how == OnComplex::needs_order)
    throw UserError(cat(op, ": complex numbers have no order"), at,
                    "compare their sizes or one of their parts: td::abs(z), td::real(z)");
  throw UserError(cat(op, ": does not take complex numbers"), at,
                  "take it of their parts: td::real(z), td::imag(z), td::abs(z)");
}

void broadcast_into(Shape& result, const Shape& operand, std::string_view op, Source at) {
  const Shape before = result;
  while (result.rank() < operand.rank()) result.insert(0, 1);
  const int64_t shift = result.rank() - operand.rank();
  for (int64_t axis = 0; axis < operand.rank(); ++axis) {
    const Dim mine = result[axis + shift];
    const Dim theirs = operand[axis];
    // A known 1 is tested first: it does not depend on the other size, which may be open.
    if (theirs.known_or(0) == 1) continue;
    if (mine.known_or(0) == 1) {
      result.set(axis + shift, theirs);
      continue;
    }
    if (mine == theirs || theirs == 1) continue;
    if (mine != 1) {
      throw UserError(cat(op, ": shapes ", before, " and ", operand, " do not broadcast (", mine,
                          " and ", theirs, " at axis ", axis - operand.rank(), ")"),
                      at, "sizes must be equal, or one of them 1");
    }
    result.set(axis + shift, theirs);
  }
}

int64_t plain_axis(int64_t axis, int64_t rank, std::string_view op, const TensorType& type,
                   Source at) {
  const int64_t plain = axis < 0 ? axis + rank : axis;
  if (plain < 0 || plain >= rank) {
    const std::string range =
        rank == 0 ? "it is a scalar" : cat("axes go from ", -rank, " to ", rank - 1);
    throw UserError(cat(op, ": ", type, " has no axis ", axis), at, range);
  }
  return plain;
}

AxisList plain_axes(const Axes& axes, std::string_view op, const TensorType& type, Source at) {
  AxisList list;
  const int64_t rank = type.shape.rank();
  if (axes.every()) {
    for (int64_t axis = 0; axis < rank; ++axis) list.push_back(axis);
    return list;
  }
  for (const int64_t axis : axes.list()) list.push_back(plain_axis(axis, rank, op, type, at));
  std::sort(list.begin(), list.end());
  const int64_t* twice = std::adjacent_find(list.begin(), list.end());
  if (twice != list.end()) {
    throw UserError(cat(op, ": axis ", *twice, " of ", type, " is given twice"), at,
                    "name each axis once; negative ones count from the end");
  }
  return list;
}

bool has_condition(const OpDef& op) {
  return op.arity == 3 && op.value != nullptr &&
         static_cast<const TernaryOp*>(op.self)->first_is_condition;
}

namespace {

PointwiseType type_in(const OpDef& op, DType common) {
  PointwiseType type;
  type.compute = {common, common, common};
  if (has_condition(op)) type.compute[0] = DType::boolean;
  const Recipe recipe = record(op, std::span(type.compute).first(static_cast<size_t>(op.arity)));
  const DType result = recipe.exprs[static_cast<size_t>(recipe.result)].dtype;
  type.result = result == compute_dtype(common) ? common : result;
  return type;
}

// Whether an op that accepts `set` computes in `dtype` itself.
bool computes_in(TypeSet set, DType dtype) {
  switch (set) {
    case TypeSet::any:
      return true;
    case TypeSet::numbers:
      return dtype != DType::boolean;
    case TypeSet::floats:
      return is_float(dtype);
    case TypeSet::integers:
      return is_integer(dtype);
    case TypeSet::bits:
      return !is_float(dtype);
    case TypeSet::booleans:
      return dtype == DType::boolean;
  }
  return false;
}

// The types of every pointwise op in every dtype, computed once, so that a call only looks them up.
class PointwiseTable {
 public:
  PointwiseTable() : types_(catalogue().size()) {
    for (size_t i = 0; i < types_.size(); ++i) {
      const OpDef& op = catalogue()[i];
      if (op.family != Family::pointwise || op.value == nullptr) continue;
      for (int d = 0; d < kDTypes; ++d) {
        const auto dtype = static_cast<DType>(d);
        if (computes_in(op.accepts, dtype)) types_[i][static_cast<size_t>(d)] = type_in(op, dtype);
      }
    }
  }
  const PointwiseType& of(const OpDef& op, DType common) const {
    return types_[static_cast<size_t>(&op - catalogue().data())][static_cast<size_t>(common)];
  }

 private:
  std::vector<std::array<PointwiseType, kDTypes>> types_;
};

}  // namespace

void check_has_elements(const OpDef& op, const TensorType& operand, const TensorType& result,
                        std::span<const int64_t> axes, Source at) {
  const bool has_identity =
      op.monoid == Monoid::sum || op.monoid == Monoid::product || op.accepts == TypeSet::booleans;
  if (has_identity || operand.shape.open_size() != 0 || result.shape.open_size() == 0) return;
  throw UserError(cat(op.name, ": ", operand, " has no elements along axis ",
                      axes.empty() ? 0 : axes[0], ", so none can be selected"),
                  at, "check the size first, or add an element with td::concat or td::pad");
}

PointwiseType infer_pointwise(const OpDef& op, std::span<const OperandType> operands, Source at) {
  static constinit MadeOnce<PointwiseTable> table;
  return table.get().of(op, admit(op, promote(operands.subspan(has_condition(op) ? 1 : 0)), at));
}

bool computes_in(const OpDef& op, DType dtype) { return computes_in(op.accepts, dtype); }

bool fits(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) return false;
  return std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(),
                    [](Dim x, Dim y) { return x == y || x.is_open() || y.is_open(); });
}

}  // namespace tidemark
