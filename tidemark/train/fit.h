// fit: training in one call.
//
//   td::nn::History history = td::nn::fit(model, batches, {
//       .loss = td::nn::losses::sparse_categorical_crossentropy,
//       .optimizer = td::nn::Adam({.learning_rate = 3e-4}),
//       .epochs = 10,
//       .validation = held_back,
//       .early_stopping = td::nn::EarlyStopping{.patience = 3},
//       .metrics = {{"accuracy", td::nn::metrics::accuracy}}});
//
// A step is one compiled function, and so is a step of validation. The first
// size of batches may vary: once a second one was seen, it is open and nothing is traced again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/api/plan.h"
#include "tidemark/train/history.h"
#include "tidemark/train/optimizers.h"

namespace tidemark::nn {

// Batches of (x, y), iterated once an epoch: any range of pairs, tuples or structs of two tensors.
// It shares the range.
class Batches {
 public:
  // Receives one batch; false ends the iteration.
  using Visit = std::function<bool(const Tensor& x, const Tensor& y)>;

  Batches() = default;
  template <class Range>
    requires(!std::is_same_v<Range, Batches> && requires(Range& range) { std::begin(range); })
  Batches(Range range) {
    const auto held = std::make_shared<Range>(std::move(range));
    walk_ = [held](const Visit& visit) {
      for (auto&& element : *held) {
        const auto& [x, y] = element;
        if (!visit(x, y)) return;
      }
    };
    if constexpr (requires { static_cast<std::optional<int64_t>>(held->count()); })
      count_ = [held]() -> std::optional<int64_t> { return held->count(); };
    else if constexpr (requires { held->size(); })
      count_ = [held]() -> std::optional<int64_t> { return static_cast<int64_t>(held->size()); };
  }

  bool has_value() const { return walk_ != nullptr; }
  void for_each(const Visit& visit) const { walk_(visit); }
  // If it is known beforehand.
  std::optional<int64_t> count() const {
    return count_ == nullptr ? std::optional<int64_t>() : count_();
  }

 private:
  std::function<void(const Visit&)> walk_;
  std::function<std::optional<int64_t>()> count_;
};

// A metric that runs over batches: update(y_true, y_pred), result() and reset(), as those of
// train/running_metrics.h.
template <class M>
concept RunningMetric = requires(const M& metric, const Tensor& x, Source at) {
  metric.update(x, x, at);
  { metric.result(at) } -> std::convertible_to<Tensor>;
  metric.reset(at);
};

// A loss or a metric: a function of y_true and y_pred that returns one number, whose mean over
// examples counts, or a running metric. Objects of nn::losses and nn::metrics, or your own.
class Measure {
 public:
  Measure() = default;
  template <class F>
    requires(!std::is_same_v<F, Measure> &&
             (std::is_invocable_v<const F&, const Tensor&, const Tensor&> ||
              std::is_invocable_v<const F&, const Tensor&, const Tensor&, Source>))
  Measure(F f)
      : f_([f = std::move(f)](const Tensor& y_true, const Tensor& y_pred, Source at) {
          return Tensor(detail::call_back(f, at, y_true, y_pred));
        }) {}
  template <RunningMetric M>
    requires(!std::is_same_v<M, Measure>)
  Measure(M metric)
      : running_(std::make_shared<const Running>(
            Running{[metric](const Tensor& y_true, const Tensor& y_pred, Source at) {
                      metric.update(y_true, y_pred, at);
                    },
                    [metric](Source at) { return Tensor(metric.result(at)); },
                    [metric](Source at) { metric.reset(at); }})) {}

  bool has_value() const { return f_ != nullptr; }
  // Null if it is a function.
  struct Running {
    std::function<void(const Tensor& y_true, const Tensor& y_pred, Source at)> update;
    std::function<Tensor(Source at)> result;
    std::function<void(Source at)> reset;
  };
  const Running* running() const { return running_.get(); }
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, Source at) const {
    return f_(y_true, y_pred, at);
  }

 private:
  std::function<Tensor(const Tensor&, const Tensor&, Source)> f_;
  std::shared_ptr<const Running> running_;
};

// Stops training when the loss (of the validation, if there is one) no longer improves.
struct EarlyStopping {
  int64_t patience = 1;      // Epochs without an improvement before stopping.
  double least_gain = 0;     // The smallest decrease that counts as an improvement.
  bool restore_best = true;  // Restores the model of the best epoch.
};

struct FitOptions {
  Measure loss = {};
  Optimizer optimizer = Adam();
  int64_t epochs = 1;
  int64_t initial_epoch = 0;          // Epochs that were made before, which are not made again.
  std::optional<Budget> budget = {};  // Of a step, and of a step of validation.
  // Mixed precision: trainable f32 Variables are read as this dtype. Default: td::autocast().
  std::optional<DType> autocast = {};
  Batches validation = {};
  // Saves io::Checkpoint{{"model", model}, {"optimizer", optimizer}} to this file after each epoch.
  std::string checkpoint = {};
  // Called after each epoch; may set `stop`.
  std::function<void(Epoch& epoch)> on_epoch = {};
  // Called after each batch of training; may set `stop`, which ends training after it.
  std::function<void(Batch& batch)> on_batch = {};
  std::optional<EarlyStopping> early_stopping = {};
  std::vector<std::pair<std::string, Measure>> metrics = {};
  Progress progress = Progress::automatic;
};

// A type-erased model.
struct AnyModel {
  std::function<Tensor(const Tensor& x)> call;
  NamedVariables variables;
};
History fit_model(const AnyModel& model, const Batches& batches, const FitOptions& options,
                  Source at);

// Iterates over the batches `epochs` times in training mode. If a callback throws, the model keeps
// its updates.
template <class Model>
History fit(const Model& model, const Batches& batches, const FitOptions& options,
            Source at = Source::here()) {
  return fit_model({.call = [model](const Tensor& x) { return Tensor(model(x)); },
                    .variables = named_variables(model)},
                   batches, options, at);
}

}  // namespace tidemark::nn
