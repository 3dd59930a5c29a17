#include "captured.h"

#include <algorithm>

#include <nanobind/stl/string.h>

namespace tidemark::python {
namespace {

constexpr int64_t kMostParts = 1000;  // A larger container is data, and not compared.

// Whether its text says everything about it; counts its parts.
bool is_plain(PyObject* object, int64_t& parts) {
  if (++parts > kMostParts) return false;
  if (object == Py_None || PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
      PyUnicode_CheckExact(object) || PyBytes_CheckExact(object))
    return true;
  const bool is_list = PyList_CheckExact(object) || PyTuple_CheckExact(object);
  if (!is_list && !PyDict_CheckExact(object) && !PyAnySet_CheckExact(object)) return false;
  for (const nb::handle part : nb::handle(object)) {
    if (!is_plain(part.ptr(), parts)) return false;
    if (PyDict_CheckExact(object) && !is_plain(PyDict_GetItem(object, part.ptr()), parts))
      return false;
  }
  return true;
}

nb::object attribute(nb::handle object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

std::string shortened(const std::string& text) {
  constexpr size_t most = 60;
  return text.size() <= most ? text : cat(std::string_view(text).substr(0, most), "...");
}

}  // namespace

Captured::Captured(nb::handle f, nb::handle self) {
  nb::handle function = f, owner = self;
  if (PyMethod_Check(f.ptr())) {
    function = PyMethod_GET_FUNCTION(f.ptr());
    owner = PyMethod_GET_SELF(f.ptr());
  }
  if (!PyFunction_Check(function.ptr())) return;
  const nb::handle code = PyFunction_GET_CODE(function.ptr());
  const nb::object free = attribute(code, "co_freevars");
  if (PyObject* const cells = PyFunction_GET_CLOSURE(function.ptr())) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); ++i) {
      PyObject* const value = PyCell_GET(PyTuple_GET_ITEM(cells, i));
      if (value != nullptr)
        add(cat("the captured `",
                nb::cast<std::string>(nb::handle(PyTuple_GET_ITEM(free.ptr(), i))), "`"),
            value);
    }
  }
  add_code(code.ptr(), PyFunction_GET_GLOBALS(function.ptr()), owner);
}

// The names that the code reads, and those of the functions written inside it.
void Captured::add_code(PyObject* code, nb::handle globals, nb::handle self) {
  const nb::object names = attribute(code, "co_names"), constants = attribute(code, "co_consts");
  const nb::object own = self.is_valid() ? attribute(self, "__dict__") : nb::object();
  for (const nb::handle name : names) {
    const std::string text = nb::cast<std::string>(name);
    if (PyObject* const value = PyDict_GetItem(globals.ptr(), name.ptr()))
      add(cat("the global `", text, "`"), value);
    if (!own.is_valid() || !PyDict_Check(own.ptr())) continue;
    if (PyObject* const value = PyDict_GetItem(own.ptr(), name.ptr()))
      add(cat("the attribute `self.", text, "`"), value);
  }
  for (const nb::handle constant : constants)
    if (PyCode_Check(constant.ptr())) add_code(constant.ptr(), globals, self);
}

void Captured::add(std::string name, nb::handle value) {
  const bool is_known = std::any_of(values_.begin(), values_.end(),
                                    [&](const Value& each) { return each.name == name; });
  int64_t parts = 0;
  if (is_known || !is_plain(value.ptr(), parts)) return;
  values_.push_back({std::move(name), nb::cast<std::string>(nb::repr(value))});
}

std::string Captured::changes(const Captured& now) const {
  std::string changed;
  for (const Value& was : values_) {
    const auto is = std::find_if(now.values_.begin(), now.values_.end(),
                                 [&](const Value& each) { return each.name == was.name; });
    if (is != now.values_.end() && is->text == was.text) continue;
    changed += cat(was.name, " was ", shortened(was.text), " when the function was traced, and is ",
                   is == now.values_.end() ? std::string("something else") : shortened(is->text),
                   " now\n");
  }
  return changed;
}

}  // namespace tidemark::python
