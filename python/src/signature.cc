#include "signature.h"

#include <algorithm>

#include <nanobind/stl/string.h>
#include "errors.h"
#include "source.h"

namespace tidemark::python {
namespace {

nb::object attribute(nb::handle object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

}  // namespace

Signature::Signature(nb::handle callable, int skipped) {
  const nb::object name = attribute(callable, "__name__");
  title_ = (name.is_valid() && PyUnicode_Check(name.ptr()) ? nb::cast<std::string>(name)
                                                           : std::string("the function")) +
           "()";
  const nb::object call = attribute(callable.type(), "__call__");
  if (PyFunction_Check(callable.ptr()))
    read_code(callable, skipped);
  else if (PyMethod_Check(callable.ptr()) &&
           PyFunction_Check(PyMethod_GET_FUNCTION(callable.ptr())))
    read_code(PyMethod_GET_FUNCTION(callable.ptr()), skipped + 1);
  else if (call.is_valid() && PyFunction_Check(call.ptr()) && !PyType_Check(callable.ptr()))
    read_code(call, skipped + 1);
  else
    take_anything();
}

int Signature::traverse(visitproc visit, void* arg) const {
  for (const nb::object& each : defaults_) Py_VISIT(each.ptr());
  return 0;
}

void Signature::take_anything() {
  names_ = {"args", "kwargs"};
  keys_.resize(2);
  defaults_.resize(2);
  rest_ = keywords_ = true;
}

void Signature::read_code(nb::handle function, int skipped) {
  auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.ptr()));
  const nb::object all = nb::steal(PyCode_GetVarnames(code));
  const auto add = [&](int number) {
    keys_.push_back(nb::borrow(PyTuple_GET_ITEM(all.ptr(), number)));
    names_.push_back(nb::cast<std::string>(keys_.back()));
    defaults_.emplace_back();
  };
  rest_ = (code->co_flags & CO_VARARGS) != 0;
  keywords_ = (code->co_flags & CO_VARKEYWORDS) != 0;
  if (code->co_argcount < skipped) return take_anything();  // def f(*args): self is one of them.
  positional_ = code->co_argcount - skipped;
  positional_only_ = std::max(0, code->co_posonlyargcount - skipped);
  keyword_only_ = code->co_kwonlyargcount;
  for (int i = skipped; i < code->co_argcount; ++i) add(i);
  if (PyObject* const defaults = PyFunction_GET_DEFAULTS(function.ptr())) {
    const auto given = std::min(static_cast<int>(PyTuple_GET_SIZE(defaults)), positional_);
    for (int i = 0; i < given; ++i)
      defaults_[static_cast<size_t>(positional_ - 1 - i)] =
          nb::borrow(PyTuple_GET_ITEM(defaults, PyTuple_GET_SIZE(defaults) - 1 - i));
  }
  const int after = code->co_argcount + keyword_only_;
  if (rest_) {
    add(after);
    keys_.back() = {};
  }
  for (int i = code->co_argcount; i < after; ++i) {
    add(i);
    PyObject* const defaults = PyFunction_GET_KW_DEFAULTS(function.ptr());
    if (defaults == nullptr) continue;
    PyObject* const value = PyDict_GetItemWithError(defaults, keys_.back().ptr());
    if (value != nullptr) defaults_.back() = nb::borrow(value);
  }
  if (keywords_) {
    add(after + (rest_ ? 1 : 0));
    keys_.back() = {};
  }
}

void Signature::refuse(const std::string& problem) const {
  throw UserTypeError(cat(title_, " ", problem), calling_line());
}

// The parameter of a keyword; -1 if there is none.
int Signature::find(PyObject* name) const {
  for (size_t i = static_cast<size_t>(positional_only_); i < keys_.size(); ++i) {
    if (!keys_[i].is_valid()) continue;
    if (keys_[i].ptr() == name || PyUnicode_Compare(keys_[i].ptr(), name) == 0)
      return static_cast<int>(i);
  }
  return -1;
}

BoundArguments Signature::bind(PyObject* const* arguments, Py_ssize_t count, PyObject* names,
                               std::vector<nb::object>& held) const {
  BoundArguments bound;
  bound.resize(names_.size());
  const auto taken = std::min<Py_ssize_t>(count, positional_);
  for (Py_ssize_t i = 0; i < taken; ++i) bound[static_cast<size_t>(i)] = arguments[i];
  if (count > positional_ && !rest_)
    refuse(cat("takes ", positional_, " positional argument", positional_ == 1 ? "" : "s", ", ",
               count, " were given"));
  if (rest_) {
    nb::object& rest = held.emplace_back(nb::steal(PyTuple_New(count - taken)));
    for (Py_ssize_t i = taken; i < count; ++i)
      PyTuple_SET_ITEM(rest.ptr(), i - taken, Py_NewRef(arguments[i]));
    bound[static_cast<size_t>(positional_)] = rest.ptr();
  }
  nb::object more;
  if (keywords_) {
    more = held.emplace_back(nb::steal(PyDict_New()));
    bound[names_.size() - 1] = more.ptr();
  }
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    const int place = find(name);
    const auto text = [&] { return nb::cast<std::string>(nb::handle(name)); };
    if (place < 0 && !keywords_) refuse(cat("got an unexpected keyword argument '", text(), "'"));
    if (place < 0) {
      if (PyDict_SetItem(more.ptr(), name, arguments[count + i]) != 0) nb::raise_python_error();
      continue;
    }
    if (bound[static_cast<size_t>(place)] != nullptr)
      refuse(cat("got multiple values for argument '", text(), "'"));
    bound[static_cast<size_t>(place)] = arguments[count + i];
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i] == nullptr) bound[i] = defaults_[i].ptr();
    if (bound[i] == nullptr) refuse(cat("is missing argument '", names_[i], "'"));
  }
  return bound;
}

nb::object Signature::call(nb::handle callable, nb::handle first,
                           const std::vector<nb::object>& bound) const {
  std::vector<PyObject*> flat;
  std::vector<nb::object> keys, held;
  if (first.is_valid()) flat.push_back(first.ptr());
  const auto positional = static_cast<size_t>(positional_);
  for (size_t i = 0; i < positional; ++i) flat.push_back(bound[i].ptr());
  if (rest_)
    for (const nb::handle each : nb::borrow<nb::tuple>(bound[positional]))
      flat.push_back(each.ptr());
  const size_t count = flat.size(), named = positional + (rest_ ? 1 : 0);
  for (size_t i = named; i < named + static_cast<size_t>(keyword_only_); ++i) {
    flat.push_back(bound[i].ptr());
    keys.push_back(keys_[i]);
  }
  if (keywords_) {
    for (const auto& [key, value] : nb::borrow<nb::dict>(bound.back())) {
      held.push_back(nb::borrow(value));
      flat.push_back(value.ptr());
      keys.push_back(nb::borrow(key));
    }
  }
  nb::object names;
  if (!keys.empty()) {
    names = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(keys.size())));
    for (size_t i = 0; i < keys.size(); ++i)
      PyTuple_SET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i), keys[i].inc_ref().ptr());
  }
  PyObject* const result = PyObject_Vectorcall(callable.ptr(), flat.data(), count, names.ptr());
  if (result == nullptr) nb::raise_python_error();
  return nb::steal(result);
}

}  // namespace tidemark::python
