#include "tidemark/compile/cpu/compute.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tidemark/device/threads.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/loops/expr.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/typing.h"

namespace tidemark::compile {
namespace {

uint64_t bits_of(const Node& constant) {
  Attrs::Reader read = constant.attrs.read();
  const DType dtype = read.dtype();
  const double real = read.number();
  return number_bits(real, read.integer(), is_float(dtype), dtype);
}

Attrs constant_of(const std::byte* element, DType dtype) {
  return visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    T value;
    std::memcpy(&value, element, sizeof(value));
    if constexpr (std::is_integral_v<T>)
      return Attrs().add(dtype).add(0.0).add(static_cast<int64_t>(value));
    else if constexpr (std::is_same_v<T, double>)
      return Attrs().add(dtype).add(value).add(int64_t{0});
    else
      return Attrs().add(dtype).add(double{static_cast<float>(value)}).add(int64_t{0});
  });
}

// Evaluates a nest of numbers and writes the result to `element`, without making an interpreter.
void evaluate(const Nest& nest, std::span<const uint64_t> scalars, std::byte* element) {
  std::vector<uint64_t> words(nest.exprs.size());
  for (size_t i = 0; i < nest.exprs.size(); ++i) {
    const Expr& expr = nest.exprs[i];
    if (expr.op == ExprOp::constant) words[i] = expr.bits;
    if (expr.op == ExprOp::scalar) words[i] = scalars[static_cast<size_t>(expr.ref)];
    const int operands = arity(expr.op);
    if (operands == 0) continue;
    const void* in[3] = {};
    for (int k = 0; k < operands; ++k) in[k] = &words[static_cast<size_t>(expr.in[k])];
    const DType operand = nest.exprs[static_cast<size_t>(expr.in[operands - 1])].dtype;
    tile_function(expr.op, expr.dtype, operand)(in, &words[i], 1);
  }
  const Store& store = nest.sweeps[0].stores[0];
  std::memcpy(element, &words[static_cast<size_t>(store.expr)],
              static_cast<size_t>(size_of(nest.buffers[static_cast<size_t>(store.buffer)].dtype)));
}

}  // namespace

Attrs compute(const Node& node, std::span<const Node* const> operands) {
  std::array<uint64_t, 3> numbers = {};
  std::array<OperandType, 3> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    numbers[i] = bits_of(*operands[i]);
    types[i].dtype = operands[i]->results[0].dtype;
  }
  const DType dtype = node.results[0].dtype;
  PointwiseType type{.compute = {types[0].dtype}, .result = dtype};  // The type of a cast.
  if (node.op->value != nullptr)
    type = infer_pointwise(*node.op, std::span(types).first(operands.size()), node.source);
  std::array<OperandForm, 3> forms;
  for (size_t i = 0; i < operands.size(); ++i)
    forms[i] = {.dtype = type.compute[i], .compute = type.compute[i], .is_number = true};
  const Nest nest = pointwise_nest(*node.op, std::span(forms).first(operands.size()), dtype,
                                   BufferRef::Columns::unit, false);
  alignas(8) std::byte element[8] = {};
  const device::FloatEnvironment ieee;
  evaluate(nest, numbers, element);
  return constant_of(element, dtype);
}

}  // namespace tidemark::compile
