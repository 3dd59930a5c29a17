// td.Variable in Python.
#pragma once

#include "bindings.h"

namespace tidemark::python {

// The Python object of a Variable: the same one as long as one is held.
nb::object wrap(const Variable& variable);
// Null if the object is not a Variable.
const Variable* variable_in(PyObject* object);
// The current value. Another thread may hold the Variable's lock and wait for the GIL, so the GIL
// is released meanwhile.
Tensor value_of(const Variable& variable, Source at);

// The operators of a class whose objects stand for tensors: they read the tensor and leave the rest
// to Tensor's.
PyType_Slot* value_slots();

}  // namespace tidemark::python
