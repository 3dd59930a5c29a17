// tidemark::Bytes in Python: tidemark.Bytes, an int that prints itself as "64.0 MiB".
#pragma once

#include "bindings.h"

namespace tidemark::python {

// A new tidemark.Bytes; null with the Python error set if there is no room for it.
PyObject* bytes_object(int64_t count) noexcept;

}  // namespace tidemark::python

template <>
struct nanobind::detail::type_caster<tidemark::Bytes> {
  NB_TYPE_CASTER(tidemark::Bytes, const_name("int"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!PyLong_Check(source.ptr()) || PyBool_Check(source.ptr())) return false;
    value = PyLong_AsLongLong(source.ptr());
    if (value.count != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
  }
  static handle from_cpp(tidemark::Bytes bytes, rv_policy, cleanup_list*) noexcept {
    return tidemark::python::bytes_object(bytes.count);
  }
};
