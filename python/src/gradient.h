// Gradients by Variables in Python: a Tensor, or a td.RowGradient where a table was looked up.
#pragma once

#include "bindings.h"

namespace tidemark::python {

// None if there is no gradient.
nb::object wrap(Gradient&& gradient);
// Null if the object is not a RowGradient.
const Gradient* rows_in(PyObject* object);
// A Tensor, a RowGradient, or what becomes a tensor; no value for None.
Gradient gradient_from(nb::handle object, Source at);

// The tape of a td.GradientTape that has recorded.
GradientTape& tape_from(nb::handle object, Source at);

}  // namespace tidemark::python
