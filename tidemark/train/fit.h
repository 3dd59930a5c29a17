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
#include <tuple>
#include <utility>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/plan.h"
#include "tidemark/train/history.h"
#include "tidemark/train/optimizers.h"

namespace tidemark::detail {

// The tensors of one input or output, or of several: a vector, a tuple or a struct of tensors.
template <class S>
std::vector<Tensor> tensor_list(const S& given) {
  if constexpr (std::is_convertible_v<const S&, Tensor>)
    return {Tensor(given)};
  else
    return tensors_of(given);
}

[[noreturn]] void refuse_inputs(size_t count);

// A model takes its inputs one by one, up to four, or as a vector.
template <class Model>
std::vector<Tensor> call_model(const Model& model, const std::vector<Tensor>& x) {
  using In = const Tensor&;
  if constexpr (std::is_invocable_v<const Model&, In>)
    if (x.size() == 1) return tensor_list(model(x[0]));
  if constexpr (std::is_invocable_v<const Model&, In, In>)
    if (x.size() == 2) return tensor_list(model(x[0], x[1]));
  if constexpr (std::is_invocable_v<const Model&, In, In, In>)
    if (x.size() == 3) return tensor_list(model(x[0], x[1], x[2]));
  if constexpr (std::is_invocable_v<const Model&, In, In, In, In>)
    if (x.size() == 4) return tensor_list(model(x[0], x[1], x[2], x[3]));
  if constexpr (std::is_invocable_v<const Model&, const std::vector<Tensor>&>)
    return tensor_list(model(x));
  else
    refuse_inputs(x.size());
}

}  // namespace tidemark::detail

namespace tidemark::nn {

// Batches of (x, y), iterated once an epoch: any range of pairs, tuples or structs of two. x and y
// are tensors, or structures of tensors: several inputs, several outputs. A tuple of three has
// weights as well, which the losses take: one for each example, or for each element. It shares the
// range.
class Batches {
 public:
  // Receives one batch, with one tensor of weights or none; false ends the iteration.
  using Visit = std::function<bool(const std::vector<Tensor>& x, const std::vector<Tensor>& y,
                                   const std::vector<Tensor>& weights)>;

  Batches() = default;
  template <class Range>
    requires(!std::is_same_v<Range, Batches> && requires(Range& range) { std::begin(range); })
  Batches(Range range) {
    const auto held = std::make_shared<Range>(std::move(range));
    walk_ = [held](const Visit& visit) {
      for (auto&& element : *held)
        if (!visited(visit, element)) return;
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
  template <class Element>
  static bool visited(const Visit& visit, const Element& element) {
    using detail::tensor_list;
    if constexpr (requires { requires std::tuple_size<Element>::value == 3; }) {
      const auto& [x, y, weights] = element;
      return visit(tensor_list(x), tensor_list(y), tensor_list(weights));
    } else {
      const auto& [x, y] = element;
      return visit(tensor_list(x), tensor_list(y), {});
    }
  }

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
// examples counts, or a running metric. Objects of nn::losses and nn::metrics, or your own. A loss
// with a function weighted(y_true, y_pred, weights, at) may be used with batches that have weights.
class Measure {
 public:
  Measure() = default;
  template <class F>
    requires(!std::is_same_v<F, Measure> &&
             (std::is_invocable_v<const F&, const Tensor&, const Tensor&> ||
              std::is_invocable_v<const F&, const Tensor&, const Tensor&, Source>))
  Measure(F f)
      : f_([f](const Tensor& y_true, const Tensor& y_pred, Source at) {
          return Tensor(detail::call_back(f, at, y_true, y_pred));
        }) {
    if constexpr (requires(const F& loss, const Tensor& x, Source at) {
                    { loss.weighted(x, x, x, at) } -> std::convertible_to<Tensor>;
                  })
      weighted_ = [f = std::move(f)](const Tensor& y_true, const Tensor& y_pred,
                                     const Tensor& weights, Source at) {
        return Tensor(f.weighted(y_true, y_pred, weights, at));
      };
  }
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
  bool takes_weights() const { return weighted_ != nullptr; }
  Tensor weighted(const Tensor& y_true, const Tensor& y_pred, const Tensor& weights,
                  Source at) const {
    return weighted_(y_true, y_pred, weights, at);
  }
  // The metric of another output than the first: Measure(metrics::accuracy).of_output(1).
  Measure of_output(size_t number) const {
    Measure other = *this;
    other.output_ = number;
    return other;
  }
  size_t output() const { return output_; }

 private:
  std::function<Tensor(const Tensor&, const Tensor&, Source)> f_;
  std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, Source)> weighted_;
  std::shared_ptr<const Running> running_;
  size_t output_ = 0;
};

// The loss of one of several outputs.
struct OutputLoss {
  std::string name;
  Measure loss;
  double weight = 1;  // In the sum that is minimised.
};

// What is called during training; any of them may be empty.
struct Callback {
  std::function<void()> on_train_begin = {};
  std::function<void(int64_t epoch)> on_epoch_begin = {};  // Counted from 1.
  // May set `stop`, which ends training after it.
  std::function<void(Batch& batch)> on_batch = {};
  std::function<void(Epoch& epoch)> on_epoch = {};
  std::function<void(const History& history)> on_train_end = {};
};

// Stops training when the loss (of the validation, if there is one) no longer improves.
struct EarlyStopping {
  int64_t patience = 1;      // Epochs without an improvement before stopping.
  double least_gain = 0;     // The smallest decrease that counts as an improvement.
  bool restore_best = true;  // Restores the model of the best epoch.
};

struct FitOptions {
  Measure loss = {};
  // For a model with several outputs: one for each, in their order. Their weighted sum is
  // minimised, and the history has each as a metric, "name_loss".
  std::vector<OutputLoss> losses = {};
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
  std::vector<Callback> callbacks = {};  // In this order, after the two above.
  std::optional<EarlyStopping> early_stopping = {};
  // A running metric of several numbers, such as a ConfusionMatrix, is updated and not reported:
  // its result() is of the last pass over batches.
  std::vector<std::pair<std::string, Measure>> metrics = {};
  Progress progress = Progress::automatic;
};

// A type-erased model.
struct AnyModel {
  std::function<std::vector<Tensor>(const std::vector<Tensor>& x)> call;
  NamedVariables variables;
};
Evaluation evaluate_model(const AnyModel& model, const Batches& batches, const FitOptions& options,
                          Source at);
History fit_model(const AnyModel& model, const Batches& batches, const FitOptions& options,
                  Source at);

// Iterates over the batches `epochs` times in training mode. If a callback throws, the model keeps
// its updates.
template <class Model>
History fit(const Model& model, const Batches& batches, const FitOptions& options,
            Source at = Source::here()) {
  return fit_model({.call = [model](const auto& x) { return detail::call_model(model, x); },
                    .variables = named_variables(model)},
                   batches, options, at);
}

// The loss and the metrics of `options` over all batches, in evaluation mode, one batch at a time:
// the set need not fit into memory. Other options than the loss, the losses, the metrics, the
// budget and the autocast do nothing.
template <class Model>
Evaluation evaluate(const Model& model, const Batches& batches, const FitOptions& options,
                    Source at = Source::here()) {
  return evaluate_model({.call = [model](const auto& x) { return detail::call_model(model, x); },
                         .variables = named_variables(model)},
                        batches, options, at);
}

}  // namespace tidemark::nn
