// How each function of the catalogue is run.
#pragma once

#include <string_view>

#include "arguments.h"

namespace tidemark::python {

struct Binding {
  std::string_view name;
  PyObject* (*run)(Arguments& in);
  // Where Python has other arguments than C++: one function for several signatures, NumPy's names.
  std::string_view arguments = {};
};

// Null where a function is bound elsewhere: control flow, print, the random generator.
const Binding* find_binding(std::string_view name);
// The same for op objects, by family.
PyObject* (*family_binding(const OpDef& op))(Arguments& in);

}  // namespace tidemark::python
