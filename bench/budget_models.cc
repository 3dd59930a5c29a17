#include "bench/budget_models.h"

#include <cmath>
#include <cstring>

#include "bench/models.h"
#include "bench/prepared.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

// ---- from a function to a model -----------------------------------------------------------------

Tensor spec_of(const Tensor& tensor) { return td::spec(tensor.shape(), tensor.dtype()); }
Tensors spec_of(const Tensors& tensors) {
  Tensors specs;
  for (const Tensor& tensor : tensors) specs.push_back(spec_of(tensor));
  return specs;
}

template <class... Arguments>
BudgetModel of_gradient(const Function<Tensors(const Arguments&...)>& function,
                        const Arguments&... arguments) {
  return {
      .call = [=] { return function(arguments...); },
      .profile = [=] { return function.profile(arguments...); },
      .plan =
          [=](const PlanOptions& options) { return function.plan(spec_of(arguments)..., options); },
      .variables = [] { return std::vector<td::Variable>(); }};
}

// A step of training moves the Variables of `trained`: parameters and optimizers.
template <class Trained, class... Arguments>
BudgetModel of_step(const Trained& trained, const Function<Tensors(const Arguments&...)>& function,
                    const Arguments&... arguments) {
  BudgetModel model = of_gradient(function, arguments...);
  model.variables = [trained] { return td::nn::variables(trained); };
  return model;
}

// The loss and its gradients by the weights.
template <class Loss>
Tensors with_gradients(const Loss& loss, const Tensors& weights) {
  auto [value, gradients] = td::value_and_grad(loss)(weights);
  gradients.insert(gradients.begin(), value);
  return gradients;
}

bool is_small(ModelSize size) { return size == ModelSize::small; }

// ---- the models ---------------------------------------------------------------------------------

BudgetModel mlp(const FunctionOptions& options, ModelSize size) {
  const auto widths = is_small(size) ? std::vector<int64_t>(7, 128) : std::vector<int64_t>(25, 512);
  const std::vector<td::Variable> weights = as_variables(mlp_weights(widths));
  const td::nn::SGD optimizer({.learning_rate = 0.1});
  const auto step = td::function(
      [=](const Tensor& x, const Tensor& y) -> Tensors {
        td::GradientTape tape;
        const Tensor loss = mlp_loss(values_of(weights), x, y);
        optimizer.apply_gradients(tape.gradient(loss, weights), weights);
        return {loss};
      },
      options);
  return of_step(std::pair{weights, optimizer}, step, input({1024, widths[0]}, 2, 90),
                 input({1024, widths[0]}, 2, 91));
}

BudgetModel gpt(const FunctionOptions& options, ModelSize size) {
  const GptSizes sizes =
      is_small(size)
          ? GptSizes{.layers = 2, .width = 64, .heads = 4, .tokens = 128, .batch = 4, .words = 512}
          : GptSizes{.layers = 12};
  const std::vector<td::Variable> weights = as_variables(gpt_weights(sizes));
  const td::nn::AdamW optimizer;
  const auto step = td::function(
      [=](const Tensor& ids) -> Tensors {
        td::GradientTape tape;
        const Tensor loss = gpt_loss(sizes, values_of(weights), ids);
        optimizer.apply_gradients(tape.gradient(loss, weights), weights);
        return {loss};
      },
      options);
  return of_step(std::pair{weights, optimizer}, step,
                 input_below(sizes.words, {sizes.batch, sizes.tokens}, 3));
}

BudgetModel residual(const FunctionOptions& options, ModelSize size) {
  const auto gradient = td::function(
      [](const Tensor& x, const Tensors& weights) {
        return with_gradients([&](const Tensors& w) { return residual_loss(w, x); }, weights);
      },
      options);
  const int64_t channels = is_small(size) ? 16 : 64;
  return of_gradient(gradient, input({4, 28, 28, channels}, 2),
                     residual_weights(is_small(size) ? 8 : 16, channels));
}

Tensor conv_relu(const Tensor& x, const Tensor& kernel) {
  return td::relu(td::conv2d(x, kernel, {.padding = td::Padding::same}));
}

Tensor twice_as_large(const Tensor& images) { return td::repeat(td::repeat(images, 2, 1), 2, 2); }

// Four levels of two convolutions each, down and up again; a level's images skip the levels below.
constexpr size_t kLevels = 4;
constexpr int64_t kFirstChannels = 16;

Tensors unet_weights() {
  Tensors weights;
  const auto add = [&](int64_t in, int64_t out) {
    const auto salt = static_cast<uint32_t>(weights.size() + 1);
    weights.push_back(input({3, 3, in, out}, 2 / std::sqrt(static_cast<float>(in)), salt));
  };
  int64_t channels = 3;
  for (size_t level = 0; level < kLevels; ++level) {
    const int64_t wide = kFirstChannels << level;
    add(channels, wide);
    add(wide, wide);
    channels = wide;
  }
  for (; channels > kFirstChannels; channels /= 2) {
    add(channels + channels / 2, channels / 2);
    add(channels / 2, channels / 2);
  }
  add(channels, 3);
  return weights;
}

Tensor unet_loss(const Tensors& weights, const Tensor& images, const Tensor& wanted) {
  auto next = weights.begin();
  const auto level = [&](const Tensor& x) {
    const Tensor h = conv_relu(x, *next++);
    return conv_relu(h, *next++);
  };
  Tensors skips;
  Tensor h = level(images);
  while (skips.size() + 1 < kLevels) {
    skips.push_back(h);
    h = level(td::nn::MaxPool2D(2)(h));
  }
  for (; !skips.empty(); skips.pop_back())
    h = level(td::concat({twice_as_large(h), skips.back()}, -1));
  const Tensor drawn = td::conv2d(h, *next, {.padding = td::Padding::same});
  return td::mean(td::square(drawn - wanted));
}

BudgetModel unet(const FunctionOptions& options, ModelSize size) {
  const int64_t pixels = is_small(size) ? 32 : 64;
  const std::vector<td::Variable> weights = as_variables(unet_weights());
  const td::nn::SGD optimizer({.learning_rate = 0.01});
  const auto step = td::function(
      [=](const Tensor& images, const Tensor& wanted) -> Tensors {
        td::GradientTape tape;
        const Tensor loss = unet_loss(values_of(weights), images, wanted);
        optimizer.apply_gradients(tape.gradient(loss, weights), weights);
        return {loss};
      },
      options);
  return of_step(std::pair{weights, optimizer}, step, input({4, pixels, pixels, 3}, 2, 90),
                 input({4, pixels, pixels, 3}, 2, 91));
}

// Each layer reads the results of all layers before it.
Tensor densenet_loss(const Tensors& weights, const Tensor& x) {
  Tensors all = {x};
  for (const Tensor& w : weights) all.push_back(conv_relu(td::concat(all, -1), w));
  return td::mean(td::square(td::concat(all, -1)));
}

BudgetModel densenet(const FunctionOptions& options, ModelSize size) {
  constexpr int64_t growth = 16;
  const int64_t layers = is_small(size) ? 6 : 12;
  Tensors weights;
  for (int64_t i = 1; i <= layers; ++i)
    weights.push_back(input({3, 3, i * growth, growth}, 0.17F, static_cast<uint32_t>(i)));
  const auto gradient = td::function(
      [](const Tensor& x, const Tensors& weights) {
        return with_gradients([&](const Tensors& w) { return densenet_loss(w, x); }, weights);
      },
      options);
  return of_gradient(gradient, input({4, 28, 28, growth}, 2), weights);
}

BudgetModel lstm(const FunctionOptions& options, ModelSize size) {
  constexpr int64_t batch = 32;
  const int64_t steps = is_small(size) ? 64 : 512, units = is_small(size) ? 32 : 128;
  const auto gradient = td::function(
      [](const Tensor& xs, const Tensors& weights) {
        return with_gradients([&](const Tensors& w) { return lstm_loss(w, xs); }, weights);
      },
      options);
  return of_gradient(gradient, input({steps, batch, units}, 2), lstm_weights(units));
}

BudgetModel long_loop(const FunctionOptions& options, ModelSize size) {
  const int64_t trips = is_small(size) ? 200 : 10'000, wide = is_small(size) ? 32 : 128;
  const auto gradient = td::function(
      [trips](const Tensor& x, const Tensor& a) -> Tensors {
        const auto loss = [&](const Tensor& a) {
          return loop_loss(a, x, trips, td::Save::automatic());
        };
        auto [value, by_a] = td::value_and_grad(loss)(a);
        return {value, by_a};
      },
      options);
  return of_gradient(gradient, input({wide, wide}, 2), orthogonal(wide));
}

BudgetModel map_sin(const FunctionOptions& options, ModelSize) {
  const auto map = td::function(
      [](const Tensor& x) -> Tensors { return {map_of_sines(x, 1'000'000)}; }, options);
  return of_gradient(map, input({100}, 2));
}

// Logits of a perceptron with tanh between its layers.
Tensor tanh_mlp(const Tensors& weights, const Tensor& x) {
  Tensor h = x;
  for (size_t i = 0; i < weights.size(); i += 2) {
    if (i > 0) h = td::tanh(h);
    h = td::matmul(h, weights[i]) + weights[i + 1];
  }
  return h;
}

// The mean of -log(sigmoid(logits)), or of -log(1 - sigmoid(logits)).
Tensor loss_of_logits(const Tensor& logits, bool real) {
  return td::mean(td::softplus(real ? -logits : logits));
}

// The discriminator learns from images that are drawn and real, then the generator learns from the
// discriminator: two gradients, two optimizers, and activations that both read.
BudgetModel gan(const FunctionOptions& options, ModelSize) {
  constexpr int64_t batch = 512, latent = 64, wide = 512, pixels = 784;
  const std::vector<td::Variable> generator =
      as_variables(mlp_weights({latent, wide, wide, pixels}));
  const std::vector<td::Variable> judge = as_variables(mlp_weights({pixels, wide, wide, 1}));
  const td::nn::Adam of_generator, of_judge({.learning_rate = 4e-4});
  const auto step = td::function(
      [=](const Tensor& images, const Tensor& noise) -> Tensors {
        td::GradientTape tape({.persistent = true});
        const Tensor drawn = td::tanh(tanh_mlp(values_of(generator), noise));
        const Tensors judges = values_of(judge);
        const Tensor of_drawn = tanh_mlp(judges, drawn), of_real = tanh_mlp(judges, images);
        const Tensor judge_loss = loss_of_logits(of_real, true) + loss_of_logits(of_drawn, false);
        const Tensor generator_loss = loss_of_logits(of_drawn, true);
        of_judge.apply_gradients(tape.gradient(judge_loss, judge), judge);
        of_generator.apply_gradients(tape.gradient(generator_loss, generator), generator);
        return {judge_loss, generator_loss};
      },
      options);
  return of_step(std::tuple{generator, judge, of_generator, of_judge}, step,
                 input({batch, pixels}, 2, 90), input({batch, latent}, 2, 91));
}

BudgetModel transformer_hvp(const FunctionOptions& options, ModelSize size) {
  const GptSizes sizes = {.layers = is_small(size) ? 1 : 2,
                          .width = 64,
                          .heads = 4,
                          .tokens = 64,
                          .batch = 4,
                          .words = 256};
  const auto product = td::function(
      [=](const Tensor& ids, const Tensors& weights, const Tensors& direction) {
        const auto loss = [&](const Tensors& w) { return gpt_loss(sizes, w, ids); };
        return td::hvp(loss, weights, direction);
      },
      options);
  const Tensors weights = gpt_weights(sizes);
  Tensors direction;
  for (const Tensor& w : weights)
    direction.push_back(input(w.shape(), 2, static_cast<uint32_t>(100 + direction.size())));
  return of_gradient(product, input_below(sizes.words, {sizes.batch, sizes.tokens}, 3), weights,
                     direction);
}

// Some trips go through four layers, the others through one product by elements.
Tensor branching_loss(const Tensors& weights, const Tensor& xs) {
  const auto layers = [&](Tensor h) {
    for (const Tensor& w : weights) h = td::tanh(td::matmul(h, w));
    return h;
  };
  const auto body = [&](const Tensor& h, const Tensor& x) {
    const Tensor next =
        td::cond(td::sum(x) > 0, [&] { return layers(h + x); }, [&] { return h * x; });
    return std::pair{next, td::mean(next)};
  };
  const auto [last, means] = td::scan(body, td::ones({xs.shape()[1], xs.shape()[2]}), xs);
  return td::sum(means) + td::mean(td::square(last));
}

BudgetModel branches(const FunctionOptions& options, ModelSize) {
  constexpr int64_t steps = 64, batch = 128, wide = 128;
  Tensors weights;
  for (uint32_t i = 1; i <= 4; ++i) weights.push_back(input({wide, wide}, 0.3F, i));
  const auto gradient = td::function(
      [](const Tensor& xs, const Tensors& weights) {
        return with_gradients([&](const Tensors& w) { return branching_loss(w, xs); }, weights);
      },
      options);
  return of_gradient(gradient, input({steps, batch, wide}, 2), weights);
}

constexpr BudgetModelCase kModels[] = {
    {"mlp_step", mlp},        {"gpt_step", gpt},
    {"residual", residual},   {"unet_step", unet},
    {"densenet", densenet},   {"lstm", lstm},
    {"long_loop", long_loop}, {"map_sin", map_sin},
    {"gan_step", gan},        {"transformer_hvp", transformer_hvp},
    {"branches", branches},
};

}  // namespace

std::span<const BudgetModelCase> budget_models() { return kModels; }

const BudgetModelCase* find_budget_model(std::string_view name) {
  for (const BudgetModelCase& model : kModels)
    if (name == model.name) return &model;
  return nullptr;
}

Outcome::Outcome(const std::vector<Tensor>& results, const BudgetModel& model) {
  for (const Tensor& result : results) add(result);
  for (const Variable& variable : model.variables()) add(variable.value());
}

void Outcome::add(const Tensor& tensor) {
  std::vector<std::byte>& bytes =
      values_.emplace_back(static_cast<size_t>(tensor.size_bytes().count));
  const auto copy = [&](const auto& elements) {
    std::memcpy(bytes.data(), elements.data(), bytes.size());
  };
  if (tensor.dtype() == td::f32)
    copy(tensor.to_vector<float>());
  else
    copy(tensor.to_vector<int64_t>());
}

}  // namespace tidemark::bench
