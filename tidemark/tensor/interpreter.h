// Who carries out the calls of a thread: eager code, unless a trace or a tape takes them first.
//
//   bind(call) ── a trace? ── records a node, and gives a tensor that stands for its result
//        │
//        └─ a tape? ── runs it, and keeps what the gradient will read
//              │
//              └─ eager code runs it
//
// The lower rooms know these interfaces alone; trace/ and grad/ implement them. Internal to the
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
struct TensorState;
struct VariableState;

// By which tapes know a value. A tensor has at most one, and no two values ever had the same.
using TapeId = uint64_t;

// The gradient by one value: whole, or rows besides where it is a Variable that is looked up.
struct PartialGradient {
  PartialGradient() = default;
  PartialGradient(Tensor whole) : dense(std::move(whole)) {}
  Tensor dense;                   // Nothing where there is none, or where it is rows.
  std::vector<RowGradient> rows;  // Besides, of a Variable that is looked up.
  bool connected() const { return dense.has_value() || !rows.empty(); }
};
// From the gradients of results to those of inputs; nothing stands for zeros. Only inputs that are
// Variables may get rows.
using Pullback = std::function<std::vector<PartialGradient>(Tensors gradients)>;

class Interpreter {
 public:
  // The result; nothing of an op that has none, a print or a check.
  virtual Tensor bind(const OpCall& call) = 0;
  // Of an op with several results: those whose bits `wanted` has, or more; the others are nothing.
  virtual Tensors bind_results(const OpCall& call, uint32_t wanted) = 0;
  // Whether calls on this tensor have to come through `bind`, op by op.
  virtual bool observes(const Tensor& tensor) const = 0;
  // See bind.h.
  virtual Tensor as_one_op(Tensors operands, const std::function<Tensor(const Tensors&)>& f,
                           Source at) = 0;

 protected:
  ~Interpreter() = default;
};

// Takes every call: nothing is carried out until the function that is traced runs.
class Tracer : public Interpreter {
 public:
  // A literal of rank 0. `real` counts where the dtype is a float, else `whole`.
  virtual Tensor constant(DType dtype, double real, int64_t whole, Source at) = 0;
  // A plain number in a dtype. Nothing where it has to be made at once.
  virtual Tensor number(const Operand& operand, const PlainNumber& number, DType dtype,
                        Source at) = 0;
  virtual Tensor size_number(Dim size, Source at) = 0;
  // The open size that a traced tensor is, if it is one.
  virtual std::optional<Dim> open_size(const TensorState& state) const = 0;

  // Writes take effect when the call of the function has succeeded.
  virtual Tensor read(const VariableState& variable, Source at) = 0;
  virtual void write(VariableState& variable, Tensor value) = 0;
  // Refuses a Variable that every trace of the function would make anew. `title` names it.
  virtual void check_declaration(const std::string& title, Source at) const = 0;
  // What computes the first value of a Variable that is made here.
  virtual std::function<Tensor()> initial_value(const Tensor& value, const std::string& title,
                                                Source at) = 0;

 protected:
  ~Tracer() = default;
};

// Hears of the calls that eager code carries out.
class Recorder : public Interpreter {
 public:
  // A trainable Variable was read on this thread.
  virtual void saw_read(const VariableState& variable, const Tensor& value) = 0;
  // Results of eager code that come out of no op. `held` is what the pullback holds.
  virtual void record_pullback(std::vector<TapeId> inputs, const Tensors& results,
                               Pullback pullback, const Tensors& held, Source at) = 0;

 protected:
  ~Recorder() = default;
};

// Those of this thread; null where there is none. One object, so that a call looks it up once; of
// static thread storage, so that it does so in one instruction, in a shared library too.
struct Interpreters {
  Tracer* tracer = nullptr;
  Recorder* recorder = nullptr;
};
extern constinit thread_local Interpreters interpreters __attribute__((tls_model("initial-exec")));

inline bool tracing() { return interpreters.tracer != nullptr; }
inline bool taping() { return interpreters.recorder != nullptr; }

// Whether calls on one of these have to go through `bind`, op by op: a trace is being made, or a
// tape watches. Otherwise eager code may take a shorter way.
bool is_observed(std::initializer_list<const Tensor*> tensors);
// Whether a tape watches one of these in eager code.
bool is_watched(std::initializer_list<const Tensor*> tensors);

// Eager for its life: literals are made at once also inside a trace.
class NoTrace {
 public:
  NoTrace() : held_(std::exchange(interpreters.tracer, nullptr)) {}
  ~NoTrace() { interpreters.tracer = held_; }
  NoTrace(const NoTrace&) = delete;
  NoTrace& operator=(const NoTrace&) = delete;

 private:
  Tracer* held_;
};

// No tape sees what is done in its life.
class NoTape {
 public:
  NoTape() : held_(std::exchange(interpreters.recorder, nullptr)) {}
  ~NoTape() { interpreters.recorder = held_; }
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;

 private:
  Recorder* held_;
};

// The number by which tapes know an eager tensor; 0: by none.
TapeId tape_id_of(const Tensor& tensor);
// The same, given to it now if it has none.
TapeId numbered(const Tensor& tensor);
// A new number: to tapes it is another value from now on.
void renumber(const Tensor& tensor);
// The last number that was given to a value; later ones are larger.
TapeId last_tape_id();

}  // namespace tidemark::detail
