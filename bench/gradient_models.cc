#include "bench/gradient_models.h"

#include <string>
#include <utility>

namespace tidemark::bench {
namespace {

namespace td = tidemark;

// Large enough that rounding does not hide what a step moves.
constexpr double kRate = 0.1;

// The width of a uniform distribution with a standard deviation of 0.02.
constexpr float kSmall = 0.06928F;

void descend(td::GradientTape& tape, const Tensor& loss, const std::vector<td::Variable>& all) {
  const std::vector<td::Gradient> gradients = tape.gradient(loss, all);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].assign_sub(td::multiply(gradients[i].dense(), kRate));
}

// A step from the values that the variables have now.
Prepared with_parameters(Prepared step, const std::vector<td::Variable>& all) {
  std::vector<Tensor> start;
  for (const td::Variable& each : all)
    start.push_back(td::constant(Tensor(each).to_vector<float>(), each.shape()));
  step.checked = [call = step.call, all, start] {
    for (size_t i = 0; i < all.size(); ++i) all[i].assign(start[i]);
    call();
    std::vector<Tensor> moved;
    for (size_t i = 0; i < all.size(); ++i) moved.push_back(all[i] - start[i]);
    return moved;
  };
  return step;
}

Prepared loop_gradient(int64_t trips, td::Save save) {
  const Tensor x = input({128, 128}, 2);
  const auto gradient = td::function([=](const Tensor& a) {
    return td::grad([&](const Tensor& a) {
      return td::sum(td::fori_loop(
          0, trips, [&](const Tensor&, const Tensor& c) { return td::tanh(td::matmul(c, a)); }, x,
          {.save = save}));
    })(a);
  });
  return prepared(gradient, orthogonal(128));
}

}  // namespace

Prepared mlp_step() {
  const std::vector<int64_t> sizes = {784, 1024, 1024, 1024, 10};
  std::vector<td::Variable> p;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    p.emplace_back(input({sizes[i], sizes[i + 1]}, kSmall, static_cast<uint32_t>(i + 1)));
    p.emplace_back(td::zeros({sizes[i + 1]}));
  }
  const auto step = td::function([p](const Tensor& x, const Tensor& y) {
    td::GradientTape tape;
    Tensor h = x;
    for (size_t i = 0; i < 6; i += 2) h = td::relu(td::matmul(h, p[i]) + p[i + 1]);
    const Tensor loss = td::mean(td::square(td::matmul(h, p[6]) + p[7] - y));
    descend(tape, loss, p);
    return loss;
  });
  return with_parameters(prepared(step, input({1024, 784}, 2, 10), input({1024, 10}, 2, 11)), p);
}

Prepared softmax_ce() {
  const Tensor labels = td::zeros({2048}, td::i32);
  const auto gradient = td::function([labels](const Tensor& x) {
    return td::grad([&](const Tensor& x) {
      const Tensor at = td::expand_dims(labels, 1);
      return -td::mean(td::take_along_axis(td::log_softmax(x), at, 1));
    })(x);
  });
  return prepared(gradient, input({2048, 32768}, 4));
}

Prepared conv_step() {
  const auto gradient = td::function([](const Tensor& x, const std::vector<Tensor>& ws) {
    return td::grad<1>([](const Tensor& x, const std::vector<Tensor>& ws) {
      Tensor h = x;
      for (const Tensor& w : ws) h = td::relu(h + td::conv2d(h, w, {.padding = td::Padding::same}));
      return td::mean(h * h);
    })(x, ws);
  });
  const Tensor x = input({16, 56, 56, 64}, 2);
  std::vector<Tensor> ws;
  for (uint32_t i = 1; i <= 4; ++i) ws.push_back(input({3, 3, 64, 64}, 0.17F, i));
  return {[=] { return gradient(x, ws); }, [=] { return gradient.plan(x, ws); }};
}

Prepared gpt_step() {
  constexpr int64_t layers = 4, d = 256, heads = 4, t = 256, batch = 4, words = 8192;
  struct Block {
    td::Variable qkv, o, up, down, g1, g2;
  };
  const td::Variable table(input({words, d}, kSmall, 1));
  std::vector<Block> blocks;
  std::vector<td::Variable> all = {table};
  for (uint32_t i = 1; i <= layers; ++i) {
    const auto weights = [i](int64_t rows, int64_t columns, uint32_t salt) {
      return td::Variable(input({rows, columns}, kSmall, 10 * i + salt));
    };
    blocks.push_back({weights(d, 3 * d, 0), weights(d, d, 1), weights(d, 4 * d, 2),
                      weights(4 * d, d, 3), td::Variable(td::ones({d})),
                      td::Variable(td::ones({d}))});
    const Block& b = blocks.back();
    all.insert(all.end(), {b.qkv, b.o, b.up, b.down, b.g1, b.g2});
  }
  const auto norm = [](const Tensor& x, const Tensor& g) {
    return x * td::rsqrt(td::mean(x * x, -1, td::keepdims) + 1e-6) * g;
  };
  // By tanh, which is what "gelu" is to JAX.
  const auto gelu = [](const Tensor& x) {
    return 0.5 * x * (1.0 + td::tanh(0.7978845608 * (x + 0.044715 * (x * x * x))));
  };
  const auto step = td::function([=](const Tensor& ids) {
    td::GradientTape tape;
    const Tensor mask = td::tril(td::ones({t, t})) > 0;
    Tensor x = td::gather(table, ids);
    for (const Block& b : blocks) {
      std::vector<Tensor> parts;
      for (const Tensor& u : td::split(td::matmul(norm(x, b.g1), b.qkv), 3, -1))
        parts.push_back(td::transpose(td::reshape(u, {batch, t, heads, d / heads}), {0, 2, 1, 3}));
      const Tensor scores =
          td::matmul(parts[0], parts[1], {.transpose_b = true}) / 8.0;  // The root of d / heads.
      const Tensor mixed = td::matmul(td::softmax(td::where(mask, scores, -1e30)), parts[2]);
      x = x + td::matmul(td::reshape(td::transpose(mixed, {0, 2, 1, 3}), {batch, t, d}), b.o);
      x = x + td::matmul(gelu(td::matmul(norm(x, b.g2), b.up)), b.down);
    }
    const Tensor logits = td::matmul(x, table, {.transpose_b = true});
    const Tensor seen = td::log_softmax(logits)[{td::all, td::Slice{.end = t - 1}}];
    const Tensor next = td::expand_dims(ids[{td::all, td::Slice{.begin = 1}}], -1);
    const Tensor loss = -td::mean(td::take_along_axis(seen, next, -1));
    descend(tape, loss, all);
    return loss;
  });
  return with_parameters(prepared(step, input_below(words, {batch, t}, 3)), all);
}

Prepared lstm_grad() {
  constexpr int64_t steps = 128, batch = 32, units = 128;
  const Tensor xs = input({steps, batch, units}, 2);
  const auto gradient = td::function([xs](const std::vector<Tensor>& weights) {
    auto [loss, gradients] = td::value_and_grad([&](const std::vector<Tensor>& w) {
      const auto body = [&](const std::pair<Tensor, Tensor>& state, const Tensor& x) {
        const auto& [h, c] = state;
        const std::vector<Tensor> gates =
            td::split(td::matmul(x, w[0]) + td::matmul(h, w[1]) + w[2], 4, -1);
        const Tensor next = td::sigmoid(gates[0]) * c + td::sigmoid(gates[1]) * td::tanh(gates[2]);
        const Tensor out = td::sigmoid(gates[3]) * td::tanh(next);
        return std::pair{std::pair{out, next}, out};
      };
      const Tensor zero = td::zeros({batch, units});
      return td::mean(td::square(td::scan(body, std::pair{zero, zero}, xs).second));
    })(weights);
    gradients.push_back(loss);
    return gradients;
  });
  const std::vector<Tensor> weights = {input({units, 4 * units}, 0.3F, 1),
                                       input({units, 4 * units}, 0.3F, 2), td::zeros({4 * units})};
  return {[=] { return gradient(weights); }, [=] { return gradient.plan(weights); }};
}

Prepared loop_grad() { return loop_gradient(1'000, td::Save::all()); }

Prepared loop_grad_long() {
  return loop_gradient(10'000, td::Save::bytes(td::Bytes{kLongLoopSaves}));
}

}  // namespace tidemark::bench
