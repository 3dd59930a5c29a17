#include "bench/models.h"

#include <cmath>
#include <utility>

#include "bench/prepared.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

Tensor norm(const Tensor& x, const Tensor& g) {
  return x * td::rsqrt(td::mean(x * x, -1, td::keepdims) + 1e-6) * g;
}

// By tanh, which is what "gelu" is to JAX.
Tensor gelu(const Tensor& x) {
  return 0.5 * x * (1.0 + td::tanh(0.7978845608 * (x + 0.044715 * (x * x * x))));
}

// The weights of one layer of a transformer, in their order.
struct GptBlock {
  const Tensor &qkv, &o, &up, &down, &g1, &g2;
  static constexpr size_t kWeights = 6;

  static GptBlock of(const Tensors& weights, size_t layer) {
    const Tensor* const w = &weights[1 + layer * kWeights];
    return {w[0], w[1], w[2], w[3], w[4], w[5]};
  }
};

Tensor self_attention(const GptSizes& sizes, const Tensor& qkv, const Tensor& mask) {
  const auto [layers, width, heads, tokens, batch, words] = sizes;
  Tensors parts;
  for (const Tensor& u : td::split(qkv, 3, -1))
    parts.push_back(
        td::transpose(td::reshape(u, {batch, tokens, heads, width / heads}), {0, 2, 1, 3}));
  const Tensor scores = td::matmul(parts[0], parts[1], {.transpose_b = true}) /
                        std::sqrt(static_cast<double>(width / heads));
  const Tensor mixed = td::matmul(td::softmax(td::where(mask, scores, -1e30)), parts[2]);
  return td::reshape(td::transpose(mixed, {0, 2, 1, 3}), {batch, tokens, width});
}

}  // namespace

std::vector<Variable> as_variables(const Tensors& values) {
  std::vector<Variable> variables;
  for (const Tensor& value : values) variables.push_back(td::Variable(value));
  return variables;
}

Tensors values_of(const std::vector<Variable>& variables) {
  Tensors values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  return values;
}

Tensors mlp_weights(const std::vector<int64_t>& widths) {
  Tensors weights;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    weights.push_back(input({widths[i], widths[i + 1]}, kSmall, static_cast<uint32_t>(i + 1)));
    weights.push_back(td::zeros({widths[i + 1]}));
  }
  return weights;
}

Tensor mlp_loss(const Tensors& weights, const Tensor& x, const Tensor& y) {
  const size_t last = weights.size() - 2;
  Tensor h = x;
  for (size_t i = 0; i < last; i += 2) h = td::relu(td::matmul(h, weights[i]) + weights[i + 1]);
  return td::mean(td::square(td::matmul(h, weights[last]) + weights[last + 1] - y));
}

Tensors residual_weights(uint32_t blocks, int64_t channels) {
  Tensors weights;
  for (uint32_t i = 1; i <= blocks; ++i)
    weights.push_back(input({3, 3, channels, channels}, 0.17F, i));
  return weights;
}

Tensor residual_loss(const Tensors& weights, const Tensor& x) {
  Tensor h = x;
  for (const Tensor& w : weights)
    h = td::relu(h + td::conv2d(h, w, {.padding = td::Padding::same}));
  return td::mean(h * h);
}

Tensors gpt_weights(const GptSizes& sizes) {
  const int64_t d = sizes.width;
  Tensors weights = {input({sizes.words, d}, kSmall, 1)};
  for (uint32_t i = 1; i <= static_cast<uint32_t>(sizes.layers); ++i) {
    const auto matrix = [i](int64_t rows, int64_t columns, uint32_t salt) {
      return input({rows, columns}, kSmall, 10 * i + salt);
    };
    weights.insert(weights.end(), {matrix(d, 3 * d, 0), matrix(d, d, 1), matrix(d, 4 * d, 2),
                                   matrix(4 * d, d, 3), td::ones({d}), td::ones({d})});
  }
  return weights;
}

Tensor gpt_loss(const GptSizes& sizes, const Tensors& weights, const Tensor& ids) {
  const int64_t t = sizes.tokens;
  const Tensor& table = weights[0];
  const Tensor mask = td::tril(td::ones({t, t})) > 0;
  Tensor x = td::gather(table, ids);
  for (size_t layer = 0; layer < static_cast<size_t>(sizes.layers); ++layer) {
    const GptBlock b = GptBlock::of(weights, layer);
    const Tensor mixed = self_attention(sizes, td::matmul(norm(x, b.g1), b.qkv), mask);
    x = x + td::matmul(mixed, b.o);
    x = x + td::matmul(gelu(td::matmul(norm(x, b.g2), b.up)), b.down);
  }
  const Tensor logits = td::matmul(x, table, {.transpose_b = true});
  const Tensor seen = td::log_softmax(logits)[{td::all, td::Slice{.end = t - 1}}];
  const Tensor next = td::expand_dims(ids[{td::all, td::Slice{.begin = 1}}], -1);
  return -td::mean(td::take_along_axis(seen, next, -1));
}

Tensors lstm_weights(int64_t units) {
  return {input({units, 4 * units}, 0.3F, 1), input({units, 4 * units}, 0.3F, 2),
          td::zeros({4 * units})};
}

Tensor lstm_loss(const Tensors& weights, const Tensor& xs) {
  const auto body = [&](const std::pair<Tensor, Tensor>& state, const Tensor& x) {
    const auto& [h, c] = state;
    const Tensors gates =
        td::split(td::matmul(x, weights[0]) + td::matmul(h, weights[1]) + weights[2], 4, -1);
    const Tensor next = td::sigmoid(gates[0]) * c + td::sigmoid(gates[1]) * td::tanh(gates[2]);
    const Tensor out = td::sigmoid(gates[3]) * td::tanh(next);
    return std::pair{std::pair{out, next}, out};
  };
  const Tensor zero = td::zeros({xs.shape()[1], xs.shape()[2]});
  return td::mean(td::square(td::scan(body, std::pair{zero, zero}, xs).second));
}

Tensor loop_loss(const Tensor& a, const Tensor& x, int64_t trips, Save save) {
  return td::sum(td::fori_loop(
      0, trips, [&](const Tensor&, const Tensor& c) { return td::tanh(td::matmul(c, a)); }, x,
      {.save = save}));
}

Tensor map_of_sines(const Tensor& x, int64_t repeats) {
  const auto body = [&](const Tensor& e) {
    return td::sum(td::sin(td::repeat(e, repeats) * td::cast(td::arange(repeats), td::f32)));
  };
  return td::map_fn(body, x);
}

}  // namespace tidemark::bench
