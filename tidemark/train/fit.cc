#include "tidemark/train/fit.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "tidemark/api/function.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/mode.h"
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

struct StepResult {
  Tensor loss;
  std::vector<Tensor> metrics;
};
using StepFunction = Function<StepResult(const Tensor&, const Tensor&)>;

Tensor one_number(const std::string& what, Tensor given, Source at) {
  if (given.size() != 1)
    throw UserError(cat("fit: ", what, " gives ", given.dtype(), given.shape(), ", not one number"),
                    at, "return its mean: td::mean(x)");
  return given;
}

StepResult measured(const FitOptions& options, const Tensor& y, const Tensor& given, Source at) {
  StepResult result{.loss = one_number("the loss", options.loss(y, given, at), at), .metrics = {}};
  for (const auto& [name, metric] : options.metrics) {
    if (metric.running() != nullptr)
      metric.running()->update(y, given, at);
    else
      result.metrics.push_back(
          one_number(cat("the metric \"", name, "\""), metric(y, given, at), at));
  }
  return result;
}

// Means weighted by the number of examples, and running metrics, which begin anew.
class Means {
 public:
  Means(const FitOptions& options, Source at)
      : options_(options), at_(at), sums_(options.metrics.size()) {
    for (const auto& [name, metric] : options_.metrics) {
      if (metric.running() == nullptr) continue;
      metric.running()->reset(at_);
      one_number(cat("the metric \"", name, "\""), metric.running()->result(at_), at_);
    }
  }

  void add(const StepResult& result, int64_t examples) {
    const auto weight = static_cast<double>(examples);
    examples_ += examples;
    ++batches_;
    loss_ += weight * result.loss.item<double>();
    for (size_t i = 0; i < result.metrics.size(); ++i)
      sums_[i] += weight * result.metrics[i].item<double>();
  }
  int64_t examples() const { return examples_; }
  int64_t batches() const { return batches_; }
  double loss() const { return mean_of(loss_); }
  NamedNumbers metrics() const {
    NamedNumbers named;
    size_t next = 0;  // Of the metrics that are functions.
    for (const auto& [name, metric] : options_.metrics) {
      const Measure::Running* running = metric.running();
      named.emplace_back(
          name, running != nullptr ? running->result(at_).item<double>() : mean_of(sums_[next++]));
    }
    return named;
  }

 private:
  // The sign of a NaN means nothing.
  double mean_of(double sum) const {
    return std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN()
                           : sum / static_cast<double>(examples_);
  }

  const FitOptions& options_;
  Source at_;
  int64_t examples_ = 0, batches_ = 0;
  double loss_ = 0;
  std::vector<double> sums_;
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

int64_t examples_in(const Tensor& x) { return x.rank() == 0 ? 1 : int64_t{x.shape()[0]}; }

class Trainer {
 public:
  Trainer(const AnyModel& model, const Batches& batches, const FitOptions& options, Source at)
      : model_(model),
        batches_(batches),
        options_(options),
        at_(at),
        autocast_(options.autocast.value_or(autocast())),
        of_batches_(batches.count()),
        display_(options.progress),
        step_(step_function()),
        judge_(judge_function()) {}

  History run() {
    const Autocast off(DType::f32);  // Of the best values; steps have their own.
    for (int64_t number = options_.initial_epoch + 1;
         number <= options_.epochs && history_.stopped.empty(); ++number) {
      history_.epochs.push_back(epoch(number));
      finish(history_.epochs.back());
    }
    if (options_.early_stopping && options_.early_stopping->restore_best)
      best_.restore(model_.variables);
    history_.traces = step_.cache_info().traces;
    return std::move(history_);
  }

 private:
  StepFunction step_function() const {
    return function(
        [model = model_, options = options_, at = at_](const Tensor& x, const Tensor& y) {
          GradientTape tape;
          StepResult result = measured(options, y, called(model, x), at);
          options.optimizer.minimize(tape, result.loss, model.variables, at);
          return result;
        },
        function_options("fit"), at_);
  }
  StepFunction judge_function() const {
    return function(
        [model = model_, options = options_, at = at_](const Tensor& x, const Tensor& y) {
          return measured(options, y, called(model, x), at);
        },
        function_options("validation"), at_);
  }
  FunctionOptions function_options(const char* name) const {
    return {.name = name, .budget = options_.budget, .autocast = autocast_};
  }
  static Tensor called(const AnyModel& model, const Tensor& x) {
    const UserCode user;
    return model.call(x);
  }

  Epoch epoch(int64_t number) {
    const MemoryScope scope("epoch");
    const auto start = Clock::now();
    Means means(options_, at_);
    bool stops = false;
    const auto train = [&](const Tensor& x, const Tensor& y) {
      detail::poll_interrupt();
      if (history_.planned.count == 0) history_.planned = step_.plan(x, y).peak();
      means.add(step_(x, y), examples_in(x));
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
    if (!options_.on_batch) return false;
    const UserCode user;
    options_.on_batch(batch);
    return batch.stop;
  }

  void validate(Epoch& epoch) const {
    const Training off(false);
    Means means(options_, at_);
    options_.validation.for_each([&](const Tensor& x, const Tensor& y) {
      means.add(judge_(x, y), examples_in(x));
      return true;
    });
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
  DType autocast_;
  std::optional<int64_t> of_batches_;
  ProgressDisplay display_;
  StepFunction step_, judge_;
  History history_;
  double least_ = std::numeric_limits<double>::infinity();
  BestValues best_;
};

void check_options(const Batches& batches, const FitOptions& options, Source at) {
  if (!batches.has_value()) throw UserError("fit: there are no batches", at, "give a dataset");
  if (options.loss.running() != nullptr)
    throw UserError("fit: the loss is a metric that runs over batches", at,
                    "give a function, {.loss = td::nn::losses::mse}, and the metric in .metrics");
  if (!options.loss.has_value())
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

History fit_model(const AnyModel& model, const Batches& batches, const FitOptions& options,
                  Source at) {
  const SourceScope scope(at);
  check_options(batches, options, at);
  return Trainer(model, batches, options, at).run();
}

}  // namespace tidemark::nn
