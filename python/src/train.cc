// td.nn: schedules, optimizers and fit.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "budget.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "gradient.h"
#include "holds.h"
#include "nn.h"
#include "path.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {
namespace {

using nb::arg;

// ---- schedules ----------------------------------------------------------------------------------

// nn.Schedule, and the Python function that its rates come from, if there is one.
struct ScheduleObject {
  nn::Schedule schedule;
  Held function;
};

int traverse_schedule(PyObject* self, visitproc visit, void* arg) {
  if (const int stopped = traverse_instance(self, visit, arg)) return stopped;
  if (!nb::inst_ready(self)) return 0;
  // One copy is in the schedule. Who takes the schedule into a rate of his own refers to the
  // object.
  const Held& function = nb::inst_ptr<ScheduleObject>(self)->function;
  if (function.copies() == 2) Py_VISIT(function.get().ptr());
  return 0;
}
PyType_Slot schedule_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_schedule)},
                                {0, nullptr}};

nn::Schedule schedule_of(const Held& function) {
  return nn::Schedule([function](const Tensor& step) {
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    return tensor_from(function.get()(nb::steal(wrap(Tensor(step)))), calling_line());
  });
}

// A number, one of nn.schedules, or a function of the number of the update, held as `hold` does.
ScheduleObject schedule_from(nb::handle object, Held (*hold)(nb::handle)) {
  if (nb::isinstance<ScheduleObject>(object)) {
    const ScheduleObject& known = nb::cast<const ScheduleObject&>(object);
    if (!known.function) return known;
  } else if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) {
    return {nb::cast<double>(object), {}};
  } else if (!PyCallable_Check(object.ptr())) {
    throw UserTypeError(cat("learning_rate: a ", Py_TYPE(object.ptr())->tp_name, " is no rate"),
                        calling_line(),
                        "give a number, one of td.nn.schedules, or a function of the step");
  }
  Held function = hold(object);
  nn::Schedule schedule = schedule_of(function);
  return {std::move(schedule), std::move(function)};
}
nn::Schedule rate_from(nb::handle object) { return schedule_from(object, recorded).schedule; }
ScheduleObject schedule_from(nb::handle object) {
  return schedule_from(object, [](nb::handle function) { return Held(function); });
}

void bind_schedules(nb::module_& nn) {
  nb::module_ schedules =
      nn.def_submodule("schedules", "Learning rates that change with the number of updates.");
  nb::class_<ScheduleObject>(nn, "Schedule", nb::type_slots(schedule_slots), nb::dynamic_attr(),
                             "The rate of each update, counted from 0.")
      .def(
          "__init__",
          [](ScheduleObject* self, nb::handle rate) {
            new (self) ScheduleObject(schedule_from(rate));
          },
          arg("rate"))
      .def(
          "__call__",
          [](const ScheduleObject& self, nb::handle step) {
            const Source at = calling_line();
            const SourceScope scope(at);
            return self.schedule(cast(tensor_from(step, at), DType::f64, at));
          },
          arg("step"));
  using Rates = std::vector<std::pair<int64_t, double>>;
  schedules
      .def(
          "constant", [](double rate) { return ScheduleObject{nn::schedules::constant(rate), {}}; },
          arg("rate"))
      .def(
          "piecewise",
          [](Rates rates) {
            return ScheduleObject{nn::schedules::piecewise(std::move(rates), calling_line()), {}};
          },
          arg("rates"), "A rate from each of these steps on: [(0, 0.1), (1000, 0.01)].")
      .def(
          "exponential",
          [](double rate, double factor, double steps, bool staircase) {
            return ScheduleObject{
                nn::schedules::exponential(rate, {factor, steps, staircase}, calling_line()), {}};
          },
          arg("rate"), nb::kw_only(), arg("factor") = 0.96, arg("steps") = 1000.0,
          arg("staircase") = false, "The rate is multiplied by `factor` over so many updates.")
      .def(
          "cosine",
          [](double rate, double steps, double least) {
            return ScheduleObject{nn::schedules::cosine(rate, {steps, least}, calling_line()), {}};
          },
          arg("rate"), nb::kw_only(), arg("steps") = 1000.0, arg("least") = 0.0,
          "Half a cosine wave from the rate to `least`, which then stays.")
      .def(
          "warm_up",
          [](int64_t steps, nb::handle then) {
            ScheduleObject made = schedule_from(then);
            made.schedule = nn::schedules::warm_up(steps, std::move(made.schedule), calling_line());
            return made;
          },
          arg("steps"), arg("then"),
          "A linear warm-up to the first rate of `then`, then `then` from its start.");
}

// ---- optimizers ---------------------------------------------------------------------------------

std::function<bool(const Variable&)> decays_from(nb::handle object) {
  if (object.is_none()) return {};
  return [held = recorded(object)](const Variable& variable) {
    const nb::gil_scoped_acquire gil;
    return boolean_from(held.get()(wrap(variable)), "the result of decays", calling_line());
  };
}

nb::object list_of(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(nb::steal(wrap(Tensor(tensor))));
  return list;
}
std::vector<Tensor> tensors_of(nb::handle list) {
  std::vector<Tensor> tensors;
  for (const nb::handle each : list) tensors.push_back(tensor_from(each, calling_line()));
  return tensors;
}

// The user's functions see a nn.ParameterStep of Python, whose fields are read back.
nn::UpdateRule rule_from(nb::handle rule) {
  nn::UpdateRule made{.name = nb::cast<std::string>(rule.attr("name"))};
  for (const nb::handle slot : rule.attr("slots"))
    made.slots.push_back(nb::cast<std::string>(slot));
  const nb::object numbers = rule.attr("numbers");
  if (!numbers.is_none()) {
    made.numbers = [held = recorded(numbers)](const Tensor& rate, const Tensor& count) {
      const nb::gil_scoped_acquire gil;
      const UserCode user;
      return tensors_of(held.get()(nb::steal(wrap(Tensor(rate))), nb::steal(wrap(Tensor(count)))));
    };
  }
  made.apply = [held = recorded(rule.attr("apply"))](nn::ParameterStep& step,
                                                     const std::vector<Tensor>& numbers) {
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    const nb::object seen = nb::module_::import_("tidemark.nn")
                                .attr("ParameterStep")(nb::steal(wrap(Tensor(step.parameter))),
                                                       nb::steal(wrap(Tensor(step.gradient))),
                                                       list_of(step.slots), step.decays);
    held.get()(seen, list_of(numbers));
    step.parameter = tensor_from(seen.attr("parameter"), calling_line());
    step.slots = tensors_of(seen.attr("slots"));
  };
  return made;
}

void bind_optimizer(nb::module_& nn) {
  using nn::Optimizer;
  nb::class_<Optimizer> optimizer(
      nn, "Optimizer",
      "Updates Variables by their gradients: nn.SGD, nn.Adam, nn.AdamW, or your own "
      "nn.UpdateRule. A step of all parameters is in place.",
      nb::dynamic_attr(), nb::is_weak_referenceable());
  make_part<Optimizer>(optimizer);
  optimizer
      .def(
          "__init__",
          [](Optimizer* self, nb::handle rule, nb::handle rate, std::optional<double> clip_norm,
             std::optional<double> clip_global_norm, int64_t accumulate, nb::handle decays) {
            new (self) Optimizer(rule_from(rule),
                                 {.learning_rate = rate_from(rate),
                                  .clip_norm = clip_norm,
                                  .clip_global_norm = clip_global_norm,
                                  .accumulate = accumulate,
                                  .decays = decays_from(decays)},
                                 calling_line());
          },
          arg("rule"), nb::kw_only(), arg("learning_rate") = 1e-3, arg("clip_norm") = nb::none(),
          arg("clip_global_norm") = nb::none(), arg("accumulate") = 1, arg("decays") = nb::none())
      .def(
          "minimize",
          [](const Optimizer& self, nb::handle tape, const Tensor& loss, nb::handle model) {
            const Source at = calling_line();
            const NamedVariables variables = named_variables_of(model);
            GradientTape& recorded = tape_from(tape, at);
            const nb::gil_scoped_release released;
            self.minimize(recorded, loss, variables, at);
          },
          arg("tape"), arg("loss"), arg("model"),
          "Computes the gradient of the loss by the model's trainable Variables and applies it.")
      .def(
          "apply_gradients",
          [](const Optimizer& self, nb::handle gradients, const std::vector<Variable>& variables) {
            const Source at = calling_line();
            std::vector<Gradient> list;
            for (const nb::handle each : gradients) list.push_back(gradient_from(each, at));
            const nb::gil_scoped_release released;
            self.apply_gradients(list, variables, at);
          },
          arg("gradients"), arg("variables"),
          "One update. A gradient that is None leaves its Variable unchanged.")
      .def(
          "build",
          [](const Optimizer& self, nb::handle model) {
            self.build(io::detail::NamedModel{named_variables_of(model)});
          },
          arg("model"), "Declares the state for a model's trainable Variables that have a shape.")
      .def(
          "scale_loss",
          [](const Optimizer& self, const Tensor& loss) {
            return self.scale_loss(loss, calling_line());
          },
          arg("loss"), "The loss times the loss scale, for gradients that are applied by hand.")
      .def_prop_ro(
          "loss_scale",
          [](const Optimizer& self) {
            const std::optional<Variable> scale = self.loss_scale();
            return scale ? wrap(*scale) : nb::none();
          },
          "A Variable; None without a LossScaleOptimizer.")
      .def_prop_ro(
          "learning_rate", [](const Optimizer& self) { return wrap(self.learning_rate); },
          "A Variable; with a schedule it is the rate of the last update.")
      .def_prop_ro(
          "iterations", [](const Optimizer& self) { return wrap(self.iterations); },
          "How many updates were made.")
      .def("_trained", [](const Optimizer& self) {
        nb::list list;
        for (const auto& [name, variable] : self.trained())
          list.append(nb::make_tuple(name, wrap(variable)));
        return list;
      });
}

// Options that all optimizers have, as keyword arguments.
struct Common {
  nn::Schedule rate;
  std::optional<double> clip_norm, clip_global_norm;
  int64_t accumulate;
  std::function<bool(const Variable&)> decays;

  template <class Options>
  Options in(Options options) const {
    options.learning_rate = rate;
    options.clip_norm = clip_norm;
    options.clip_global_norm = clip_global_norm;
    options.accumulate = accumulate;
    options.decays = decays;
    return options;
  }
};

// One class of optimizers: `make(values...)` makes its options of its own arguments.
template <class Kind, class... Values, class Make, class... Own>
void bind_kind(nb::module_& nn, const char* name, const char* doc, double rate, Make make,
               Own... own) {
  nb::class_<Kind, nn::Optimizer>(nn, name, doc)
      .def(
          "__init__",
          [make](Kind* self, nb::handle rate, Values... values, std::optional<double> clip_norm,
                 std::optional<double> clip_global_norm, int64_t accumulate, nb::handle decays) {
            const Common common{rate_from(rate), clip_norm, clip_global_norm, accumulate,
                                decays_from(decays)};
            new (self) Kind(common.in(make(values...)), calling_line());
          },
          arg("learning_rate") = rate, nb::kw_only(), own..., arg("clip_norm") = nb::none(),
          arg("clip_global_norm") = nb::none(), arg("accumulate") = 1, arg("decays") = nb::none());
}

void bind_adam(nb::module_& nn) {
  nb::class_<nn::Adam, nn::Optimizer>(nn, "Adam",
                                      "Steps by running means of the gradient and of its square.")
      .def(
          "__init__",
          [](nn::Adam* self, nb::handle rate, double beta1, double beta2, double epsilon,
             std::optional<double> clip_norm, std::optional<double> clip_global_norm,
             int64_t accumulate) {
            new (self) nn::Adam(
                {rate_from(rate), beta1, beta2, epsilon, clip_norm, clip_global_norm, accumulate},
                calling_line());
          },
          arg("learning_rate") = 1e-3, nb::kw_only(), arg("beta1") = 0.9, arg("beta2") = 0.999,
          arg("epsilon") = 1e-8, arg("clip_norm") = nb::none(),
          arg("clip_global_norm") = nb::none(), arg("accumulate") = 1);
  // Kinds with the same four numbers of their own.
  const auto like_adam = [&]<class Kind, class Options>(const char* name, const char* doc,
                                                        const Options& usual) {
    bind_kind<Kind, double, double, double, double>(
        nn, name, doc, usual.learning_rate.constant(),
        [](double beta1, double beta2, double epsilon, double decay) {
          return Options{.beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = decay};
        },
        arg("beta1") = usual.beta1, arg("beta2") = usual.beta2, arg("epsilon") = usual.epsilon,
        arg("weight_decay") = usual.weight_decay);
  };
  like_adam.operator()<nn::AdamW>("AdamW", "Adam with decoupled weight decay.", nn::AdamWOptions{});
  like_adam.operator()<nn::Adamax>(
      "Adamax", "Adam with the largest recent gradient in place of the root mean square.",
      nn::AdamaxOptions{});
  like_adam.operator()<nn::LAMB>(
      "LAMB", "Adam whose step is as long as the parameter, for very large batches.",
      nn::LAMBOptions{});
  bind_kind<nn::NAdam, double, double, double, double, double>(
      nn, "NAdam", "Adam with Nesterov momentum, which warms up.", 2e-3,
      [](double beta1, double beta2, double epsilon, double momentum_decay, double decay) {
        return nn::NAdamOptions{.beta1 = beta1,
                                .beta2 = beta2,
                                .epsilon = epsilon,
                                .momentum_decay = momentum_decay,
                                .weight_decay = decay};
      },
      arg("beta1") = 0.9, arg("beta2") = 0.999, arg("epsilon") = 1e-8, arg("momentum_decay") = 4e-3,
      arg("weight_decay") = 0.0);
  bind_kind<nn::Lion, double, double, double>(
      nn, "Lion", "The sign of a momentum: one slot for each parameter.", 1e-4,
      [](double beta1, double beta2, double decay) {
        return nn::LionOptions{.beta1 = beta1, .beta2 = beta2, .weight_decay = decay};
      },
      arg("beta1") = 0.9, arg("beta2") = 0.99, arg("weight_decay") = 0.0);
}

void bind_optimizers(nb::module_& nn) {
  bind_optimizer(nn);
  bind_adam(nn);
  bind_kind<nn::SGD, double, bool, double>(
      nn, "SGD", "Gradient descent, with momentum.", 0.01,
      [](double momentum, bool nesterov, double decay) {
        return nn::SGDOptions{.momentum = momentum, .nesterov = nesterov, .weight_decay = decay};
      },
      arg("momentum") = 0.0, arg("nesterov") = false, arg("weight_decay") = 0.0);
  bind_kind<nn::RMSprop, double, double, double, bool, double>(
      nn, "RMSprop", "Divides by the root of a running mean of squared gradients.", 0.01,
      [](double alpha, double epsilon, double momentum, bool centered, double decay) {
        return nn::RMSpropOptions{.alpha = alpha,
                                  .epsilon = epsilon,
                                  .momentum = momentum,
                                  .centered = centered,
                                  .weight_decay = decay};
      },
      arg("alpha") = 0.99, arg("epsilon") = 1e-8, arg("momentum") = 0.0, arg("centered") = false,
      arg("weight_decay") = 0.0);
  bind_kind<nn::Adagrad, double, double, double>(
      nn, "Adagrad", "Divides by the root of the sum of all squared gradients.", 0.01,
      [](double initial, double epsilon, double decay) {
        return nn::AdagradOptions{.initial = initial, .epsilon = epsilon, .weight_decay = decay};
      },
      arg("initial") = 0.0, arg("epsilon") = 1e-10, arg("weight_decay") = 0.0);
  bind_kind<nn::Adadelta, double, double, double>(
      nn, "Adadelta", "As RMSprop, in the units of the parameter.", 1.0,
      [](double rho, double epsilon, double decay) {
        return nn::AdadeltaOptions{.rho = rho, .epsilon = epsilon, .weight_decay = decay};
      },
      arg("rho") = 0.9, arg("epsilon") = 1e-6, arg("weight_decay") = 0.0);
}

void bind_loss_scale(nb::module_& nn) {
  using nn::LossScaleOptimizer;
  const nn::LossScaleOptions usual;
  nb::class_<LossScaleOptimizer, nn::Optimizer>(
      nn, "LossScaleOptimizer",
      "An optimizer for f16: gradients are those of the loss times a scale; an update whose "
      "gradients are not finite is skipped and the scale lowered, inside the compiled step.")
      .def(
          "__init__",
          [](LossScaleOptimizer* self, const nn::Optimizer& inner, double initial,
             int64_t growth_steps, double factor) {
            new (self) LossScaleOptimizer(
                inner, {.initial = initial, .growth_steps = growth_steps, .factor = factor},
                calling_line());
          },
          arg("inner"), nb::kw_only(), arg("initial") = usual.initial,
          arg("growth_steps") = usual.growth_steps, arg("factor") = usual.factor);
}

void bind_lbfgs(nb::module_& nn) {
  using nn::LBFGS;
  using nn::LBFGSResult;
  const nn::LBFGSOptions usual;
  nb::class_<LBFGSResult>(nn, "LBFGSResult", "How a minimisation ended.")
      .def_ro("loss", &LBFGSResult::loss)
      .def_ro("gradient", &LBFGSResult::gradient, "The largest element of the gradient.")
      .def_ro("iterations", &LBFGSResult::iterations)
      .def_ro("evaluations", &LBFGSResult::evaluations)
      .def_ro("converged", &LBFGSResult::converged)
      .def_ro("stopped", &LBFGSResult::stopped, "Why it ended.")
      .def("__repr__", [](const LBFGSResult& result) {
        return cat("LBFGSResult(loss=", result.loss, ", iterations=", result.iterations,
                   ", stopped=\"", result.stopped, "\")");
      });
  nb::class_<LBFGS>(nn, "LBFGS",
                    "Minimises a smooth loss by estimates of its curvature, with a line search.")
      .def(
          "__init__",
          [](LBFGS* self, int64_t memory, int64_t max_iterations, int64_t max_evaluations,
             double learning_rate, double tolerance_gradient, double tolerance_change) {
            new (self) LBFGS({memory, max_iterations, max_evaluations, learning_rate,
                              tolerance_gradient, tolerance_change},
                             calling_line());
          },
          nb::kw_only(), arg("memory") = usual.memory, arg("max_iterations") = usual.max_iterations,
          arg("max_evaluations") = usual.max_evaluations,
          arg("learning_rate") = usual.learning_rate,
          arg("tolerance_gradient") = usual.tolerance_gradient,
          arg("tolerance_change") = usual.tolerance_change)
      .def(
          "minimize",
          [](const LBFGS& self, nb::handle loss, nb::handle model) {
            const Source at = calling_line();
            const NamedVariables named = named_variables_of(model);
            const auto call = [held = Held(loss)] {
              const nb::gil_scoped_acquire gil;
              return tensor_from(held.get()(), calling_line());
            };
            const nb::gil_scoped_release released;
            return self.minimize_named(call, named, at);
          },
          arg("loss"), arg("model"),
          "Changes the model's trainable Variables until loss() no longer decreases.");
}

void bind_averages(nb::module_& nn) {
  using nn::EMA;
  nb::class_<EMA> average(nn, "EMA", "A running average of a built model's weights.",
                          nb::dynamic_attr(), nb::is_weak_referenceable());
  make_part<EMA>(average);
  average
      .def(
          "__init__",
          [](EMA* self, nb::handle model, double decay, bool warm_up) {
            new (self) EMA(named_variables_of(model), {decay, warm_up}, calling_line());
          },
          arg("model"), nb::kw_only(), arg("decay") = 0.999, arg("warm_up") = false)
      .def(
          "update", [](const EMA& self) { self.update(calling_line()); },
          "average = decay * average + (1 - decay) * value, in place.")
      .def(
          "swap", [](const EMA& self) { self.swap(calling_line()); },
          "Exchanges the model's values and the averages.")
      .def_prop_ro("updates", [](const EMA& self) { return wrap(self.updates); });
  using nn::ReduceLROnPlateau;
  nb::class_<ReduceLROnPlateau> plateau(nn, "ReduceLROnPlateau",
                                        "Lowers the learning rate when the loss stands still.",
                                        nb::dynamic_attr(), nb::is_weak_referenceable());
  make_part<ReduceLROnPlateau>(plateau);
  plateau
      .def(
          "__init__",
          [](ReduceLROnPlateau* self, const nn::Optimizer& optimizer, double factor,
             int64_t patience, double least_gain, int64_t cooldown, double least_rate) {
            new (self) ReduceLROnPlateau(
                optimizer, {factor, patience, least_gain, cooldown, least_rate}, calling_line());
          },
          arg("optimizer"), nb::kw_only(), arg("factor") = 0.1, arg("patience") = 10,
          arg("least_gain") = 1e-4, arg("cooldown") = 0, arg("least_rate") = 0.0)
      .def(
          "update",
          [](const ReduceLROnPlateau& self, double loss) {
            return self.update(loss, calling_line());
          },
          arg("loss"), "Takes the loss of an epoch; whether the rate was lowered.");
}

// ---- fit ----------------------------------------------------------------------------------------

// A metric of Python that runs over batches, such as nn.metrics.F1.
struct PythonMetric {
  Held metric;
  void update(const Tensor& y_true, const Tensor& y_pred, Source) const {
    const nb::gil_scoped_acquire gil;
    metric.get().attr("update")(nb::steal(wrap(Tensor(y_true))), nb::steal(wrap(Tensor(y_pred))));
  }
  Tensor result(Source) const {
    const nb::gil_scoped_acquire gil;
    return tensor_from(metric.get().attr("result")(), calling_line());
  }
  void reset(Source) const {
    const nb::gil_scoped_acquire gil;
    metric.get().attr("reset")();
  }
};

// A function of Python, which takes `weights` if batches have them.
struct PythonMeasure {
  Held function;
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred) const {
    const nb::gil_scoped_acquire gil;
    return tensor_from(
        function.get()(nb::steal(wrap(Tensor(y_true))), nb::steal(wrap(Tensor(y_pred)))),
        calling_line());
  }
  Tensor weighted(const Tensor& y_true, const Tensor& y_pred, const Tensor& weights, Source) const {
    const nb::gil_scoped_acquire gil;
    return tensor_from(
        function.get()(nb::steal(wrap(Tensor(y_true))), nb::steal(wrap(Tensor(y_pred))),
                       nb::arg("weights") = nb::steal(wrap(Tensor(weights)))),
        calling_line());
  }
};

nn::Measure measure_from(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::hasattr(object, "update") && nb::hasattr(object, "result") &&
      nb::hasattr(object, "reset"))
    return PythonMetric{Held(object)};
  return PythonMeasure{Held(object)};
}

// Several tensors in the place of one: a tuple, a list or a dict of them.
struct TensorForm {
  bool is_one = true;
  std::vector<std::string> keys;  // Of a dict.

  static TensorForm of(nb::handle object) {
    TensorForm form;
    form.is_one = !nb::isinstance<nb::dict>(object) && !nb::isinstance<nb::tuple>(object) &&
                  !nb::isinstance<nb::list>(object);
    if (nb::isinstance<nb::dict>(object))
      for (const auto& [key, value] : nb::borrow<nb::dict>(object))
        form.keys.push_back(nb::cast<std::string>(key));
    return form;
  }
};

// In the order of `names`, if they are given and the tensors have names.
std::vector<Tensor> tensor_list(nb::handle object, const std::vector<std::string>& names,
                                const char* what, Source at) {
  const TensorForm form = TensorForm::of(object);
  if (form.is_one) return {tensor_from(object, at)};
  std::vector<Tensor> list;
  if (form.keys.empty()) {
    for (const nb::handle each : object) list.push_back(tensor_from(each, at));
    return list;
  }
  for (const std::string& name : names.empty() ? form.keys : names) {
    const nb::object found = nb::borrow<nb::dict>(object).attr("get")(name);
    if (found.is_none())
      throw UserError(cat("fit: there is no ", what, " \"", name, "\""), at,
                      "targets and outputs that are dicts have the names of the losses");
    list.push_back(tensor_from(found, at));
  }
  return list;
}

// A list of numbers in brackets is one tensor where the whole batch is a pair of them.
bool is_structure(nb::handle object) {
  if (nb::isinstance<nb::dict>(object)) return true;
  if (!nb::isinstance<nb::tuple>(object) && !nb::isinstance<nb::list>(object)) return false;
  for (const nb::handle each : object)
    if (!nb::isinstance<Tensor>(each) && !nb::hasattr(each, "shape")) return false;
  return nb::len(object) > 0;
}

// What fit knows about the tensors of a batch, beside the tensors.
struct BatchForm {
  TensorForm x;
  std::vector<std::string> outputs;  // The names of the losses, if they have names.
};

// An iterable of pairs of Python, or of triples with weights, walked once an epoch.
class PairsOfPython {
 public:
  PairsOfPython(nb::handle iterable, std::shared_ptr<BatchForm> form, Source at)
      : iterable_(iterable), form_(std::move(form)), at_(at) {}

  using Parts = std::tuple<std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>>;
  class Iterator {
   public:
    explicit Iterator(const PairsOfPython& pairs) : form_(pairs.form_), at_(pairs.at_) {
      const nb::gil_scoped_acquire gil;
      const nb::object made = nb::steal(PyObject_GetIter(pairs.iterable_.get().ptr()));
      if (!made.is_valid()) nb::raise_python_error();
      iterator_ = Held(made);
      pull();
    }
    const Parts& operator*() const { return *parts_; }
    Iterator& operator++() {
      parts_.reset();
      const nb::gil_scoped_acquire gil;
      pull();
      return *this;
    }
    bool operator!=(std::default_sentinel_t) const { return parts_.has_value(); }

   private:
    void pull() {
      const UserCode user;
      const nb::object next = nb::steal(PyIter_Next(iterator_.get().ptr()));
      if (!next.is_valid()) {
        if (PyErr_Occurred() != nullptr) nb::raise_python_error();
        return;
      }
      const bool is_sequence = PySequence_Check(next.ptr()) && !nb::isinstance<Tensor>(next);
      const size_t count = is_sequence ? nb::len(next) : 0;
      if (count != 2 && count != 3)
        throw UserTypeError(
            cat("fit: a batch is a ", Py_TYPE(next.ptr())->tp_name, ", not a pair (x, y)"), at_,
            "give an iterable of pairs of tensors or arrays, a td.data.Dataset, or arrays (x, y)");
      const nb::object x = next[0], y = next[1];
      form_->x = is_structure(x) ? TensorForm::of(x) : TensorForm();
      std::vector<Tensor> weights;
      if (count == 3) weights.push_back(tensor_from(next[2], at_));
      parts_.emplace(listed(x, {}, "input"), listed(y, form_->outputs, "target"),
                     std::move(weights));
    }
    std::vector<Tensor> listed(nb::handle part, const std::vector<std::string>& names,
                               const char* what) const {
      if (!is_structure(part)) return {tensor_from(part, at_)};
      return tensor_list(part, names, what, at_);
    }

    std::shared_ptr<BatchForm> form_;
    Source at_;
    Held iterator_;
    std::optional<Parts> parts_;
  };
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }
  std::optional<int64_t> count() const {
    const nb::gil_scoped_acquire gil;
    const Py_ssize_t size = PyObject_LengthHint(iterable_.get().ptr(), 0);
    if (size <= 0) PyErr_Clear();
    return size > 0 ? std::optional<int64_t>(size) : std::nullopt;
  }

 private:
  Held iterable_;
  std::shared_ptr<BatchForm> form_;
  Source at_;
};

nn::Batches batches_from(nb::handle object, const std::shared_ptr<BatchForm>& form, Source at) {
  if (object.is_none()) return {};
  return PairsOfPython(object, form, at);
}

// A model of one tensor, of several (model(a, b)), or of named ones (model(a=..., b=...)).
nn::AnyModel any_model(nb::handle model, const std::shared_ptr<BatchForm>& form) {
  const PythonLayer layer(model);
  const auto call = [layer, form](const std::vector<Tensor>& x) -> std::vector<Tensor> {
    if (layer.is_native() && x.size() == 1) return {layer(x[0], Source::none())};
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    nb::list args;
    nb::dict named;
    for (size_t i = 0; i < x.size(); ++i) {
      const nb::object given = nb::steal(wrap(Tensor(x[i])));
      if (form->x.keys.empty())
        args.append(given);
      else
        named[form->x.keys[i].c_str()] = given;
    }
    const nb::object result = layer.callable().get()(*args, **named);
    return tensor_list(result, form->outputs, "output", calling_line());
  };
  return {.call = call, .variables = named_variables_of(model)};
}

nn::Progress progress_from(const std::string& name, Source at) {
  if (name == "automatic") return nn::Progress::automatic;
  if (name == "bar") return nn::Progress::bar;
  if (name == "lines") return nn::Progress::lines;
  if (name == "none") return nn::Progress::none;
  throw UserError(cat("fit: progress is \"", name, "\""), at,
                  "give \"automatic\", \"bar\", \"lines\" or \"none\"");
}

using NamedMeasures = std::vector<std::pair<std::string, nn::Measure>>;

// {"accuracy": f} of the first output; {"output": {"accuracy": f}} by the names of outputs.
NamedMeasures metrics_from(nb::handle metrics, const std::vector<std::string>& outputs, Source at) {
  NamedMeasures list;
  for (const auto& [key, metric] : nb::borrow<nb::dict>(metrics)) {
    const auto name = nb::cast<std::string>(key);
    if (!nb::isinstance<nb::dict>(metric)) {
      list.emplace_back(name, measure_from(metric));
      continue;
    }
    const auto output = std::find(outputs.begin(), outputs.end(), name);
    if (output == outputs.end())
      throw UserError(cat("fit: there are metrics of \"", name, "\", and no loss of that name"), at,
                      "losses and metrics of several outputs are dicts by the names of outputs");
    for (const auto& [inner, each] : nb::borrow<nb::dict>(metric))
      list.emplace_back(cat(name, "_", nb::cast<std::string>(inner)),
                        measure_from(each).of_output(
                            static_cast<size_t>(std::distance(outputs.begin(), output))));
  }
  return list;
}

// Losses of several outputs: a list, or a dict by their names; weights likewise.
std::vector<nn::OutputLoss> losses_from(nb::handle losses, nb::handle weights) {
  std::vector<nn::OutputLoss> list;
  const bool is_dict = nb::isinstance<nb::dict>(losses);
  const auto add = [&](std::string name, nb::handle loss, nb::handle weight) {
    list.push_back(
        {std::move(name), measure_from(loss), weight.is_none() ? 1.0 : nb::cast<double>(weight)});
  };
  if (is_dict) {
    for (const auto& [name, loss] : nb::borrow<nb::dict>(losses))
      add(nb::cast<std::string>(name), loss,
          weights.is_none() ? nb::none() : nb::object(weights.attr("get")(name)));
    return list;
  }
  size_t number = 0;
  for (const nb::handle loss : losses) {
    add(cat("output_", number), loss, weights.is_none() ? nb::none() : nb::object(weights[number]));
    ++number;
  }
  return list;
}

bool is_several(nb::handle loss) {
  return nb::isinstance<nb::dict>(loss) || nb::isinstance<nb::list>(loss) ||
         nb::isinstance<nb::tuple>(loss);
}

void add_measures(nn::FitOptions& options, BatchForm& form, nb::handle loss, nb::handle weights,
                  nb::handle metrics, Source at) {
  if (is_several(loss)) {
    options.losses = losses_from(loss, weights);
    if (nb::isinstance<nb::dict>(loss))
      for (const nn::OutputLoss& each : options.losses) form.outputs.push_back(each.name);
  } else {
    options.loss = measure_from(loss);
  }
  options.metrics = metrics_from(metrics, form.outputs, at);
}

std::optional<DType> autocast_from(nb::handle dtype, Source at) {
  if (dtype.is_none()) return {};
  return dtype_argument(dtype, at);
}

// The functions of a callback that an object of Python has.
template <class... A>
std::function<void(A...)> method_of(nb::handle object, const char* name) {
  if (!nb::hasattr(object, name)) return {};
  return [method = Held(object.attr(name))](A... arguments) {
    const nb::gil_scoped_acquire gil;
    const auto call = [&](auto& given) {
      using T = std::remove_cvref_t<decltype(given)>;
      const nb::object seen = nb::cast(T(given));
      method.get()(seen);
      if constexpr (requires { given.stop = true; } &&
                    !std::is_const_v<std::remove_reference_t<decltype(given)>>)
        given.stop = nb::cast<const T&>(seen).stop;
    };
    if constexpr (sizeof...(A) == 0)
      method.get()();
    else
      (call(arguments), ...);
  };
}

nn::Callback callback_from(nb::handle object, Source at) {
  nn::Callback made{.on_train_begin = method_of<>(object, "on_train_begin"),
                    .on_epoch_begin = method_of<int64_t>(object, "on_epoch_begin"),
                    .on_batch = method_of<nn::Batch&>(object, "on_batch"),
                    .on_epoch = method_of<nn::Epoch&>(object, "on_epoch"),
                    .on_train_end = method_of<const nn::History&>(object, "on_train_end")};
  if (!made.on_train_begin && !made.on_epoch_begin && !made.on_batch && !made.on_epoch &&
      !made.on_train_end)
    throw UserTypeError(
        cat("fit: a callback is a ", Py_TYPE(object.ptr())->tp_name, " without any of its methods"),
        at, "name them on_train_begin, on_epoch_begin, on_batch, on_epoch or on_train_end");
  return made;
}

nb::dict numbers_of(const nn::NamedNumbers& named) {
  nb::dict numbers;
  for (const auto& [name, number] : named) numbers[name.c_str()] = number;
  return numbers;
}

nn::History fit(nb::handle model, nb::handle batches, nb::handle loss, nb::handle loss_weights,
                const nn::Optimizer& optimizer, int64_t epochs, int64_t initial_epoch,
                nb::handle budget, nb::handle autocast, nb::handle validation,
                const PathText& checkpoint, nb::handle on_epoch, nb::handle on_batch,
                nb::handle callbacks, const std::optional<nn::EarlyStopping>& early_stopping,
                nb::handle metrics, const std::string& progress) {
  const Source at = calling_line();
  const auto form = std::make_shared<BatchForm>();
  nn::FitOptions options{.optimizer = optimizer,
                         .epochs = epochs,
                         .initial_epoch = initial_epoch,
                         .budget = budget_from(budget, at),
                         .autocast = autocast_from(autocast, at),
                         .validation = batches_from(validation, form, at),
                         .checkpoint = checkpoint.text,
                         .early_stopping = early_stopping,
                         .progress = progress_from(progress, at)};
  add_measures(options, *form, loss, loss_weights, metrics, at);
  if (!on_epoch.is_none() || !on_batch.is_none()) {
    const nb::object both = nb::module_::import_("types").attr("SimpleNamespace")();
    if (!on_epoch.is_none()) both.attr("on_epoch") = on_epoch;
    if (!on_batch.is_none()) both.attr("on_batch") = on_batch;
    options.callbacks.push_back(callback_from(both, at));
  }
  for (const nb::handle each : callbacks) options.callbacks.push_back(callback_from(each, at));
  const nn::AnyModel any = any_model(model, form);
  const nn::Batches walked = batches_from(batches, form, at);
  const nb::gil_scoped_release released;
  return nn::fit_model(any, walked, options, at);
}

nn::Evaluation evaluate(nb::handle model, nb::handle batches, nb::handle loss,
                        nb::handle loss_weights, nb::handle metrics, nb::handle budget,
                        nb::handle autocast) {
  const Source at = calling_line();
  const auto form = std::make_shared<BatchForm>();
  nn::FitOptions options{.budget = budget_from(budget, at),
                         .autocast = autocast_from(autocast, at)};
  add_measures(options, *form, loss, loss_weights, metrics, at);
  const nn::AnyModel any = any_model(model, form);
  const nn::Batches walked = batches_from(batches, form, at);
  const nb::gil_scoped_release released;
  return nn::evaluate_model(any, walked, options, at);
}

void bind_history(nb::module_& nn) {
  using nn::Epoch;
  using nn::History;
  nb::class_<nn::EarlyStopping>(
      nn, "EarlyStopping",
      "Stops training when the loss (of the validation, if there is one) no longer improves.")
      .def(
          "__init__",
          [](nn::EarlyStopping* self, int64_t patience, double least_gain, bool restore_best) {
            new (self) nn::EarlyStopping{patience, least_gain, restore_best};
          },
          nb::kw_only(), arg("patience") = 1, arg("least_gain") = 0.0, arg("restore_best") = true)
      .def_rw("patience", &nn::EarlyStopping::patience)
      .def_rw("least_gain", &nn::EarlyStopping::least_gain)
      .def_rw("restore_best", &nn::EarlyStopping::restore_best);
  nb::class_<Epoch>(nn, "Epoch", "An epoch of fit. A callback sets `stop` to make it the last.")
      .def_ro("number", &Epoch::number)
      .def_ro("loss", &Epoch::loss)
      .def_prop_ro("metrics", [](const Epoch& epoch) { return numbers_of(epoch.metrics); })
      .def_ro("validation_loss", &Epoch::validation_loss)
      .def_prop_ro("validation_metrics",
                   [](const Epoch& epoch) { return numbers_of(epoch.validation_metrics); })
      .def_ro("learning_rate", &Epoch::learning_rate)
      .def_ro("batches", &Epoch::batches)
      .def_ro("examples", &Epoch::examples)
      .def_ro("seconds", &Epoch::seconds)
      .def_ro("peak", &Epoch::peak)
      .def_rw("stop", &Epoch::stop)
      .def("metric", &Epoch::metric, arg("name"), "A metric by its name, or \"loss\".")
      .def_prop_ro("judged", &Epoch::judged, "The validation loss if there is one, else the loss.")
      .def("__str__", [](const Epoch& epoch) { return cat(epoch); })
      .def("__repr__", [](const Epoch& epoch) { return cat(epoch); });
  nb::class_<nn::Batch>(nn, "Batch", "A batch of fit. A callback sets `stop` to make it the last.")
      .def_ro("epoch", &nn::Batch::epoch)
      .def_ro("number", &nn::Batch::number)
      .def_ro("loss", &nn::Batch::loss, "The mean over the epoch's examples so far.")
      .def_rw("stop", &nn::Batch::stop);
  nb::class_<nn::Evaluation>(nn, "Evaluation", "The loss and the metrics of a model.")
      .def_ro("loss", &nn::Evaluation::loss, "None if there was no loss.")
      .def_prop_ro("metrics", [](const nn::Evaluation& found) { return numbers_of(found.metrics); })
      .def_ro("batches", &nn::Evaluation::batches)
      .def_ro("examples", &nn::Evaluation::examples)
      .def("metric", &nn::Evaluation::metric, arg("name"), "A metric by its name, or \"loss\".")
      .def("__str__", [](const nn::Evaluation& found) { return cat(found); })
      .def("__repr__", [](const nn::Evaluation& found) { return cat(found); });
  nb::class_<History>(nn, "History", "A training run, epoch by epoch.")
      .def_ro("epochs", &History::epochs)
      .def_ro("best", &History::best, "The number of the best epoch, from 1.")
      .def_ro("stopped", &History::stopped, "Why training stopped early; empty if it did not.")
      .def_ro("planned", &History::planned, "The planned peak of a step on the first batch.")
      .def_ro("traces", &History::traces)
      .def("__str__", [](const History& history) { return cat(history); })
      .def("__repr__", [](const History& history) { return cat(history); });
}

}  // namespace

void bind_train(nb::module_& module) {
  nb::module_ nn = nb::borrow<nb::module_>(module.attr("nn"));
  bind_schedules(nn);
  bind_optimizers(nn);
  bind_loss_scale(nn);
  bind_lbfgs(nn);
  bind_averages(nn);
  bind_history(nn);
  nn.def("_fit", fit, arg("model"), arg("batches"), nb::kw_only(), arg("loss").none(),
         arg("loss_weights").none(), arg("optimizer"), arg("epochs"), arg("initial_epoch"),
         arg("budget").none(), arg("autocast").none(), arg("validation").none(), arg("checkpoint"),
         arg("on_epoch").none(), arg("on_batch").none(), arg("callbacks"),
         arg("early_stopping").none(), arg("metrics"), arg("progress"));
  nn.def("_evaluate", evaluate, arg("model"), arg("batches"), nb::kw_only(), arg("loss").none(),
         arg("loss_weights").none(), arg("metrics"), arg("budget").none(), arg("autocast").none());
}

}  // namespace tidemark::python
