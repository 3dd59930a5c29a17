#include "tidemark/train/fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/base/interrupt.h"
#include "tidemark/io/checkpoint.h"
#include "tidemark/train/fit_progress.h"

namespace tidemark::nn {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Tensors = std::vector<Tensor>;

struct StepResult {
  Tensor loss;
  Tensors parts;  // The losses of several outputs.
  Tensors metrics;
  Tensors weight;  // The sum of the batch's weights, if it has weights.
};
using StepFunction = Function<StepResult(const Tensors&, const Tensors&, const Tensors&)>;

// Which function was called, "fit" or "evaluate", and where.
struct Call {
  const char* name;
  Source at;
};

Tensor one_number(const std::string& what, Tensor given, Call call) {
  if (given.size() != 1)
    throw UserError(
        cat(call.name, ": ", what, " gives ", given.dtype(), given.shape(), ", not one number"),
        call.at, "return its mean: td::mean(x)");
  return given;
}

const Tensor& output_of(const Measure& measure, const std::string& name, const Tensors& outputs,
                        Call call) {
  if (measure.output() < outputs.size()) return outputs[measure.output()];
  throw UserError(cat(call.name, ": the metric \"", name, "\" is of output ", measure.output(),
                      ", of ", outputs.size()),
                  call.at, "outputs are counted from 0");
}

void check_counts(const FitOptions& options, size_t targets, size_t outputs, Call call) {
  if (targets != outputs)
    throw UserError(
        cat(call.name, ": the model has ", outputs, " outputs, a batch ", targets, " targets"),
        call.at, "give a target for each output");
  if (options.losses.empty() && options.loss.has_value() && outputs != 1)
    throw UserError(cat(call.name, ": the model has ", outputs, " outputs and one loss"), call.at,
                    "give one for each: {.losses = {{\"a\", td::nn::losses::mse}, ...}}");
  if (!options.losses.empty() && options.losses.size() != outputs)
    throw UserError(cat(call.name, ": the model has ", outputs, " outputs and ",
                        options.losses.size(), " losses"),
                    call.at, "give one for each output, in their order");
}

// What the losses see of a batch.
struct Answers {
  const Tensors &wanted, &given, &weights;
};

Tensor loss_of(const Measure& loss, const std::string& what, const Answers& batch, size_t i,
               Call call) {
  const Tensor &wanted = batch.wanted[i], &given = batch.given[i];
  if (batch.weights.empty()) return one_number(what, loss(wanted, given, call.at), call);
  if (!loss.takes_weights())
    throw UserError(cat(call.name, ": a batch has weights, and ", what, " takes none"), call.at,
                    "give one of td::nn::losses, or an object that has weighted(y_true, y_pred, "
                    "weights, at)");
  return one_number(what, loss.weighted(wanted, given, batch.weights[0], call.at), call);
}

void add_losses(StepResult& result, const FitOptions& options, const Answers& batch, Call call) {
  if (options.losses.empty()) {
    result.loss =
        options.loss.has_value() ? loss_of(options.loss, "the loss", batch, 0, call) : zeros({});
    return;
  }
  for (size_t i = 0; i < batch.given.size(); ++i) {
    const auto& [name, loss, weight] = options.losses[i];
    result.parts.push_back(loss_of(loss, cat("the loss \"", name, "\""), batch, i, call));
    const Tensor share = result.parts.back() * weight;
    result.loss = i == 0 ? share : result.loss + share;
  }
}

StepResult measured(const FitOptions& options, const Answers& batch, Call call) {
  const auto& [y, given, weights] = batch;
  check_counts(options, y.size(), given.size(), call);
  if (weights.size() > 1)
    throw UserError(cat(call.name, ": a batch has ", weights.size(), " tensors of weights"),
                    call.at, "give one, for all outputs");
  StepResult result;
  add_losses(result, options, batch, call);
  if (!weights.empty()) result.weight.push_back(sum(cast(weights[0], DType::f64)));
  for (const auto& [name, metric] : options.metrics) {
    const Tensor &wanted = output_of(metric, name, y, call),
                 &made = output_of(metric, name, given, call);
    if (metric.running() != nullptr)
      metric.running()->update(wanted, made, call.at);
    else
      result.metrics.push_back(
          one_number(cat("the metric \"", name, "\""), metric(wanted, made, call.at), call));
  }
  return result;
}

// Means weighted by the number of examples, losses by the weights if batches have them, and running
// metrics, which begin anew.
class Means {
 public:
  Means(const FitOptions& options, Source at)
      : options_(options), at_(at), parts_(options.losses.size()), sums_(options.metrics.size()) {
    for (const auto& [name, metric] : options_.metrics)
      if (metric.running() != nullptr) metric.running()->reset(at_);
  }

  void add(const StepResult& result, int64_t examples) {
    const auto count = static_cast<double>(examples);
    const double weight = result.weight.empty() ? count : result.weight[0].item<double>();
    examples_ += examples;
    weights_ += weight;
    ++batches_;
    loss_ += weight * result.loss.item<double>();
    for (size_t i = 0; i < result.parts.size(); ++i)
      parts_[i] += weight * result.parts[i].item<double>();
    for (size_t i = 0; i < result.metrics.size(); ++i)
      sums_[i] += count * result.metrics[i].item<double>();
  }
  int64_t examples() const { return examples_; }
  int64_t batches() const { return batches_; }
  double loss() const { return mean_of(loss_, weights_); }
  NamedNumbers metrics() const {
    NamedNumbers named;
    for (size_t i = 0; i < parts_.size(); ++i)
      named.emplace_back(cat(options_.losses[i].name, "_loss"), mean_of(parts_[i], weights_));
    size_t next = 0;  // Of the metrics that are functions.
    for (const auto& [name, metric] : options_.metrics) {
      if (metric.running() == nullptr) {
        named.emplace_back(name, mean_of(sums_[next++], static_cast<double>(examples_)));
        continue;
      }
      const Tensor result = metric.running()->result(at_);
      if (result.size() == 1) named.emplace_back(name, result.item<double>());
    }
    return named;
  }

 private:
  // The sign of a NaN means nothing. Where all weights are 0, so is their mean.
  static double mean_of(double sum, double weights) {
    if (std::isnan(sum)) return std::numeric_limits<double>::quiet_NaN();
    return sum == 0 && weights == 0 ? 0 : sum / weights;
  }

  const FitOptions& options_;
  Source at_;
  int64_t examples_ = 0, batches_ = 0;
  double loss_ = 0, weights_ = 0;
  std::vector<double> parts_, sums_;
};

// A model's Variables, as a checkpoint entry.
struct SavedModel {
  NamedVariables variables;
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    for (const auto& [name, variable] : variables)
      if (variable.has_shape()) see(path.field(name), variable);
  }
};

// The values of the best epoch. Allocates a copy of the model once, and reuses it.
class BestValues {
 public:
  void keep(const NamedVariables& variables) {
    for (size_t i = 0; i < variables.size(); ++i) {
      const Variable& variable = variables[i].second;
      if (!variable.has_shape()) continue;
      if (kept_.size() <= i) kept_.resize(i + 1);
      if (kept_[i])
        kept_[i]->assign(variable);
      else
        kept_[i] = variable.clone();
    }
  }
  // Assigns all of them or none; the values are moved, not copied.
  void restore(const NamedVariables& variables) {
    using NextValue = detail::VariablesTogether::NextValue;
    std::vector<Variable> changed;
    std::vector<NextValue> values;
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (!kept_[i]) continue;
      changed.push_back(variables[i].second);
      values.push_back({kept_[i]->value(), kept_[i]->shape()});
      kept_[i].reset();
    }
    const detail::VariablesTogether together(changed);
    for (size_t i = 0; i < changed.size(); ++i) together.put(changed[i], values[i]);
  }

 private:
  std::vector<std::optional<Variable>> kept_;
};

int64_t examples_in(const Tensors& x) {
  return x.empty() || x[0].rank() == 0 ? 1 : int64_t{x[0].shape()[0]};
}

// One pass over batches in evaluation mode.
Means judged(const StepFunction& judge, const Batches& batches, const FitOptions& options,
             Source at) {
  const Training off(false);
  Means means(options, at);
  batches.for_each([&](const Tensors& x, const Tensors& y, const Tensors& weights) {
    detail::poll_interrupt();
    means.add(judge(x, y, weights), examples_in(x));
    return true;
  });
  return means;
}

Tensors called(const AnyModel& model, const Tensors& x) {
  const UserCode user;
  return model.call(x);
}

StepFunction judge_function(const AnyModel& model, const FitOptions& options,
                            const FunctionOptions& of_function, Call call) {
  return function(
      [model, options, call](const Tensors& x, const Tensors& y, const Tensors& weights) {
        return measured(options, {y, called(model, x), weights}, call);
      },
      of_function, call.at);
}

FunctionOptions function_options(const char* name, const FitOptions& options) {
  return {
      .name = name, .budget = options.budget, .autocast = options.autocast.value_or(autocast())};
}

class Trainer {
 public:
  Trainer(const AnyModel& model, const Batches& batches, const FitOptions& options, Source at)
      : model_(model),
        batches_(batches),
        options_(options),
        at_(at),
        of_batches_(batches.count()),
        display_(options.progress),
        step_(step_function()),
        judge_(
            judge_function(model, options, function_options("validation", options), {"fit", at})) {}

  History run() {
    const Autocast off(DType::f32);  // Of the best values; steps have their own.
    tell(&Callback::on_train_begin);
    for (int64_t number = options_.initial_epoch + 1;
         number <= options_.epochs && history_.stopped.empty(); ++number) {
      tell(&Callback::on_epoch_begin, number);
      history_.epochs.push_back(epoch(number));
      finish(history_.epochs.back());
    }
    if (options_.early_stopping && options_.early_stopping->restore_best)
      best_.restore(model_.variables);
    history_.traces = step_.cache_info().traces;
    tell(&Callback::on_train_end, history_);
    return std::move(history_);
  }

 private:
  StepFunction step_function() const {
    return function(
        [model = model_, options = options_, at = at_](const Tensors& x, const Tensors& y,
                                                       const Tensors& weights) {
          GradientTape tape;
          StepResult result = measured(options, {y, called(model, x), weights}, {"fit", at});
          options.optimizer.minimize(tape, result.loss, model.variables, at);
          return result;
        },
        function_options("fit", options_), at_);
  }

  Epoch epoch(int64_t number) {
    const MemoryScope scope("epoch");
    const auto start = Clock::now();
    Means means(options_, at_);
    bool stops = false;
    const auto train = [&](const Tensors& x, const Tensors& y, const Tensors& weights) {
      detail::poll_interrupt();
      if (history_.planned.count == 0) history_.planned = step_.plan(x, y, weights).peak();
      means.add(step_(x, y, weights), examples_in(x));
      show(number, means, seconds_since(start));
      stops = asks_to_stop({.epoch = number, .number = means.batches(), .loss = means.loss()});
      return !stops;
    };
    {
      const Training on;
      batches_.for_each(train);
      // A dataset that was restored at the end of a pass has no elements left in it.
      if (means.batches() == 0) batches_.for_each(train);
    }
    if (means.batches() == 0)
      throw UserError(cat("fit: there is no batch in epoch ", number), at_,
                      "give a range that can be iterated once an epoch");
    if (!stops) of_batches_ = means.batches();
    Epoch epoch{.number = number,
                .loss = means.loss(),
                .metrics = means.metrics(),
                .learning_rate = options_.optimizer.learning_rate.value().item<double>(),
                .batches = means.batches(),
                .examples = means.examples()};
    if (options_.validation.has_value()) validate(epoch);
    epoch.seconds = seconds_since(start);
    epoch.peak = scope.peak();
    if (stops) history_.stopped = "on_batch asked for it";
    return epoch;
  }

  bool asks_to_stop(Batch batch) const {
    const UserCode user;
    if (options_.on_batch) options_.on_batch(batch);
    tell(&Callback::on_batch, batch);
    return batch.stop;
  }
  // Calls one of the functions of all callbacks.
  template <class F, class... A>
  void tell(F Callback::* which, A&... arguments) const {
    const UserCode user;
    for (const Callback& each : options_.callbacks)
      if (each.*which) (each.*which)(arguments...);
  }

  void validate(Epoch& epoch) const {
    const Means means = judged(judge_, options_.validation, options_, at_);
    if (means.batches() == 0)
      throw UserError("fit: .validation has no batches", at_,
                      "give a range that can be iterated once an epoch");
    epoch.validation_loss = means.loss();
    epoch.validation_metrics = means.metrics();
  }

  void show(int64_t epoch, const Means& means, double seconds) {
    display_.batch({.epoch = epoch,
                    .epochs = options_.epochs,
                    .batches = means.batches(),
                    .of_batches = of_batches_,
                    .examples = means.examples(),
                    .seconds = seconds,
                    .loss = means.loss(),
                    .now = memory::current(),
                    .peak = memory::peak()});
  }

  // Reports the epoch, and decides whether it is the last.
  void finish(Epoch& epoch) {
    const double gain = options_.early_stopping ? options_.early_stopping->least_gain : 0;
    const bool is_better = epoch.judged() < least_ - gain;
    if (is_better) {
      least_ = epoch.judged();
      history_.best = epoch.number;
      if (options_.early_stopping && options_.early_stopping->restore_best)
        best_.keep(model_.variables);
    }
    if (!options_.checkpoint.empty())
      io::Checkpoint{{"model", SavedModel{model_.variables}}, {"optimizer", options_.optimizer}}
          .save(options_.checkpoint, {}, at_);
    display_.epoch(epoch);
    if (options_.on_epoch) {
      const UserCode user;
      options_.on_epoch(epoch);
    }
    tell(&Callback::on_epoch, epoch);
    if (!history_.stopped.empty()) return;
    if (epoch.stop)
      history_.stopped = "on_epoch asked for it";
    else if (!std::isfinite(epoch.loss))
      history_.stopped = cat("the loss of epoch ", epoch.number, " is ", epoch.loss);
    else if (options_.early_stopping &&
             epoch.number - history_.best > options_.early_stopping->patience)
      history_.stopped = cat("no improvement since epoch ", history_.best);
  }

  const AnyModel& model_;
  const Batches& batches_;
  const FitOptions& options_;
  Source at_;
  std::optional<int64_t> of_batches_;
  ProgressDisplay display_;
  StepFunction step_, judge_;
  History history_;
  double least_ = std::numeric_limits<double>::infinity();
  BestValues best_;
};

void check_measures(const Batches& batches, const FitOptions& options, Call call) {
  if (!batches.has_value())
    throw UserError(cat(call.name, ": there are no batches"), call.at, "give a dataset");
  if (options.loss.has_value() && !options.losses.empty())
    throw UserError(cat(call.name, ": there are .loss and .losses"), call.at,
                    "give .loss for one output, .losses for several");
  const auto check = [&](const Measure& loss) {
    if (loss.running() != nullptr)
      throw UserError(cat(call.name, ": the loss is a metric that runs over batches"), call.at,
                      "give a function, {.loss = td::nn::losses::mse}, and the metric in .metrics");
  };
  check(options.loss);
  for (const OutputLoss& each : options.losses) check(each.loss);
}

void check_options(const FitOptions& options, Source at) {
  const bool has_losses = std::all_of(options.losses.begin(), options.losses.end(),
                                      [](const OutputLoss& each) { return each.loss.has_value(); });
  if (!has_losses || (!options.loss.has_value() && options.losses.empty()))
    throw UserError("fit: there is no loss", at, "give one: {.loss = td::nn::losses::mse}");
  if (options.initial_epoch < 0)
    throw UserError(cat("fit: .initial_epoch is ", options.initial_epoch), at, "give 0 or more");
  if (options.epochs < 0)
    throw UserError(cat("fit: .epochs is ", options.epochs), at, "give 0 or more");
  if (options.early_stopping && options.early_stopping->patience < 0)
    throw UserError(cat("fit: .patience is ", options.early_stopping->patience), at,
                    "give 0 or more epochs");
}

}  // namespace
}  // namespace tidemark::nn

void tidemark::detail::refuse_inputs(size_t count) {
  throw UserError(cat("fit: the model cannot be called with ", count, " inputs"), Source::none(),
                  "its operator() takes that many tensors, or a const std::vector<td::Tensor>&");
}

namespace tidemark::nn {

History fit_model(const AnyModel& model, const Batches& batches, const FitOptions& options,
                  Source at) {
  const SourceScope scope(at);
  check_measures(batches, options, {"fit", at});
  check_options(options, at);
  return Trainer(model, batches, options, at).run();
}

Evaluation evaluate_model(const AnyModel& model, const Batches& batches, const FitOptions& options,
                          Source at) {
  const SourceScope scope(at);
  check_measures(batches, options, {"evaluate", at});
  const StepFunction judge =
      judge_function(model, options, function_options("evaluate", options), {"evaluate", at});
  const Means means = judged(judge, batches, options, at);
  if (means.batches() == 0)
    throw UserError("evaluate: there are no batches", at, "give a range with at least one");
  Evaluation found{
      .metrics = means.metrics(), .batches = means.batches(), .examples = means.examples()};
  if (options.loss.has_value() || !options.losses.empty()) found.loss = means.loss();
  return found;
}

}  // namespace tidemark::nn
