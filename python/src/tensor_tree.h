// Users' structures of tensors, as control flow, gradients and results take them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bindings.h"
#include "tree.h"

namespace tidemark::python {

using Tensors = std::vector<Tensor>;

// Whether an object's class says that an array is inside.
bool has_array(PyObject* object);
// Plain values that are part of a structure: texts, bools, dtypes, td.Static.
bool is_constant(PyObject* object);
// Tensors, Variables, arrays and plain numbers are leaves; texts are constants; other objects are
// parts by identity.
Atom classify_value(PyObject* object);
// A plain number as a tensor that takes the dtype of others.
Tensor number_tensor(PyObject* number, Source at);
// The tensor that a leaf is, or becomes.
Tensor lifted_leaf(PyObject* leaf, Source at);

struct TensorTree {
  SharedTree tree;
  Tensors tensors;
};
TensorTree lifted(nb::handle object, Source at);
// The structure with these tensors. Consumes them.
nb::object filled(const Tree& tree, std::span<Tensor> tensors);

}  // namespace tidemark::python
