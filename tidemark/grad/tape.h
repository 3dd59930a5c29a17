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

#include "tidemark/account/accounts.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

inline std::vector<PartialGradient> all_dense(const Tensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

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

class Tape : public Recorder, public HoldsBytes {
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
  virtual std::vector<PartialGradient> gradient(const Tensors& targets,
                                                const Tensors& output_gradients,
                                                const Tensors& tensors,
                                                const std::vector<Variable>& variables,
                                                Source at) = 0;
  virtual std::vector<Variable> watched_variables() const = 0;
  // Lets go of all that is held.
  virtual void release() = 0;

  // Runs a call, and has all tapes that run on this thread keep what the gradient will read of it.
  Tensor bind(const OpCall& call) override;
  Tensors bind_results(const OpCall& call, uint32_t wanted) override;
  bool observes(const Tensor& tensor) const override;
  Tensor as_one_op(Tensors operands, const std::function<Tensor(const Tensors&)>& f,
                   Source at) override;
  void saw_read(const VariableState& variable, const Tensor& value) override;
  void record_pullback(std::vector<TapeId> inputs, const Tensors& results, Pullback pullback,
                       const Tensors& held, Source at) override;

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
inline Tape* current_tape() { return static_cast<Tape*>(interpreters.recorder); }

// A tape for eager code, or for the current trace.
std::unique_ptr<Tape> make_tape(Source at);
std::unique_ptr<Tape> make_eager_tape(Source at);
std::unique_ptr<Tape> make_traced_tape();
// Whether a tape in a trace records what is made now: a gradient may be asked of a gradient.
bool is_recorded_again();

// Runs something eager on a tape of its own that knows these values, and goes back over it: the
// gradients by the values, nothing where there is none. By those of Variables they may be rows.
std::vector<PartialGradient> gradients_of_run(const std::vector<TapeId>& known,
                                              const std::vector<TapeId>& variables,
                                              const std::function<Tensors()>& run,
                                              const Tensors& gradients);

}  // namespace tidemark::detail
