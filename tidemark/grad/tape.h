// What tapes hold, and how ops tell them; internal to the library.
//
// History lives here and never in a tensor: a tensor has at most a number that no other value ever
// had, by which tapes know it. A tape in eager code keeps, of each op that depends on something
// watched, what the gradient rule reads by value. A tape in a trace keeps nothing: the graph is its
// record.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/grad/gradient_tape.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/tensor/variable_state.h"
#include "tidemark/trace/control_flow_core.h"

namespace tidemark::detail {

// The gradient by one source.
struct Found {
  Found() = default;
  Found(Tensor whole) : dense(std::move(whole)) {}
  Tensor dense;                   // Nothing where there is none, or where it is rows.
  std::vector<RowGradient> rows;  // Besides, of a Variable that is looked up.
  bool connected() const { return dense.has_value() || !rows.empty(); }
};

// From the gradients of results to those of inputs; nothing stands for zeros. Only inputs that are
// Variables may get rows.
using Pullback = std::function<std::vector<Found>(Tensors gradients)>;
inline std::vector<Found> all_dense(const Tensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

// Why a tape gives no gradient of what its own gradient() gave.
[[noreturn]] void refuse_own_gradient(Source at);
// A function of custom_gradient reads something watched that is no argument.
[[noreturn]] void refuse_capture(Source at);

using TapeId = uint64_t;

// An op that ran in eager code, or something else with a gradient.
struct Recorded {
  const OpDef* op = nullptr;  // Null: `pullback` gives the gradients, and holds the operands.
  Attrs attrs = {};
  std::vector<TapeId> inputs = {};    // 0: needs no gradient.
  std::vector<Tensor> operands = {};  // Specs where the rule does not read them.
  std::vector<Tensor> values = {};    // Of the results; the same.
  std::vector<TapeId> results = {};
  std::vector<TensorType> result_types = {};
  Pullback pullback = {};
  Source at = Source::none();
};

class Tape {
 public:
  Tape() = default;
  virtual ~Tape() { stop(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  virtual void watch(const Tensor& tensor, Source at) = 0;
  // A trainable Variable was read on this thread.
  virtual void saw(const VariableState& variable, const Tensor& value) = 0;
  virtual bool knows(TapeId id) const = 0;
  virtual void record(const Recorded& recorded) = 0;
  // By tensors, then by Variables. Consumes the record unless the tape is persistent.
  virtual std::vector<Found> gradient(const Tensors& targets, const Tensors& output_gradients,
                                      const Tensors& tensors,
                                      const std::vector<Variable>& variables, Source at) = 0;
  virtual std::vector<Variable> watched_variables() const = 0;
  virtual int64_t saved_bytes() const = 0;
  // Lets go of all that is held.
  virtual void release() = 0;

  // From here on ops of this thread reach it; until `stop`, which may come more than once.
  virtual void start();
  virtual void stop();
  bool is_running() const { return running_; }
  Tape* outer() const { return outer_; }

  bool watches_variables = true;
  bool persistent = false;
  Source at = Source::none();  // Where it was made.

 private:
  bool running_ = false;
  Tape* outer_ = nullptr;
};

// The innermost that runs on this thread; null where none does.
extern constinit thread_local Tape* current_tape;
inline bool taping() { return current_tape != nullptr; }

// A tape for eager code, or for the current trace.
std::unique_ptr<Tape> make_tape(Source at);
std::unique_ptr<Tape> make_eager_tape(Source at);
std::unique_ptr<Tape> make_traced_tape();
// Whether a tape in a trace records what is made now: a gradient may be asked of a gradient.
bool is_recorded_again();

// No tape sees what is done in its life.
class NoTape {
 public:
  NoTape() : held_(std::exchange(current_tape, nullptr)) {}
  ~NoTape() { current_tape = held_; }
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;

 private:
  Tape* held_;
};

// Whether a tape that runs wants to know of an eager op on these.
bool is_watched(std::initializer_list<const Tensor*> operands);

// Made before an eager op runs, so that no operand that its rule will read gives its bytes away.
class Recording {
 public:
  Recording(const OpDef& op, const Attrs& attrs, std::span<const Tensor* const> operands,
            std::span<const TensorType> results, Source at);
  // The op has run.
  void finish(std::span<const Tensor> results);

 private:
  Recorded recorded_;
  uint32_t kept_results_ = 0;  // By result, a bit.
};

// The number by which tapes know an eager tensor; 0: by none.
TapeId tape_id_of(const Tensor& tensor);
// A new number: to tapes it is another value from now on.
void renumber(const Tensor& tensor);
// The last number that was given to a value; later ones are larger.
TapeId last_tape_id();

// An eager tensor that a tape inside a function may watch without watching what its caller holds:
// another handle of the same bytes where somebody else has this one.
Tensor own_handle(Tensor tensor, Source at);

// Runs something eager on a tape of its own that knows these values, and goes back over it: the
// gradients by the values, nothing where there is none. By those of Variables they may be rows.
std::vector<Found> gradients_of_run(const std::vector<TapeId>& known,
                                    const std::vector<TapeId>& variables,
                                    const std::function<Tensors()>& run, const Tensors& gradients);

// Results of eager code that come out of no op. `held` is what the pullback holds.
void record_pullback(std::vector<TapeId> inputs, const Tensors& results, Pullback pullback,
                     const Tensors& held, Source at);

}  // namespace tidemark::detail
