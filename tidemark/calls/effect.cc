#include "tidemark/calls/effect.h"

#include <ostream>

#include "tidemark/device/memory.h"
#include "tidemark/ops/effect.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/array_text.h"

namespace tidemark {
namespace detail {

namespace {

void append(std::vector<int64_t>& codes, std::string_view text) {
  for (const char c : text) codes.push_back(static_cast<unsigned char>(c));
}

Attrs text_attr(std::string_view text) {
  std::vector<int64_t> codes;
  append(codes, text);
  return Attrs().add(codes);
}

}  // namespace

void print_line(const TextAt& first, const std::vector<PrintPart>& rest) {
  std::vector<int64_t> codes;
  std::vector<Tensor> operands;
  append(codes, first.text);
  for (const PrintPart& part : rest) {
    append(codes, " ");
    if (part.is_tensor()) {
      codes.push_back(ops::kOperandHere);
      operands.push_back(part.tensor);
    } else {
      append(codes, part.text);
    }
  }
  bind_op(def_of(&ops::print), operands, Attrs().add(codes), first.at);
}

}  // namespace detail

Tensor check_numerics(const Operand& x, std::string_view message, Source at) {
  const Tensor operands[] = {detail::tensor_of(x, at)};
  detail::bind_op(def_of(&ops::check_numerics), operands, detail::text_attr(message), at);
  return operands[0];
}

void assert_that(const Operand& condition, std::string_view message, const TensorList& values,
                 Source at) {
  std::vector<Tensor> operands = {detail::tensor_of(condition, at)};
  operands.insert(operands.end(), values.list().begin(), values.list().end());
  detail::bind_op(def_of(&ops::assert_that), operands, detail::text_attr(message), at);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.has_value()) return out << "<no tensor>";
  const detail::TensorState& state = *detail::TensorState::of(tensor);
  if (state.kind == detail::TensorState::Kind::device) {
    return out << state.array.dtype << state.array.shape << " in "
               << device::memory_text(state.memory());
  }
  if (state.kind != detail::TensorState::Kind::concrete) {
    const bool traced = state.kind == detail::TensorState::Kind::traced;
    return out << (traced ? "traced " : "spec ") << state.array.dtype << state.array.shape;
  }
  return out << array_text(state.array);
}

}  // namespace tidemark
