// td.nn: Sequential, initializers, modes, and what is asked of a whole model.
#include "nn.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "tidemark/base/index_error.h"

#include "budget.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "holds.h"
#include "shape.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {
namespace {

using nb::arg;

// ---- initializers -------------------------------------------------------------------------------

struct InitializerObject {
  Initializer make;
};

void bind_initializers(nb::module_& nn) {
  nb::module_ all = nn.def_submodule(
      "initializers", "Initial values of parameters: functions of a shape and a dtype.");
  nb::class_<InitializerObject>(
      all, "Initializer", nb::dynamic_attr(),
      "The initial value of a parameter: a function of its shape and dtype.")
      .def(
          "__call__",
          [](const InitializerObject& initializer, nb::handle shape, DType dtype) {
            const Source at = calling_line();
            const Shape sizes = shape_from(shape, at);
            const SourceScope scope(at);
            return initializer.make(sizes, dtype);
          },
          arg("shape"), arg("dtype") = DType::f32);
  using namespace nn::initializers;
  const std::pair<const char*, Tensor (*)(const Shape&, DType)> named[] = {
      {"zeros", zeros},
      {"ones", ones},
      {"glorot_uniform", glorot_uniform},
      {"glorot_normal", glorot_normal},
      {"he_uniform", he_uniform},
      {"he_normal", he_normal},
      {"orthogonal", orthogonal}};
  for (const auto& [name, function] : named) all.attr(name) = nb::cast(InitializerObject{function});
  all.def(
         "constant", [](double value) { return InitializerObject{constant(value)}; }, arg("value"))
      .def(
          "normal", [](double stddev) { return InitializerObject{normal(stddev)}; },
          arg("stddev") = 0.05)
      .def(
          "uniform", [](double low, double high) { return InitializerObject{uniform(low, high)}; },
          arg("low") = -0.05, arg("high") = 0.05);
}

// ---- Sequential ---------------------------------------------------------------------------------

class SequentialObject {
 public:
  explicit SequentialObject(const nb::args& layers) {
    for (const nb::handle layer : layers) add(layer);
  }
  // References of its own to the same layers: each object accounts for its references.
  SequentialObject(const SequentialObject& other) {
    for (const PythonLayer& layer : other.layers_) add(layer.callable().get());
  }
  SequentialObject& operator=(const SequentialObject&) = delete;
  void add(nb::handle layer) {
    if (!PyCallable_Check(layer.ptr()))
      throw UserTypeError(cat("nn.Sequential: layer ", layers_.size(), " is a ",
                              Py_TYPE(layer.ptr())->tp_name, ", which cannot be called"),
                          calling_line(), "give layers, ops or functions of one tensor");
    layers_.emplace_back(layer);
    sequence_.add(layers_.back());
  }

  Tensor operator()(const Tensor& x, Source at) const { return sequence_(x, at); }
  Tensor operator()(const Tensor& x) const { return sequence_(x, Source::none()); }
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    sequence_.tidemark_walk(path, see);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace) {
    sequence_ = nn::Sequential();
    for (PythonLayer& layer : layers_) {
      layer.tidemark_walk(path, replace);
      sequence_.add(layer);
    }
  }
  bool tidemark_identity(std::string& key) const { return sequence_.tidemark_identity(key); }

  const std::vector<PythonLayer>& layers() const { return layers_; }
  void clear() {
    layers_.clear();
    sequence_ = nn::Sequential();
  }
  nb::object at(int64_t number) const {
    const auto count = static_cast<int64_t>(layers_.size());
    const int64_t place = number < 0 ? number + count : number;
    if (place < 0 || place >= count)
      throw IndexError(cat("nn.Sequential: there is no layer ", number, " of ", count),
                       calling_line(), "the first is 0, the last is -1");
    return nb::borrow(layers_[static_cast<size_t>(place)].callable().get());
  }

 private:
  std::vector<PythonLayer> layers_;
  nn::Sequential sequence_;  // Of the same layers.
};

// A layer may refer to the model that holds it. Each reference has two copies, in the list and in
// the sequence; if there are more, C++ code holds it too, and it is not for the collector.
int traverse_sequential(PyObject* self, visitproc visit, void* arg) {
  if (const int stopped = traverse_instance(self, visit, arg)) return stopped;
  if (!nb::inst_ready(self)) return 0;
  for (const PythonLayer& layer : nb::inst_ptr<SequentialObject>(self)->layers())
    if (layer.callable().copies() == 2) Py_VISIT(layer.callable().get().ptr());
  return 0;
}
int clear_sequential(PyObject* self) {
  if (PyObject** const attributes = _PyObject_GetDictPtr(self)) Py_CLEAR(*attributes);
  if (nb::inst_ready(self)) nb::inst_ptr<SequentialObject>(self)->clear();
  return 0;
}
PyType_Slot sequential_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_sequential)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_sequential)},
    {0, nullptr},
};

void bind_sequential(nb::module_& nn) {
  nb::class_<SequentialObject> sequential(nn, "Sequential", nb::type_slots(sequential_slots),
                                          nb::dynamic_attr(), nb::is_weak_referenceable(),
                                          "Layers applied in order: layers, ops, functions with "
                                          "custom gradients, any callables of one tensor. "
                                          "Variables are named by position: \"1/kernel\".");
  make_part<SequentialObject>(sequential);
  sequential.def(nb::init<const nb::args&>())
      .def(
          "__call__",
          [](const SequentialObject& model, nb::handle x) {
            const Source at = calling_line();
            const Tensor input = tensor_from(x, at);
            const nb::gil_scoped_release released;
            return model(input, at);
          },
          arg("x"))
      .def(
          "add", [](SequentialObject& model, nb::handle layer) { model.add(layer); }, arg("layer"),
          "Appends a layer.")
      .def("__len__", [](const SequentialObject& model) { return model.layers().size(); })
      .def("__getitem__", &SequentialObject::at);
}

// ---- modes --------------------------------------------------------------------------------------

// A mode inside `with`; it may be entered again.
template <class Scope, class Mode>
class ModeInPython {
 public:
  explicit ModeInPython(Mode mode) : mode_(mode) {}
  ModeInPython(const ModeInPython&) = delete;
  ModeInPython& operator=(const ModeInPython&) = delete;
  void enter() { scopes_.push_back(std::make_unique<Scope>(mode_)); }
  void exit() { scopes_.pop_back(); }

 private:
  Mode mode_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};
using TrainingInPython = ModeInPython<nn::Training, bool>;
using AutocastInPython = ModeInPython<Autocast, DType>;

template <class Mode>
void add_with(nb::class_<Mode>& bound) {
  bound
      .def("__enter__",
           [](nb::handle self) {
             nb::cast<Mode&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](Mode& mode, nb::args) { mode.exit(); });
}

void bind_mode(nb::module_& nn) {
  nn.def("is_training", nn::is_training, "Whether this thread is in training mode.");
  nb::class_<TrainingInPython> training(
      nn, "Training",
      "Training mode inside `with nn.Training():`; evaluation mode with nn.Training(False).");
  training.def(nb::init<bool>(), arg("on") = true);
  add_with(training);
}

void bind_autocast(nb::module_& module) {
  nb::class_<AutocastInPython> bound(
      module, "autocast",
      "Mixed precision inside `with td.autocast(td.bf16):`: trainable f32 Variables are read as "
      "this dtype, and a product of it and f32 has it. td.f32 switches it off.");
  bound.def(
      "__init__",
      [](AutocastInPython* self, DType dtype) {
        const Autocast checked(dtype, calling_line());
        new (self) AutocastInPython(dtype);
      },
      arg("dtype") = DType::bf16);
  add_with(bound);
  module.def("get_autocast", autocast,
             "The dtype of the innermost td.autocast of this thread; td.f32 if there is none.");
}

void bind_policy(nb::module_& nn) {
  using nn::Policy;
  nb::class_<Policy>(nn, "Policy",
                     "The dtype of a layer's Variables and the dtype it computes in: \"f32\", "
                     "\"bf16\", \"mixed_bf16\", \"mixed_f16\".")
      .def(
          "__init__", [](Policy* self, nb::handle name) { new (self) Policy(policy_from(name)); },
          arg("name"))
      .def_prop_ro("name", &Policy::name)
      .def_ro("variable_dtype", &Policy::variable)
      .def_ro("compute_dtype", &Policy::compute)
      .def("__eq__",
           [](const Policy& a, nb::handle b) {
             return nb::isinstance<Policy>(b) && a == nb::cast<const Policy&>(b);
           })
      .def("__hash__",
           [](const Policy& policy) { return nb::hash(nb::str(policy.name().c_str())); })
      .def("__repr__", [](const Policy& policy) { return cat("Policy(\"", policy.name(), "\")"); })
      .def("__reduce__", [](const Policy& policy) {
        return nb::make_tuple(nb::module_::import_("tidemark.nn").attr("Policy"),
                              nb::make_tuple(policy.name()));
      });
  nn.def("global_policy", nn::global_policy, "The policy of layers that are made without a dtype.");
  nn.def(
      "set_global_policy", [](nb::handle policy) { nn::set_global_policy(policy_from(policy)); },
      arg("policy"), "Sets the policy of layers that are made from now on without a dtype.");
}

// ---- whole models -------------------------------------------------------------------------------

nb::object list_of(const NamedVariables& named, bool only_trainable) {
  nb::list list;
  for (const auto& [name, variable] : named)
    if (!only_trainable || variable.trainable()) list.append(wrap(variable));
  return list;
}

// Copies of functions are the functions themselves, so a closure would keep the original's layers.
nb::object clone(nb::handle model) {
  const Source at = calling_line();
  detail::VariableClones clones(at);
  nb::object copy = copy_with(
      model, [&](const detail::VariablePath&, Variable& variable) { clones.replace(variable); });
  detail::VariablesOnce originals;
  for (const auto& [name, variable] : named_variables_of(model)) originals.add(variable);
  for (const auto& [name, variable] : named_variables_of(copy))
    if (!originals.add(variable))
      throw UserError(
          cat("clone: the copy would run the original's layer: a function captures the Variable \"",
              name, "\""),
          at, "pass the layers as arguments: nn.Lambda(lambda x, dense: ..., dense)");
  return copy;
}

Tensor predict(nb::handle model, nb::handle x, const nn::PredictOptions& options) {
  const Source at = calling_line();
  const Tensor input = tensor_from(x, at);
  const PythonLayer layer(model);
  std::vector<Variable> variables;
  for (const auto& [name, variable] : named_variables_of(model)) variables.push_back(variable);
  std::string key = typeid(PythonLayer).name();
  const bool comparable = layer.tidemark_identity(key);
  // Placeholders in the order in which the walk over the model meets them.
  const auto make = [&] {
    const nb::gil_scoped_acquire gil;
    detail::VariablePlaceholders placeholders;
    const nb::object copy = copy_with(model, [&](const detail::VariablePath&, Variable& variable) {
      placeholders.replace(variable);
    });
    detail::ModelOfStandIns made{PythonLayer(copy), {}};
    for (const auto& [name, variable] : named_variables_of(copy))
      made.variables.push_back(variable);
    return made;
  };
  const nb::gil_scoped_release released;
  const detail::PredictCall call{input, options, at};
  if (!comparable)
    return detail::predicted_eagerly(layer, call, "it holds tensors or a closure over its layers");
  return detail::predicted(std::move(key), variables, layer, make, call);
}

void bind_summary(nb::module_& nn) {
  nb::class_<nn::SummaryRow>(nn, "SummaryRow", "A layer of a summary.")
      .def_ro("name", &nn::SummaryRow::name)
      .def_ro("kind", &nn::SummaryRow::kind)
      .def_ro("output", &nn::SummaryRow::output)
      .def_ro("parameters", &nn::SummaryRow::parameters)
      .def_ro("parameter_bytes", &nn::SummaryRow::parameter_bytes)
      .def_ro("saved", &nn::SummaryRow::saved)
      .def_ro("temporaries", &nn::SummaryRow::temporaries);
  nb::class_<nn::Summary>(nn, "Summary",
                          "The layers of a model with their outputs and memory. Prints as a table.")
      .def_ro("rows", &nn::Summary::rows)
      .def_ro("total", &nn::Summary::total)
      .def_ro("trainable", &nn::Summary::trainable)
      .def_ro("forward_peak", &nn::Summary::forward_peak)
      .def_ro("training_peak", &nn::Summary::training_peak)
      .def_ro("had_open_sizes", &nn::Summary::had_open_sizes)
      .def("__str__", [](const nn::Summary& summary) { return cat(summary); })
      .def("__repr__", [](const nn::Summary& summary) { return cat(summary); });
  nn.def(
        "summary",
        [](nb::handle model, nb::handle input) {
          const Source at = calling_line();
          const TensorSpec spec = spec_from(input, at);
          const PythonLayer layer(model);
          const NamedVariables variables = named_variables_of(model);
          const nb::gil_scoped_release released;
          return detail::summarize(layer, variables, spec, at);
        },
        arg("model"), arg("input"),
        "The layers of a model with their outputs and memory, for an input of this type. Nothing "
        "runs.")
      .def(
          "build",
          [](nb::handle model, nb::handle input) {
            const Source at = calling_line();
            const TensorSpec spec = spec_from(input, at);
            const PythonLayer layer(model);
            const NamedVariables variables = named_variables_of(model);
            const nb::gil_scoped_release released;
            detail::build_model(layer, variables, spec, at);
          },
          arg("model"), arg("input"),
          "Sets the shapes of all layers, as a first call would. Nothing runs and nothing is "
          "allocated.");
}

void bind_models(nb::module_& nn) {
  nn.def(
        "named_variables",
        [](nb::handle model) {
          nb::list list;
          for (const auto& [name, variable] : named_variables_of(model))
            list.append(nb::make_tuple(name, wrap(variable)));
          return list;
        },
        arg("model").none(),
        "The Variables of a model with their names, each once: [(\"up/kernel\", ...), ...].")
      .def(
          "variables", [](nb::handle model) { return list_of(named_variables_of(model), false); },
          arg("model").none(), "The Variables of a model, each once.")
      .def(
          "trainable_variables",
          [](nb::handle model) { return list_of(named_variables_of(model), true); },
          arg("model").none(), "The trainable Variables of a model, each once.")
      .def("clone", clone, arg("model").none(),
           "A deep copy: a model with new Variables of the same values. Tied weights stay tied.")
      .def(
          "predict",
          [](nb::handle model, nb::handle x, nb::handle budget) {
            return predict(model, x, {.budget = budget_from(budget, calling_line())});
          },
          arg("model").none(), arg("x"), nb::kw_only(), arg("budget") = nb::none(),
          "The model's output in evaluation mode. Compiled once, and remembered for the most "
          "recent models.");
}

}  // namespace

// ---- options ------------------------------------------------------------------------------------

nn::Activation activation_from(nb::handle object, Source at) {
  constexpr std::array kNamed = {"relu",    "gelu",        "silu",     "sigmoid",    "tanh",
                                 "softmax", "log_softmax", "softplus", "leaky_relu", "elu"};
  if (object.is_none()) return {};
  if (nb::isinstance<nb::str>(object)) return nn::Activation(nb::cast<std::string>(object), at);
  if (nb::isinstance<nn::Activation>(object)) return nb::cast<const nn::Activation&>(object);
  // An op by its name is known to act on each row separately.
  const nb::module_ package = nb::module_::import_("tidemark");
  for (const char* const name : kNamed)
    if (nb::hasattr(package, name) && object.is(nb::object(package.attr(name))))
      return nn::Activation(name, at);
  if (!PyCallable_Check(object.ptr()))
    throw UserTypeError(
        cat("activation: a ", Py_TYPE(object.ptr())->tp_name, " cannot be called"), at,
        "give a name such as \"relu\", an op such as td.relu, or a function of one tensor");
  return PythonLayer::recorded(object);
}

nn::Policy policy_from(nb::handle object) {
  const Source at = calling_line();
  if (object.is_none()) return nn::global_policy();
  if (nb::isinstance<nn::Policy>(object)) return nb::cast<const nn::Policy&>(object);
  if (const std::optional<DType> dtype = dtype_from(object)) return *dtype;
  if (!nb::isinstance<nb::str>(object))
    throw UserTypeError(cat("dtype: a ", Py_TYPE(object.ptr())->tp_name, " is no policy"), at,
                        "give a dtype, or a name such as \"mixed_bf16\"");
  return nn::Policy(std::string_view(nb::cast<std::string>(object)), at);
}

Initializer initializer_from(nb::handle object) {
  if (nb::isinstance<InitializerObject>(object))
    return nb::cast<const InitializerObject&>(object).make;
  if (!PyCallable_Check(object.ptr()))
    throw UserTypeError(cat("initializer: a ", Py_TYPE(object.ptr())->tp_name, " cannot be called"),
                        calling_line(),
                        "give one of td.nn.initializers, or a function of a shape and a dtype");
  return [held = recorded_initializer(object)](const Shape& shape, DType dtype) {
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    return tensor_from(held.get()(shape_tuple(shape), dtype), calling_line());
  };
}

TensorSpec spec_from(nb::handle object, Source at) {
  if (nb::isinstance<TensorSpec>(object)) return nb::cast<TensorSpec>(object);
  const Tensor x = tensor_from(object, at);
  return spec(x.shape(), x.dtype());
}

void bind_nn(nb::module_& module) {
  bind_model(module);
  nb::module_ nn = module.def_submodule("nn", "Layers, losses, metrics, optimizers and training.");
  bind_autocast(module);
  bind_policy(nn);
  bind_initializers(nn);
  bind_layers(nn);
  bind_sequential(nn);
  bind_mode(nn);
  bind_summary(nn);
  bind_models(nn);
}

}  // namespace tidemark::python
