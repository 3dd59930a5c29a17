#include "tidemark/compile/compute.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "tidemark/compile/eager.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/lower.h"

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

}  // namespace

Attrs compute(const Node& node, std::span<const Node* const> operands) {
  std::array<Input, 3> inputs;
  std::array<OperandType, 3> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs[i].number = bits_of(*operands[i]);
    types[i].dtype = operands[i]->results[0].dtype;
  }
  const DType dtype = node.results[0].dtype;
  PointwiseType type{.compute = {types[0].dtype}, .result = dtype};  // Of a cast.
  if (node.op->value != nullptr)
    type = infer_pointwise(*node.op, std::span(types).first(operands.size()), node.source);
  alignas(8) std::byte element[8] = {};
  const device::FloatEnvironment ieee;
  run_pointwise(*node.op, std::span(inputs).first(operands.size()), type, {element, dtype, {}, {}});
  return constant_of(element, dtype);
}

}  // namespace tidemark::compile
