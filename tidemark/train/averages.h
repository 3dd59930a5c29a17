// EMA, a running average of a model's weights, and ReduceLROnPlateau, which lowers the learning
// rate when training stands still. Both keep their state in Variables, so that checkpoints save it.
//
//   td::nn::EMA average(model, {.decay = 0.999});
//   optimizer.minimize(tape, loss, model);
//   average.update();                       // In the same function, after the step.
//   average.swap();                         // The model has the averages,
//   evaluate(model);
//   average.swap();                         // and its own values again.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/nn/variables.h"
#include "tidemark/train/optimizer.h"

namespace tidemark::nn {

struct EMAOptions {
  double decay = 0.999;  // average = decay * average + (1 - decay) * value
  // The decay of update t is at most (1 + t) / (10 + t), so that the first values soon fade.
  bool warm_up = false;
};

// A handle: a copy is the same. Averages are of the trainable Variables of a model that is built,
// begin with their values when the EMA is made, and take their bytes (in f32 if they are 16-bit
// floats). An update is in place, one kernel for each Variable.
class EMA {
 public:
  template <class Model>
  explicit EMA(const Model& model, EMAOptions options = {}, Source at = Source::here())
      : EMA(named_variables(model), options, at) {}
  EMA(const NamedVariables& variables, EMAOptions options, Source at = Source::here());

  void update(Source at = Source::here()) const;
  // Exchanges the model's values and the averages, one Variable at a time.
  void swap(Source at = Source::here()) const;

  Variable updates;  // How many were made: i64.

  // "updates", and "average/head/kernel" for "head/kernel".
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

struct PlateauOptions {
  double factor = 0.1;       // The rate is multiplied by this
  int64_t patience = 10;     // after more than so many epochs without an improvement.
  double least_gain = 1e-4;  // The smallest relative decrease that counts as an improvement.
  int64_t cooldown = 0;      // Epochs after a reduction that do not count.
  double least_rate = 0;
};

// Call update with the loss of each epoch. The optimizer must have a constant rate, since a
// schedule would set it again.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(const Optimizer& optimizer, PlateauOptions options = {},
                             Source at = Source::here());

  // Whether the rate was lowered.
  bool update(double loss, Source at = Source::here()) const;

  Variable best;               // f64: the least loss so far.
  Variable waited, cool_down;  // i64: epochs without an improvement, and those left that are free.
  TIDEMARK_FIELDS(best, waited, cool_down)

 private:
  Variable rate_;
  PlateauOptions options_;
};

}  // namespace tidemark::nn
