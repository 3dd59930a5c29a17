#include "tidemark/tensor/interpreter.h"

#include <algorithm>
#include <atomic>

#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

constinit thread_local Interpreters interpreters __attribute__((tls_model("initial-exec")));

bool recorder_observes(std::initializer_list<const Tensor*> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor* tensor) {
    return tensor != nullptr && interpreters.recorder->observes(*tensor);
  });
}

TapeId tape_id_of(const Tensor& tensor) {
  const TensorState* const state = TensorState::of(tensor);
  const bool may_have = state != nullptr && state->kind == TensorState::Kind::concrete;
  return may_have && !state->weak ? state->tape_id : 0;
}

namespace {

constinit std::atomic<TapeId> last_id{0};

TapeId next_id() { return last_id.fetch_add(1, std::memory_order_relaxed) + 1; }

}  // namespace

TapeId numbered(const Tensor& tensor) {
  TensorState& state = *TensorState::of(tensor);
  if (state.tape_id == 0) state.tape_id = next_id();
  return state.tape_id;
}

void renumber(const Tensor& tensor) { TensorState::of(tensor)->tape_id = next_id(); }

TapeId last_tape_id() { return last_id.load(std::memory_order_relaxed); }

}  // namespace tidemark::detail
