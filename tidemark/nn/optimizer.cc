#include "tidemark/nn/optimizer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/base/output.h"
#include "tidemark/nn/optimizer_parameter.h"

namespace tidemark::nn {
namespace {

std::string called(const Variable& variable) {
  return variable.name().empty() ? std::string("a Variable")
                                 : cat("Variable \"", variable.name(), "\"");
}

void check_options(const OptimizerOptions& options, Source at) {
  if (options.accumulate < 1)
    throw UserError(cat("optimizer: .accumulate is ", options.accumulate), at,
                    "give the number of calls that make one update, at least 1");
  for (const auto& most : {options.clip_norm, options.clip_global_norm}) {
    if (most && !(*most > 0))
      throw UserError(cat("optimizer: gradients cannot be clipped to a length of ", *most), at,
                      "give a length above 0");
  }
}

void check_gradient(const Gradient& gradient, const Variable& variable, Source at) {
  if (!is_float(variable.dtype()))
    throw UserError(cat("apply_gradients: ", called(variable), " is ", variable.dtype(),
                        ", only floats can be trained"),
                    at, "declare it {.trainable = false}");
  if (gradient.shape() != variable.shape(at))
    throw UserError(cat("apply_gradients: ", called(variable), " is ", variable.shape(at),
                        ", its gradient ", gradient.shape()),
                    at, "give the gradients in the order of the Variables");
}

Variable number_variable(const Tensor& initial, const char* name) {
  return Variable(initial, {.name = name, .trainable = false});
}

}  // namespace

struct Optimizer::State {
  std::shared_ptr<const Parameter::Kind> kind;
  std::optional<Variable> calls;  // Where gradients are accumulated: of apply_gradients.
  Mutex lock;                     // Of the two below.
  std::vector<std::unique_ptr<Parameter>> parameters;
  detail::VariablesOnce warned;

  // A Variable's state, declared now if it has none. Callers mostly give them in one order, so
  // `hint` says where to look first.
  Parameter& of(const Variable& variable, size_t hint, const std::string& name) {
    const std::lock_guard guard(lock);
    if (hint < parameters.size() && parameters[hint]->variable().same_as(variable))
      return *parameters[hint];
    for (const auto& each : parameters)
      if (each->variable().same_as(variable)) return *each;
    return *parameters.emplace_back(std::make_unique<Parameter>(variable, unused(name), kind));
  }
  // The name, or "name_2" where another Variable has it.
  std::string unused(const std::string& name) const {
    std::string chosen = name;
    const auto is_used = [&](const auto& each) { return each->name() == chosen; };
    for (int64_t number = 2; std::any_of(parameters.begin(), parameters.end(), is_used); ++number)
      chosen = cat(name, "_", number);
    return chosen;
  }

  using Work = std::vector<std::pair<Parameter*, Gradient>>;
  Work work(const std::vector<Gradient>& gradients, const NamedVariables& named, Source at);
  SharedNumbers shared(const Optimizer& optimizer) const;
  Tensor scale(const Tensor& squares) const {
    return scale_to(squares, *kind->options.clip_global_norm);
  }
  void update(const Optimizer& optimizer, const Work& work) const;
  void update_by_accumulated(const Optimizer& optimizer, const Work& work) const;
  void apply(const Optimizer& optimizer, const Work& work) const;
};

// The Variables that have a gradient.
Optimizer::State::Work Optimizer::State::work(const std::vector<Gradient>& gradients,
                                              const NamedVariables& named, Source at) {
  Work work;
  for (size_t i = 0; i < named.size(); ++i) {
    if (!gradients[i].has_value()) continue;
    check_gradient(gradients[i], named[i].second, at);
    work.emplace_back(&of(named[i].second, i, named[i].first), gradients[i]);
  }
  return work;
}

// Counts the update, and gives its numbers.
SharedNumbers Optimizer::State::shared(const Optimizer& optimizer) const {
  const Schedule& schedule = kind->options.learning_rate;
  if (!schedule.is_constant()) {
    const Tensor made = cast(optimizer.iterations, DType::f64);
    optimizer.learning_rate.assign(cast(schedule(made), DType::f32));
  }
  optimizer.iterations.assign_add(1);
  const Tensor rate = cast(optimizer.learning_rate, DType::f64);
  const Tensor count = cast(optimizer.iterations, DType::f64);
  if (kind->rule.numbers == nullptr) return {.numbers = {rate}, .scale = {}};
  return {.numbers = kind->rule.numbers(rate, count), .scale = {}};
}

void Optimizer::State::update(const Optimizer& optimizer, const Work& work) const {
  SharedNumbers shared = this->shared(optimizer);
  if (kind->options.clip_global_norm) {
    Tensor squares = zeros({}, DType::f64);
    for (const auto& [parameter, gradient] : work)
      squares = squares + cast(parameter->squares(gradient), DType::f64);
    shared.scale = scale(squares);
  }
  for (const auto& [parameter, gradient] : work) parameter->update(gradient, shared);
}

void Optimizer::State::update_by_accumulated(const Optimizer& optimizer, const Work& work) const {
  SharedNumbers shared = this->shared(optimizer);
  if (kind->options.clip_global_norm) {
    Tensor squares = zeros({}, DType::f64);
    for (const auto& [parameter, gradient] : work)
      squares = squares + cast(parameter->accumulated_squares(), DType::f64);
    shared.scale = scale(squares);
  }
  for (const auto& [parameter, gradient] : work) parameter->update_by_accumulated(shared);
}

void Optimizer::State::apply(const Optimizer& optimizer, const Work& work) const {
  if (!calls) return update(optimizer, work);
  for (const auto& [parameter, gradient] : work) parameter->accumulate(gradient);
  calls->assign_add(1);
  cond(
      *calls % kind->options.accumulate == 0, [&] { update_by_accumulated(optimizer, work); },
      [] {});
}

Optimizer::Optimizer(UpdateRule rule, OptimizerOptions options, Source at)
    : learning_rate(number_variable(
          constant(options.learning_rate.is_constant() ? options.learning_rate.constant() : 0.0,
                   DType::f32),
          "learning_rate")),
      iterations(number_variable(constant(0, DType::i64), "iterations")),
      state_(std::make_shared<State>()) {
  check_options(options, at);
  if (options.accumulate > 1) state_->calls = number_variable(constant(0, DType::i64), "calls");
  state_->kind = std::make_shared<Parameter::Kind>(
      Parameter::Kind{.rule = std::move(rule), .options = std::move(options)});
}

void Optimizer::apply_gradients(const std::vector<Gradient>& gradients,
                                const std::vector<Variable>& variables, Source at) const {
  const SourceScope scope(at);
  if (gradients.size() != variables.size())
    throw UserError(cat("apply_gradients: ", gradients.size(), " gradients for ", variables.size(),
                        " Variables"),
                    at, "give one for each, in the same order");
  NamedVariables named;
  for (const Variable& variable : variables)
    named.emplace_back(variable.name().empty() ? "variable" : variable.name(), variable);
  state_->apply(*this, state_->work(gradients, named, at));
}

namespace {

NamedVariables trainable(const NamedVariables& named) {
  NamedVariables chosen;
  for (const auto& each : named)
    if (each.second.trainable()) chosen.push_back(each);
  return chosen;
}

std::vector<Variable> without_names(const NamedVariables& named) {
  std::vector<Variable> variables;
  for (const auto& each : named) variables.push_back(each.second);
  return variables;
}

}  // namespace

void Optimizer::minimize(GradientTape& tape, const Tensor& loss, const NamedVariables& named,
                         Source at) const {
  const SourceScope scope(at);
  const NamedVariables trained = trainable(named);
  if (trained.empty())
    throw UserError("minimize: the model has no trainable Variable", at,
                    "Variables are found in a model's fields: a class with private ones writes "
                    "TIDEMARK_FIELDS(a_, b_), a closure is given as nn::Lambda(f, layers)");
  detail::VariablesOnce known;
  for (const auto& each : named) known.add(each.second);
  for (const Variable& read : tape.watched_variables()) {
    if (!known.add(read) || !state_->warned.add(read)) continue;
    detail::warn(cat("minimize: ", called(read), ", declared at ", read.source().text(),
                     ", was read but is not the model's: it is not trained\n"
                     "  make it a field of the model, or name it: td::nn::Lambda(f, variable)"),
                 at);
  }
  const std::vector<Gradient> gradients =
      tape.gradient(loss, without_names(trained), {.unconnected = Unconnected::none}, at);
  const auto pause = tape.stop_recording();
  const State::Work work = state_->work(gradients, trained, at);
  if (work.empty())
    throw UserError(cat("minimize: the loss depends on none of the model's ", trained.size(),
                        " trainable Variables"),
                    at, "make the tape before the model is called, and the loss of what it gives");
  state_->apply(*this, work);
}

void Optimizer::declare(const NamedVariables& named) const {
  const NamedVariables trained = trainable(named);
  for (size_t i = 0; i < trained.size(); ++i)
    if (trained[i].second.has_shape()) state_->of(trained[i].second, i, trained[i].first);
}

size_t Optimizer::built() const {
  const std::lock_guard guard(state_->lock);
  return state_->parameters.size();
}

void Optimizer::take_back_build(size_t before) const {
  const std::lock_guard guard(state_->lock);
  if (state_->parameters.size() > before) state_->parameters.resize(before);
}

void Optimizer::tidemark_walk(const detail::VariablePath& path,
                              const detail::SeeVariable& see) const {
  see(path.field("learning_rate"), learning_rate);
  see(path.field("iterations"), iterations);
  if (state_->calls) see(path.field("calls"), *state_->calls);
  const std::lock_guard guard(state_->lock);
  for (const auto& each : state_->parameters) each->walk(path, see);
}

void Optimizer::tidemark_walk(const detail::VariablePath&, const detail::ReplaceVariable&) {
  throw UserError("clone: an optimizer holds the state of the Variables it trains", Source::none(),
                  "make another optimizer for the copy of the model");
}

}  // namespace tidemark::nn
