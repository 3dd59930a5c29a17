#include "tidemark/train/averages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"

namespace tidemark::nn {

struct EMA::State {
  struct Average {
    std::string name;
    Variable variable, average;
  };
  EMAOptions options;
  std::vector<Average> averages;
  Function<void()> move;  // All of them: one program in eager code, inlined in others.
};

namespace {

Tensor decay_of(const EMAOptions& options, const Tensor& made) {
  const Tensor decay = constant(options.decay, DType::f64);
  return options.warm_up ? minimum(decay, (1.0 + made) / (10.0 + made)) : decay;
}

}  // namespace

EMA::EMA(const NamedVariables& variables, EMAOptions options, Source at)
    : updates(constant(0, DType::i64), {.name = "updates", .trainable = false}, at), state_() {
  const SourceScope scope(at);
  if (!(options.decay >= 0 && options.decay < 1))
    throw UserError(cat("EMA: .decay is ", options.decay), at, "give a number from 0 to below 1");
  const Autocast off(DType::f32);
  std::vector<State::Average> averages;
  for (const auto& [name, variable] : variables) {
    if (!variable.trainable() || !variable.has_shape()) continue;
    const DType dtype = variable.dtype() == DType::f64 ? DType::f64 : DType::f32;
    averages.push_back({name, variable,
                        Variable(identity(cast(variable.value(), dtype)),
                                 {.name = cat("average/", name), .trainable = false})});
  }
  if (averages.empty())
    throw UserError("EMA: the model has no trainable Variable with a shape", at,
                    "call the model, or td::nn::build, before its EMA is made");
  const auto move = [averages, options, count = updates] {
    const Autocast off(DType::f32);
    const Tensor decay = decay_of(options, cast(count, DType::f64));
    count.assign_add(1);
    for (const State::Average& each : averages) {
      const Tensor part = cast(decay, each.average.dtype());
      const Tensor value = cast(each.variable, each.average.dtype());
      each.average.assign(part * each.average + (1.0 - part) * value);
    }
  };
  state_ = std::make_shared<State>(State{options, averages, function(move, {.name = "EMA"}, at)});
}

void EMA::update(Source at) const {
  const SourceScope scope(at);
  state_->move();
}

void EMA::swap(Source at) const {
  const SourceScope scope(at);
  const Autocast off(DType::f32);
  for (const State::Average& each : state_->averages) {
    const Tensor own = identity(each.variable.value());
    each.variable.assign(cast(each.average, each.variable.dtype()));
    each.average.assign(cast(own, each.average.dtype()));
  }
}

void EMA::tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
  see(path.field("updates"), updates);
  const detail::VariablePath averages = path.field("average");
  for (const State::Average& each : state_->averages) see(averages.field(each.name), each.average);
}

void EMA::tidemark_walk(const detail::VariablePath&, const detail::ReplaceVariable&) {
  throw UserError("clone: an EMA holds averages of the Variables it was made for", Source::none(),
                  "make another EMA for the copy of the model");
}

// ---- rates --------------------------------------------------------------------------------------

namespace {

Variable counter(const Tensor& first, const char* name, Source at) {
  return Variable(first, {.name = name, .trainable = false}, at);
}

void check(const PlateauOptions& options, Source at) {
  if (!(options.factor > 0 && options.factor < 1))
    throw UserError(cat("ReduceLROnPlateau: .factor is ", options.factor), at,
                    "give a number between 0 and 1");
  if (options.patience < 0 || options.cooldown < 0)
    throw UserError(
        cat("ReduceLROnPlateau: .patience is ", options.patience, ", .cooldown ", options.cooldown),
        at, "give 0 or more epochs");
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(const Optimizer& optimizer, PlateauOptions options, Source at)
    : best(counter(constant(std::numeric_limits<double>::infinity(), DType::f64), "best", at)),
      waited(counter(constant(0, DType::i64), "waited", at)),
      cool_down(counter(constant(0, DType::i64), "cool_down", at)),
      rate_(optimizer.learning_rate),
      options_(options) {
  check(options, at);
}

bool ReduceLROnPlateau::update(double loss, Source at) const {
  const SourceScope scope(at);
  const double least = best.value().item<double>();
  const bool is_better = loss < least * (1 - options_.least_gain) || least == INFINITY;
  int64_t bad = is_better ? 0 : waited.value().item<int64_t>() + 1;
  int64_t free = cool_down.value().item<int64_t>();
  if (is_better) best.assign(constant(loss, DType::f64));
  if (free > 0) {
    --free;
    bad = 0;
  }
  const double rate = rate_.value().item<double>();
  const double next = std::max(rate * options_.factor, options_.least_rate);
  const bool is_lowered = bad > options_.patience && next < rate;
  if (bad > options_.patience) {
    rate_.assign(constant(next, DType::f32));
    free = options_.cooldown;
    bad = 0;
  }
  waited.assign(constant(bad, DType::i64));
  cool_down.assign(constant(free, DType::i64));
  return is_lowered;
}

}  // namespace tidemark::nn
