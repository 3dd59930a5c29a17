// Losses of models that several benchmarks measure, as functions of their weights.
#pragma once

#include <cstdint>
#include <vector>

#include <tidemark/tidemark.h>

namespace tidemark::bench {

using Tensors = std::vector<Tensor>;

// The width of a uniform distribution with a standard deviation of 0.02.
inline constexpr float kSmall = 0.06928F;

std::vector<Variable> as_variables(const Tensors& values);
// Reads all of them; under a tape, gradients by them can be asked for afterwards.
Tensors values_of(const std::vector<Variable>& variables);

// Layers of these widths: a kernel and a bias each.
Tensors mlp_weights(const std::vector<int64_t>& widths);
// The mean squared error; relu after every layer but the last.
Tensor mlp_loss(const Tensors& weights, const Tensor& x, const Tensor& y);

// Residual 3 x 3 convolutions of one number of channels.
Tensors residual_weights(uint32_t blocks, int64_t channels);
Tensor residual_loss(const Tensors& weights, const Tensor& x);

// A transformer that predicts the next word; the last layer has the table of the first.
struct GptSizes {
  int64_t layers = 4, width = 256, heads = 4, tokens = 256, batch = 4;
  int32_t words = 8192;  // A power of two.
};
Tensors gpt_weights(const GptSizes& sizes);
// `ids` is i32 [batch, tokens].
Tensor gpt_loss(const GptSizes& sizes, const Tensors& weights, const Tensor& ids);

// An LSTM over [steps, batch, units], with as many features as units.
Tensors lstm_weights(int64_t units);
Tensor lstm_loss(const Tensors& weights, const Tensor& xs);

// The sum of x after so many times x = tanh(x a).
Tensor loop_loss(const Tensor& a, const Tensor& x, int64_t trips, Save save);

// For each element e: the sum of sin(e i) for i from 0 to `repeats` - 1.
Tensor map_of_sines(const Tensor& x, int64_t repeats);

}  // namespace tidemark::bench
