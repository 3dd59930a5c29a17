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

nb::object call_unpacked(nb::handle f, const nb::object& carried, std::vector<nb::object> first) {
  if (PyTuple_CheckExact(carried.ptr()) || PyList_CheckExact(carried.ptr()))
    for (const nb::handle each : carried) first.push_back(nb::borrow(each));
  else
    first.push_back(carried);
  return call_user(f, first);
}

}  // namespace tidemark::python
