// The formulas of the optimizers; docs/training.md has them in mathematical notation.
#include <utility>

#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/train/optimizer.h"

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

UpdateRule sgd(const SGDOptions& options, Source at) {
  check_below_one("SGD", "momentum", options.momentum, at);
  if (options.nesterov && options.momentum == 0)
    throw UserError("SGD: .nesterov without momentum", at, "give .momentum, 0.9 for example");
  UpdateRule rule{.name = "sgd"};
  if (options.momentum > 0) rule.slots = {"momentum"};
  rule.apply = [momentum = options.momentum, nesterov = options.nesterov,
                decay = options.weight_decay](ParameterStep& step,
                                              const std::vector<Tensor>& numbers) {
    const Tensor& rate = numbers[0];
    Tensor change = step.gradient;
    if (decay != 0 && step.decays) change = change + decay * step.parameter;
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
    return std::vector<Tensor>{rate / (1.0 - pow(beta1, count)), rsqrt(1.0 - pow(beta2, count)),
                               decay * rate};
  };
  rule.apply = [beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon,
                decay = options.weight_decay](ParameterStep& step,
                                              const std::vector<Tensor>& numbers) {
    const Tensor m = beta1 * step.slots[0] + (1 - beta1) * step.gradient;
    const Tensor v = beta2 * step.slots[1] + (1 - beta2) * square(step.gradient);
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

}  // namespace

SGD::SGD(SGDOptions options, Source at) : Optimizer(sgd(options, at), common(options), at) {}
Adam::Adam(AdamOptions options, Source at)
    : Optimizer(adam("Adam", without_decay(options), at), common(options), at) {}
AdamW::AdamW(AdamWOptions options, Source at)
    : Optimizer(adam("AdamW", options, at), common(options), at) {}

}  // namespace tidemark::nn
