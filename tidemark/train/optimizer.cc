#include "tidemark/train/optimizer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/base/output.h"
#include "tidemark/train/optimizer_parameter.h"

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
      throw UserError(cat("optimizer: gradients cannot be clipped to a norm of ", *most), at,
                      "give a norm above 0");
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

namespace {

// The factor of the loss, and how it changes.
class LossScale {
 public:
  LossScale(const LossScaleOptions& options, Source at)
      : scale(number_variable(constant(options.initial, DType::f32), "loss_scale")),
        good_steps(number_variable(constant(0, DType::i64), "good_steps")),
        options_(options) {
    if (!(options.initial > 0 && options.factor > 1 && options.growth_steps >= 0))
      throw UserError(cat("LossScaleOptimizer: .initial is ", options.initial, ", .factor ",
                          options.factor, ", .growth_steps ", options.growth_steps),
                      at, "give a scale above 0, a factor above 1, and 0 steps or more");
  }

  // After an update.
  void grow() const {
    good_steps.assign_add(1);
    if (options_.growth_steps == 0) return;
    const Tensor is_due = good_steps >= options_.growth_steps;
    const Tensor larger = scale * options_.factor;
    scale.assign(where(logical_and(is_due, isfinite(larger)), larger, scale));
    good_steps.assign(where(is_due, 0, good_steps));
  }
  // After an update that was skipped.
  void shrink() const {
    scale.assign(maximum(scale / options_.factor, 1.0));
    good_steps.assign(0);
  }

  Variable scale, good_steps;

 private:
  LossScaleOptions options_;
};

Tensor all_finite(const Gradient& gradient) {
  return all(isfinite(gradient.is_rows() ? gradient.rows().rows : gradient.dense()));
}

Gradient times(const Gradient& gradient, const Tensor& factor) {
  if (!gradient.is_rows()) return Gradient(gradient.dense() * cast(factor, gradient.dtype()));
  RowGradient rows = gradient.rows();
  rows.rows = rows.rows * cast(factor, rows.rows.dtype());
  return Gradient(std::move(rows), {gradient.dtype(), gradient.shape()});
}

}  // namespace

struct Optimizer::State {
  // A parameter of an update and the form of its gradient, on which the program depends.
  struct Item {
    int64_t number = 0;
    bool is_rows = false, is_table = false;
  };
  struct Form {
    std::vector<Item> items;
    bool is_due = true;  // The accumulated gradients are applied.
  };

  State(Variable rate, Variable count, UpdateRule rule, OptimizerOptions options);

  Variable learning_rate, iterations;
  std::shared_ptr<const Parameter::Kind> kind;
  std::optional<Variable> calls;  // Counts calls of apply_gradients, if gradients are accumulated.
  std::optional<LossScale> loss_scale;
  Mutex lock;  // Guards the two below.
  std::vector<std::unique_ptr<Parameter>> parameters;
  detail::VariablesOnce warned;
  // The whole update in eager code: one program, so that it is atomic.
  Function<void(const std::vector<Tensor>&, Static<Form>)> whole;

  // The index of a Variable's state, declared now if it has none. Callers mostly use the same
  // order, so `hint` is tried first.
  size_t number_of(const Variable& variable, size_t hint, const std::string& name) {
    const std::lock_guard guard(lock);
    if (hint < parameters.size() && parameters[hint]->variable().same_as(variable)) return hint;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i]->variable().same_as(variable)) return i;
    parameters.push_back(std::make_unique<Parameter>(variable, unused(name), kind));
    return parameters.size() - 1;
  }
  Parameter& parameter(size_t number) {
    const std::lock_guard guard(lock);
    return *parameters[number];
  }
  // The name, or "name_2" if it is taken.
  std::string unused(const std::string& name) const {
    std::string chosen = name;
    const auto is_used = [&](const auto& each) { return each->name() == chosen; };
    for (int64_t number = 2; std::any_of(parameters.begin(), parameters.end(), is_used); ++number)
      chosen = cat(name, "_", number);
    return chosen;
  }

  struct Piece {
    size_t number;
    Parameter* parameter;
    Gradient gradient;
  };
  using Work = std::vector<Piece>;
  Work work(const std::vector<Gradient>& gradients, const NamedVariables& named, Source at);
  SharedNumbers shared() const;
  Tensor scale(const Tensor& squares) const {
    return scale_to(squares, *kind->options.clip_global_norm);
  }
  void update(const Work& work) const;
  void accumulate(const Work& work) const;
  void update_by_accumulated(const Work& work) const;
  void apply(const Work& work) const;
  void apply_at_once(const Work& work) const;
  void unless_infinite(const Work& work, const std::function<void(const Work&)>& apply) const;
  void trace_whole(const std::vector<Tensor>& tensors, const Form& form);
};

Optimizer::State::State(Variable rate, Variable count, UpdateRule rule, OptimizerOptions options)
    : learning_rate(std::move(rate)),
      iterations(std::move(count)),
      kind(std::make_shared<Parameter::Kind>(
          Parameter::Kind{.rule = std::move(rule), .options = std::move(options)})),
      whole(function([this](const std::vector<Tensor>& tensors,
                            Static<Form> form) { trace_whole(tensors, *form); },
                     {.name = kind->rule.name})) {
  if (kind->options.accumulate > 1) calls = number_variable(constant(0, DType::i64), "calls");
}

// The Variables that have a gradient.
Optimizer::State::Work Optimizer::State::work(const std::vector<Gradient>& gradients,
                                              const NamedVariables& named, Source at) {
  Work work;
  for (size_t i = 0; i < named.size(); ++i) {
    if (!gradients[i].has_value()) continue;
    check_gradient(gradients[i], named[i].second, at);
    const size_t number = number_of(named[i].second, i, named[i].first);
    const bool keeps_form = kind->rule.is_elementwise || !gradients[i].is_rows();
    work.push_back(
        {number, &parameter(number), keeps_form ? gradients[i] : Gradient(gradients[i].dense(at))});
    work.back().parameter->note_form(work.back().gradient);
  }
  return work;
}

// Counts the update, and returns its shared numbers.
SharedNumbers Optimizer::State::shared() const {
  const Schedule& schedule = kind->options.learning_rate;
  if (!schedule.is_constant()) {
    const Tensor made = cast(iterations, DType::f64);
    learning_rate.assign(cast(schedule(made), DType::f32));
  }
  iterations.assign_add(1);
  const Tensor rate = cast(learning_rate, DType::f64);
  const Tensor count = cast(iterations, DType::f64);
  if (kind->rule.numbers == nullptr) return {.numbers = {rate}, .scale = {}};
  return {.numbers = kind->rule.numbers(rate, count), .scale = {}};
}

void Optimizer::State::update(const Work& work) const {
  SharedNumbers shared = this->shared();
  if (kind->options.clip_global_norm) {
    Tensor squares = zeros({}, DType::f64);
    for (const Piece& piece : work)
      squares = squares + cast(piece.parameter->squares(piece.gradient), DType::f64);
    shared.scale = scale(squares);
  }
  for (const Piece& piece : work) piece.parameter->update(piece.gradient, shared);
}

void Optimizer::State::accumulate(const Work& work) const {
  for (const Piece& piece : work) piece.parameter->accumulate(piece.gradient);
  calls->assign_add(1);
}

void Optimizer::State::update_by_accumulated(const Work& work) const {
  SharedNumbers shared = this->shared();
  if (kind->options.clip_global_norm) {
    Tensor squares = zeros({}, DType::f64);
    for (const Piece& piece : work)
      squares = squares + cast(piece.parameter->accumulated_squares(), DType::f64);
    shared.scale = scale(squares);
  }
  for (const Piece& piece : work) piece.parameter->update_by_accumulated(shared);
}

void Optimizer::State::apply(const Work& work) const {
  const Autocast off(DType::f32);
  // In eager code the whole update is one compiled function; a trace is compiled with it inside.
  if (!detail::is_tracing()) return apply_at_once(work);
  unless_infinite(work, [this](const Work& finite) {
    if (!calls) return update(finite);
    accumulate(finite);
    cond(*calls % kind->options.accumulate == 0, [&] { update_by_accumulated(finite); }, [] {});
  });
}

// Applies gradients of the scaled loss, or skips them.
void Optimizer::State::unless_infinite(const Work& work,
                                       const std::function<void(const Work&)>& apply) const {
  if (!loss_scale) return apply(work);
  Tensor is_finite = all_finite(work.front().gradient);
  for (const Piece& piece : work) is_finite = logical_and(is_finite, all_finite(piece.gradient));
  const auto use = [&] {
    const Tensor factor = 1.0 / loss_scale->scale;
    Work finite = work;
    for (Piece& piece : finite) piece.gradient = times(piece.gradient, factor);
    apply(finite);
    loss_scale->grow();
  };
  cond(is_finite, use, [&] { loss_scale->shrink(); });
}

void Optimizer::State::apply_at_once(const Work& work) const {
  Form form;
  if (calls) form.is_due = ((*calls + 1) % kind->options.accumulate == 0).item<bool>();
  std::vector<Tensor> tensors;
  for (const Piece& piece : work) {
    const bool is_rows = piece.gradient.is_rows();
    form.items.push_back(
        {static_cast<int64_t>(piece.number), is_rows, piece.parameter->is_table()});
    if (is_rows) tensors.push_back(piece.gradient.rows().indices);
    tensors.push_back(is_rows ? piece.gradient.rows().rows : piece.gradient.dense());
  }
  note_caller();
  whole(std::move(tensors), std::move(form));
}

void Optimizer::State::trace_whole(const std::vector<Tensor>& tensors, const Form& form) {
  const SourceScope scope(noted_caller());
  Work work;
  auto next = tensors.begin();
  for (const Item& item : form.items) {
    const auto number = static_cast<size_t>(item.number);
    Parameter& parameter = this->parameter(number);
    const Variable& variable = parameter.variable();
    const Tensor first = *next++;
    work.push_back(
        {number, &parameter,
         item.is_rows ? Gradient(RowGradient{first, *next++}, {variable.dtype(), variable.shape()})
                      : Gradient(first)});
  }
  unless_infinite(work, [&](const Work& finite) {
    if (!calls) return update(finite);
    accumulate(finite);
    if (form.is_due) update_by_accumulated(finite);
  });
}

Optimizer::Optimizer(UpdateRule rule, OptimizerOptions options, Source at)
    : learning_rate(number_variable(
          constant(options.learning_rate.is_constant() ? options.learning_rate.constant() : 0.0,
                   DType::f32),
          "learning_rate")),
      iterations(number_variable(constant(0, DType::i64), "iterations")),
      state_(nullptr) {
  check_options(options, at);
  state_ = std::make_shared<State>(learning_rate, iterations, std::move(rule), std::move(options));
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
  state_->apply(state_->work(gradients, named, at));
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
                     ", was read but does not belong to the model: it is not trained\n"
                     "  make it a field of the model, or name it: td::nn::Lambda(f, variable)"),
                 at);
  }
  GradientOptions options{.unconnected = Unconnected::none};
  if (state_->loss_scale) options.output_gradients = scale_loss(ones_like(loss), at);
  const std::vector<Gradient> gradients = tape.gradient(loss, without_names(trained), options, at);
  const auto pause = tape.stop_recording();
  const State::Work work = state_->work(gradients, trained, at);
  if (work.empty())
    throw UserError(
        cat("minimize: the loss depends on none of the model's ", trained.size(),
            " trainable Variables"),
        at,
        "create the tape before calling the model, and compute the loss from the model's output");
  state_->apply(work);
}

void Optimizer::set_loss_scale(const LossScaleOptions& options, Source at) const {
  state_->loss_scale.emplace(options, at);
}

std::optional<Variable> Optimizer::loss_scale() const {
  if (!state_->loss_scale) return {};
  return state_->loss_scale->scale;
}

Tensor Optimizer::scale_loss(const Tensor& loss, Source at) const {
  const SourceScope scope(at);
  if (!state_->loss_scale) return loss;
  return loss * cast(state_->loss_scale->scale, loss.dtype());
}

LossScaleOptimizer::LossScaleOptimizer(const Optimizer& inner, LossScaleOptions options, Source at)
    : Optimizer(inner) {
  set_loss_scale(options, at);
}

void Optimizer::declare(const NamedVariables& named) const {
  const NamedVariables trained = trainable(named);
  for (size_t i = 0; i < trained.size(); ++i)
    if (trained[i].second.has_shape()) state_->number_of(trained[i].second, i, trained[i].first);
}

NamedVariables Optimizer::trained() const {
  const std::lock_guard guard(state_->lock);
  NamedVariables named;
  for (const auto& each : state_->parameters) named.emplace_back(each->name(), each->variable());
  return named;
}

size_t Optimizer::built() const {
  const std::lock_guard guard(state_->lock);
  return state_->parameters.size();
}

void Optimizer::take_back_build(size_t before) const {
  const std::lock_guard guard(state_->lock);
  if (state_->parameters.size() <= before) return;
  state_->parameters.resize(before);
  state_->whole.clear_cache();  // Its programs refer to parameters by index.
}

void Optimizer::tidemark_walk(const detail::VariablePath& path,
                              const detail::SeeVariable& see) const {
  see(path.field("learning_rate"), learning_rate);
  see(path.field("iterations"), iterations);
  if (state_->calls) see(path.field("calls"), *state_->calls);
  if (state_->loss_scale) {
    see(path.field("loss_scale"), state_->loss_scale->scale);
    see(path.field("good_steps"), state_->loss_scale->good_steps);
  }
  for (const auto& [name, variable] : state_->kind->rule.state) see(path.field(name), variable);
  const std::lock_guard guard(state_->lock);
  for (const auto& each : state_->parameters) each->walk(path, see);
}

void Optimizer::tidemark_walk(const detail::VariablePath&, const detail::ReplaceVariable&) {
  throw UserError(
      "clone: an optimizer holds state for the Variables it trains, and cannot be copied",
      Source::none(), "make another optimizer for the copy of the model");
}

}  // namespace tidemark::nn
