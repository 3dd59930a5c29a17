// Numbers of bytes: what Python passes as one, and what it gets.
#pragma once

#include <optional>

#include "bindings.h"

namespace tidemark::python {

// A td.Bytes: an int that prints as "64.0 MiB".
nb::object bytes_object(Bytes bytes);
// An int, or a text such as "64 MiB"; `what` names it in errors.
Bytes bytes_from(nb::handle object, const char* what, Source at);
// The same, or a td.Budget; nothing for None.
std::optional<Budget> budget_from(nb::handle object, Source at);
// A td.WaitFor; nothing for None.
std::optional<WaitFor> wait_from(nb::handle object, Source at);

}  // namespace tidemark::python

template <>
struct nanobind::detail::type_caster<tidemark::Bytes> {
  NB_TYPE_CASTER(tidemark::Bytes, const_name("tidemark.Bytes"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    value = PyNumber_AsSsize_t(source.ptr(), nullptr);
    const bool failed = value.count == -1 && PyErr_Occurred() != nullptr;
    if (failed) PyErr_Clear();
    return !failed;
  }
  static handle from_cpp(tidemark::Bytes bytes, rv_policy, cleanup_list*) {
    return tidemark::python::bytes_object(bytes).release();
  }
};
