#include "shape.h"

#include <nanobind/stl/string.h>
#include "errors.h"
#include "source.h"

namespace tidemark::python {
namespace {

using detail::SizeOp;

// The other operand of a size's arithmetic; nothing for other types, so that Python asks them.
template <Dim (*combine)(Dim, Dim), bool reflected = false>
nb::object arithmetic(Dim size, nb::handle given) {
  const std::optional<Dim> other = given.is_none() ? std::nullopt : size_from(given);
  if (!other) return nb::borrow(Py_NotImplemented);
  const SourceScope scope(calling_line());
  return size_object(reflected ? combine(*other, size) : combine(size, *other));
}
Dim added(Dim a, Dim b) { return a + b; }
Dim subtracted(Dim a, Dim b) { return a - b; }
Dim multiplied(Dim a, Dim b) { return a * b; }
Dim divided(Dim a, Dim b) { return a / b; }

template <class Compare>
nb::object compared(Dim size, nb::handle given, Compare compare) {
  const std::optional<Dim> other = given.is_none() ? std::nullopt : size_from(given);
  if (!other) return nb::borrow(Py_NotImplemented);
  const SourceScope scope(calling_line());
  return nb::bool_(compare(size, *other));
}

int64_t number_of(Dim size) {
  const SourceScope scope(calling_line());
  return size.number();
}

bool is_whole_number(PyObject* object) {
  return PyIndex_Check(object) && !PyBool_Check(object) && !PyFloat_Check(object);
}

}  // namespace

nb::object size_object(Dim size) {
  if (size.is_traced()) return nb::cast(size);
  if (size.is_any()) return nb::none();
  return nb::int_(size.number());
}

nb::tuple shape_tuple(const Shape& shape, Source at) {
  const nb::object sizes = nb::steal(PyTuple_New(shape.rank()));
  for (int64_t axis = 0; axis < shape.rank(); ++axis)
    PyTuple_SET_ITEM(sizes.ptr(), axis, size_object(shape[{axis, at}]).release().ptr());
  return nb::borrow<nb::tuple>(sizes);
}

std::optional<Dim> size_from(nb::handle object) {
  PyObject* const o = object.ptr();
  if (object.is_none()) return Dim(open);
  if (nb::isinstance<Dim>(object)) return nb::cast<Dim>(object);
  if (!is_whole_number(o)) return {};
  const int64_t number = PyNumber_AsSsize_t(o, nullptr);
  if (number == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return Dim(number);
}

Shape shape_from(nb::handle object, Source at) {
  Shape shape;
  if (!PyUnicode_Check(object.ptr()) && PySequence_Check(object.ptr())) {
    const nb::object sizes = nb::steal(PySequence_Tuple(object.ptr()));
    if (!sizes.is_valid()) nb::raise_python_error();
    for (const nb::handle each : nb::borrow<nb::tuple>(sizes)) {
      const std::optional<Dim> size = size_from(each);
      if (!size)
        throw UserTypeError(cat("a shape has whole numbers, got ", Py_TYPE(each.ptr())->tp_name,
                                " ", nb::cast<std::string>(nb::str(each))),
                            at, "write (2, 3); None is an open size of a spec");
      shape.push_back(*size);
    }
    return shape;
  }
  const std::optional<Dim> size = object.is_none() ? std::nullopt : size_from(object);
  if (!size)
    throw UserTypeError(
        cat("a shape is a tuple of whole numbers, got ", Py_TYPE(object.ptr())->tp_name), at,
        "write (2, 3)");
  shape.push_back(*size);
  return shape;
}

void bind_shape(nb::module_& module) {
  nb::class_<Dim>(module, "Dim",
                  "A size. Inside a function it may be open until the call: arithmetic keeps it "
                  "open, and reading it as a number makes a trace for that number alone.")
      .def(nb::init<int64_t>(), nb::arg("size"))
      .def("__add__", arithmetic<added>, nb::is_operator())
      .def("__radd__", arithmetic<added, true>, nb::is_operator())
      .def("__sub__", arithmetic<subtracted>, nb::is_operator())
      .def("__rsub__", arithmetic<subtracted, true>, nb::is_operator())
      .def("__mul__", arithmetic<multiplied>, nb::is_operator())
      .def("__rmul__", arithmetic<multiplied, true>, nb::is_operator())
      .def("__floordiv__", arithmetic<divided>, nb::is_operator())
      .def("__rfloordiv__", arithmetic<divided, true>, nb::is_operator())
      .def(
          "__eq__",
          [](Dim a, nb::handle b) { return compared(a, b, [](Dim x, Dim y) { return x == y; }); },
          nb::is_operator())
      .def(
          "__lt__",
          [](Dim a, nb::handle b) { return compared(a, b, [](Dim x, Dim y) { return x < y; }); },
          nb::is_operator())
      .def(
          "__le__",
          [](Dim a, nb::handle b) { return compared(a, b, [](Dim x, Dim y) { return x <= y; }); },
          nb::is_operator())
      .def(
          "__gt__",
          [](Dim a, nb::handle b) { return compared(a, b, [](Dim x, Dim y) { return x > y; }); },
          nb::is_operator())
      .def(
          "__ge__",
          [](Dim a, nb::handle b) { return compared(a, b, [](Dim x, Dim y) { return x >= y; }); },
          nb::is_operator())
      .def("__index__", number_of)
      .def("__int__", number_of)
      .def("__float__", [](Dim size) { return static_cast<double>(number_of(size)); })
      .def("__bool__", [](Dim size) { return number_of(size) != 0; })
      .def("__hash__", [](Dim size) { return std::hash<int64_t>()(number_of(size)); })
      .def("__repr__", [](Dim size) { return cat(size); });
  module.attr("open") = nb::int_(open);
}

}  // namespace tidemark::python
