// The implementation of gradient tapes. Internal to the library.
//
// The history is here and not in tensors: a tensor has at most a unique number, by which tapes
// identify it. For each op that depends on a watched value, an eager tape saves the values that the
// gradient rule reads. A tape in a trace saves nothing: the graph is its record.
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

// A recorded op of eager code, or another computation with a gradient.
struct RecordedOp {
  const OpDef* op = nullptr;  // If null, `pullback` computes the gradients and holds the operands.
  Attrs attrs = {};
  std::vector<TapeId> inputs = {};    // 0 if no gradient is needed.
  std::vector<Tensor> operands = {};  // Specs if the rule does not read their values.
  std::vector<Tensor> values = {};    // The results; likewise.
  std::vector<TapeId> results = {};
  std::vector<TensorType> result_types = {};
  bool is_chain = false;  // passes::RuleForm
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
  // Called when a trainable Variable is read on this thread.
  virtual void saw(const VariableState& variable, const Tensor& value) = 0;
  virtual bool knows(TapeId id) const = 0;
  virtual void record(const RecordedOp& recorded) = 0;
  // Whether its newest record is the one that made this value.
  virtual bool made_last(TapeId) const { return false; }
  // The gradients of tensors, then of Variables. Consumes the record unless the tape is persistent.
  virtual std::vector<PartialGradient> gradient(const Tensors& targets,
                                                const Tensors& output_gradients,
                                                const Tensors& tensors,
                                                const std::vector<Variable>& variables,
                                                Source at) = 0;
  virtual std::vector<Variable> watched_variables() const = 0;
  // Releases everything that is saved.
  virtual void release() = 0;

  // Runs a call; all running tapes of this thread save the values that its gradient rule reads.
  Tensor bind(const OpCall& call) override;
  Tensors bind_results(const OpCall& call, uint32_t wanted) override;
  bool observes(const Tensor& tensor) const override;
  Tensor as_one_op(const Composition& what, Tensors operands,
                   const std::function<Tensor(const Tensors&)>& f, Source at) override;
  void saw_read(const VariableState& variable, const Tensor& value) override;
  void record_pullback(std::vector<TapeId> inputs, const Tensors& results, Pullback pullback,
                       const Tensors& held, Source at) override;

  // Records the ops of this thread until `stop`, which may be called more than once.
  virtual void start();
  virtual void stop();
  bool is_running() const { return running_; }
  Tape* outer() const { return outer_; }

  bool watches_variables = true;
  bool persistent = false;
  Source at = Source::none();  // The line that made the tape.

 protected:
  // Throws a UserError unless the tensor has floats.
  static void check_watchable(const Tensor& tensor, Source at);
  // Throws a UserError if the saved values are gone.
  void check_unused(Source at) const;
  bool is_used_ = false, is_released_ = false;

 private:
  bool running_ = false;
  Tape* outer_ = nullptr;
};

// The innermost tape that records on this thread, or null.
inline Tape* current_tape() { return static_cast<Tape*>(interpreters.recorder); }

// A tape of the current trace if there is one, else of eager code.
std::unique_ptr<Tape> make_tape(Source at);
std::unique_ptr<Tape> make_eager_tape(Source at);
std::unique_ptr<Tape> make_traced_tape();
// Whether another tape of the trace records the gradient that is being computed, which may itself
// be differentiated then.
bool is_recorded_again();

// Runs a piece of eager code on a separate tape that knows these values, and returns their
// gradients; an element is empty if there is none. Gradients of Variables may be row-sparse.
std::vector<PartialGradient> gradients_of_run(const std::vector<TapeId>& known,
                                              const std::vector<TapeId>& variables,
                                              const std::function<Tensors()>& run,
                                              const Tensors& gradients);

}  // namespace tidemark::detail
