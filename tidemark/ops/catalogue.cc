// The catalogue: every op as an OpDef, and lookup by name.
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "tidemark/base/made_once.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/linalg.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/reference.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/special.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

// `def_of` relies on the name being the first member.
static_assert(std::is_standard_layout_v<UnaryOp> && offsetof(UnaryOp, name) == 0);
static_assert(std::is_standard_layout_v<BinaryOp> && offsetof(BinaryOp, name) == 0);
static_assert(std::is_standard_layout_v<TernaryOp> && offsetof(TernaryOp, name) == 0);
static_assert(std::is_standard_layout_v<ReduceOp> && offsetof(ReduceOp, name) == 0);
static_assert(std::is_standard_layout_v<RowOp> && offsetof(RowOp, name) == 0);
static_assert(std::is_standard_layout_v<NamedOp> && offsetof(NamedOp, name) == 0);

constexpr AttrDef kReduceAttrs[] = {{"axes", AttrKind::integers, AttrRole::axes},
                                    {"keepdims", AttrKind::boolean}};

template <class Op>
const Op& as(const void* self) {
  return *static_cast<const Op*>(self);
}

TensorType infer_reduce(const InferContext& context) {
  const auto& op = as<ReduceOp>(context.op.self);
  const TensorType& x = context.operands[0];
  Attrs::Reader read = context.attrs.read();
  const std::span<const int64_t> axes = read.integers();
  const bool keep = read.boolean();
  TensorType type{admit(context.op, x.dtype, context.at), {}};
  if (op.widens && !is_float(type.dtype)) type.dtype = widened_integer(type.dtype);
  if (op.gives_index) type.dtype = DType::i64;
  for (int64_t axis = 0; axis < x.shape.rank(); ++axis) {
    const bool folded = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (folded && keep) type.shape.push_back(1);
    if (!folded) type.shape.push_back(x.shape[axis]);
  }
  return type;
}

TensorType infer_row(const InferContext& context) {
  return {admit(context.op, context.operands[0].dtype, context.at), context.operands[0].shape};
}

// Restores the reduced axes with size 1.
Term with_axes(Term y, const Shape& whole, std::span<const int64_t> axes) {
  Shape kept = whole;
  for (const int64_t axis : axes) kept.set(axis, 1);
  return term::reshape(y, kept);
}

Term grad_reduce(const void* self, const GradContext& context, int) {
  const std::span<const int64_t> axes = context.attrs.read().integers();
  const Term x = context.operands[0];
  const Term g = with_axes(context.g, x.shape(), axes);
  const Term y = with_axes(context.result, x.shape(), axes);
  return as<ReduceOp>(self).grad(g, x, y, AxisList(axes));
}

// A rule returns the gradient in the result's shape and dtype. Undoes the broadcast by a sum, and
// the promotion by a cast.
Term back_to(Term gradient, Term operand) {
  if (!gradient) return gradient;
  const Term summed = term::sum_to(gradient, operand.shape());
  return summed.dtype() == operand.dtype() ? summed : term::cast(summed, operand.dtype());
}

std::vector<OpDef> build_catalogue() {
  std::vector<OpDef> list;
  for (const auto* op : kUnaryOps) list.push_back(make_op(*op));
  for (const auto* op : kSpecialUnaryOps) list.push_back(make_op(*op));
  for (const auto* op : kBinaryOps) list.push_back(make_op(*op));
  for (const auto* op : kSpecialBinaryOps) list.push_back(make_op(*op));
  for (const auto* op : kTernaryOps) list.push_back(make_op(*op));
  for (const auto* op : kReduceOps) list.push_back(make_op(*op));
  for (const auto* op : kRowOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kStructureOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kIndexOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kScanOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kContractOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kLinalgOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kRandomOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kProgramOps) list.push_back(make_op(*op));
  for (const auto* op : ops::kEffectOps) list.push_back(make_op(*op));
  return list;
}

// Never destroyed, nor are the tables made of it: ops may run in static destructors and in detached
// threads while the program ends.
const std::vector<OpDef>& all_ops() {
  static constinit MadeOnce<std::vector<OpDef>> made;
  return made.get(build_catalogue);
}

// From a family object's address to its OpDef: open addressing, filled once, read without a lock.
class AddressTable {
 public:
  AddressTable() {
    for (const OpDef& op : all_ops()) {
      size_t slot = hash(op.self);
      while (slots_[slot] != nullptr) slot = (slot + 1) % kSlots;
      slots_[slot] = &op;
    }
  }
  const OpDef* find(const void* self) const {
    size_t slot = hash(self);
    while (slots_[slot] != nullptr && slots_[slot]->self != self) slot = (slot + 1) % kSlots;
    return slots_[slot];
  }

 private:
  static constexpr size_t kSlots = 512;
  static size_t hash(const void* self) {
    return (reinterpret_cast<uintptr_t>(self) >> 3) * 0x9e3779b97f4a7c15ULL >> 55;
  }
  const OpDef* slots_[kSlots] = {};
};

// The fields that all pointwise ops have in common.
template <class Op>
OpDef pointwise_def(const Op& op, int arity) {
  return {.name = op.name,
          .brief = op.brief,
          .family = Family::pointwise,
          .arity = arity,
          .accepts = op.accepts,
          .batching = Batching::broadcasts,
          .cutting = Cutting::broadcast,
          .sample = op.sample,
          .self = &op};
}

}  // namespace

std::span<const OpDef> catalogue() {
  constexpr size_t others = std::size(ops::kProgramOps) + std::size(ops::kEffectOps);
  return std::span(all_ops()).first(all_ops().size() - others);
}
std::span<const OpDef> catalogue_of_programs() { return all_ops(); }

const OpDef* find_op(std::string_view name) {
  const auto found = std::find_if(all_ops().begin(), all_ops().end(),
                                  [&](const OpDef& op) { return op.name == name; });
  return found == all_ops().end() ? nullptr : &*found;
}

const OpDef& def_of(const void* op) {
  static constinit MadeOnce<const AddressTable> table;
  const OpDef* found = table.get().find(op);
  // A copy (td::tanh held by a std::function) has another address, but the same name, which is the
  // first member of every family.
  if (found == nullptr) found = find_op(*static_cast<const std::string_view*>(op));
  TIDEMARK_CHECK(found != nullptr, "an op that is in no list of the catalogue");
  return *found;
}

std::vector<TensorType> infer_results(const InferContext& context) {
  std::vector<TensorType> types;
  InferContext each = context;
  for (each.result = 0; each.result < context.op.results; ++each.result)
    types.push_back(context.op.infer(each));
  return types;
}

Recipe record(const OpDef& op, std::span<const DType> operands) {
  Recipe recipe;
  std::vector<Scalar> loads;
  for (size_t i = 0; i < operands.size(); ++i) {
    loads.emplace_back(recipe, append(recipe, {.op = ExprOp::load,
                                               .dtype = compute_dtype(operands[i]),
                                               .ref = static_cast<int32_t>(i)}));
  }
  recipe.result = op.value != nullptr ? op.value(op.self, loads).id() : 0;
  return recipe;
}

OpDef make_op(const UnaryOp& op) {
  OpDef def = pointwise_def(op, 1);
  def.no_gradient = op.no_gradient;
  def.ulps = op.ulps;
  def.twice = op.twice;
  def.value = [](const void* self, std::span<const Scalar> x) {
    return as<UnaryOp>(self).value(x[0]);
  };
  if (op.grad != nullptr) {
    def.grad = [](const void* self, const GradContext& c, int) {
      return back_to(as<UnaryOp>(self).grad(c.g, c.operands[0], c.result), c.operands[0]);
    };
  }
  return def;
}

OpDef make_op(const BinaryOp& op) {
  OpDef def = pointwise_def(op, 2);
  def.no_gradient = op.no_gradient;
  def.ulps = op.ulps;
  def.commutes = op.commutes;
  def.on_complex = op.on_complex;
  def.neutral = op.neutral;
  if (op.range != nullptr) {
    def.range = [](const void* self, std::span<const IntegerRange> x) {
      return as<BinaryOp>(self).range(x[0], x[1]);
    };
  }
  def.value = [](const void* self, std::span<const Scalar> x) {
    return as<BinaryOp>(self).value(x[0], x[1]);
  };
  if (op.grad_a != nullptr) {
    def.grad = [](const void* self, const GradContext& c, int index) {
      const auto& rules = as<BinaryOp>(self);
      const auto rule = index == 0 ? rules.grad_a : rules.grad_b;
      return back_to(rule(c.g, c.operands[0], c.operands[1], c.result),
                     c.operands[static_cast<size_t>(index)]);
    };
  }
  return def;
}

OpDef make_op(const TernaryOp& op) {
  OpDef def = pointwise_def(op, 3);
  def.on_complex = op.on_complex;
  if (op.range != nullptr) {
    def.range = [](const void* self, std::span<const IntegerRange> x) {
      return as<TernaryOp>(self).range(x[0], x[1], x[2]);
    };
  }
  def.value = [](const void* self, std::span<const Scalar> x) {
    return as<TernaryOp>(self).value(x[0], x[1], x[2]);
  };
  def.grad = [](const void* self, const GradContext& c, int index) {
    return back_to(as<TernaryOp>(self).grad(c, index), c.operands[static_cast<size_t>(index)]);
  };
  return def;
}

OpDef make_op(const ReduceOp& op) {
  return {.name = op.name,
          .brief = op.brief,
          .family = Family::reduce,
          .arity = 1,
          .accepts = op.accepts,
          .batching = Batching::leading,
          .cutting = Cutting::fold,
          .attrs = kReduceAttrs,
          .infer = infer_reduce,
          .grad = op.grad != nullptr ? grad_reduce : nullptr,
          .no_gradient = op.no_gradient,
          .sample = op.sample,
          .index_result = op.gives_index ? 0 : -1,
          .on_complex = op.on_complex,
          .monoid = op.monoid,
          .gives_index = op.gives_index,
          .self = &op};
}

OpDef make_op(const RowOp& op) {
  OpDef def{.name = op.name,
            .brief = op.brief,
            .family = Family::row,
            .arity = 1,
            .accepts = TypeSet::floats,
            .batching = Batching::leading,
            .cutting = Cutting::alike,
            .attrs = ops::kAxisAttr,
            .infer = infer_row,
            .ulps = op.ulps,
            .sweeps = op.sweeps,
            .expanded = op.expanded,
            .self = &op};
  def.grad = [](const void* self, const GradContext& c, int) { return as<RowOp>(self).grad(c); };
  return def;
}

OpDef make_op(const NamedOp& op) {
  OpDef def{.name = op.name,
            .brief = op.brief,
            .family = op.family,
            .arity = op.arity,
            .results = op.results,
            .accepts = op.accepts,
            .batching = op.batching,
            .cutting = op.cutting,
            .attrs = op.attrs,
            .calls = op.calls,
            .infer = op.infer,
            .no_gradient = op.no_gradient,
            .reference = op.reference,
            .sample = op.sample,
            .ulps = op.ulps,
            .index_result = op.index_result,
            .routine = op.routine,
            .updates_first = op.updates_first,
            .looks_up = op.looks_up,
            .stops_gradient = op.stops_gradient,
            .flow = op.flow,
            .effect = op.effect,
            .literal = op.literal,
            .transfers = op.transfers,
            .on_complex = op.on_complex,
            .view = op.view,
            .repeats = op.repeats,
            .self = &op};
  if (op.grad != nullptr) {
    def.grad = [](const void* self, const GradContext& c, int index) {
      return as<NamedOp>(self).grad(c, index);
    };
  }
  return def;
}

}  // namespace tidemark
