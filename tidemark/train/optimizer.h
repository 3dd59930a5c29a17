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

class Optimizer {
 public:
  explicit Optimizer(UpdateRule rule, OptimizerOptions options = {}, Source at = Source::here());

  // One update. An empty gradient leaves its Variable unchanged.
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

  // f32. It may be assigned at any time without tracing again; with a schedule it is the rate of
  // the last update.
  Variable learning_rate;
  // How many updates were made: i64.
  Variable iterations;

  // Its Variables, as nn::named_variables finds them: "learning_rate", "iterations", and
  // "m/head/kernel" for the slot "m" of "head/kernel".
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace);

 private:
  struct State;

  void declare(const NamedVariables& named) const;

  std::shared_ptr<State> state_;
};

}  // namespace tidemark::nn
