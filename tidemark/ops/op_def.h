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
// it gives by itself (vectorized_map). Attributes follow by their names: those that count axes move
// by one, those with an item for each axis get one that leaves the batch alone.
enum class Batching : uint8_t {
  none,        // It does not.
  leading,     // Every operand has the axis; those that lack it are repeated along it.
  broadcasts,  // Operands broadcast: the axis is put in front of as many as the result has.
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
};

struct GradContext {
  Term g;  // The gradient of the result.
  std::span<const Term> operands;
  Term result;
  const Attrs& attrs;
};

// Operands and the result are row-major and dense: the slow, obvious meaning has no layouts.
struct ReferenceContext {
  const OpDef& op;
  std::span<const ArrayRef> operands;
  ArrayRef result;
  const Attrs& attrs;
};

struct OpDef {
  std::string_view name;   // As printed in programs and called from Python.
  std::string_view brief;  // One sentence, for people.
  Family family = Family::pointwise;
  int arity = 1;  // -1: a list.
  TypeSet accepts = TypeSet::any;
  Batching batching = Batching::none;
  std::span<const AttrDef> attrs = {};
  TensorType (*infer)(const InferContext& context) = nullptr;
  // The gradient by operand `index`; null where there is none, and then `no_gradient` says why.
  Term (*grad)(const void* self, const GradContext& context, int index) = nullptr;
  std::string_view no_gradient = {};
  void (*reference)(const ReferenceContext& context) = nullptr;
  Range sample = {};
  Ulps ulps = 0;

  // pointwise: what one element becomes. The result's dtype is that of the recorded value.
  Scalar (*value)(const void* self, std::span<const Scalar> operands) = nullptr;
  // reduce: how elements combine, and whether the answer is where rather than what.
  Monoid monoid = Monoid::sum;
  bool gives_index = false;
  // row: the sweeps over one row; operand and result are buffers 0 and 1 of the nest.
  Nest (*sweeps)(DType dtype, Nest::Order order) = nullptr;
  // view: the operand's bytes seen otherwise. Has no kernel.
  bool (*view)(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) = nullptr;

  const void* self = nullptr;
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
  Ulps ulps = 0;

  Tensor operator()(const Operand& x, int64_t axis = -1, Source at = Source::here()) const;
};

// Everything whose call has a shape of its own: views, pieces, indexing, contractions, random. The
// function users call stands in tensor/, under the same name.
struct NamedOp {
  std::string_view name;
  std::string_view brief;
  Family family = Family::view;
  int arity = 1;
  TypeSet accepts = TypeSet::any;
  Batching batching = Batching::none;
  std::span<const AttrDef> attrs = {};
  TensorType (*infer)(const InferContext& context) = nullptr;
  Term (*grad)(const GradContext& context, int index) = nullptr;
  std::string_view no_gradient = {};
  void (*reference)(const ReferenceContext& context) = nullptr;
  bool (*view)(const ArrayRef& operand, const Attrs& attrs, ArrayRef& result) = nullptr;
  Range sample = {};
  Ulps ulps = 0;

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

// What the elements of a pointwise op become when its operands have these dtypes: recorded once.
// Low precision is computed in f32 and rounded once, at the end.
Recipe record(const OpDef& op, std::span<const DType> operands);

}  // namespace tidemark
