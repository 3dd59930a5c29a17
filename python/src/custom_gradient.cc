// Custom gradients and recomputation: functions of users that the records of tapes hold.
#include "callback.h"
#include "convert.h"
#include "errors.h"
#include "gradient.h"
#include "held.h"
#include "holds.h"
#include "source.h"
#include "tape_holds.h"
#include "tensor_tree.h"
#include "variable.h"

namespace tidemark::python {
namespace {

// ---- custom gradients and recomputation ---------------------------------------------------------

// {gradients, gradients by Variables}, if the second part is a dict or a list of pairs.
bool has_variable_gradients(nb::handle given) {
  if (!PyTuple_CheckExact(given.ptr()) || PyTuple_GET_SIZE(given.ptr()) != 2) return false;
  PyObject* const second = PyTuple_GET_ITEM(given.ptr(), 1);
  if (PyDict_Check(second)) return true;
  if (!PyList_Check(second)) return false;
  for (const nb::handle pair : nb::handle(second))
    if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2 ||
        variable_in(PyTuple_GET_ITEM(pair.ptr(), 0)) == nullptr)
      return false;
  return true;
}

// A call of a user's function, as the record of a tape needs it. It is a Python object, so that the
// collector sees what it holds, and records refer to it by a Held.
struct RecordedCall {
  nb::object function = {};     // What the record calls.
  SharedTree arguments;         // (positional arguments, keywords)
  SharedTree result = nullptr;  // Known once the function has run.
  std::vector<size_t> tensors;  // The number of tensors in each positional argument.
  Source at;

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(function.ptr());
    const int stopped = arguments->traverse(visit, arg);
    return stopped != 0 || result == nullptr ? stopped : result->traverse(visit, arg);
  }

  nb::object call(nb::handle f, Tensors inputs) const {
    const nb::object both = filled(*arguments, inputs);
    const nb::handle named = PyTuple_GET_ITEM(both.ptr(), 1);
    return call_user(f, nb::steal<nb::list>(PySequence_List(PyTuple_GET_ITEM(both.ptr(), 0))),
                     named);
  }
  // The gradients that a gradient function has returned.
  detail::OwnGradients gradients(nb::handle given) const;
};

RecordedCall& call_in(const Held& held) { return *nb::inst_ptr<RecordedCall>(held.get()); }

struct NewCall {
  Held call;
  Tensors inputs;
};
NewCall new_call(nb::handle arguments, nb::handle keywords, Source at) {
  TensorTree all = lifted(nb::make_tuple(arguments, keywords), at);
  std::vector<size_t> tensors;
  for (const nb::handle each : arguments)
    tensors.push_back(flatten(each, classify_value).tree->leaves);
  const nb::object made = nb::cast(
      RecordedCall{.arguments = std::move(all.tree), .tensors = std::move(tensors), .at = at});
  return {Held(made, Held::Drop::later), std::move(all.tensors)};
}

void add_variable_gradients(detail::OwnGradients& own, nb::handle given, Source at) {
  const nb::object pairs =
      PyDict_Check(given.ptr()) ? nb::steal(PyDict_Items(given.ptr())) : nb::borrow(given);
  for (const nb::handle pair : pairs) {
    const Variable* const variable = variable_in(PyTuple_GET_ITEM(pair.ptr(), 0));
    if (variable == nullptr)
      throw UserTypeError("custom_gradient: a gradient by something that is no Variable", at,
                          "return (dx, {variable: gradient})");
    own.by_variables.emplace_back(*variable, gradient_from(PyTuple_GET_ITEM(pair.ptr(), 1), at));
  }
}

detail::OwnGradients RecordedCall::gradients(nb::handle given) const {
  if (has_variable_gradients(given)) {
    detail::OwnGradients own = gradients(PyTuple_GET_ITEM(given.ptr(), 0));
    add_variable_gradients(own, PyTuple_GET_ITEM(given.ptr(), 1), at);
    return own;
  }
  const nb::object list = PyTuple_CheckExact(given.ptr()) || PyList_CheckExact(given.ptr())
                              ? nb::steal(PySequence_Tuple(given.ptr()))
                              : nb::object(nb::make_tuple(given));
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(list.ptr()));
  // One for each argument, or one for each that has tensors.
  std::vector<size_t> wanted;
  for (const size_t each : tensors)
    if (count == tensors.size() || each > 0) wanted.push_back(each);
  detail::OwnGradients own;
  for (size_t i = 0; i < count; ++i) {
    const nb::handle each = PyTuple_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i));
    if (each.is_none()) {  // No gradient for what this argument holds.
      own.by_inputs.resize(own.by_inputs.size() + (i < wanted.size() ? wanted[i] : 1));
      continue;
    }
    for (Tensor& tensor : lifted(each, at).tensors) own.by_inputs.push_back(std::move(tensor));
  }
  // Keyword arguments have none.
  size_t positional = 0;
  for (const size_t each : tensors) positional += each;
  if (own.by_inputs.size() == positional) own.by_inputs.resize(arguments->leaves);
  return own;
}

// Calls f, which returns (result, gradient function), and keeps the gradient function in the call.
detail::OwnResults run_with_gradient(nb::handle f, const Held& held, const Tensors& inputs) {
  const nb::gil_scoped_acquire gil;
  RecordedCall& call = call_in(held);
  const nb::object both = call.call(f, inputs);
  if (!PyTuple_CheckExact(both.ptr()) || PyTuple_GET_SIZE(both.ptr()) != 2 ||
      !PyCallable_Check(PyTuple_GET_ITEM(both.ptr(), 1)))
    throw UserTypeError("custom_gradient: the function did not return (y, gradient)", call.at,
                        "return the result, and the function from its gradient to those of the "
                        "arguments");
  TensorTree value = lifted(nb::handle(PyTuple_GET_ITEM(both.ptr(), 0)), call.at);
  call.result = std::move(value.tree);
  call.function = nb::borrow(PyTuple_GET_ITEM(both.ptr(), 1));
  detail::OwnResults own;
  own.results = std::move(value.tensors);
  own.pullback = [held](Tensors gradients) {
    const nb::gil_scoped_acquire again;
    const RecordedCall& recorded = call_in(held);
    return recorded.gradients(call_user(recorded.function, {filled(*recorded.result, gradients)}));
  };
  return own;
}

nb::object custom_gradient(nb::handle f, nb::handle arguments, nb::handle keywords) {
  const Source at = calling_line();
  const auto [call, inputs] = new_call(arguments, keywords, at);
  Tensors results;
  {
    const nb::gil_scoped_release unlocked;
    results = detail::run_custom(
        inputs, [&](const Tensors& given) { return run_with_gradient(f, call, given); }, at);
  }
  held_by_tapes(call, results);
  return filled(*call_in(call).result, results);
}

nb::object recompute(nb::handle f, nb::handle arguments, nb::handle keywords) {
  const Source at = calling_line();
  const auto [call, inputs] = new_call(arguments, keywords, at);
  call_in(call).function = nb::borrow(f);
  const detail::TensorFunction run = [held = call](const Tensors& given) {
    const nb::gil_scoped_acquire gil;
    RecordedCall& recorded = call_in(held);
    TensorTree result = lifted(recorded.call(recorded.function, given), recorded.at);
    recorded.result = std::move(result.tree);
    return std::move(result.tensors);
  };
  Tensors results;
  {
    const nb::gil_scoped_release unlocked;
    results = detail::run_recomputed(inputs, run, at);
  }
  held_by_tapes(call, results);
  return filled(*call_in(call).result, results);
}

}  // namespace

void bind_custom_gradient(nb::module_& module) {
  nb::class_<RecordedCall>(module, "_RecordedCall",
                           nb::type_slots(traversed_slots<RecordedCall>()));
  module.def("_custom_gradient", custom_gradient);
  module.def("_recompute", recompute);
}

}  // namespace tidemark::python
