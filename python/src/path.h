// File names: str or anything with __fspath__.
#pragma once

#include <string>

#include "bindings.h"

namespace tidemark::python {

struct PathText {
  std::string text;
};

}  // namespace tidemark::python

template <>
struct nanobind::detail::type_caster<tidemark::python::PathText> {
  NB_TYPE_CASTER(tidemark::python::PathText, const_name("str | os.PathLike"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    PyObject* bytes = nullptr;
    if (PyUnicode_FSConverter(source.ptr(), &bytes) == 0) {
      PyErr_Clear();
      return false;
    }
    value.text.assign(PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
    Py_DECREF(bytes);
    return true;
  }
};
