// An op is data: one definition, from which typing, printing, kernels, gradients, the reference
// value, documentation and tests all follow.
//
// Each family below is an aggregate that asks for what its members differ in, and is the function
// users call. `make_op` turns any of them into the one OpDef that everybody else sees.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tidemark/ir/attrs.h"
#include "tidemark/ir/term.h"
#include "tidemark/ops/scalar.h"
#include "tidemark/types/array_ref.h"
#include "tidemark/types/axes.h"

namespace tidemark {

class Tensor;
class Operand;

enum class Family : uint8_t {
  pointwise,
  reduce,
  row,
  view,
  piece,
  index,
  scan,
  contract,
  random,
  source,   // Literals of programs.
  control,  // Nodes with regions.
  effect,   // Prints and checks: never dropped, in program order.
};

// How an op takes operands that have one more axis in front, a batch, so that each slice gives what
// it gives by itself (vectorized_map). Attributes follow by their roles: numbers of axes move by
// one, lists with an item for each axis get one that leaves the batch alone.
enum class Batching : uint8_t {
  none,        // It does not.
  leading,     // Every operand has the axis; those that lack it are repeated along it.
  broadcasts,  // Operands broadcast: the axis is put in front of as many as the result has.
};

// Which part of its operands a part of the result along one axis is made of (passes/slicing.h).
enum class Cutting : uint8_t {
  none,       // All of them, or it is not said.
  alike,      // The same part of each, where all have the axis and the attributes leave it alone.
  broadcast,  // The same part of those that have the axis, all of the others.
  fold,       // The same part, where what is folded lies behind it.
  reshape,    // What lies behind as many elements.
  permute,    // The same part of the axis that stands there.
  product,    // Of a matrix product: rows of one, columns of the other, or both of a batch.
};

// Which kind of control flow a node with regions is; ops/program.h says what its regions are.
enum class Flow : uint8_t { none, call, cond, group, loop, map, reverse_loop };

// What an op does besides, or instead of, giving results. Nodes with an effect are never dropped
// nor merged, and keep their order.
enum class Effect : uint8_t { none, assert_that, check_index, check_numerics, print };

// What a node without operands stands for until it is replaced by a number.
enum class Literal : uint8_t { none, number, size };

// The precompiled routine that is an op's kernel; compile/library_ops.cc calls it. Ops without one
// are views, or are compiled from their `value`, `monoid` or `sweeps`.
enum class Routine : uint8_t {
  none,
  accumulate,
  arange,
  concat,
  conv2d,
  cumsum,
  first_equal,
  gather,
  matmul,
  pad,
  put,
  random_bernoulli,
  random_fold,
  random_integers,
  random_normal,
  random_permutation,
  random_uniform,
  scatter_add,
  sort,
  take_along_axis,
  top_k,
  update,
};

// What f(f(x)) is.
enum class Twice : uint8_t { other, undoes /* x */, settles /* f(x) */ };

// The number b for which f(a, b) is a, bit by bit and for every a.
enum class Neutral : uint8_t {
  none,
  zero,           // +0 of floats.
  negative_zero,  // -0 of floats, 0 of integers.
  one,
  all_ones,
};

// Which dtypes an op takes. Operands of other dtypes are promoted to the set's first resort, or
// refused.
enum class TypeSet : uint8_t {
  any,       // Whatever comes.
  numbers,   // Not bool.
  floats,    // Integers and bools become f32.
  integers,  // Refuses floats and bools.
  bits,      // Integers and bools.
  booleans,  // Everything becomes bool (x != 0).
};

// Where tests draw inputs from.
struct Range {
  double low = -2.0;
  double high = 2.0;
};

// How far kernels may be from the reference, in units of the result's last place. 0: the same bits.
using Ulps = double;

struct InferContext {
  const OpDef& op;
  std::span<const TensorType> operands;
  const Attrs& attrs;
  Source at;
  int result = 0;  // Which of the op's results is typed.
};

// Of ops with several results, `g` and `result` are the first.
struct GradContext {
  Term g;  // The gradient of the result.
  std::span<const Term> operands;
  Term result;
  const Attrs& attrs;
  std::span<const Term> gradients = {};  // By result; nothing where it holds no floats.
  std::span<const Term> results = {};
};

// Operands and results are row-major and dense: the slow, obvious meaning has no layouts.
struct ReferenceContext {
  const OpDef& op;
  std::span<const ArrayRef> operands;
  ArrayRef result;  // The first.
  const Attrs& attrs;
  std::span<const ArrayRef> results = {};
};

struct OpDef {
  std::string_view name;   // As printed in programs and called from Python.
  std::string_view brief;  // One sentence, for people.
  Family family = Family::pointwise;
  int arity = 1;    // -1: a list.
  int results = 1;  // Of an op that computes; nodes of control flow have as many as they give.
  TypeSet accepts = TypeSet::any;
  Batching batching = Batching::none;
  Cutting cutting = Cutting::none;
  std::span<const AttrDef> attrs = {};
  // The type of one result. Null where it follows from the family.
  TensorType (*infer)(const InferContext& context) = nullptr;
  // The gradient by operand `index`; null where there is none, and then `no_gradient` says why.
  Term (*grad)(const void* self, const GradContext& context, int index) = nullptr;
  std::string_view no_gradient = {};
  void (*reference)(const ReferenceContext& context) = nullptr;
  Range sample = {};
  Ulps ulps = 0;
  Routine routine = Routine::none;
  // The result is the first operand with some elements changed, and may take its bytes.
  bool updates_first = false;
  // The first operand is a table of slices and the second says which are read, so that the gradient
  // by the table can stay a list of slices.
  bool looks_up = false;
  // Gradients take the result for a constant.
  bool stops_gradient = false;
  Flow flow = Flow::none;
  Effect effect = Effect::none;
  Literal literal = Literal::none;
  bool transfers = false;  // The operand in another memory.

  // pointwise: what one element becomes. The result's dtype is that of the recorded value. Null for
  // `cast`, whose result has the dtype that its attribute names.
  Scalar (*value)(const void* self, std::span<const Scalar> operands) = nullptr;
  Twice twice = Twice::other;       // Of one operand.
  bool commutes = false;            // Of two.
  Neutral neutral = Neutral::none;  // Of two.
  // reduce: how elements combine, and whether the answer is where rather than what.
  Monoid monoid = Monoid::sum;
  bool gives_index = false;
  // row: the sweeps over one row; operand and result are buffers 0 and 1 of the nest.
  Nest (*sweeps)(DType dtype, Nest::Order order) = nullptr;
  // row: the same of reductions and elementwise ops, in the dtype that rows are computed in.
  Term (*expanded)(Term x, int64_t axis) = nullptr;
  // view: the operand's bytes seen otherwise. Has no kernel.
  bool (*view)(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) = nullptr;
  // view: it may show one element several times.
  bool repeats = false;

  const void* self = nullptr;

  bool is_cast() const { return family == Family::pointwise && value == nullptr; }
};

// ---- the families -------------------------------------------------------------------------------

struct UnaryOp {
  std::string_view name;
  std::string_view brief;
  TypeSet accepts = TypeSet::any;
  Scalar (*value)(Scalar x) = nullptr;
  Term (*grad)(Term g, Term x, Term y) = nullptr;
  std::string_view no_gradient = {};
  Range sample = {};
  Ulps ulps = 0;
  Twice twice = Twice::other;

  Tensor operator()(const Operand& x, Source at = Source::here()) const;
  Term operator()(Term x) const;
};

struct BinaryOp {
  std::string_view name;
  std::string_view brief;
  TypeSet accepts = TypeSet::any;
  Scalar (*value)(Scalar a, Scalar b) = nullptr;
  Term (*grad_a)(Term g, Term a, Term b, Term y) = nullptr;
  Term (*grad_b)(Term g, Term a, Term b, Term y) = nullptr;
  std::string_view no_gradient = {};
  Range sample = {};
  Ulps ulps = 0;
  bool commutes = false;
  Neutral neutral = Neutral::none;  // As the second operand; of ops that commute, as either.

  Tensor operator()(const Operand& a, const Operand& b, Source at = Source::here()) const;
  Term operator()(Term a, Term b) const;
};

// The first operand of `where` is a condition and keeps its dtype; the others are promoted
// together.
struct TernaryOp {
  std::string_view name;
  std::string_view brief;
  TypeSet accepts = TypeSet::any;
  bool first_is_condition = false;
  Scalar (*value)(Scalar a, Scalar b, Scalar c) = nullptr;
  Term (*grad)(const GradContext& context, int index) = nullptr;
  Range sample = {};

  Tensor operator()(const Operand& a, const Operand& b, const Operand& c,
                    Source at = Source::here()) const;
  Term operator()(Term a, Term b, Term c) const;
};

struct ReduceOp {
  std::string_view name;
  std::string_view brief;
  TypeSet accepts = TypeSet::any;
  Monoid monoid = Monoid::sum;
  bool gives_index = false;
  bool widens = false;  // Integers and bools are summed in i64.
  // g and y keep the reduced axes as size 1, so that they broadcast against x.
  Term (*grad)(Term g, Term x, Term y, const AxisList& axes) = nullptr;
  std::string_view no_gradient = {};
  Range sample = {};

  Tensor operator()(const Operand& x, const Axes& axes = {}, Keep keep = Keep::no,
                    Source at = Source::here()) const;
};

struct RowOp {
  std::string_view name;
  std::string_view brief;
  Nest (*sweeps)(DType dtype, Nest::Order order) = nullptr;
  // The same in double, on one row.
  void (*row)(const double* x, double* y, int64_t count) = nullptr;
  Term (*grad)(const GradContext& context) = nullptr;
  Term (*expanded)(Term x, int64_t axis) = nullptr;
  Ulps ulps = 0;

  Tensor operator()(const Operand& x, int64_t axis = -1, Source at = Source::here()) const;
};

// Everything whose call has a shape of its own: views, pieces, indexing, contractions, random. The
// function users call stands in calls/, under the same name.
struct NamedOp {
  std::string_view name;
  std::string_view brief;
  Family family = Family::view;
  int arity = 1;
  int results = 1;
  TypeSet accepts = TypeSet::any;
  Batching batching = Batching::none;
  Cutting cutting = Cutting::none;
  std::span<const AttrDef> attrs = {};
  TensorType (*infer)(const InferContext& context) = nullptr;
  Term (*grad)(const GradContext& context, int index) = nullptr;
  std::string_view no_gradient = {};
  void (*reference)(const ReferenceContext& context) = nullptr;
  bool (*view)(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) = nullptr;
  bool repeats = false;
  Range sample = {};
  Ulps ulps = 0;
  Routine routine = Routine::none;
  bool updates_first = false;
  bool looks_up = false;
  bool stops_gradient = false;
  Flow flow = Flow::none;
  Effect effect = Effect::none;
  Literal literal = Literal::none;
  bool transfers = false;

  // The first result.
  Term apply(std::initializer_list<Term> operands, const Attrs& attrs) const;
};

OpDef make_op(const UnaryOp& op);
OpDef make_op(const BinaryOp& op);
OpDef make_op(const TernaryOp& op);
OpDef make_op(const ReduceOp& op);
OpDef make_op(const RowOp& op);
OpDef make_op(const NamedOp& op);

// ---- the catalogue ------------------------------------------------------------------------------

// Every op that computes, by family and then by the alphabet.
std::span<const OpDef> catalogue();
// Those, then the ones that only programs have.
std::span<const OpDef> catalogue_of_programs();
const OpDef* find_op(std::string_view name);
// The OpDef of a family object such as `tanh`, or of a copy of one.
const OpDef& def_of(const void* op);

// The types of all results of an op that has `infer`.
std::vector<TensorType> infer_results(const InferContext& context);

// What the elements of a pointwise op become when its operands have these dtypes: recorded once.
// Low precision is computed in f32 and rounded once, at the end.
Recipe record(const OpDef& op, std::span<const DType> operands);

}  // namespace tidemark
