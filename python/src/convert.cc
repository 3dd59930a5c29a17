#include "convert.h"

#include "errors.h"
#include "exchange.h"
#include "gradient.h"
#include "tidemark/tensor/tensor_state.h"
#include "variable.h"

namespace tidemark::python {
namespace {

const char* class_name(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

[[noreturn]] void refuse(nb::handle object, const char* what, const char* wanted, Source at) {
  throw UserTypeError(cat(what, ": ", wanted, " is wanted, and this is ", nb::repr(object).c_str(),
                          " (", class_name(object), ")"),
                      at);
}

int64_t whole(nb::handle number, Source at) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0)
    throw UserError(
        cat(nb::str(number).c_str(), " does not fit i64, in which plain integers are held"), at,
        "use a float, or a tensor: td::constant(n, td::u64)");
  if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

std::complex<double> complex_in(PyObject* number) {
  const Py_complex value = PyComplex_AsCComplex(number);
  return {value.real, value.imag};
}

// Calls f(item) for each item of a sequence that is not text; false if it is no sequence.
template <class F>
bool each_item(nb::handle object, F&& f) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) ||
      !PySequence_Check(object.ptr()))
    return false;
  const nb::object items = nb::steal(PySequence_Fast(object.ptr(), "a sequence is wanted"));
  if (!items.is_valid()) nb::raise_python_error();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    f(nb::handle(PySequence_Fast_GET_ITEM(items.ptr(), i)));
  return true;
}

}  // namespace

PyObject* wrap(Tensor&& tensor) {
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_class)));
  new (nb::inst_ptr<Tensor>(made)) Tensor(std::move(tensor));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

PyObject* wrap(std::vector<Tensor>&& tensors) {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), wrap(std::move(tensors[i])));
  return list.release().ptr();
}

bool is_value(nb::handle object) {
  PyObject* const o = object.ptr();
  return is_tensor(o) || PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) ||
         variable_in(o) != nullptr || nb::isinstance<Dim>(object) || has_array(object);
}

Operand Value::read(nb::handle object, Source at) {
  PyObject* const o = object.ptr();
  if (is_tensor(o)) return Operand(tensor_in(o), at);
  // One of NumPy's float64 is a float of Python's too, and weak as such.
  if (PyFloat_Check(o)) return Operand(PyFloat_AS_DOUBLE(o), at);
  if (PyComplex_Check(o)) return Operand(complex_in(o), at);
  if (PyBool_Check(o)) return Operand(o == Py_True, at);
  if (PyLong_CheckExact(o)) return Operand(whole(object, at), at);
  if (nb::isinstance<Dim>(object)) return Operand(nb::cast<Dim>(object), at);
  held_ = tensor_from(object, at);
  return Operand(held_, at);
}

Tensor tensor_from(nb::handle object, Source at) {
  PyObject* const o = object.ptr();
  if (is_tensor(o)) return tensor_in(o);
  if (const Variable* const variable = variable_in(o)) return value_of(*variable, at);
  if (const Gradient* const rows = rows_in(o)) return Tensor(*rows, at);
  if (PyBool_Check(o)) return Tensor(o == Py_True, at);
  if (PyLong_Check(o)) return Tensor(whole(object, at), at);
  if (PyFloat_Check(o)) return Tensor(PyFloat_AS_DOUBLE(o), at);
  if (PyComplex_Check(o)) return Tensor(std::complex<float>(complex_in(o)), at);
  if (has_array(object)) return shared_array(object, at);
  if (nb::isinstance<Dim>(object)) return detail::size_number(nb::cast<Dim>(object), at);
  return from_lists(object, {}, at);
}

std::vector<Tensor> tensors_from(nb::handle object, Source at) {
  std::vector<Tensor> list;
  if (object.is_none()) return list;
  if (is_tensor(object)) return unstack(tensor_in(object), 0, at);
  if (!each_item(object, [&](nb::handle item) { list.push_back(tensor_from(item, at)); }))
    refuse(object, "tensors", "a list of tensors", at);
  return list;
}

int64_t integer_from(nb::handle object, const char* what, Source at) {
  if (PyLong_CheckExact(object.ptr())) return whole(object, at);
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr()))
    refuse(object, what, "an integer", at);
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) nb::raise_python_error();
  return whole(number, at);
}

double real_from(nb::handle object, const char* what, Source at) {
  if (PyFloat_CheckExact(object.ptr())) return PyFloat_AS_DOUBLE(object.ptr());
  if (PyUnicode_Check(object.ptr()) || !PyNumber_Check(object.ptr()))
    refuse(object, what, "a number", at);
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

bool boolean_from(nb::handle object, const char* what, Source at) {
  if (object.ptr() == Py_True) return true;
  if (object.ptr() == Py_False) return false;
  if (!PyLong_Check(object.ptr()) && !has_array(object)) refuse(object, what, "True or False", at);
  const int truth = PyObject_IsTrue(object.ptr());
  if (truth < 0) nb::raise_python_error();
  return truth != 0;
}

std::string text_from(nb::handle object, const char* what, Source at) {
  if (!PyUnicode_Check(object.ptr())) refuse(object, what, "text", at);
  return nb::str(object).c_str();
}

std::vector<int64_t> integers_from(nb::handle object, const char* what, Source at) {
  if (PyLong_Check(object.ptr())) return {integer_from(object, what, at)};
  std::vector<int64_t> list;
  if (!each_item(object, [&](nb::handle item) { list.push_back(integer_from(item, what, at)); }))
    list.push_back(integer_from(object, what, at));
  return list;
}

Axes axes_from(nb::handle object, Source at) {
  if (object.is_none()) return {};
  if (PyLong_CheckExact(object.ptr())) return whole(object, at);
  return integers_from(object, "axis", at);
}

namespace {

nb::object element(const ArrayRef& array) {
  if (is_complex(array.dtype)) {
    const nb::object re = element(parts_of(array, 0)), im = element(parts_of(array, 1));
    return nb::steal(
        PyComplex_FromDoubles(PyFloat_AS_DOUBLE(re.ptr()), PyFloat_AS_DOUBLE(im.ptr())));
  }
  return visit_dtype(array.dtype, [&](auto value) -> nb::object {
    std::memcpy(&value, array.data, sizeof(value));
    using T = decltype(value);
    if constexpr (std::is_same_v<T, bool>)
      return nb::bool_(value);
    else if constexpr (std::is_integral_v<T>)
      return nb::int_(value);
    else if constexpr (std::is_floating_point_v<T>)
      return nb::float_(static_cast<double>(value));
    else
      return nb::float_(static_cast<double>(static_cast<float>(value)));
  });
}

nb::object list_of(const ArrayRef& array) {
  if (array.rank() == 0) return element(array);
  const int64_t count = array.shape[0];
  nb::object list = nb::steal(PyList_New(count));
  ArrayRef inner = array;
  inner.shape.erase(0);
  inner.strides.erase(0);
  for (int64_t i = 0; i < count; ++i) {
    inner.data = array.data + i * array.strides[0] * size_of(array.dtype);
    PyList_SET_ITEM(list.ptr(), i, list_of(inner).release().ptr());
  }
  return list;
}

}  // namespace

nb::object list_of(const Tensor& tensor, Source at) {
  return list_of(detail::array_of(tensor, at));
}

int64_t bytes_of(const Operand& operand) {
  const Tensor* const tensor = operand.tensor();
  if (tensor == nullptr || !tensor->has_value()) return 0;
  const detail::TensorState& state = *detail::TensorState::of(*tensor);
  return state.has_bytes() ? state.array.size() * size_of(state.array.dtype) : 0;
}

}  // namespace tidemark::python
