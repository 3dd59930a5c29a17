// Recurrent layers, on [n, steps, features].
//
//   td::nn::GRU gru(64, {.return_sequences = true});
//   td::Tensor all = gru(x);
//   auto [output, state] = gru.run(x, {.initial = earlier, .mask = is_token});
//
// Layers are stacked in a Sequential: all but the last return sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/control_flow.h"
#include "tidemark/nn/activation.h"
#include "tidemark/nn/initializers.h"
#include "tidemark/nn/layer.h"
#include "tidemark/nn/policy.h"

namespace tidemark::nn {

// A state and the steps that count.
template <class State>
struct RecurrentInput {
  std::optional<State> initial = {};  // Default: zeros.
  // bool[n, steps]. A false step is skipped: the state stays, and the output repeats it.
  std::optional<Tensor> mask = {};
};
template <class State>
struct RecurrentResult {
  Tensor output;  // As the layer's operator() returns it.
  State state;    // After the last step taken.
};

struct RecurrentOptions {
  bool return_sequences = false;  // The output of every step, not only the last.
  bool reverse = false;           // From the end to the beginning.
  Save save = Save::automatic();  // What is stored for gradients (docs/loop_gradients.md).
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer recurrent_initializer = initializers::orthogonal;
  Policy dtype = global_policy();
  std::string name = {};
};

using LSTMOptions = RecurrentOptions;
using GRUOptions = RecurrentOptions;

struct LSTMState {
  Tensor h, c;  // [n, units]
};

// What LSTM, GRU and SimpleRNN share. `Layer` has `kKind` and `walk`, which runs its step over a
// sequence.
template <class Layer, class StateType, class Options>
class RecurrentLayer : public detail::SharedIdentity {
 public:
  using State = StateType;

  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  RecurrentResult<State> run(const Tensor& x, const RecurrentInput<State>& input = {},
                             Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }
  const Policy& policy() const { return options_.dtype; }
  Tensor call(const Tensor& x, Source at) const;  // Internal.
  detail::SequenceResult run_sequence(const Tensor& x, const detail::SequenceInput& input,
                                      Source at) const;  // Internal.

 protected:
  Variable declared(const char* name, Initializer initializer, Source at) const;
  // Checks the input and builds the kernel, whose last size is `width`.
  void begin(const Variable& kernel, int64_t width, const Tensor& x,
             const RecurrentInput<State>& input, Source at) const;
  // The initial state, or a part of it, by default zeros.
  Tensor first_state(const std::optional<Tensor>& initial, const Tensor& x, Source at) const;

  int64_t units_;
  Options options_;  // Without the initializers, which the Variables take.

 private:
  friend Layer;  // The one class that may derive from it.
  RecurrentLayer(int64_t units, Options options, Source at);

  const Layer& self() const { return static_cast<const Layer&>(*this); }
};

// Long short-term memory: [n, steps, features] becomes [n, units], or [n, steps, units].
//
// One step, of input x, state h and memory c; i, f, g, o are the four parts of x kernel + h
// recurrent + bias, in that order:  c = sigmoid(f) c + sigmoid(i) tanh(g),  h = sigmoid(o) tanh(c).
class LSTM : public RecurrentLayer<LSTM, LSTMState, LSTMOptions> {
 public:
  explicit LSTM(int64_t units, LSTMOptions options = {}, Source at = Source::here());

  Variable kernel;     // [features, 4 units]
  Variable recurrent;  // [units, 4 units]
  Variable bias;       // [4 units]; initially 1 for f, which keeps the memory, else 0.
  TIDEMARK_FIELDS(kernel, recurrent, bias)

  static constexpr const char* kKind = "nn::LSTM";

 private:
  friend RecurrentLayer;
  RecurrentResult<State> walk(const Tensor& x, const RecurrentInput<State>& input, Source at) const;
};

// Gated recurrent unit. One step, with r, z, n the three parts of x kernel + bias and s those of h
// recurrent + recurrent_bias:  r = sigmoid(r + s_r),  z = sigmoid(z + s_z),  n = tanh(n + r s_n),
// h = (1 - z) n + z h.
class GRU : public RecurrentLayer<GRU, Tensor, GRUOptions> {
 public:
  explicit GRU(int64_t units, GRUOptions options = {}, Source at = Source::here());

  Variable kernel;                // [features, 3 units]
  Variable recurrent;             // [units, 3 units]
  Variable bias, recurrent_bias;  // [3 units]
  TIDEMARK_FIELDS(kernel, recurrent, bias, recurrent_bias)

  static constexpr const char* kKind = "nn::GRU";

 private:
  friend RecurrentLayer;
  RecurrentResult<State> walk(const Tensor& x, const RecurrentInput<State>& input, Source at) const;
};

struct SimpleRNNOptions {
  Activation activation = "tanh";
  bool return_sequences = false;
  bool reverse = false;
  Save save = Save::automatic();
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer recurrent_initializer = initializers::orthogonal;
  Policy dtype = global_policy();
  std::string name = {};
};

// h = activation(x kernel + h recurrent + bias).
class SimpleRNN : public RecurrentLayer<SimpleRNN, Tensor, SimpleRNNOptions> {
 public:
  explicit SimpleRNN(int64_t units, SimpleRNNOptions options = {}, Source at = Source::here());

  Variable kernel;     // [features, units]
  Variable recurrent;  // [units, units]
  Variable bias;       // [units]
  TIDEMARK_FIELDS(kernel, recurrent, bias, activation_)

  static constexpr const char* kKind = "nn::SimpleRNN";

 private:
  friend RecurrentLayer;
  RecurrentResult<State> walk(const Tensor& x, const RecurrentInput<State>& input, Source at) const;

  Activation activation_;
};

// The states of both layers: {h}, or {h, c} of an LSTM.
struct BidirectionalState {
  std::vector<Tensor> forward = {}, backward = {};
};

// Both directions, one after another along the last axis:
// Bidirectional(GRU(8), GRU(8, {.reverse = true})).
class Bidirectional : public detail::SharedIdentity {
 public:
  using State = BidirectionalState;

  Bidirectional(AnyLayer forward, AnyLayer backward, std::string name = {});
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  RecurrentResult<State> run(const Tensor& x, const RecurrentInput<State>& input = {},
                             Source at = Source::here()) const;
  const std::string& name() const { return name_; }

  AnyLayer forward, backward;
  TIDEMARK_FIELDS(forward, backward)

  static constexpr const char* kKind = "nn::Bidirectional";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  std::string name_;
};

}  // namespace tidemark::nn
