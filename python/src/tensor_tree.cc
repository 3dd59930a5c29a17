#include "tensor_tree.h"

#include "convert.h"
#include "dtype.h"
#include "variable.h"

namespace tidemark::python {

bool has_array(PyObject* object) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return PyObject_CheckBuffer(object) || PyObject_HasAttrString(type, "__array__") != 0 ||
         PyObject_HasAttrString(type, "__dlpack__") != 0;
}

bool is_constant(PyObject* object) {
  static PyTypeObject* const dtype_class = Py_TYPE(nb::cast(DType::f32).ptr());
  PyTypeObject* const type = Py_TYPE(object);
  return PyBool_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object) ||
         type == dtype_class || is_static(object) || PyComplex_Check(object) ||
         PySlice_Check(object) || type == &PyRange_Type || type == &PyEllipsis_Type ||
         PyType_Check(object);
}

Atom classify_value(PyObject* object) {
  if (is_tensor(object) || PyFloat_Check(object) || PyLong_Check(object)) return Atom::leaf;
  if (is_constant(object)) return Atom::constant;
  if (variable_in(object) != nullptr || has_array(object)) return Atom::leaf;
  return Atom::object;
}

Tensor number_tensor(PyObject* number, Source at) {
  if (PyFloat_Check(number)) return Tensor(PyFloat_AS_DOUBLE(number), at);
  if (PyBool_Check(number)) return Tensor(number == Py_True, at);
  const int64_t whole = PyLong_AsLongLong(number);
  if (whole == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return Tensor(whole, at);
}

Tensor lifted_leaf(PyObject* leaf, Source at) {
  if (is_tensor(leaf)) return tensor_in(leaf);
  if (PyFloat_Check(leaf) || PyLong_Check(leaf)) return number_tensor(leaf, at);
  return tensor_from(leaf, at);
}

TensorTree lifted(nb::handle object, Source at) {
  const FlatTree flat = flatten(object, classify_value);
  TensorTree made{flat.tree, {}};
  made.tensors.reserve(flat.leaves.size());
  for (const nb::object& leaf : flat.leaves) made.tensors.push_back(lifted_leaf(leaf.ptr(), at));
  return made;
}

nb::object filled(const Tree& tree, std::span<Tensor> tensors) {
  size_t at = 0, leaf = 0;
  nb::object made = build(tree, at, [&] { return nb::steal(wrap(std::move(tensors[leaf++]))); });
  if (!made.is_valid()) nb::raise_python_error();
  return made;
}

}  // namespace tidemark::python
