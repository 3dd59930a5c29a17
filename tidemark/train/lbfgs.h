// L-BFGS: minimises a smooth loss by estimates of its curvature. For small problems whose loss is
// exact (all data at once): fits, solvers, physics.
//
//   td::nn::LBFGS optimizer({.memory = 10});
//   td::nn::LBFGSResult result = optimizer.minimize([=] { return loss_of(model); }, model);
//
// The loss and its gradient are one compiled function; parameters are updated in place. Beside
// them, and beside what the loss needs, it holds 2 memory + 4 vectors of their size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tidemark/api/variable.h"
#include "tidemark/nn/variables.h"

namespace tidemark::nn {

struct LBFGSOptions {
  int64_t memory = 10;           // How many of the last steps the curvature is estimated from.
  int64_t max_iterations = 100;  // Steps, each with a line search.
  int64_t max_evaluations = 25;  // Of the loss, in one line search.
  double learning_rate = 1;      // The first length that a line search tries, in steps of Newton's.
  double tolerance_gradient = 1e-7;  // Ends when no element of the gradient is larger,
  double tolerance_change = 1e-9;    // or when neither the loss nor a parameter changes by more.
};

struct LBFGSResult {
  double loss = 0;
  double gradient = 0;  // Its largest element.
  int64_t iterations = 0, evaluations = 0;
  bool converged = false;  // One of the tolerances was met.
  std::string stopped;     // Why it ended.
};

class LBFGS {
 public:
  explicit LBFGS(LBFGSOptions options = {}, Source at = Source::here());

  // Changes the model's trainable Variables until the loss no longer decreases. The loss is a
  // function without arguments that returns one number; it is traced once.
  template <class Model>
  LBFGSResult minimize(const std::function<Tensor()>& loss, const Model& model,
                       Source at = Source::here()) const {
    return minimize_named(loss, named_variables(model), at);
  }
  LBFGSResult minimize_named(const std::function<Tensor()>& loss, const NamedVariables& named,
                             Source at = Source::here()) const;

 private:
  LBFGSOptions options_;
};

}  // namespace tidemark::nn
