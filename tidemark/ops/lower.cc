#include "tidemark/ops/lower.h"

#include <limits>

#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

Scalar load(Recipe& recipe, int32_t buffer, DType dtype) {
  return {recipe, append(recipe, {.op = ExprOp::load, .dtype = dtype, .ref = buffer})};
}

// Copies the op's recipe into `recipe`, with its loads replaced by `operands`.
Scalar inlined(Recipe& recipe, const Recipe& body, std::span<const Scalar> operands) {
  std::vector<int32_t> number(body.exprs.size());
  for (size_t i = 0; i < body.exprs.size(); ++i) {
    Expr expr = body.exprs[i];
    if (expr.op == ExprOp::load) {
      number[i] = operands[static_cast<size_t>(expr.ref)].id();
      continue;
    }
    for (int32_t& in : expr.in) in = in < 0 ? in : number[static_cast<size_t>(in)];
    number[i] = append(recipe, expr);
  }
  return {recipe, number[static_cast<size_t>(body.result)]};
}

}  // namespace

Scalar converted(Scalar x, DType to) {
  if (x.dtype() == to) return x;
  if (is_low_precision(to) && x.dtype() != DType::f32) return x.cast(DType::f32).cast(to);
  if (is_low_precision(x.dtype()) && to != DType::f32) return converted(x.cast(DType::f32), to);
  return x.cast(to);
}

Scalar applied(Recipe& recipe, const OpDef& op, std::span<const Scalar> operands, DType result) {
  std::vector<Scalar> held;
  std::vector<DType> dtypes;
  for (const Scalar& operand : operands) {
    held.push_back(converted(operand, compute_dtype(operand.dtype())));
    dtypes.push_back(held.back().dtype());
  }
  return converted(inlined(recipe, record(op, dtypes), held), result);
}

Scalar repeated(Scalar x, Scalar count, DType result) {
  return converted(converted(x, count.dtype()) * count, result);
}

Scalar pointwise_value(Recipe& recipe, const OpDef& op, std::span<const Scalar> operands,
                       std::span<const DType> computes, DType result) {
  std::vector<Scalar> wanted;
  for (size_t i = 0; i < operands.size(); ++i)
    wanted.push_back(converted(converted(operands[i], computes[i]), compute_dtype(computes[i])));
  return converted(inlined(recipe, record(op, computes), wanted), result);
}

Nest pointwise_nest(const OpDef& op, std::span<const OperandForm> operands, DType result,
                    BufferRef::Columns result_columns, bool streaming) {
  Nest nest;
  Recipe recipe;
  std::vector<Scalar> loaded;
  int32_t numbers = 0;
  for (const OperandForm& form : operands) {
    if (form.is_number) {
      const Scalar number(recipe, append(recipe, {.op = ExprOp::scalar,
                                                  .dtype = compute_dtype(form.compute),
                                                  .ref = numbers++}));
      loaded.push_back(number);
      continue;
    }
    const auto buffer = static_cast<int32_t>(nest.buffers.size());
    nest.buffers.push_back({.dtype = form.dtype, .columns = form.columns});
    loaded.push_back(converted(load(recipe, buffer, form.dtype), form.compute));
  }
  const Scalar value = applied(recipe, op, loaded, result);
  const auto out = static_cast<int32_t>(nest.buffers.size());
  nest.buffers.push_back(
      {.dtype = result, .columns = result_columns, .written = true, .streaming = streaming});
  nest.exprs = recipe.exprs;
  nest.sweeps.resize(1);
  nest.sweeps[0].stores = {{.buffer = out, .expr = value.id()}};
  return nest;
}

DType partial_dtype(const OpDef& op, DType operand, DType result) {
  if (op.gives_index) return result;
  return compute_dtype(op.accepts == TypeSet::booleans ? DType::boolean
                       : is_float(operand)             ? operand
                                                       : result);
}

Scalar position_of(Recipe& recipe, Scalar x, Scalar extremum) {
  const Scalar index(recipe, append(recipe, {.op = ExprOp::index, .dtype = DType::i64}));
  const Scalar never(
      recipe, append(recipe, {.op = ExprOp::constant,
                              .dtype = DType::i64,
                              .bits = static_cast<uint64_t>(std::numeric_limits<int64_t>::max())}));
  const Scalar hit = (x == extremum) | (x != x);
  return hit.select(index, never);
}

namespace {

// Where the extremum is: fold it, then fold the least position that attains it.
Nest position_nest(const OpDef& op, Recipe& recipe, Scalar x, Nest nest) {
  const Scalar extremum(recipe, append(recipe, {.op = ExprOp::cell, .dtype = x.dtype(), .ref = 0}));
  const Scalar position = position_of(recipe, x, extremum);
  const Scalar least(recipe, append(recipe, {.op = ExprOp::cell, .dtype = DType::i64, .ref = 1}));
  nest.cells = 2;
  nest.sweeps.resize(2);
  nest.sweeps[0].folds = {{.cell = 0, .expr = x.id(), .monoid = op.monoid}};
  nest.sweeps[1].folds = {{.cell = 1, .expr = position.id(), .monoid = Monoid::minimum}};
  nest.finish = {{.buffer = 1, .expr = least.id()}};
  nest.exprs = recipe.exprs;
  return nest;
}

}  // namespace

Nest reduce_nest(const OpDef& op, DType operand, DType result, Nest::Order order,
                 BufferRef::Columns columns) {
  Nest nest;
  nest.order = order;
  nest.buffers = {{.dtype = operand, .columns = columns},
                  {.dtype = result, .columns = BufferRef::Columns::unit, .written = true}};
  Recipe recipe;
  const Scalar x = load(recipe, 0, operand);
  if (op.gives_index) return position_nest(op, recipe, converted(x, compute_dtype(operand)), nest);
  const Scalar folded = converted(x, partial_dtype(op, operand, result));
  const Scalar total(recipe,
                     append(recipe, {.op = ExprOp::cell, .dtype = folded.dtype(), .ref = 0}));
  const Scalar y = converted(total, result);
  nest.cells = 1;
  nest.sweeps.resize(1);
  nest.sweeps[0].folds = {{.cell = 0, .expr = folded.id(), .monoid = op.monoid}};
  nest.finish = {{.buffer = 1, .expr = y.id()}};
  nest.exprs = recipe.exprs;
  return nest;
}

Nest range_nest(DType compute, DType result) {
  Nest nest;
  Recipe recipe;
  const Scalar index(recipe, append(recipe, {.op = ExprOp::index, .dtype = DType::i64}));
  const Scalar start(recipe, append(recipe, {.op = ExprOp::scalar, .dtype = compute, .ref = 0}));
  const Scalar step(recipe, append(recipe, {.op = ExprOp::scalar, .dtype = compute, .ref = 1}));
  const Scalar value = converted(start + converted(index, compute) * step, result);
  nest.buffers = {{.dtype = result, .written = true}};
  nest.exprs = recipe.exprs;
  nest.sweeps.resize(1);
  nest.sweeps[0].stores = {{.buffer = 0, .expr = value.id()}};
  return nest;
}

uint64_t number_bits(double real, int64_t whole, bool is_real, DType dtype) {
  if (!is_low_precision(dtype)) return is_real ? bits_of(real, dtype) : bits_of(whole, dtype);
  // Rounded to the 16-bit dtype, then held as the f32 it is computed in.
  const float value = is_real ? static_cast<float>(real) : static_cast<float>(whole);
  const float rounded =
      dtype == DType::f16 ? float_of_f16(f16_of_float(value)) : float_of_bf16(bf16_of_float(value));
  return bits_of(static_cast<double>(rounded), DType::f32);
}

}  // namespace tidemark
