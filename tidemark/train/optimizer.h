// Optimizer, which updates Variables by their gradients. The kinds are in train/optimizers.h; your
// own is an UpdateRule.
//
//   td::nn::Adam optimizer({.learning_rate = 1e-3});
//   auto step = td::function([=](const td::Tensor& x, const td::Tensor& y) {
//     td::GradientTape tape;
//     td::Tensor loss = td::nn::losses::mse(y, model(x));
//     optimizer.minimize(tape, loss, model);
//     return loss;
//   });
//
// An optimizer is a handle: a copy has the same state. The update of a parameter is one kernel that
// works in place, in eager code and in functions. docs/training.md has the formulas.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/variable.h"
#include "tidemark/api/variable_walk.h"
#include "tidemark/nn/variables.h"
#include "tidemark/train/update_rule.h"

namespace tidemark::nn {

// Of LossScaleOptimizer.
struct LossScaleOptions {
  double initial = 32768;
  // The scale is multiplied by `factor` after so many updates in a row, and divided by it when a
  // gradient is not finite. 0: it is never multiplied.
  int64_t growth_steps = 2000;
  double factor = 2;
};

class Optimizer {
 public:
  explicit Optimizer(UpdateRule rule, OptimizerOptions options = {}, Source at = Source::here());

  // One update. An empty gradient leaves its Variable unchanged. With a loss scale, gradients are
  // those of scale_loss(loss).
  void apply_gradients(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables, Source at = Source::here()) const;
  // Computes the gradient of the loss by the model's trainable Variables and applies it. Ends the
  // tape unless it is persistent.
  template <class Model>
  void minimize(GradientTape& tape, const Tensor& loss, const Model& model,
                Source at = Source::here()) const {
    minimize(tape, loss, named_variables(model), at);
  }
  void minimize(GradientTape& tape, const Tensor& loss, const NamedVariables& variables,
                Source at = Source::here()) const;
  // Declares the state for a model's trainable Variables that have a shape, so that it can be
  // loaded from a file before the first update.
  template <class Model>
  void build(const Model& model) const {
    declare(named_variables(model));
  }
  // The Variables it has state for, by the names that their state has.
  NamedVariables trained() const;
  // The number of Variables it has state for, and a way back to it: for a load that fails after
  // `build`.
  size_t built() const;
  void take_back_build(size_t before) const;

  // The loss times the loss scale; the loss itself if there is none. `minimize` scales by itself.
  Tensor scale_loss(const Tensor& loss, Source at = Source::here()) const;
  // f32, if there is one.
  std::optional<Variable> loss_scale() const;

  // f32. It may be assigned at any time without tracing again; with a schedule it is the rate of
  // the last update.
  Variable learning_rate;
  // How many updates were made: i64.
  Variable iterations;

  // Its Variables, as nn::named_variables finds them: "learning_rate", "iterations", and
  // "m/head/kernel" for the slot "m" of "head/kernel".
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace);

 protected:
  void set_loss_scale(const LossScaleOptions& options, Source at) const;

 private:
  struct State;

  void declare(const NamedVariables& named) const;

  std::shared_ptr<State> state_;
};

// An optimizer for f16, whose range is small: gradients are those of the loss times a scale, and
// are divided by it before they are used. An update whose gradients are not all finite is skipped,
// and the scale is lowered; all of it inside the compiled step. It is the given optimizer, with a
// scale from now on.
class LossScaleOptimizer : public Optimizer {
 public:
  explicit LossScaleOptimizer(const Optimizer& inner, LossScaleOptions options = {},
                              Source at = Source::here());
};

}  // namespace tidemark::nn
