#include "operators.h"

#include "convert.h"
#include "errors.h"
#include "source.h"

namespace tidemark::python {
namespace {

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

// Objects of others are left to their own operators.
template <class F>
PyObject* compute(PyObject* a, PyObject* b, const F& f) {
  return guarded([&]() -> PyObject* {
    if (!is_value(a) || !is_value(b)) return Py_NewRef(Py_NotImplemented);
    const Source at = calling_line();
    const Value left(a, at), right(b, at);
    Tensor result;
    {
      const Computing computing(bytes_of(left.operand()) + bytes_of(right.operand()));
      result = f(left.operand(), right.operand(), at);
    }
    return wrap(std::move(result));
  });
}

template <const BinaryOp& op>
PyObject* binary(PyObject* a, PyObject* b) {
  return compute(a, b, op);
}

template <const UnaryOp& op>
PyObject* unary(PyObject* a) {
  return guarded([&] {
    const Source at = calling_line();
    const Operand x(tensor_in(a), at);
    Tensor result;
    {
      const Computing computing(bytes_of(x));
      result = op(x, at);
    }
    return wrap(std::move(result));
  });
}

PyObject* product(PyObject* a, PyObject* b) {
  return compute(
      a, b, [](const Operand& x, const Operand& y, Source at) { return matmul(x, y, {}, at); });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return Py_NewRef(Py_NotImplemented);
  return compute(a, b, pow);
}

PyObject* divmod(PyObject* a, PyObject* b) {
  PyObject* const quotient = binary<floor_divide>(a, b);
  if (quotient == nullptr || quotient == Py_NotImplemented) return quotient;
  PyObject* const rest = binary<remainder>(a, b);
  if (rest == nullptr) {
    Py_DECREF(quotient);
    return nullptr;
  }
  return Py_BuildValue("(NN)", quotient, rest);
}

PyObject* compare(PyObject* a, PyObject* b, int how) {
  switch (how) {
    case Py_EQ:
      return binary<equal>(a, b);
    case Py_NE:
      return binary<not_equal>(a, b);
    case Py_LT:
      return binary<less>(a, b);
    case Py_LE:
      return binary<less_equal>(a, b);
    case Py_GT:
      return binary<greater>(a, b);
    default:
      return binary<greater_equal>(a, b);
  }
}

PyObject* same(PyObject* a) { return Py_NewRef(a); }

int truth(PyObject* a) {
  return guarded(
      [&] {
        const Tensor& x = tensor_in(a);
        const Source at = calling_line();
        if (is_complex(x.dtype())) return x.item<std::complex<double>>(at) != 0.0 ? 1 : 0;
        return x.item<bool>(at) ? 1 : 0;
      },
      -1);
}

PyObject* integer_of(const Tensor& x, Source at) {
  if (x.dtype() == DType::u64) return PyLong_FromUnsignedLongLong(x.item<uint64_t>(at));
  return PyLong_FromLongLong(x.item<int64_t>(at));
}

PyObject* as_integer(PyObject* a) {
  return guarded([&]() -> PyObject* {
    const Tensor& x = tensor_in(a);
    const Source at = calling_line();
    if (is_float(x.dtype())) return PyLong_FromDouble(x.item<double>(at));
    return integer_of(x, at);
  });
}

PyObject* as_float(PyObject* a) {
  return guarded([&] { return PyFloat_FromDouble(tensor_in(a).item<double>(calling_line())); });
}

PyObject* as_index(PyObject* a) {
  return guarded([&] {
    const Tensor& x = tensor_in(a);
    const Source at = calling_line();
    if (!is_integer(x.dtype()) || x.rank() != 0)
      throw UserTypeError(cat("index: ", x.dtype(), x.shape(), " is not one integer"), at,
                          "only an integer tensor of rank 0 is an index");
    return integer_of(x, at);
  });
}

}  // namespace

void add_operator_slots(std::vector<PyType_Slot>& slots) {
  const PyType_Slot list[] = {
      {Py_nb_add, slot(binary<add>)},
      {Py_nb_subtract, slot(binary<subtract>)},
      {Py_nb_multiply, slot(binary<multiply>)},
      {Py_nb_true_divide, slot(binary<divide>)},
      {Py_nb_floor_divide, slot(binary<floor_divide>)},
      {Py_nb_remainder, slot(binary<remainder>)},
      {Py_nb_divmod, slot(divmod)},
      {Py_nb_power, slot(power)},
      {Py_nb_matrix_multiply, slot(product)},
      {Py_nb_and, slot(binary<bitwise_and>)},
      {Py_nb_or, slot(binary<bitwise_or>)},
      {Py_nb_xor, slot(binary<bitwise_xor>)},
      {Py_nb_lshift, slot(binary<left_shift>)},
      {Py_nb_rshift, slot(binary<right_shift>)},
      {Py_nb_negative, slot(unary<negative>)},
      {Py_nb_positive, slot(same)},
      {Py_nb_absolute, slot(unary<abs>)},
      {Py_nb_invert, slot(unary<bitwise_invert>)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_int, slot(as_integer)},
      {Py_nb_float, slot(as_float)},
      {Py_nb_index, slot(as_index)},
      {Py_tp_richcompare, slot(compare)},
  };
  slots.insert(slots.end(), std::begin(list), std::end(list));
}

}  // namespace tidemark::python
