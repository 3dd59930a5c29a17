// An op is data: one definition, from which typing, printing, kernels, gradients, the reference
// value, documentation and tests all follow.
//
// Each family below is an aggregate with the fields in which its members differ; it is also the
// function that users call. `make_op` turns any of them into an OpDef, which is what the rest of
// the library works with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "tidemark/ir/attrs.h"
#include "tidemark/ir/term.h"
#include "tidemark/ops/routine.h"
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
  linalg,  // Of the matrices in the last two axes.
  random,
  source,   // Literals in programs.
  control,  // Nodes with regions.
  effect,   // Prints and checks: never dropped, kept in program order.
};

// How an op is batched: how it takes operands with a batch axis in front, such that each slice of
// the result equals the op applied to that slice (vectorized_map). Attributes follow by their
// roles: axis numbers grow by one, and per-axis lists get an item that leaves the batch axis alone.
enum class Batching : uint8_t {
  none,        // It cannot be batched.
  leading,     // Every operand needs the batch axis; those that lack it are broadcast along it.
  broadcasts,  // Operands broadcast: each is padded to the rank of the result, then gets the batch
               // axis.
};

// The part of its operands that a part of the result along one axis depends on (passes/slicing.h).
enum class Cutting : uint8_t {
  none,         // All of them, or unknown.
  alike,        // The same part of each, if all have the axis and no attribute concerns it.
  broadcast,    // The same part of operands that have the axis; all of the others.
  fold,         // Of a reduction: the same part, if the reduced axes come after it.
  reshape,      // Of a reshape: the part with the same elements.
  permute,      // Of a transpose: the same part of the permuted axis.
  product,      // Of a matrix product: rows of a, columns of b, or the batch of both.
  convolution,  // Of a convolution: images.
};

// The kind of control flow of a node with regions; ops/program.h describes its regions.
enum class Flow : uint8_t { none, call, cond, group, loop, map, reverse_loop };

// The side effect of an op. Nodes with an effect are never dropped or merged, and keep their order.
enum class Effect : uint8_t { none, assert_that, check_index, check_numerics, print };

// A node that is a literal: a constant, or an open size that becomes a constant once it is known.
enum class Literal : uint8_t { none, number, size };

// f(f(x)).
enum class Twice : uint8_t { other, undoes /* x */, settles /* f(x) */ };

// The neutral element b, for which f(a, b) has the bits of a for every a.
enum class Neutral : uint8_t {
  none,
  zero,           // +0 of floats.
  negative_zero,  // -0 of floats, 0 of integers.
  one,
  all_ones,
};

// The dtypes that an op accepts. Operands of other dtypes are promoted or refused.
enum class TypeSet : uint8_t {
  any,       // Every dtype.
  numbers,   // Not bool.
  floats,    // Integers and bools become f32.
  integers,  // Refuses floats and bools.
  bits,      // Integers and bools.
  booleans,  // Everything becomes bool (x != 0).
};

// How an op takes complex numbers. `tensor/complex_call.cc` has a rule for each op that is neither.
enum class OnComplex : uint8_t {
  refused,  // Not, unless there is a rule.
  parts,    // As pairs of reals: the op moves or adds elements, so both parts are treated alike.
  needs_order,  // Not: it compares, and complex numbers have no order.
};

// The interval from which tests draw inputs.
struct SampleRange {
  double low = -2.0;
  double high = 2.0;
};

// An interval that holds every element of a value of whole numbers, both ends included. Indices
// that are known to be in range need no check.
struct IntegerRange {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();

  static constexpr IntegerRange minimum(IntegerRange a, IntegerRange b) {
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
  }
  static constexpr IntegerRange maximum(IntegerRange a, IntegerRange b) {
    return {std::max(a.least, b.least), std::max(a.most, b.most)};
  }
  static constexpr IntegerRange either(IntegerRange a, IntegerRange b) {
    return {std::min(a.least, b.least), std::max(a.most, b.most)};
  }
};

// A function that users call and that runs one op, as the catalogue of calls lists it
// (calls/callables.h explains the notation).
struct CallDef {
  std::string_view name;
  std::string_view arguments;   // "x: tensor, axis: int = -1"
  std::string_view brief = {};  // Empty: the op's own.
  std::string_view results = "tensor";
};

// The largest distance of a kernel's result from the reference, in units in the last place. 0: the
// same bits.
using Ulps = double;

struct InferContext {
  const OpDef& op;
  std::span<const TensorType> operands;
  const Attrs& attrs;
  Source at;
  int result = 0;  // The result whose type is asked for.
};

// For ops with several results, `g` and `result` belong to the first.
struct GradContext {
  Term g;  // The gradient of the result.
  std::span<const Term> operands;
  Term result;
  const Attrs& attrs;
  std::span<const Term> gradients = {};  // By result; empty for results that are not floats.
  std::span<const Term> results = {};
};

// Operands and results are row-major and dense.
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
  int results = 1;  // Control-flow nodes have as many as their regions return.
  TypeSet accepts = TypeSet::any;
  Batching batching = Batching::none;
  Cutting cutting = Cutting::none;
  std::span<const AttrDef> attrs = {};
  std::span<const CallDef> calls = {};  // Empty for op objects, which are functions themselves.
  // The type of one result. Null if the family defines it.
  TensorType (*infer)(const InferContext& context) = nullptr;
  // The gradient by operand `index`. Null if the op is not differentiable; `no_gradient` is the
  // reason.
  Term (*grad)(const void* self, const GradContext& context, int index) = nullptr;
  std::string_view no_gradient = {};
  void (*reference)(const ReferenceContext& context) = nullptr;
  SampleRange sample = {};
  Ulps ulps = 0;
  // The range of a result of whole numbers, given the ranges of the operands; null: unknown.
  IntegerRange (*range)(const void* self, std::span<const IntegerRange> operands) = nullptr;
  // The result that holds positions along the axes that the attributes number; -1: none does.
  int index_result = -1;
  Routine routine = Routine::none;
  // The result is the first operand with some elements changed, and may alias it.
  bool updates_first = false;
  // The second operand selects slices of the first, a table, so that the gradient by the table can
  // stay row-sparse.
  bool looks_up = false;
  // Gradients treat the result as a constant.
  bool stops_gradient = false;
  Flow flow = Flow::none;
  Effect effect = Effect::none;
  Literal literal = Literal::none;
  bool transfers = false;  // Copies the operand to another memory.
  OnComplex on_complex = OnComplex::refused;

  // pointwise: the value of one element; its dtype is the result's. Null for `cast`, whose
  // attribute is the dtype.
  Scalar (*value)(const void* self, std::span<const Scalar> operands) = nullptr;
  Twice twice = Twice::other;       // Of one operand.
  bool commutes = false;            // Of two.
  Neutral neutral = Neutral::none;  // Of two.
  // reduce: how elements combine, and whether the result is the position of the extremum (argmax)
  // rather than its value.
  Monoid monoid = Monoid::sum;
  bool gives_index = false;
  // row: the sweeps over one row; operand and result are buffers 0 and 1 of the nest.
  Nest (*sweeps)(DType dtype, Nest::Order order) = nullptr;
  // row: the same as reductions and elementwise ops, in the dtype that rows are computed in.
  Term (*expanded)(Term x, int64_t axis) = nullptr;
  // view: the result's shape and strides over the operand's bytes. Views have no kernel.
  bool (*view)(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) = nullptr;
  // view: it may repeat an element (a broadcast).
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
  SampleRange sample = {};
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
  SampleRange sample = {};
  Ulps ulps = 0;
  bool commutes = false;
  Neutral neutral = Neutral::none;  // As the second operand; of ops that commute, as either.
  IntegerRange (*range)(IntegerRange a, IntegerRange b) = nullptr;
  OnComplex on_complex = OnComplex::refused;

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
  SampleRange sample = {};
  IntegerRange (*range)(IntegerRange a, IntegerRange b, IntegerRange c) = nullptr;
  OnComplex on_complex = OnComplex::refused;

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
  SampleRange sample = {};
  OnComplex on_complex = OnComplex::refused;

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

// Ops whose functions have individual signatures: views, pieces, indexing, contractions, random.
// The functions are in calls/.
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
  std::span<const CallDef> calls = {};
  TensorType (*infer)(const InferContext& context) = nullptr;
  Term (*grad)(const GradContext& context, int index) = nullptr;
  std::string_view no_gradient = {};
  void (*reference)(const ReferenceContext& context) = nullptr;
  bool (*view)(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) = nullptr;
  bool repeats = false;
  SampleRange sample = {};
  Ulps ulps = 0;
  int index_result = -1;
  Routine routine = Routine::none;
  bool updates_first = false;
  bool looks_up = false;
  bool stops_gradient = false;
  Flow flow = Flow::none;
  Effect effect = Effect::none;
  Literal literal = Literal::none;
  bool transfers = false;
  OnComplex on_complex = OnComplex::refused;

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

// Every op that computes, by family, then alphabetically.
std::span<const OpDef> catalogue();
// The same, then the ops that occur only in programs.
std::span<const OpDef> catalogue_of_programs();
const OpDef* find_op(std::string_view name);
// The OpDef of a family object such as `tanh`, or of a copy of one.
const OpDef& def_of(const void* op);

// The types of all results of an op that has `infer`.
std::vector<TensorType> infer_results(const InferContext& context);

// The recorded expression of a pointwise op for operands of these dtypes. 16-bit floats are
// computed in f32 and rounded once, at the end.
Recipe record(const OpDef& op, std::span<const DType> operands);

}  // namespace tidemark
