// The formulas of the optimizers; docs/training.md has them in mathematical notation.
#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/train/optimizers.h"

namespace tidemark::nn {
namespace {

template <class Options>
OptimizerOptions common(const Options& options) {
  OptimizerOptions shared{.learning_rate = options.learning_rate,
                          .clip_norm = options.clip_norm,
                          .clip_global_norm = options.clip_global_norm,
                          .accumulate = options.accumulate};
  if constexpr (requires { options.decays; }) shared.decays = options.decays;
  return shared;
}

void check_below_one(const char* name, const char* option, double value, Source at) {
  if (value >= 0 && value < 1) return;
  throw UserError(cat(name, ": .", option, " is ", value), at, "give a number from 0 to below 1");
}

void check_not_negative(const char* name, const char* option, double value, Source at) {
  if (value >= 0) return;
  throw UserError(cat(name, ": .", option, " is ", value), at, "give 0 or more");
}

// Weight decay as a part of the gradient.
Tensor decayed(const ParameterStep& step, double decay) {
  return decay != 0 && step.decays ? step.gradient + decay * step.parameter : step.gradient;
}

Tensor mean_with(const Tensor& old, const Tensor& x, double beta) {
  return beta * old + (1 - beta) * x;
}

using Numbers = std::vector<Tensor>;

UpdateRule sgd(const SGDOptions& options, Source at) {
  check_below_one("SGD", "momentum", options.momentum, at);
  if (options.nesterov && options.momentum == 0)
    throw UserError("SGD: .nesterov without momentum", at, "give .momentum, 0.9 for example");
  UpdateRule rule{.name = "sgd"};
  if (options.momentum > 0) rule.slots = {"momentum"};
  rule.apply = [momentum = options.momentum, nesterov = options.nesterov,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor& rate = numbers[0];
    Tensor change = decayed(step, decay);
    if (momentum > 0) {
      const Tensor velocity = momentum * step.slots[0] + change;
      step.slots[0] = velocity;
      change = nesterov ? change + momentum * velocity : velocity;
    }
    step.parameter = step.parameter - rate * change;
  };
  return rule;
}

// Adam if the decay is 0. The shared numbers: the rate over the correction of m, one over the root
// of the correction of v, and the fraction that the decay removes.
UpdateRule adam(const char* name, const AdamWOptions& options, Source at) {
  check_below_one(name, "beta1", options.beta1, at);
  check_below_one(name, "beta2", options.beta2, at);
  UpdateRule rule{.name = options.weight_decay == 0 ? "adam" : "adamw", .slots = {"m", "v"}};
  rule.numbers = [beta1 = options.beta1, beta2 = options.beta2, decay = options.weight_decay](
                     const Tensor& rate, const Tensor& count) {
    return Numbers{rate / (1.0 - pow(beta1, count)), rsqrt(1.0 - pow(beta2, count)), decay * rate};
  };
  rule.apply = [beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor m = mean_with(step.slots[0], step.gradient, beta1);
    const Tensor v = mean_with(step.slots[1], square(step.gradient), beta2);
    Tensor parameter = step.parameter;
    if (decay != 0 && step.decays) parameter = parameter - numbers[2] * parameter;
    step.parameter = parameter - numbers[0] * m / (sqrt(v) * numbers[1] + epsilon);
    step.slots = {m, v};
  };
  return rule;
}

AdamWOptions without_decay(const AdamOptions& options) {
  return {.learning_rate = options.learning_rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .epsilon = options.epsilon,
          .weight_decay = 0};
}

UpdateRule rmsprop(const RMSpropOptions& options, Source at) {
  check_below_one("RMSprop", "alpha", options.alpha, at);
  check_below_one("RMSprop", "momentum", options.momentum, at);
  UpdateRule rule{.name = "rmsprop", .slots = {"v"}};
  if (options.centered) rule.slots.push_back("mean");
  if (options.momentum > 0) rule.slots.push_back("momentum");
  rule.apply = [alpha = options.alpha, epsilon = options.epsilon, momentum = options.momentum,
                centered = options.centered,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor g = decayed(step, decay);
    const Tensor v = mean_with(step.slots[0], square(g), alpha);
    step.slots[0] = v;
    Tensor spread = v;
    if (centered) {
      step.slots[1] = mean_with(step.slots[1], g, alpha);
      spread = v - square(step.slots[1]);
    }
    Tensor change = g / (sqrt(spread) + epsilon);
    if (momentum > 0) change = step.slots.back() = momentum * step.slots.back() + change;
    step.parameter = step.parameter - numbers[0] * change;
  };
  return rule;
}

UpdateRule adagrad(const AdagradOptions& options, Source at) {
  check_not_negative("Adagrad", "initial", options.initial, at);
  UpdateRule rule{.name = "adagrad", .slots = {"sum"}, .initial = {options.initial}};
  rule.apply = [epsilon = options.epsilon, decay = options.weight_decay](ParameterStep& step,
                                                                         const Numbers& numbers) {
    const Tensor g = decayed(step, decay);
    step.slots[0] = step.slots[0] + square(g);
    step.parameter = step.parameter - numbers[0] * g / (sqrt(step.slots[0]) + epsilon);
  };
  return rule;
}

UpdateRule adadelta(const AdadeltaOptions& options, Source at) {
  check_below_one("Adadelta", "rho", options.rho, at);
  UpdateRule rule{.name = "adadelta", .slots = {"v", "change"}};
  rule.apply = [rho = options.rho, epsilon = options.epsilon, decay = options.weight_decay](
                   ParameterStep& step, const Numbers& numbers) {
    const Tensor g = decayed(step, decay);
    const Tensor v = mean_with(step.slots[0], square(g), rho);
    const Tensor change = sqrt(step.slots[1] + epsilon) / sqrt(v + epsilon) * g;
    step.slots = {v, mean_with(step.slots[1], square(change), rho)};
    step.parameter = step.parameter - numbers[0] * change;
  };
  return rule;
}

UpdateRule adamax(const AdamaxOptions& options, Source at) {
  check_below_one("Adamax", "beta1", options.beta1, at);
  check_below_one("Adamax", "beta2", options.beta2, at);
  UpdateRule rule{.name = "adamax", .slots = {"m", "largest"}};
  rule.numbers = [beta1 = options.beta1](const Tensor& rate, const Tensor& count) {
    return Numbers{rate / (1.0 - pow(beta1, count))};
  };
  rule.apply = [beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor g = decayed(step, decay);
    const Tensor m = mean_with(step.slots[0], g, beta1);
    const Tensor largest = maximum(beta2 * step.slots[1], abs(g) + epsilon);
    step.parameter = step.parameter - numbers[0] * m / largest;
    step.slots = {m, largest};
  };
  return rule;
}

// The momentum of an update grows towards beta1. The corrections need the product of all momenta so
// far, which has no closed form and is therefore state.
UpdateRule nadam(const NAdamOptions& options, Source at) {
  check_below_one("NAdam", "beta1", options.beta1, at);
  check_below_one("NAdam", "beta2", options.beta2, at);
  const Variable product(constant(1.0, DType::f64),
                         {.name = "nadam/momentum_product", .trainable = false});
  UpdateRule rule{.name = "nadam", .slots = {"m", "v"}, .state = {{"momentum_product", product}}};
  rule.numbers = [beta1 = options.beta1, beta2 = options.beta2, decay = options.momentum_decay,
                  product](const Tensor& rate, const Tensor& count) {
    const auto momentum = [&](const Tensor& step) {
      return beta1 * (1.0 - 0.5 * pow(0.96, step * decay));
    };
    const Tensor now = momentum(count), next = momentum(count + 1.0);
    const Tensor so_far = product.value() * now;
    product.assign(so_far);
    return Numbers{rate * (1.0 - now) / (1.0 - so_far), rate * next / (1.0 - so_far * next),
                   rsqrt(1.0 - pow(beta2, count))};
  };
  rule.apply = [beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor g = decayed(step, decay);
    const Tensor m = mean_with(step.slots[0], g, beta1);
    const Tensor v = mean_with(step.slots[1], square(g), beta2);
    const Tensor spread = sqrt(v) * numbers[2] + epsilon;
    step.parameter = step.parameter - (numbers[0] * g + numbers[1] * m) / spread;
    step.slots = {m, v};
  };
  return rule;
}

// The direction interpolates between m and the gradient. It is computed from the new m, whose
// weight in it is beta1 / beta2, so that both are made in one pass.
UpdateRule lion(const LionOptions& options, Source at) {
  check_below_one("Lion", "beta1", options.beta1, at);
  if (!(options.beta2 > 0 && options.beta2 < 1))
    throw UserError(cat("Lion: .beta2 is ", options.beta2), at, "give a number between 0 and 1");
  UpdateRule rule{.name = "lion", .slots = {"m"}};
  rule.apply = [beta2 = options.beta2, weight = options.beta1 / options.beta2,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor m = mean_with(step.slots[0], step.gradient, beta2);
    Tensor change = sign(mean_with(m, step.gradient, weight));
    if (decay != 0 && step.decays) change = change + decay * step.parameter;
    step.slots[0] = m;
    step.parameter = step.parameter - numbers[0] * change;
  };
  return rule;
}

// The shared numbers: the rate, one over the correction of m, one over the root of that of v.
UpdateRule lamb(const LAMBOptions& options, Source at) {
  check_below_one("LAMB", "beta1", options.beta1, at);
  check_below_one("LAMB", "beta2", options.beta2, at);
  UpdateRule rule{.name = "lamb", .slots = {"m", "v"}, .is_elementwise = false};
  rule.numbers = [beta1 = options.beta1, beta2 = options.beta2](const Tensor& rate,
                                                                const Tensor& count) {
    return Numbers{rate, 1.0 / (1.0 - pow(beta1, count)), rsqrt(1.0 - pow(beta2, count))};
  };
  rule.apply = [beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon,
                decay = options.weight_decay](ParameterStep& step, const Numbers& numbers) {
    const Tensor m = mean_with(step.slots[0], step.gradient, beta1);
    const Tensor v = mean_with(step.slots[1], square(step.gradient), beta2);
    Tensor change = m * numbers[1] / (sqrt(v) * numbers[2] + epsilon);
    if (decay != 0 && step.decays) change = change + decay * step.parameter;
    const Tensor length = norm(step.parameter), step_length = norm(change);
    // A parameter that is all zeros, or a step of no length, keeps the rate as it is.
    const Tensor trust = where(logical_and(length > 0, step_length > 0), length / step_length, 1.0);
    step.parameter = step.parameter - numbers[0] * trust * change;
    step.slots = {m, v};
  };
  return rule;
}

}  // namespace

SGD::SGD(SGDOptions options, Source at) : Optimizer(sgd(options, at), common(options), at) {}
Adam::Adam(AdamOptions options, Source at)
    : Optimizer(adam("Adam", without_decay(options), at), common(options), at) {}
AdamW::AdamW(AdamWOptions options, Source at)
    : Optimizer(adam("AdamW", options, at), common(options), at) {}

RMSprop::RMSprop(RMSpropOptions options, Source at)
    : Optimizer(rmsprop(options, at), common(options), at) {}
Adagrad::Adagrad(AdagradOptions options, Source at)
    : Optimizer(adagrad(options, at), common(options), at) {}
Adadelta::Adadelta(AdadeltaOptions options, Source at)
    : Optimizer(adadelta(options, at), common(options), at) {}
Adamax::Adamax(AdamaxOptions options, Source at)
    : Optimizer(adamax(options, at), common(options), at) {}
NAdam::NAdam(NAdamOptions options, Source at)
    : Optimizer(nadam(options, at), common(options), at) {}
Lion::Lion(LionOptions options, Source at) : Optimizer(lion(options, at), common(options), at) {}
LAMB::LAMB(LAMBOptions options, Source at) : Optimizer(lamb(options, at), common(options), at) {}

}  // namespace tidemark::nn
