#include "bench/gradient_models.h"

#include "bench/models.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

// Large enough that rounding does not hide what a step moves.
constexpr double kRate = 0.1;

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
    return td::grad([&](const Tensor& a) { return loop_loss(a, x, trips, save); })(a);
  });
  return prepared(gradient, orthogonal(128));
}

}  // namespace

Prepared mlp_step() {
  const std::vector<td::Variable> p = as_variables(mlp_weights({784, 1024, 1024, 1024, 10}));
  const auto step = td::function([p](const Tensor& x, const Tensor& y) {
    td::GradientTape tape;
    const Tensor loss = mlp_loss(values_of(p), x, y);
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
  const auto gradient = td::function([](const Tensor& x, const Tensors& weights) {
    return td::grad([&](const Tensors& weights) { return residual_loss(weights, x); })(weights);
  });
  const Tensor x = input({16, 56, 56, 64}, 2);
  const Tensors weights = residual_weights(4, 64);
  return {[=] { return gradient(x, weights); }, [=] { return gradient.plan(x, weights); }};
}

Prepared gpt_step() {
  const GptSizes sizes;
  const std::vector<td::Variable> all = as_variables(gpt_weights(sizes));
  const auto step = td::function([=](const Tensor& ids) {
    td::GradientTape tape;
    const Tensor loss = gpt_loss(sizes, values_of(all), ids);
    descend(tape, loss, all);
    return loss;
  });
  const Tensor ids = input_below(sizes.words, {sizes.batch, sizes.tokens}, 3);
  return with_parameters(prepared(step, ids), all);
}

Prepared lstm_grad() {
  constexpr int64_t steps = 128, batch = 32, units = 128;
  const Tensor xs = input({steps, batch, units}, 2);
  const auto gradient = td::function([xs](const Tensors& weights) {
    auto [loss, gradients] =
        td::value_and_grad([&](const Tensors& w) { return lstm_loss(w, xs); })(weights);
    gradients.push_back(loss);
    return gradients;
  });
  const Tensors weights = lstm_weights(units);
  return {[=] { return gradient(weights); }, [=] { return gradient.plan(weights); }};
}

Prepared loop_grad() { return loop_gradient(1'000, td::Save::all()); }

Prepared loop_grad_long() {
  return loop_gradient(10'000, td::Save::bytes(td::Bytes{kLongLoopSaves}));
}

}  // namespace tidemark::bench
