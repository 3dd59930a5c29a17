// td.GradientTape, and the parts of td.grad and its like that need tapes.
#include <memory>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "budget.h"
#include "callback.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "gradient.h"
#include "holds.h"
#include "shape.h"
#include "source.h"
#include "tape_holds.h"
#include "tensor_tree.h"
#include "tidemark/tensor/bind.h"
#include "variable.h"

namespace tidemark::python {
namespace {

PyTypeObject* rows_class = nullptr;

// ---- sources ------------------------------------------------------------------------------------

Atom classify_source(PyObject* object) {
  if (is_tensor(object) || variable_in(object) != nullptr) return Atom::leaf;
  return classify_value(object) == Atom::constant ? Atom::constant : Atom::object;
}

// Tensors and Variables in a user's structure, and their gradients in the same structure.
class PythonSources {
 public:
  PythonSources(nb::handle given, const char* name, Source at) : at_(at) {
    FlatTree flat = flatten(given, classify_source);
    size_t place = 0;
    visit_paths(*flat.tree, place, "sources", [&](const TreeNode& node, const std::string& path) {
      if (node.kind == TreeNode::Kind::object)
        throw UserTypeError(cat(name, ": ", path, " is a ",
                                reinterpret_cast<PyTypeObject*>(node.type.ptr())->tp_name),
                            at, "sources are tensors, Variables and structures of them");
    });
    tree_ = flat.tree;
    for (const nb::object& leaf : flat.leaves) {
      const Variable* const variable = variable_in(leaf.ptr());
      is_variable_.push_back(variable != nullptr);
      if (variable != nullptr)
        both.second.push_back(*variable);
      else
        both.first.push_back(tensor_in(leaf));
    }
  }

  void watch(GradientTape& tape) const {
    for (const Variable& variable : both.second) tape.watch(variable, at_);
    tape.watch(both.first, at_);
  }

  nb::object give(std::pair<Tensors, std::vector<Gradient>> found) const {
    size_t tensor = 0, variable = 0, leaf = 0, place = 0;
    return build(*tree_, place, [&]() -> nb::object {
      if (is_variable_[leaf++]) return wrap(std::move(found.second[variable++]));
      Tensor& gradient = found.first[tensor++];
      return gradient.has_value() ? nb::steal(python::wrap(std::move(gradient))) : nb::none();
    });
  }

  std::pair<Tensors, std::vector<Variable>> both;

 private:
  SharedTree tree_;
  std::vector<bool> is_variable_;
  Source at_;
};

Unconnected unconnected_from(const std::string& text, Source at) {
  if (text == "zero") return Unconnected::zero;
  if (text == "none") return Unconnected::none;
  if (text == "error") return Unconnected::error;
  throw UserError(cat("gradient: unconnected is \"", text, "\""), at,
                  "one of: \"zero\", \"none\", \"error\"");
}

// ---- tapes --------------------------------------------------------------------------------------

// A tape records inside `with`.
class PythonTape {
 public:
  explicit PythonTape(TapeOptions options) : options_(options) {}

  void enter() {
    const Source at = calling_line();
    if (tape_ != nullptr)
      throw UserError("GradientTape: this tape has recorded before", at,
                      "make a new one for each `with`, or call reset()");
    tape_ = std::make_unique<GradientTape>(options_, at);
    records_ = true;
    holds_.start();
  }
  void exit() {
    records_ = false;
    tape_->stop();
    holds_.stop();
  }
  void watch(nb::handle given) {
    const Source at = calling_line();
    if (!records_) throw UserError("watch: the tape does not record", at, "call it inside `with`");
    PythonSources(given, "watch", at).watch(*tape_);
  }
  nb::object gradient(nb::handle target, nb::handle sources, nb::handle output_gradients,
                      const std::string& unconnected) {
    const Source at = calling_line();
    GradientTape& tape = used(at);
    const TensorTree of = lifted(target, at);
    const PythonSources by(sources, "gradient", at);
    GradientOptions options{.unconnected = unconnected_from(unconnected, at)};
    if (!output_gradients.is_none())
      options.output_gradients = lifted(output_gradients, at).tensors;
    std::pair<Tensors, std::vector<Gradient>> found;
    {
      const nb::gil_scoped_release unlocked;
      found = tape.gradient(of.tensors, by.both, options, at);
    }
    if (!options_.persistent) holds_.clear();
    return by.give(std::move(found));
  }
  nb::object jacobian(nb::handle target, nb::handle sources, const std::string& unconnected) {
    const Source at = calling_line();
    const Unconnected missing = unconnected_from(unconnected, at);
    GradientTape& tape = used(at);
    const Tensor y = lifted_leaf(target.ptr(), at);
    TensorTree by = lifted(sources, at);
    {
      const nb::gil_scoped_release unlocked;
      by.tensors = tape.jacobian(y, by.tensors, missing, at);
    }
    if (!options_.persistent) holds_.clear();
    size_t place = 0, next = 0;
    return build(*by.tree, place, [&]() -> nb::object {
      Tensor& made = by.tensors[next++];
      return made.has_value() ? nb::steal(python::wrap(std::move(made))) : nb::none();
    });
  }
  void reset() {
    GradientTape& tape = used(calling_line());
    tape.reset();
    holds_.stop();
    holds_.clear();
    records_ ? holds_.start() : tape.stop();
  }
  // Forgets what is saved; the tape may record again.
  void release() {
    if (tape_ != nullptr) tape_->release();
    holds_.clear();
  }
  nb::list watched_variables() const {
    nb::list list;
    if (tape_ != nullptr)
      for (const Variable& variable : tape_->watched_variables()) list.append(wrap(variable));
    return list;
  }
  Bytes saved_bytes() const { return tape_ == nullptr ? Bytes(0) : tape_->saved_bytes(); }
  GradientTape& used(Source at) const {
    if (tape_ == nullptr)
      throw UserError("GradientTape: this tape has recorded nothing", at,
                      "write `with td.GradientTape() as tape:` around what is differentiated");
    return *tape_;
  }

  int traverse(visitproc visit, void* arg) const { return holds_.traverse(visit, arg); }
  // For the collector: nobody refers to the tape but what it holds itself.
  void clear() {
    if (!records_) release();
  }

 private:
  TapeOptions options_;
  std::unique_ptr<GradientTape> tape_;
  TapeHolds holds_;
  bool records_ = false;
};

// While it is entered, the tape does not record.
struct Pause {
  nb::object tape;
  std::unique_ptr<GradientTape::Pause> pause = {};

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(tape.ptr());
    return 0;
  }
};

// ---- gradients as functions ---------------------------------------------------------------------

// Tensors with their own identity on tapes, so that f(x, x) has two gradients.
TensorTree apart(nb::handle object, Source at) {
  TensorTree made = lifted(object, at);
  for (Tensor& tensor : made.tensors) tensor = detail::apart(tensor, at);
  return made;
}

// The part of a result that is differentiated: the result, or the first element of a tuple.
Tensors target_of(const nb::object& value, const char* name, Source at) {
  const bool has_more = PyTuple_CheckExact(value.ptr()) && PyTuple_GET_SIZE(value.ptr()) > 0;
  Tensors target =
      lifted(has_more ? nb::handle(PyTuple_GET_ITEM(value.ptr(), 0)) : nb::handle(value), at)
          .tensors;
  for (const Tensor& tensor : target) detail::check_scalar(tensor, name, at);
  return target;
}

nb::object value_and_grad(const char* name, nb::handle f, nb::handle given, nb::handle keywords,
                          nb::handle numbers) {
  const Source at = calling_line();
  nb::list arguments = nb::steal<nb::list>(PySequence_List(given.ptr()));
  const bool several = PyTuple_Check(numbers.ptr()) || PyList_Check(numbers.ptr());
  const nb::object list = several ? nb::borrow(numbers) : nb::object(nb::make_tuple(numbers));
  Tensors sources;
  std::vector<TensorTree> trees;
  for (const nb::handle each : list) {
    auto number = nb::cast<int64_t>(each);
    const auto count = static_cast<int64_t>(arguments.size());
    if (number < 0) number += count;
    if (number < 0 || number >= count)
      throw UserError(
          cat(name, ": there is no argument ", nb::cast<int64_t>(each), " among ", count), at,
          "argnums counts positional arguments from 0");
    TensorTree& tree = trees.emplace_back(apart(arguments[static_cast<size_t>(number)], at));
    sources.insert(sources.end(), tree.tensors.begin(), tree.tensors.end());
    arguments[static_cast<size_t>(number)] = filled(*tree.tree, tree.tensors);
  }
  GradientTape tape({}, at);
  tape.watch(sources, at);
  const nb::object value = call_user(f, arguments, keywords);
  const Tensors target = target_of(value, name, at);
  Tensors found;
  {
    const nb::gil_scoped_release unlocked;
    found = tape.gradient(target, sources, {}, at);
  }
  nb::list gradients;
  std::span<Tensor> rest = found;
  for (const TensorTree& tree : trees) {
    gradients.append(filled(*tree.tree, rest.first(tree.tree->leaves)));
    rest = rest.subspan(tree.tree->leaves);
  }
  const nb::object all =
      several ? nb::steal(PySequence_Tuple(gradients.ptr())) : nb::object(gradients[0]);
  return nb::make_tuple(value, all);
}

nb::object value_and_grad_by(nb::handle f, nb::handle given, nb::handle keywords,
                             nb::handle variables) {
  const Source at = calling_line();
  const PythonSources by(variables, "value_and_grad", at);
  GradientTape tape({}, at);
  const nb::object value =
      call_user(f, nb::steal<nb::list>(PySequence_List(given.ptr())), keywords);
  const Tensors target = target_of(value, "value_and_grad", at);
  std::pair<Tensors, std::vector<Gradient>> found;
  {
    const nb::gil_scoped_release unlocked;
    found = tape.gradient(target, by.both, {}, at);
  }
  return nb::make_tuple(value, by.give(std::move(found)));
}

// From the gradient of a result to those of the arguments; it holds the residuals.
struct PythonPullback {
  std::unique_ptr<GradientTape> tape;
  std::unique_ptr<TapeHolds> holds;
  Tensors value, sources;
  SharedTree arguments;

  int traverse(visitproc visit, void* arg) const {
    const int stopped = arguments->traverse(visit, arg);
    return stopped != 0 ? stopped : holds->traverse(visit, arg);
  }

  nb::object operator()(nb::handle gradient, nb::handle variables) const {
    const Source at = calling_line();
    const GradientOptions options{.output_gradients = lifted(gradient, at).tensors};
    std::optional<PythonSources> by;
    std::vector<Variable> wanted;
    if (!variables.is_none()) wanted = by.emplace(variables, "vjp", at).both.second;
    std::pair<Tensors, std::vector<Gradient>> found;
    {
      const nb::gil_scoped_release unlocked;
      found = tape->gradient(value, std::pair{sources, wanted}, options, at);
    }
    nb::object by_arguments = filled(*arguments, found.first);
    if (PyTuple_GET_SIZE(by_arguments.ptr()) == 1)
      by_arguments = nb::borrow(PyTuple_GET_ITEM(by_arguments.ptr(), 0));
    if (!by) return by_arguments;
    return nb::make_tuple(by_arguments, by->give({{}, std::move(found.second)}));
  }
};

nb::object vjp(nb::handle f, const nb::args& given) {
  const Source at = calling_line();
  TensorTree all = apart(given, at);
  auto tape = std::make_unique<GradientTape>(TapeOptions{.persistent = true}, at);
  auto holds = std::make_unique<TapeHolds>();
  holds->start();
  tape->watch(all.tensors, at);
  Tensors handed = all.tensors;
  const nb::object value = call_user(
      f, nb::steal<nb::list>(PySequence_List(filled(*all.tree, handed).ptr())), nb::handle());
  tape->stop();
  holds->stop();
  return nb::make_tuple(value,
                        PythonPullback{std::move(tape), std::move(holds), lifted(value, at).tensors,
                                       std::move(all.tensors), std::move(all.tree)});
}

nb::object jvp(nb::handle f, nb::handle x, nb::handle dx) {
  const Source at = calling_line();
  const TensorTree primal = apart(x, at), change = lifted(dx, at);
  detail::check_floats(primal.tensors, "jvp", "the arguments of f", at);
  GradientTape outer({.watch_variables = false}, at), inner({.watch_variables = false}, at);
  inner.watch(primal.tensors, at);
  Tensors handed = primal.tensors;
  const nb::object result = call_user(f, {filled(*primal.tree, handed)});
  const TensorTree value = lifted(result, at);
  detail::check_floats(value.tensors, "jvp", "the results of f", at);
  Tensors start;
  for (const Tensor& each : value.tensors) start.push_back(detail::apart(zeros_like(each, at), at));
  outer.watch(start, at);
  Tensors found;
  {
    const nb::gil_scoped_release unlocked;
    // The gradient is linear in the result's gradient, so the gradient of the gradient is this
    // product.
    const Tensors back =
        inner.gradient(value.tensors, primal.tensors, {.output_gradients = start}, at);
    found = outer.gradient(back, start, {.output_gradients = change.tensors}, at);
  }
  return nb::make_tuple(result, filled(*value.tree, found));
}

nb::object jacobian_of(nb::handle f, nb::handle x) {
  const Source at = calling_line();
  const Tensor primal = detail::apart(lifted_leaf(x.ptr(), at), at);
  GradientTape tape({.persistent = true}, at);
  tape.watch(primal, at);
  const nb::object result = call_user(f, {nb::steal(python::wrap(Tensor(primal)))});
  const Tensor value = lifted_leaf(result.ptr(), at);
  Tensor made;
  {
    const nb::gil_scoped_release unlocked;
    made = tape.jacobian(value, primal, at);
  }
  return nb::steal(python::wrap(std::move(made)));
}

// ---- several gradients
// ---------------------------------------------------------------------------

std::vector<Gradient> gradients_from(nb::handle list, Source at) {
  std::vector<Gradient> all;
  for (const nb::handle each : list) all.push_back(gradient_from(each, at));
  return all;
}

}  // namespace

GradientTape& tape_from(nb::handle object, Source at) {
  if (!nb::isinstance<PythonTape>(object))
    throw UserTypeError(cat("a ", Py_TYPE(object.ptr())->tp_name, " is not a tape"), at,
                        "give the td.GradientTape that recorded the loss");
  return nb::cast<const PythonTape&>(object).used(at);
}

nb::object wrap(Gradient&& gradient) {
  if (gradient.is_rows()) return nb::cast(std::move(gradient));
  if (!gradient.has_value()) return nb::none();
  return nb::steal(python::wrap(gradient.dense(calling_line())));
}

const Gradient* rows_in(PyObject* object) {
  return Py_TYPE(object) == rows_class ? nb::inst_ptr<Gradient>(object) : nullptr;
}

Gradient gradient_from(nb::handle object, Source at) {
  if (object.is_none()) return {};
  if (const Gradient* rows = rows_in(object.ptr())) return *rows;
  return lifted_leaf(object.ptr(), at);
}

void bind_gradient(nb::module_& module) {
  nb::class_<Gradient> rows(module, "RowGradient", nb::type_slots(value_slots()),
                            "The gradient by a table that was only looked up: rows and indices.");
  rows_class = reinterpret_cast<PyTypeObject*>(rows.ptr());
  rows.def(
          "__init__",
          [](Gradient* self, nb::handle indices, nb::handle given, nb::handle shape) {
            const Source at = calling_line();
            RowGradient parts{tensor_from(indices, at), tensor_from(given, at)};
            const DType dtype = parts.rows.dtype();
            new (self) Gradient(std::move(parts), TensorType{dtype, shape_from(shape, at)});
          },
          nb::arg("indices"), nb::arg("rows"), nb::arg("shape"))
      .def_prop_ro(
          "indices",
          [](const Gradient& g) { return nb::steal(python::wrap(Tensor(g.rows().indices))); },
          "One for each row; indices may repeat.")
      .def_prop_ro("rows",
                   [](const Gradient& g) { return nb::steal(python::wrap(Tensor(g.rows().rows))); })
      .def_prop_ro("shape", [](const Gradient& g) { return shape_tuple(g.shape()); })
      .def_prop_ro("dtype", &Gradient::dtype)
      .def(
          "dense",
          [](const Gradient& g) { return nb::steal(python::wrap(g.dense(calling_line()))); },
          "The rows summed into a tensor of the Variable's shape.")
      .def("__repr__", [](const Gradient& g) {
        return cat("td.RowGradient(", g.rows().rows.shape()[0], " rows of ", name(g.dtype()),
                   g.shape(), ")");
      });

  nb::class_<Pause>(module, "_Pause", nb::type_slots(traversed_slots<Pause>()))
      .def("__enter__",
           [](Pause& self) {
             auto& tape = nb::cast<PythonTape&>(self.tape);
             self.pause = std::make_unique<GradientTape::Pause>(tape.used(calling_line()));
           })
      .def("__exit__", [](Pause& self, const nb::args&) { self.pause = nullptr; });
  nb::class_<PythonTape>(module, "GradientTape", nb::type_slots(cleared_slots<PythonTape>()),
                         "Records what is computed inside `with`, for its gradients.")
      .def(
          "__init__",
          [](PythonTape* self, bool persistent, bool watch_variables) {
            new (self) PythonTape({.persistent = persistent, .watch_variables = watch_variables});
          },
          nb::arg("persistent") = false, nb::arg("watch_variables") = true)
      .def("__enter__",
           [](const nb::object& self) {
             nb::cast<PythonTape&>(self).enter();
             return self;
           })
      .def("__exit__", [](PythonTape& tape, const nb::args&) { tape.exit(); })
      .def("watch", &PythonTape::watch, nb::arg("tensors"),
           "Watches tensors: they and what is computed from them can be sources and targets.")
      .def("gradient", &PythonTape::gradient, nb::arg("target"), nb::arg("sources"),
           nb::arg("output_gradients") = nb::none(), nb::arg("unconnected") = "zero",
           "The gradient of the sum of the target by tensors, Variables and structures of them.")
      .def("jacobian", &PythonTape::jacobian, nb::arg("target"), nb::arg("sources"),
           nb::arg("unconnected") = "zero",
           "The derivative of every element of the target by every element of a tensor, or of each "
           "tensor in a structure.")
      .def(
          "stop_recording", [](const nb::object& self) { return Pause{self}; },
          "`with tape.stop_recording():` does not record.")
      .def("reset", &PythonTape::reset, "Back to the initial state: nothing is recorded.")
      .def("release", &PythonTape::release, "Releases everything that is saved.")
      .def("watched_variables", &PythonTape::watched_variables, "The Variables read so far.")
      .def_prop_ro("saved_bytes", &PythonTape::saved_bytes, "The bytes kept for gradients.");

  nb::class_<PythonPullback>(module, "Pullback", nb::type_slots(traversed_slots<PythonPullback>()),
                             "From the gradient of a result to those of the arguments.")
      .def("__call__", &PythonPullback::operator(), nb::arg("gradient"),
           nb::arg("variables") = nb::none())
      .def_prop_ro("saved_bytes", [](const PythonPullback& p) { return p.tape->saved_bytes(); });
  module.def("_value_and_grad", value_and_grad);
  module.def("_value_and_grad_by", value_and_grad_by);
  module.def("_jacobian", jacobian_of);
  module.def("vjp", vjp, nb::arg("f"), nb::arg("arguments"),
             "(f(*arguments), its Pullback), which holds the residuals.");
  module.def("jvp", jvp, nb::arg("f"), nb::arg("x"), nb::arg("dx"),
             "(f(x), the Jacobian times dx), computed without the Jacobian.");
  module.def(
      "clip_by_norm",
      [](nb::handle x, nb::handle most) {
        const Source at = calling_line();
        const Value clipped(x, at), bound(most, at);
        return nb::steal(python::wrap(clip_by_norm(clipped.operand(), bound.operand(), at)));
      },
      nb::arg("x"), nb::arg("most"),
      "x, scaled down if its norm (the root of the sum of squares) exceeds `most`.");
  module.def(
      "clip_by_global_norm",
      [](nb::handle gradients, nb::handle most) {
        const Source at = calling_line();
        const Value bound(most, at);
        nb::list clipped;
        for (Gradient& each :
             clip_by_global_norm(gradients_from(gradients, at), bound.operand(), at))
          clipped.append(wrap(std::move(each)));
        return clipped;
      },
      nb::arg("gradients"), nb::arg("most"),
      "All gradients, scaled by one factor if their joint norm exceeds `most`.");
  module.def(
      "global_norm",
      [](nb::handle gradients) {
        const Source at = calling_line();
        return nb::steal(python::wrap(global_norm(gradients_from(gradients, at), at)));
      },
      nb::arg("gradients"), "The joint norm of all gradients.");
}

}  // namespace tidemark::python
