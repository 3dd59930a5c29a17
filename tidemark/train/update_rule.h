// What tells one kind of optimizer from another, and what all of them can do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/variable.h"
#include "tidemark/train/schedule.h"

namespace tidemark::nn {

// One parameter, or the rows of one that were looked up, on its way to the next step.
struct ParameterStep {
  Tensor parameter;
  Tensor gradient;
  std::vector<Tensor> slots;
  bool decays = true;  // Whether weight decay is for this one.
};

// What a kind of optimizer does: element by element, so that rows may be updated alone.
struct UpdateRule {
  std::string name = "optimizer";       // Of the state: "adam/m/head/kernel".
  std::vector<std::string> slots = {};  // State beside each parameter, zero at first: "m", "v".
  // What all parameters share, of the rate and of the number of this update, from 1: f64, one each.
  // Where there is none, the rate alone.
  std::function<std::vector<Tensor>(const Tensor& rate, const Tensor& count)> numbers = {};
  // Puts the new values in place of the old ones.
  std::function<void(ParameterStep& step, const std::vector<Tensor>& numbers)> apply = {};
};

// What every optimizer can do with gradients before it uses them.
struct OptimizerOptions {
  Schedule learning_rate = 1e-3;
  std::optional<double> clip_norm = {};         // Each gradient is made at most so long.
  std::optional<double> clip_global_norm = {};  // All of them together.
  int64_t accumulate = 1;  // So many calls make one update, by the mean of their gradients.
  std::function<bool(const Variable&)> decays = {};  // Who is decayed; default all.
};

}  // namespace tidemark::nn
