#include "callback.h"

#include <utility>

#include "tidemark/trace/control_flow_core.h"

namespace tidemark::python {

namespace {
thread_local bool autograph_is_on = false;
}

AutographScope::AutographScope(bool on) : previous_(std::exchange(autograph_is_on, on)) {}
AutographScope::~AutographScope() { autograph_is_on = previous_; }

nb::object function_to_call(nb::handle f) {
  if (!autograph_is_on || !detail::is_tracing()) return nb::borrow(f);
  return nb::module_::import_("tidemark.autograph").attr("converted")(f);
}

nb::object call_user(nb::handle f, const std::vector<nb::object>& arguments) {
  std::vector<PyObject*> flat;
  for (const nb::object& each : arguments) flat.push_back(each.ptr());
  const nb::object called = function_to_call(f);
  const UserCode user;
  PyObject* const result = PyObject_Vectorcall(called.ptr(), flat.data(), flat.size(), nullptr);
  if (result == nullptr) nb::raise_python_error();
  return nb::steal(result);
}

nb::object call_user(nb::handle f, const nb::list& arguments, nb::handle keywords) {
  const nb::object all = nb::steal(PySequence_Tuple(arguments.ptr()));
  const nb::object called = function_to_call(f);
  const UserCode user;
  PyObject* const result = PyObject_Call(called.ptr(), all.ptr(), keywords.ptr());
  if (result == nullptr) nb::raise_python_error();
  return nb::steal(result);
}

namespace {

// Whether f is a Python function of exactly so many positional arguments.
bool takes_exactly(nb::handle f, size_t count) {
  const bool is_method = PyMethod_Check(f.ptr());
  const nb::handle function = is_method ? PyMethod_GET_FUNCTION(f.ptr()) : f.ptr();
  if (!PyFunction_Check(function.ptr())) return false;
  const auto* const code =
      reinterpret_cast<const PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  if ((code->co_flags & CO_VARARGS) != 0) return false;
  return static_cast<size_t>(code->co_argcount) == count + (is_method ? 1 : 0);
}

}  // namespace

nb::object call_unpacked(nb::handle f, const nb::object& carried, std::vector<nb::object> first) {
  const bool is_list = PyTuple_CheckExact(carried.ptr()) || PyList_CheckExact(carried.ptr());
  // The state whole, as JAX gives it, to a function that takes no more than that.
  const bool is_whole = is_list && nb::len(carried) != 1 && takes_exactly(f, first.size() + 1);
  if (is_list && !is_whole)
    for (const nb::handle each : carried) first.push_back(nb::borrow(each));
  else
    first.push_back(carried);
  return call_user(f, first);
}

}  // namespace tidemark::python
