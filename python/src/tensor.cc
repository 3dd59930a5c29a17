// td.Tensor: the class, its operators and its conversions.
#include <sstream>

#include <nanobind/stl/string.h>
#include "bindings.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "shape.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {

PyTypeObject* tensor_class = nullptr;

namespace {

template <const BinaryOp& op>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (!is_value(a) || !is_value(b)) return Py_NewRef(Py_NotImplemented);
    const Source at = calling_line();
    const Value left(a, at), right(b, at);
    return wrap(op(left.operand(), right.operand(), at));
  });
}

PyType_Slot slots[] = {
    {Py_nb_add, reinterpret_cast<void*>(binary<add>)},
    {Py_nb_subtract, reinterpret_cast<void*>(binary<subtract>)},
    {Py_nb_multiply, reinterpret_cast<void*>(binary<multiply>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(binary<divide>)},
    {0, nullptr},
};

std::string text_of(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

nb::tuple shape_of(const Tensor& tensor) { return shape_tuple(tensor.shape()); }

// Nested lists of plain numbers.
nb::object list_of(const Tensor& tensor, Source at) {
  if (tensor.rank() > 0) {
    nb::list list;
    for (const Tensor& part : unstack(tensor, 0, at)) list.append(list_of(part, at));
    return list;
  }
  if (tensor.dtype() == DType::boolean) return nb::bool_(tensor.item<bool>(at));
  if (is_integer(tensor.dtype())) return nb::int_(tensor.item<int64_t>(at));
  return nb::float_(tensor.item<double>(at));
}

NestedList nested(nb::handle object, Source at) {
  if (PyBool_Check(object.ptr())) return NestedList(object.is(nb::handle(Py_True)));
  if (PyLong_Check(object.ptr())) return NestedList(nb::cast<int64_t>(object), at);
  if (PyFloat_Check(object.ptr())) return NestedList(nb::cast<double>(object), at);
  throw UserTypeError(cat("constant: ", Py_TYPE(object.ptr())->tp_name, " is not a number"), at);
}

}  // namespace

PyObject* wrap(Tensor&& tensor) {
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_class)));
  new (nb::inst_ptr<Tensor>(made)) Tensor(std::move(tensor));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

bool is_value(nb::handle object) {
  PyObject* const o = object.ptr();
  return is_tensor(o) || PyFloat_Check(o) || PyLong_Check(o) || nb::isinstance<Variable>(object);
}

Operand Value::read(nb::handle object, Source at) {
  PyObject* const o = object.ptr();
  if (is_tensor(o)) return Operand(tensor_in(o), at);
  if (PyFloat_Check(o)) return Operand(PyFloat_AS_DOUBLE(o), at);
  if (PyBool_Check(o)) return Operand(o == Py_True, at);
  if (PyLong_Check(o)) return Operand(nb::cast<int64_t>(object), at);
  held_ = tensor_from(object, at);
  return Operand(held_, at);
}

Tensor tensor_from(nb::handle object, Source at) {
  PyObject* const o = object.ptr();
  if (is_tensor(o)) return tensor_in(o);
  if (const Variable* variable = variable_in(o)) return value_of(*variable, at);
  return constant(nested(object, at), {}, at);
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor> cls(module, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(),
                         "An array of numbers. Its elements never change; names are rebound.");
  tensor_class = reinterpret_cast<PyTypeObject*>(cls.ptr());
  cls.def_prop_ro("shape", shape_of, "The sizes of the axes.")
      .def_prop_ro("dtype", &Tensor::dtype, "The type of the elements.")
      .def_prop_ro("ndim", &Tensor::rank, "The number of axes.")
      .def("__repr__", text_of)
      .def(
          "tolist", [](const Tensor& x) { return list_of(x, calling_line()); },
          "The elements as nested lists of plain numbers.");
}

}  // namespace tidemark::python
