// Recurrent layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/api/control_flow.h"
#include "tidemark/nn/initializers.h"
#include "tidemark/nn/layer.h"

namespace tidemark::nn {

struct LSTMOptions {
  bool return_sequences = false;  // The output of every step, not only the last.
  bool reverse = false;           // From the end to the beginning.
  Save save = Save::automatic();  // What is stored for gradients (docs/loop_gradients.md).
  Initializer kernel_initializer = initializers::glorot_uniform;
  Initializer recurrent_initializer = initializers::orthogonal;
  DType dtype = DType::f32;
  std::string name = {};
};

// Long short-term memory: [n, steps, features] becomes [n, units], or [n, steps, units].
//
// One step, of input x, state h and memory c; i, f, g, o are the four parts of x kernel + h
// recurrent + bias, in that order:  c = sigmoid(f) c + sigmoid(i) tanh(g),  h = sigmoid(o) tanh(c).
class LSTM : public detail::SharedIdentity {
 public:
  explicit LSTM(int64_t units, LSTMOptions options = {}, Source at = Source::here());
  Tensor operator()(const Tensor& x, Source at = Source::here()) const;
  const std::string& name() const { return options_.name; }

  Variable kernel;     // [features, 4 units]
  Variable recurrent;  // [units, 4 units]
  Variable bias;       // [4 units]; initially 1 for f, which keeps the memory, else 0.
  TIDEMARK_FIELDS(kernel, recurrent, bias)

  static constexpr const char* kKind = "nn::LSTM";
  Tensor call(const Tensor& x, Source at) const;  // Internal.

 private:
  int64_t units_;
  LSTMOptions options_;
};

}  // namespace tidemark::nn
