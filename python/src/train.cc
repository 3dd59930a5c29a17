// td.nn: losses, metrics, schedules, optimizers and fit.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "budget.h"
#include "convert.h"
#include "data.h"
#include "errors.h"
#include "gradient.h"
#include "nn.h"
#include "path.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {
namespace {

using nb::arg;

// ---- losses and metrics -------------------------------------------------------------------------

// f(y_true, y_pred, at) without the GIL.
template <class F>
Tensor measured(nb::handle y_true, nb::handle y_pred, const F& f) {
  const Source at = calling_line();
  const Value expected(y_true, at), given(y_pred, at);
  const nb::gil_scoped_release released;
  return f(expected.operand(), given.operand(), at);
}

void bind_losses(nb::module_& nn) {
  nb::module_ losses =
      nn.def_submodule("losses", "Functions of (y_true, y_pred) that return the mean.");
  const auto simple = [&](const char* name, const nn::losses::Loss& loss, const char* doc) {
    losses.def(
        name,
        [&loss](nb::handle y_true, nb::handle y_pred) { return measured(y_true, y_pred, loss); },
        arg("y_true"), arg("y_pred"), doc);
  };
  simple("mse", nn::losses::mse, "The mean of squared differences.");
  simple("mae", nn::losses::mae, "The mean of absolute differences.");
  losses.def(
      "huber",
      [](nb::handle y_true, nb::handle y_pred, double delta) {
        return measured(y_true, y_pred, [&](const Operand& a, const Operand& b, Source at) {
          return nn::losses::huber(a, b, delta, at);
        });
      },
      arg("y_true"), arg("y_pred"), nb::kw_only(), arg("delta") = 1.0,
      "Half the squared difference up to delta, linear beyond.");
  const auto entropy = [&](const char* name, const nn::losses::CrossEntropy& loss,
                           const char* doc) {
    losses.def(
        name,
        [&loss](nb::handle y_true, nb::handle y_pred, bool from_logits, double label_smoothing) {
          return measured(y_true, y_pred, [&](const Operand& a, const Operand& b, Source at) {
            return loss(a, b, {.from_logits = from_logits, .label_smoothing = label_smoothing}, at);
          });
        },
        arg("y_true"), arg("y_pred"), nb::kw_only(), arg("from_logits") = true,
        arg("label_smoothing") = 0.0, doc);
  };
  entropy("binary_crossentropy", nn::losses::binary_crossentropy,
          "Each element is a separate binary class: y_true is between 0 and 1.");
  entropy("categorical_crossentropy", nn::losses::categorical_crossentropy,
          "Classes along the last axis: y_true has their probabilities, which add up to 1.");
  entropy("sparse_categorical_crossentropy", nn::losses::sparse_categorical_crossentropy,
          "The same with y_true as class numbers, with one axis less.");
}

void bind_metrics(nb::module_& nn) {
  using Mean = nn::metrics::Mean;
  nb::module_ metrics = nn.def_submodule("metrics", "Functions of (y_true, y_pred).");
  const auto simple = [&](const char* name, const nn::metrics::Metric& metric, const char* doc) {
    metrics.def(
        name,
        [&metric](nb::handle y_true, nb::handle y_pred) {
          return measured(y_true, y_pred, metric);
        },
        arg("y_true"), arg("y_pred"), doc);
  };
  simple("accuracy", nn::metrics::accuracy,
         "The fraction of rows whose largest element of y_pred is the class.");
  simple("sparse_accuracy", nn::metrics::sparse_accuracy, "The same; y_true is class numbers.");
  simple("binary_accuracy", nn::metrics::binary_accuracy,
         "The fraction of correct elements: y_pred is logits, above 0 means 1.");
  metrics.def(
      "top_k",
      [](nb::handle y_true, nb::handle y_pred, int64_t k) {
        return measured(y_true, y_pred, [&](const Operand& a, const Operand& b, Source at) {
          return nn::metrics::top_k(a, b, k, at);
        });
      },
      arg("y_true"), arg("y_pred"), arg("k") = 5,
      "The fraction of rows whose class is among the k largest of y_pred.");
  nb::class_<Mean> mean(metrics, "Mean", "A mean over many calls, eager or in a function.");
  make_part<Mean>(mean);
  mean.def(
          "__init__",
          [](Mean* self, std::string name) { new (self) Mean(std::move(name), calling_line()); },
          arg("name") = "mean")
      .def(
          "update",
          [](const Mean& self, nb::handle x, nb::handle weight) {
            const Source at = calling_line();
            const Value value(x, at);
            if (weight.is_none()) return self.update(value.operand(), at);
            const Value weighted(weight, at);
            self.update(value.operand(), weighted.operand(), at);
          },
          arg("x"), arg("weight") = nb::none(), "Adds all elements of x, or x with this weight.")
      .def(
          "result", [](const Mean& self) { return self.result(calling_line()); },
          "The mean; 0 if nothing was added.")
      .def("reset", [](const Mean& self) { self.reset(calling_line()); })
      .def_prop_ro("total", [](const Mean& self) { return wrap(self.total); })
      .def_prop_ro("count", [](const Mean& self) { return wrap(self.count); });
}

// ---- schedules ----------------------------------------------------------------------------------

// A number, one of nn.schedules, or a function of the number of the update.
nn::Schedule schedule_from(nb::handle object) {
  if (nb::isinstance<nn::Schedule>(object)) return nb::cast<const nn::Schedule&>(object);
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) return nb::cast<double>(object);
  if (!PyCallable_Check(object.ptr()))
    throw UserTypeError(cat("learning_rate: a ", Py_TYPE(object.ptr())->tp_name, " is no rate"),
                        calling_line(),
                        "give a number, one of td.nn.schedules, or a function of the step");
  return nn::Schedule([held = Held(object)](const Tensor& step) {
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    return tensor_from(held.get()(nb::steal(wrap(Tensor(step)))), calling_line());
  });
}

void bind_schedules(nb::module_& nn) {
  nb::module_ schedules =
      nn.def_submodule("schedules", "Learning rates that change with the number of updates.");
  nb::class_<nn::Schedule>(nn, "Schedule", "The rate of each update, counted from 0.")
      .def(
          "__init__",
          [](nn::Schedule* self, nb::handle rate) { new (self) nn::Schedule(schedule_from(rate)); },
          arg("rate"))
      .def(
          "__call__",
          [](const nn::Schedule& schedule, nb::handle step) {
            const Source at = calling_line();
            const SourceScope scope(at);
            return schedule(cast(tensor_from(step, at), DType::f64, at));
          },
          arg("step"));
  using Rates = std::vector<std::pair<int64_t, double>>;
  schedules.def("constant", nn::schedules::constant, arg("rate"))
      .def(
          "piecewise",
          [](Rates rates) { return nn::schedules::piecewise(std::move(rates), calling_line()); },
          arg("rates"), "A rate from each of these steps on: [(0, 0.1), (1000, 0.01)].")
      .def(
          "exponential",
          [](double rate, double factor, double steps, bool staircase) {
            return nn::schedules::exponential(rate, {factor, steps, staircase}, calling_line());
          },
          arg("rate"), nb::kw_only(), arg("factor") = 0.96, arg("steps") = 1000.0,
          arg("staircase") = false, "The rate is multiplied by `factor` over so many updates.")
      .def(
          "cosine",
          [](double rate, double steps, double least) {
            return nn::schedules::cosine(rate, {steps, least}, calling_line());
          },
          arg("rate"), nb::kw_only(), arg("steps") = 1000.0, arg("least") = 0.0,
          "Half a cosine wave from the rate to `least`, which then stays.")
      .def(
          "warm_up",
          [](int64_t steps, nb::handle then) {
            return nn::schedules::warm_up(steps, schedule_from(then), calling_line());
          },
          arg("steps"), arg("then"),
          "A linear warm-up to the first rate of `then`, then `then` from its start.");
}

// ---- optimizers ---------------------------------------------------------------------------------

std::function<bool(const Variable&)> decays_from(nb::handle object) {
  if (object.is_none()) return {};
  return [held = Held(object)](const Variable& variable) {
    const nb::gil_scoped_acquire gil;
    return nb::cast<bool>(held.get()(wrap(variable)));
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
    made.numbers = [held = Held(numbers)](const Tensor& rate, const Tensor& count) {
      const nb::gil_scoped_acquire gil;
      const UserCode user;
      return tensors_of(held.get()(nb::steal(wrap(Tensor(rate))), nb::steal(wrap(Tensor(count)))));
    };
  }
  made.apply = [held = Held(rule.attr("apply"))](nn::ParameterStep& step,
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
      nb::is_weak_referenceable());
  make_part<Optimizer>(optimizer);
  optimizer
      .def(
          "__init__",
          [](Optimizer* self, nb::handle rule, nb::handle rate, std::optional<double> clip_norm,
             std::optional<double> clip_global_norm, int64_t accumulate, nb::handle decays) {
            new (self) Optimizer(rule_from(rule),
                                 {.learning_rate = schedule_from(rate),
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
      .def_prop_ro(
          "learning_rate", [](const Optimizer& self) { return wrap(self.learning_rate); },
          "A Variable; with a schedule it is the rate of the last update.")
      .def_prop_ro(
          "iterations", [](const Optimizer& self) { return wrap(self.iterations); },
          "How many updates were made.");
}

void bind_optimizers(nb::module_& nn) {
  bind_optimizer(nn);
  nb::class_<nn::SGD, nn::Optimizer>(nn, "SGD").def(
      "__init__",
      [](nn::SGD* self, nb::handle rate, double momentum, bool nesterov, double weight_decay,
         std::optional<double> clip_norm, std::optional<double> clip_global_norm,
         int64_t accumulate, nb::handle decays) {
        new (self) nn::SGD({schedule_from(rate), momentum, nesterov, weight_decay, clip_norm,
                            clip_global_norm, accumulate, decays_from(decays)},
                           calling_line());
      },
      arg("learning_rate") = 0.01, nb::kw_only(), arg("momentum") = 0.0, arg("nesterov") = false,
      arg("weight_decay") = 0.0, arg("clip_norm") = nb::none(),
      arg("clip_global_norm") = nb::none(), arg("accumulate") = 1, arg("decays") = nb::none());
  nb::class_<nn::Adam, nn::Optimizer>(nn, "Adam")
      .def(
          "__init__",
          [](nn::Adam* self, nb::handle rate, double beta1, double beta2, double epsilon,
             std::optional<double> clip_norm, std::optional<double> clip_global_norm,
             int64_t accumulate) {
            new (self) nn::Adam({schedule_from(rate), beta1, beta2, epsilon, clip_norm,
                                 clip_global_norm, accumulate},
                                calling_line());
          },
          arg("learning_rate") = 1e-3, nb::kw_only(), arg("beta1") = 0.9, arg("beta2") = 0.999,
          arg("epsilon") = 1e-8, arg("clip_norm") = nb::none(),
          arg("clip_global_norm") = nb::none(), arg("accumulate") = 1);
  nb::class_<nn::AdamW, nn::Optimizer>(nn, "AdamW", "Adam with decoupled weight decay.")
      .def(
          "__init__",
          [](nn::AdamW* self, nb::handle rate, double beta1, double beta2, double epsilon,
             double weight_decay, std::optional<double> clip_norm,
             std::optional<double> clip_global_norm, int64_t accumulate, nb::handle decays) {
            new (self) nn::AdamW({schedule_from(rate), beta1, beta2, epsilon, weight_decay,
                                  clip_norm, clip_global_norm, accumulate, decays_from(decays)},
                                 calling_line());
          },
          arg("learning_rate") = 1e-3, nb::kw_only(), arg("beta1") = 0.9, arg("beta2") = 0.999,
          arg("epsilon") = 1e-8, arg("weight_decay") = 0.01, arg("clip_norm") = nb::none(),
          arg("clip_global_norm") = nb::none(), arg("accumulate") = 1, arg("decays") = nb::none());
}

// ---- fit ----------------------------------------------------------------------------------------

nn::Measure measure_from(nb::handle object) {
  if (object.is_none()) return {};
  return [held = Held(object)](const Tensor& y_true, const Tensor& y_pred) {
    const nb::gil_scoped_acquire gil;
    return tensor_from(held.get()(nb::steal(wrap(Tensor(y_true))), nb::steal(wrap(Tensor(y_pred)))),
                       calling_line());
  };
}

// An iterable of pairs of Python, walked once an epoch.
class PairsOfPython {
 public:
  PairsOfPython(nb::handle iterable, Source at) : iterable_(iterable), at_(at) {}

  class Iterator {
   public:
    explicit Iterator(const PairsOfPython& pairs) : at_(pairs.at_) {
      const nb::gil_scoped_acquire gil;
      const nb::object made = nb::steal(PyObject_GetIter(pairs.iterable_.get().ptr()));
      if (!made.is_valid()) nb::raise_python_error();
      iterator_ = Held(made);
      pull();
    }
    const std::pair<Tensor, Tensor>& operator*() const { return *pair_; }
    Iterator& operator++() {
      pair_.reset();
      const nb::gil_scoped_acquire gil;
      pull();
      return *this;
    }
    bool operator!=(std::default_sentinel_t) const { return pair_.has_value(); }

   private:
    void pull() {
      const UserCode user;
      const nb::object next = nb::steal(PyIter_Next(iterator_.get().ptr()));
      if (!next.is_valid()) {
        if (PyErr_Occurred() != nullptr) nb::raise_python_error();
        return;
      }
      if (!PySequence_Check(next.ptr()) || nb::isinstance<Tensor>(next) || nb::len(next) != 2)
        throw UserTypeError(
            cat("fit: a batch is a ", Py_TYPE(next.ptr())->tp_name, ", not a pair (x, y)"), at_,
            "give an iterable of pairs of tensors or arrays, a td.data.Dataset, or arrays (x, y)");
      pair_.emplace(tensor_from(next[0], at_), tensor_from(next[1], at_));
    }

    Source at_;
    Held iterator_;
    std::optional<std::pair<Tensor, Tensor>> pair_;
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
  Source at_;
};

nn::Batches batches_from(nb::handle object, Source at) {
  if (object.is_none()) return {};
  if (nb::isinstance<Dataset>(object)) return pairs_of(nb::cast<const Dataset&>(object), at);
  return PairsOfPython(object, at);
}

nn::Progress progress_from(const std::string& name, Source at) {
  if (name == "automatic") return nn::Progress::automatic;
  if (name == "bar") return nn::Progress::bar;
  if (name == "lines") return nn::Progress::lines;
  if (name == "none") return nn::Progress::none;
  throw UserError(cat("fit: progress is \"", name, "\""), at,
                  "give \"automatic\", \"bar\", \"lines\" or \"none\"");
}

std::vector<std::pair<std::string, nn::Measure>> metrics_from(nb::handle metrics) {
  std::vector<std::pair<std::string, nn::Measure>> list;
  for (const auto& [name, metric] : nb::borrow<nb::dict>(metrics))
    list.emplace_back(nb::cast<std::string>(name), measure_from(metric));
  return list;
}

nb::dict numbers_of(const nn::NamedNumbers& named) {
  nb::dict numbers;
  for (const auto& [name, number] : named) numbers[name.c_str()] = number;
  return numbers;
}

nn::History fit(nb::handle model, nb::handle batches, nb::handle loss,
                const nn::Optimizer& optimizer, int64_t epochs, nb::handle budget,
                nb::handle validation, const PathText& checkpoint, nb::handle on_epoch,
                const std::optional<nn::EarlyStopping>& early_stopping, nb::handle metrics,
                const std::string& progress) {
  const Source at = calling_line();
  const PythonLayer layer(model);
  const nn::AnyModel any{.call = [layer](const Tensor& x) { return layer(x, Source::none()); },
                         .variables = named_variables_of(model)};
  nn::FitOptions options{.loss = measure_from(loss),
                         .optimizer = optimizer,
                         .epochs = epochs,
                         .budget = budget_from(budget, at),
                         .validation = batches_from(validation, at),
                         .checkpoint = checkpoint.text,
                         .early_stopping = early_stopping,
                         .metrics = metrics_from(metrics),
                         .progress = progress_from(progress, at)};
  if (!on_epoch.is_none()) {
    options.on_epoch = [held = Held(on_epoch)](nn::Epoch& epoch) {
      const nb::gil_scoped_acquire gil;
      const nb::object seen = nb::cast(nn::Epoch(epoch));
      held.get()(seen);
      epoch.stop = nb::cast<const nn::Epoch&>(seen).stop;
    };
  }
  const nn::Batches walked = batches_from(batches, at);
  const nb::gil_scoped_release released;
  return nn::fit_model(any, walked, options, at);
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
  bind_losses(nn);
  bind_metrics(nn);
  bind_schedules(nn);
  bind_optimizers(nn);
  bind_history(nn);
  nn.def("_fit", fit, arg("model"), arg("batches"), nb::kw_only(), arg("loss").none(),
         arg("optimizer"), arg("epochs"), arg("budget").none(), arg("validation").none(),
         arg("checkpoint"), arg("on_epoch").none(), arg("early_stopping").none(), arg("metrics"),
         arg("progress"));
}

}  // namespace tidemark::python
