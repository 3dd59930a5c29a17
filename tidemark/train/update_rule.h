// UpdateRule, which defines a kind of optimizer, and the options that all of them share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/variable.h"
#include "tidemark/api/variable_walk.h"
#include "tidemark/train/schedule.h"

namespace tidemark::nn {

// A parameter, or some rows of it, during an update.
struct ParameterStep {
  Tensor parameter;
  Tensor gradient;
  std::vector<Tensor> slots;
  bool decays = true;  // Whether weight decay applies.
};

struct UpdateRule {
  std::string name = "optimizer";       // The prefix of the state's names: "adam/m/head/kernel".
  std::vector<std::string> slots = {};  // State for each parameter: "m", "v".
  std::vector<double> initial = {};     // First values of the slots; zero where it is shorter.
  // State shared by all parameters, which `numbers` reads and assigns.
  NamedVariables state = {};
  // Whether elements do not depend on each other, so that rows can be updated alone. Otherwise
  // row-sparse gradients are made dense.
  bool is_elementwise = true;
  // Computes scalars (f64) shared by all parameters, from the rate and the number of this update,
  // counted from 1. By default the rate alone.
  std::function<std::vector<Tensor>(const Tensor& rate, const Tensor& count)> numbers = {};
  // Replaces the values by the new ones.
  std::function<void(ParameterStep& step, const std::vector<Tensor>& numbers)> apply = {};
};

// Options for processing gradients before the update.
struct OptimizerOptions {
  Schedule learning_rate = 1e-3;
  std::optional<double> clip_norm = {};         // The largest norm of each gradient.
  std::optional<double> clip_global_norm = {};  // The largest norm of all gradients together.
  int64_t accumulate = 1;  // One update for this many calls, by the mean of their gradients.
  std::function<bool(const Variable&)> decays =
      {};  // Selects the Variables with weight decay; default all.
};

}  // namespace tidemark::nn
