#include "errors.h"

#include <exception>
#include <new>
#include <string>

#include <nanobind/stl/string.h>

#include "source.h"
#include "tidemark/base/index_error.h"
#include "words.h"

namespace tidemark::python {
namespace {

// The classes, each held by the module as long as the process lives.
struct Classes {
  PyObject *error, *user, *index, *type, *over_budget, *device, *out_of_memory, *internal,
      *dataset_in_trace;
};
Classes classes;

PyObject* define(nb::module_& module, const char* name, const char* doc,
                 std::initializer_list<PyObject*> bases) {
  nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(bases.size())));
  Py_ssize_t at = 0;
  for (PyObject* base : bases) PyTuple_SET_ITEM(all.ptr(), at++, Py_NewRef(base));
  const std::string full = cat("tidemark.", name);
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, all.ptr(), nullptr);
  if (made == nullptr) nb::raise_python_error();
  module.attr(name) = nb::handle(made);
  return made;
}

}  // namespace

nb::object readable(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

namespace {

// What a function of the user raised, where the library added to its text.
void add_cause(const Error& error, const nb::object& made) {
  const auto* const nested = dynamic_cast<const std::nested_exception*>(&error);
  if (nested == nullptr || nested->nested_ptr() == nullptr) return;
  try {
    nested->rethrow_nested();
  } catch (const RaisedByUser& raised) {
    PyException_SetCause(made.ptr(), raised.exception().inc_ref().ptr());
  } catch (...) {
  }
}

// An instance with the text and the user's line.
nb::object instance(PyObject* cls, const Error& error) {
  nb::object made = nb::handle(cls)(readable(in_python(error.what())));
  const Source at = error.source();
  made.attr("file") = nb::str(at.file);
  made.attr("line") = at.line;
  made.attr("function") = nb::str(at.function);
  add_cause(error, made);
  return made;
}

void raise(PyObject* cls, const nb::object& made) { PyErr_SetObject(cls, made.ptr()); }

void raise_over_budget(const OverBudget& error) {
  const nb::object made = instance(classes.over_budget, error);
  made.attr("budget") = error.budget().count;
  made.attr("floor") = error.floor().count;
  raise(classes.over_budget, made);
}

void raise_out_of_memory(const OutOfMemory& error) {
  const nb::object made = instance(classes.out_of_memory, error);
  made.attr("asked") = error.asked().count;
  made.attr("limit") = error.limit().count;
  made.attr("in_use") = error.in_use().count;
  raise(classes.out_of_memory, made);
}

// The most derived classes first.
void translate(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const OverBudget& error) {
    raise_over_budget(error);
  } catch (const OutOfMemory& error) {
    raise_out_of_memory(error);
  } catch (const IndexError& error) {
    raise(classes.index, instance(classes.index, error));
  } catch (const DatasetInTrace& error) {
    raise(classes.dataset_in_trace, instance(classes.dataset_in_trace, error));
  } catch (const UserTypeError& error) {
    raise(classes.type, instance(classes.type, error));
  } catch (const UserError& error) {
    raise(classes.user, instance(classes.user, error));
  } catch (const DeviceError& error) {
    raise(classes.device, instance(classes.device, error));
  } catch (const InternalError& error) {
    raise(classes.internal, instance(classes.internal, error));
  } catch (const Error& error) {
    raise(classes.error, instance(classes.error, error));
  } catch (const EndsProgram& ends) {
    ends.error().restore();
  }
}

PyObject* class_of(nb::exception_type type) {
  switch (type) {
    case nb::exception_type::stop_iteration:
      return PyExc_StopIteration;
    case nb::exception_type::index_error:
      return PyExc_IndexError;
    case nb::exception_type::key_error:
      return PyExc_KeyError;
    case nb::exception_type::type_error:
      return PyExc_TypeError;
    case nb::exception_type::buffer_error:
      return PyExc_BufferError;
    case nb::exception_type::import_error:
      return PyExc_ImportError;
    case nb::exception_type::attribute_error:
      return PyExc_AttributeError;
    default:
      return PyExc_ValueError;
  }
}

}  // namespace

std::optional<Source> dataset_in_trace(const nb::python_error& error) {
  if (PyErr_GivenExceptionMatches(error.value().ptr(), classes.dataset_in_trace) == 0) return {};
  const nb::handle value = error.value();
  const nb::object file = value.attr("file"), function = value.attr("function");
  return line_at(nb::str(file).c_str(), nb::cast<unsigned>(value.attr("line")),
                 nb::str(function).c_str());
}

RaisedByUser::RaisedByUser(nb::python_error&& error) : error_(std::move(error)) {
  const nb::object name = error_.type().attr("__name__");
  text_ = cat(nb::str(name).c_str(), ": ", nb::str(error_.value()).c_str());
}

void set_error_from_current() noexcept {
  try {
    try {
      throw;
    } catch (const Error&) {
      translate(std::current_exception());
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const EndsProgram& ends) {
      ends.error().restore();
    } catch (const nb::builtin_exception& error) {
      PyErr_SetString(class_of(error.type()), error.what());
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  } catch (nb::python_error& error) {  // Of making the exception itself.
    error.restore();
  }
}

void bind_errors(nb::module_& module) {
  module.def("_in_python", [](const std::string& text) { return in_python(text); });
  Classes& c = classes;
  c.error = define(module, "Error", "What Tidemark raises.", {PyExc_Exception});
  c.user = define(module, "UserError", "Something impossible was asked for.",
                  {c.error, PyExc_ValueError});
  c.index =
      define(module, "UserIndexError", "An index is out of range.", {c.user, PyExc_IndexError});
  c.type = define(module, "UserTypeError", "A value of another type is wanted.",
                  {c.user, PyExc_TypeError});
  c.over_budget =
      define(module, "OverBudget",
             "A plan or a call would exceed its budget; `budget` and `floor` are bytes.", {c.user});
  c.device = define(module, "DeviceError", "The machine refused.", {c.error});
  c.out_of_memory = define(module, "OutOfMemory",
                           "No room for an allocation; `asked`, `limit` and `in_use` are bytes.",
                           {c.device, PyExc_MemoryError});
  c.dataset_in_trace =
      define(module, "_DatasetInTrace", "A Dataset is read while a function is traced.", {c.user});
  c.internal = define(module, "InternalError", "A bug in Tidemark.", {c.error});
  nb::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) { translate(pointer); });
}

}  // namespace tidemark::python
