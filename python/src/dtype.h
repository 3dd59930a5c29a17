// DType in Python: one object for each, so `is` and dictionaries work. An argument may also be a
// name ("f32", "float32"), one of NumPy's dtypes or scalar types, or bool.
#pragma once

#include <optional>

#include "bindings.h"

namespace tidemark::python {

// td.f32 and its like.
nb::handle dtype_object(DType dtype);
// Nothing if the object names none of ours.
std::optional<DType> dtype_from(nb::handle object);
// A UserTypeError that lists ours, if it names none.
DType dtype_argument(nb::handle object, Source at);

}  // namespace tidemark::python

template <>
struct nanobind::detail::type_caster<tidemark::DType> {
  NB_TYPE_CASTER(tidemark::DType, const_name("tidemark.DType"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    const std::optional<tidemark::DType> found = tidemark::python::dtype_from(source);
    if (found) value = *found;
    return found.has_value();
  }
  static handle from_cpp(tidemark::DType dtype, rv_policy, cleanup_list*) noexcept {
    return tidemark::python::dtype_object(dtype).inc_ref();
  }
};
