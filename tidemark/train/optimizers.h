// The kinds of optimizers; docs/training.md has their formulas. Names, defaults and the places of
// epsilon are PyTorch's; Lion and LAMB, which it lacks, follow their papers.
//
// Options of all kinds: the rate is a number or a schedule; gradients are clipped one by one or
// together; `accumulate` makes one update of several calls; `decays` selects the Variables with
// weight decay.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tidemark/train/optimizer.h"

namespace tidemark::nn {

struct SGDOptions {
  Schedule learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  // Added to the gradient: weight_decay times the parameter.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class SGD : public Optimizer {
 public:
  explicit SGD(SGDOptions options = {}, Source at = Source::here());
};

struct AdamOptions {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
};
class Adam : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {}, Source at = Source::here());
};

// Adam with decoupled weight decay: each update shrinks parameters by rate * weight_decay.
struct AdamWOptions {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class AdamW : public Optimizer {
 public:
  explicit AdamW(AdamWOptions options = {}, Source at = Source::here());
};

// Divides by the root of a running mean of squared gradients.
struct RMSpropOptions {
  Schedule learning_rate = 0.01;
  double alpha = 0.99, epsilon = 1e-8;
  double momentum = 0;
  bool centered = false;    // Divides by the running standard deviation.
  double weight_decay = 0;  // Added to the gradient: weight_decay times the parameter.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(RMSpropOptions options = {}, Source at = Source::here());
};

// Divides by the root of the sum of all squared gradients.
struct AdagradOptions {
  Schedule learning_rate = 0.01;
  double initial = 0;  // Of the sum.
  double epsilon = 1e-10;
  double weight_decay = 0;  // Added to the gradient: weight_decay times the parameter.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(AdagradOptions options = {}, Source at = Source::here());
};

// As RMSprop, in the units of the parameter: changes are scaled by those made before.
struct AdadeltaOptions {
  Schedule learning_rate = 1.0;
  double rho = 0.9, epsilon = 1e-6;
  double weight_decay = 0;  // Added to the gradient: weight_decay times the parameter.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class Adadelta : public Optimizer {
 public:
  explicit Adadelta(AdadeltaOptions options = {}, Source at = Source::here());
};

// Adam with the largest recent gradient in place of the root mean square.
struct AdamaxOptions {
  Schedule learning_rate = 2e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  // Added to the gradient: weight_decay times the parameter.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class Adamax : public Optimizer {
 public:
  explicit Adamax(AdamaxOptions options = {}, Source at = Source::here());
};

// Adam with Nesterov momentum, which warms up.
struct NAdamOptions {
  Schedule learning_rate = 2e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double momentum_decay = 4e-3;
  double weight_decay = 0;  // Added to the gradient: weight_decay times the parameter.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class NAdam : public Optimizer {
 public:
  explicit NAdam(NAdamOptions options = {}, Source at = Source::here());
};

// The sign of a momentum: one slot for each parameter, and steps of one size.
struct LionOptions {
  Schedule learning_rate = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  // Decoupled, as in AdamW.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class Lion : public Optimizer {
 public:
  explicit Lion(LionOptions options = {}, Source at = Source::here());
};

// Adam whose step is as long as the parameter, for very large batches. The lengths are those of the
// whole parameter, so that row-sparse gradients are made dense.
struct LAMBOptions {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  double weight_decay = 0;  // Part of the step whose length is fitted.
  std::optional<double> clip_norm = {}, clip_global_norm = {};
  int64_t accumulate = 1;
  std::function<bool(const Variable&)> decays = {};
};
class LAMB : public Optimizer {
 public:
  explicit LAMB(LAMBOptions options = {}, Source at = Source::here());
};

}  // namespace tidemark::nn
