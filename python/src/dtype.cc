#include "dtype.h"

#include <array>
#include <string_view>

#include "errors.h"

namespace tidemark::python {
namespace {

// What Python holds: nanobind would take the enumeration itself for one of Python's.
struct ElementType {
  DType dtype;
};
std::array<PyObject*, kStoredDTypes> objects;  // Held as long as the process lives.

// The name that NumPy and the array API use.
constexpr std::string_view kLongNames[kStoredDTypes] = {
    "float16", "bfloat16", "float32", "float64", "int8", "int16",     "int32",     "int64",
    "uint8",   "uint16",   "uint32",  "uint64",  "bool", "complex64", "complex128"};

std::optional<DType> named(std::string_view text) {
  for (int i = 0; i < kStoredDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (text == name(dtype) || text == kLongNames[i]) return dtype;
  }
  return {};
}

std::optional<DType> named(nb::handle text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    return {};
  }
  return named(std::string_view(bytes, static_cast<size_t>(size)));
}

// `object.attribute`, if that is text which names a dtype: dtypes of NumPy have `name`, its scalar
// types `__name__`.
std::optional<DType> named_by(nb::handle object, const char* attribute) {
  const nb::object text = nb::steal(PyObject_GetAttrString(object.ptr(), attribute));
  if (!text.is_valid()) {
    PyErr_Clear();
    return {};
  }
  return PyUnicode_Check(text.ptr()) ? named(text) : std::nullopt;
}

}  // namespace

nb::handle dtype_object(DType dtype) { return objects[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from(nb::handle object) {
  if (nb::isinstance<ElementType>(object)) return nb::cast<ElementType&>(object).dtype;
  if (PyUnicode_Check(object.ptr())) return named(object);
  if (PyType_Check(object.ptr())) return named_by(object, "__name__");
  return named_by(object, "name");
}

DType dtype_argument(nb::handle object, Source at) {
  const std::optional<DType> found = dtype_from(object);
  if (!found)
    throw UserTypeError(
        cat("dtype: ", nb::repr(object).c_str(), " is not a dtype of Tidemark"), at,
        "there are td.f16, td.bf16, td.f32, td.f64, td.i8 to td.i64, td.u8 to td.u64, td.bool, "
        "td.c64, td.c128");
  return *found;
}

void bind_dtype(nb::module_& module) {
  nb::class_<ElementType> cls(module, "DType", "The type of a tensor's elements: td.f32.");
  cls.def_prop_ro(
         "name", [](const ElementType& it) { return name(it.dtype); }, "\"f32\"")
      .def_prop_ro(
          "itemsize", [](const ElementType& it) { return size_of(it.dtype); },
          "Bytes of one element.")
      .def_prop_ro("is_float", [](const ElementType& it) { return is_float(it.dtype); })
      .def_prop_ro("is_integer", [](const ElementType& it) { return is_integer(it.dtype); })
      .def_prop_ro("is_complex", [](const ElementType& it) { return is_complex(it.dtype); })
      .def("__repr__",
           [](const ElementType& it) { return nb::str(cat("td.", name(it.dtype)).c_str()); })
      .def("__str__", [](const ElementType& it) { return name(it.dtype); })
      // Copies and unpickled ones are the same object.
      .def("__reduce__", [](const ElementType& it) { return name(it.dtype); });
  cls.attr("__module__") = "tidemark";
  for (int i = 0; i < kStoredDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    objects[static_cast<size_t>(i)] = nb::cast(ElementType{dtype}).release().ptr();
    module.attr(name(dtype)) = dtype_object(dtype);
    module.attr(std::string(kLongNames[i]).c_str()) = dtype_object(dtype);
  }
}

}  // namespace tidemark::python
