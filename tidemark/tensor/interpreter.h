// The interpreters of calls: a trace if the thread has one, else eager code, which tapes record.
//
//   bind(call) ── a trace? ── records a node, and returns a placeholder for its result
//        │
//        └─ a tape? ── runs it, and saves the values that the gradient will read
//              │
//              └─ eager code runs it
//
// Lower folders see only these interfaces; trace/ and grad/ implement them. Internal to the
// library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/tensor/call.h"
#include "tidemark/tensor/row_gradient.h"

namespace tidemark::detail {

using Tensors = std::vector<Tensor>;
class Composition;
struct TensorState;
struct VariableState;

// The identity of a value for tapes. A tensor has at most one, and numbers are never reused.
using TapeId = uint64_t;

// The gradient by one value: dense, row-sparse (for a Variable that is looked up), or both.
struct PartialGradient {
  PartialGradient() = default;
  PartialGradient(Tensor whole) : dense(std::move(whole)) {}
  Tensor dense;                   // Empty if there is no dense part.
  std::vector<RowGradient> rows;  // Of a Variable that is looked up.
  bool connected() const { return dense.has_value() || !rows.empty(); }
};
// Maps the gradients of the results to those of the inputs; an empty one means zeros. Only inputs
// that are Variables may get rows.
using Pullback = std::function<std::vector<PartialGradient>(Tensors gradients)>;

class Interpreter {
 public:
  // The result; empty for an op that has none, such as a print or a check.
  virtual Tensor bind(const OpCall& call) = 0;
  // For an op with several results: at least those whose bit is set in `wanted`; the others are
  // empty.
  virtual Tensors bind_results(const OpCall& call, uint32_t wanted) = 0;
  // Whether calls on this tensor must go through `bind`, op by op.
  virtual bool observes(const Tensor& tensor) const = 0;
  // See bind.h.
  virtual Tensor as_one_op(const Composition& what, Tensors operands,
                           const std::function<Tensor(const Tensors&)>& f, Source at) = 0;

 protected:
  ~Interpreter() = default;
};

// Records every call; nothing is computed until the traced function runs.
class Tracer : public Interpreter {
 public:
  // A literal of rank 0: `real` if the dtype is a float, else `whole`.
  virtual Tensor constant(DType dtype, double real, int64_t whole, Source at) = 0;
  // A plain number in a dtype; empty if eager code has to make it.
  virtual Tensor number(const Operand& operand, const PlainNumber& number, DType dtype,
                        Source at) = 0;
  virtual Tensor size_number(Dim size, Source at) = 0;
  // The open size that a traced tensor holds, if it holds one.
  virtual std::optional<Dim> open_size(const TensorState& state) const = 0;

  // Writes take effect when the call of the function has succeeded.
  virtual Tensor read(const VariableState& variable, Source at) = 0;
  virtual void write(VariableState& variable, Tensor value) = 0;
  // Refuses a Variable that every trace of the function would create again. `title` names it.
  virtual void check_declaration(const std::string& title, Source at) const = 0;
  // Records the computation of the initial value of a Variable that is created here.
  virtual std::function<Tensor()> initial_value(const Tensor& value, const std::string& title,
                                                Source at) = 0;

 protected:
  ~Tracer() = default;
};

// Is notified of the calls that eager code runs.
class Recorder : public Interpreter {
 public:
  // A trainable Variable was read on this thread.
  virtual void saw_read(const VariableState& variable, const Tensor& value) = 0;
  // Results of eager code that are not results of an op. `held` are the tensors that the pullback
  // stores.
  virtual void record_pullback(std::vector<TapeId> inputs, const Tensors& results,
                               Pullback pullback, const Tensors& held, Source at) = 0;

 protected:
  ~Recorder() = default;
};

// The interpreters of this thread; null if there is none. They are one object, so that a call reads
// it once, and use the initial-exec TLS model, so that this is one instruction also in a shared
// library.
struct Interpreters {
  Tracer* tracer = nullptr;
  Recorder* recorder = nullptr;
};
extern constinit thread_local Interpreters interpreters __attribute__((tls_model("initial-exec")));

inline bool tracing() { return interpreters.tracer != nullptr; }
inline bool taping() { return interpreters.recorder != nullptr; }

bool recorder_observes(std::initializer_list<const Tensor*> tensors);
// Whether a tape of this thread watches one of these.
inline bool is_watched(std::initializer_list<const Tensor*> tensors) {
  return taping() && recorder_observes(tensors);
}
// Whether calls on these must go through `bind`, op by op, because the thread is tracing or a tape
// watches one of them. Otherwise eager code may take a shortcut.
inline bool is_observed(std::initializer_list<const Tensor*> tensors) {
  return tracing() || is_watched(tensors);
}

// While it lives, literals are computed at once, even inside a trace.
class NoTrace {
 public:
  NoTrace() : held_(std::exchange(interpreters.tracer, nullptr)) {}
  ~NoTrace() { interpreters.tracer = held_; }
  NoTrace(const NoTrace&) = delete;
  NoTrace& operator=(const NoTrace&) = delete;

 private:
  Tracer* held_;
};

// While it lives, tapes record nothing.
class NoTape {
 public:
  NoTape() : held_(std::exchange(interpreters.recorder, nullptr)) {}
  ~NoTape() { interpreters.recorder = held_; }
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;

 private:
  Recorder* held_;
};

// The identity of an eager tensor for tapes; 0: none yet.
TapeId tape_id_of(const Tensor& tensor);
// The same, assigned now if it has none.
TapeId numbered(const Tensor& tensor);
// Assigns a new identity: to tapes it is another value from now on.
void renumber(const Tensor& tensor);
// The last identity that was assigned; later ones are larger.
TapeId last_tape_id();

}  // namespace tidemark::detail
