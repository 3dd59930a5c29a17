#include "tidemark/tensor/tiny.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tidemark/base/made_once.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/device/threads.h"
#include "tidemark/tensor/reuse.h"

namespace tidemark::detail {
namespace {

// For so few elements neither threads nor a compiled kernel are faster.
constexpr int64_t kTinyElements = 4096;
// Numbers and broadcast operands are expanded in blocks of this many elements.
constexpr int64_t kTinyBlock = 256;

struct TinyEntry {
  compile::TinyStep step;
  DType result = DType::f32;
};

class TinyTable {
 public:
  TinyTable() : entries_(catalogue().size()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const OpDef& op = catalogue()[i];
      for (int d = 0; d < kDTypes; ++d) {
        const auto dtype = static_cast<DType>(d);
        if (op.family != Family::pointwise || op.value == nullptr || !computes_in(op, dtype))
          continue;
        if (op.arity == 3) continue;
        const std::array<OperandType, 2> types = {OperandType{dtype}, OperandType{dtype}};
        const std::span operands = std::span(types).first(static_cast<size_t>(op.arity));
        entries_[i][static_cast<size_t>(d)] = {
            compile::tiny_step(op, dtype), infer_pointwise(op, operands, Source::none()).result};
      }
    }
  }
  const TinyEntry& of(const OpDef& op, DType dtype) const {
    return entries_[static_cast<size_t>(&op - catalogue().data())][static_cast<size_t>(dtype)];
  }

 private:
  std::vector<std::array<TinyEntry, kDTypes>> entries_;
};

// Repeats the first `bytes` at `from` until `end` bytes are filled, twice as many each time.
void fill(std::byte* to, const void* from, size_t bytes, size_t end) {
  size_t filled = std::min(bytes, end);
  std::memcpy(to, from, filled);
  for (; filled < end; filled *= 2) std::memcpy(to + filled, to, std::min(filled, end - filled));
}

// Writes a plain number `count` times in the tensor's dtype; false if the number's kind is higher,
// so that the tensor would be promoted.
bool spread(const Operand& operand, DType dtype, int64_t count, std::string_view op, Source at,
            std::byte* to) {
  const PlainNumber number = number_of(operand, at);
  const OperandType types[] = {{dtype}, {dtype, number.weak}};
  if (is_low_precision(dtype) || promote(types) != dtype) return false;
  const uint64_t bits = fitted(number, dtype, op, at);
  const auto bytes = static_cast<size_t>(size_of(dtype));
  fill(to, &bits, bytes, static_cast<size_t>(count) * bytes);
  return true;
}

// A dense array broadcast along leading axes, written out.
bool repeat(const ArrayRef& array, const Shape& shape, std::byte* to) {
  const int64_t shift = shape.rank() - array.rank();
  if (shift < 0 || !std::equal(array.shape.begin(), array.shape.end(), shape.begin() + shift))
    return false;
  const auto bytes = static_cast<size_t>(array.size() * size_of(array.dtype));
  if (bytes == 0) return false;
  const auto end = static_cast<size_t>(shape.size() * size_of(array.dtype));
  fill(to, array.data, bytes, end);
  return true;
}

}  // namespace

bool run_tiny(const OpCall& call, Tensor& result) {
  static constinit MadeOnce<TinyTable> made;
  const TinyTable& table = made.get();
  const auto& [op, operands, attrs, at] = call;
  if (operands.size() > 2) return false;
  const TensorState* states[2] = {};
  const TensorState* widest = nullptr;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor* tensor = operands[i]->tensor();
    if (tensor == nullptr) continue;
    const TensorState* state = TensorState::of(*tensor);
    if (state == nullptr || state->weak || state->kind != TensorState::Kind::concrete ||
        !state->array.is_contiguous())
      return false;
    if (widest != nullptr && state->array.dtype != widest->array.dtype) return false;
    states[i] = state;
    if (widest == nullptr || state->array.rank() > widest->array.rank()) widest = state;
  }
  if (widest == nullptr) return false;
  const ArrayRef& whole = widest->array;
  const int64_t size = whole.size();
  const TinyEntry& entry = table.of(op, whole.dtype);
  if (size > kTinyElements || entry.step.function == nullptr) return false;

  const device::FloatEnvironment ieee;  // Numbers are rounded to their dtype here.
  const int64_t element = size_of(whole.dtype);
  alignas(64) std::byte written_out[2][kTinyBlock * 8];
  const std::byte* in[2] = {};
  int64_t movement[2] = {element, element};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (states[i] == nullptr) {
      const int64_t count = std::min(size, kTinyBlock);
      if (!spread(*operands[i], whole.dtype, count, op.name, at, written_out[i])) return false;
      in[i] = written_out[i];
      movement[i] = 0;
    } else if (states[i] == widest || states[i]->array.shape == whole.shape) {
      in[i] = states[i]->array.data;
    } else {
      if (size > kTinyBlock || !repeat(states[i]->array, whole.shape, written_out[i])) return false;
      in[i] = written_out[i];
    }
  }
  const bool by_blocks = movement[0] == 0 || movement[1] == 0;
  const int64_t block = by_blocks ? kTinyBlock : std::max<int64_t>(1, size);
  for (size_t i = 0; i < operands.size() && !result.has_value(); ++i) {
    const Operand& operand = *operands[i];
    if (can_take(operand, entry.result, whole.shape)) result = take_over(operand, entry.result, at);
  }
  if (!result.has_value()) result = make_tensor(entry.result, whole.shape, at);
  std::byte* const out = TensorState::of(result)->array.data;
  for (int64_t first = 0; first < size; first += block) {
    const void* ordered[3];
    for (size_t i = 0; i < 3; ++i) {
      const auto operand = static_cast<size_t>(entry.step.operands[i]);
      ordered[i] = in[operand] + first * movement[operand];
    }
    entry.step.function(ordered, out + first * size_of(entry.result),
                        std::min(block, size - first));
  }
  return true;
}

}  // namespace tidemark::detail
