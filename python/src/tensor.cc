// td.Tensor: the class, its properties, conversions and text.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "arguments.h"
#include "bindings.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "exchange.h"
#include "operators.h"
#include "shape.h"
#include "source.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/array_text.h"

namespace tidemark::python {

PyTypeObject* tensor_class = nullptr;

namespace {

// ---- text ---------------------------------------------------------------------------------------

std::string text_of(const Tensor& tensor) { return cat(tensor); }

// As NumPy writes arrays: Tensor([1., 2.], dtype=f32).
std::string representation(const Tensor& tensor) {
  if (!tensor.has_value()) return "Tensor()";
  const detail::TensorState& state = *detail::TensorState::of(tensor);
  if (state.kind != detail::TensorState::Kind::concrete) return cat("Tensor(", tensor, ")");
  constexpr size_t kPrefix = 7, kLineWidth = 75;  // "Tensor("
  const std::string elements = array_text(state.array, {",", kPrefix});
  const std::string shape =
      tensor.size() == 0 && tensor.rank() > 1 ? cat(", shape=", tensor.shape()) : "";
  const std::string rest = cat(shape, ", dtype=", tensor.dtype(), ")");
  const size_t line = elements.size() - (elements.rfind('\n') + 1);
  const bool fits =
      line + (elements.find('\n') == std::string::npos ? kPrefix : 0) + rest.size() <= kLineWidth;
  if (fits) return cat("Tensor(", elements, rest);
  return cat("Tensor(", elements, ",\n", std::string(kPrefix, ' '), rest.substr(2));
}

// format(x, ".2f") of one element; of more, only without a format.
nb::object formatted(const Tensor& tensor, const nb::str& spec) {
  if (nb::len(spec) == 0) return nb::str(text_of(tensor).c_str());
  if (tensor.rank() != 0)
    throw UserTypeError(cat("format: \"", spec.c_str(), "\" is for one number, and this is ",
                            tensor.dtype(), tensor.shape()),
                        calling_line(), "format x.item() or each of x.tolist()");
  return nb::steal(PyObject_Format(list_of(tensor, calling_line()).ptr(), spec.ptr()));
}

// ---- NumPy --------------------------------------------------------------------------------------

// Of ml_dtypes, if it is installed.
nb::object bfloat16_of_numpy() {
  try {
    return nb::module_::import_("ml_dtypes").attr("bfloat16");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return nb::none();
  }
}

// An array over the tensor's memory, read-only. NumPy has no bf16 of its own: it is the dtype of
// ml_dtypes over the same memory, and without ml_dtypes a copy in float32.
nb::object to_numpy(const Tensor& tensor) {
  const Source at = calling_line();
  const nb::object asarray = nb::module_::import_("numpy").attr("asarray");
  detail::array_of(tensor, at);  // Before NumPy asks, which hides why there is no buffer.
  if (tensor.dtype() != DType::bf16) {
    const nb::object self = nb::steal(wrap(Tensor(tensor)));
    return asarray(nb::steal(PyMemoryView_FromObject(self.ptr())));
  }
  const nb::object bfloat16 = bfloat16_of_numpy();
  if (bfloat16.is_none()) return to_numpy(cast(tensor, DType::f32, at));
  ArrayRef bits = detail::array_of(tensor, at);
  bits.dtype = DType::f16;  // Which NumPy has, and which has as many bytes.
  return to_numpy(detail::make_view(tensor, bits, at)).attr("view")(bfloat16);
}

nb::object to_array(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  nb::object array = to_numpy(tensor);
  if (copy.ptr() == Py_True) array = array.attr("copy")();
  if (dtype.is_none() || nb::object(array.attr("dtype")).equal(dtype)) return array;
  return array.attr("astype")(dtype);
}

// ---- pickling and copies ------------------------------------------------------------------------

Tensor from_bytes(nb::handle data, DType dtype, const Shape& shape, Source at) {
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  Tensor made = from_callback(
      shape, dtype,
      [&](std::span<std::byte> bytes) { std::memcpy(bytes.data(), view.buf, bytes.size()); }, at);
  PyBuffer_Release(&view);
  return made;
}

nb::object bytes_of_elements(const Tensor& tensor, Source at) {
  const Tensor dense = detail::dense(tensor, at);
  const ArrayRef& array = detail::array_of(dense, at);
  return nb::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(array.data),
                                             array.size() * size_of(array.dtype)));
}

nb::tuple reduced(const Tensor& tensor) {
  const Source at = calling_line();
  const nb::object make = nb::module_::import_("tidemark._restore").attr("tensor");
  return nb::make_tuple(make, nb::make_tuple(bytes_of_elements(tensor, at), name(tensor.dtype()),
                                             shape_tuple(tensor.shape(), at)));
}

// ---- properties ---------------------------------------------------------------------------------

nb::object transposed(const Tensor& x) { return nb::steal(wrap(transpose(x, {}, calling_line()))); }

Tensor matrix_transposed(const Tensor& x) {
  const Source at = calling_line();
  if (x.rank() < 2)
    throw UserError(cat("mT: ", x.dtype(), x.shape(), " has fewer than two axes"), at,
                    "use x.T, or add an axis: x[:, None]");
  std::vector<int64_t> order(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order, at);
}

// As NumPy does it: digits behind the point are rounded at a power of ten.
Tensor rounded(const Tensor& x, int digits) {
  const Source at = calling_line();
  if (!is_float(x.dtype()) || digits == 0) return round(x, at);
  const Tensor scale = constant(std::pow(10.0, std::abs(digits)), x.dtype(), at);
  return digits > 0 ? divide(round(multiply(x, scale, at), at), scale, at)
                    : multiply(round(divide(x, scale, at), at), scale, at);
}

nb::object item(const Tensor& x) {
  const Source at = calling_line();
  if (x.size() != 1) return nb::float_(x.item<double>(at));  // Says what is wrong.
  return list_of(reshape(x, {}, at), at);
}

void def_properties(nb::class_<Tensor>& cls) {
  cls.def_prop_ro(
         "shape", [](const Tensor& x) { return shape_tuple(x.shape(), calling_line()); },
         "The sizes of the axes, a tuple.")
      .def_prop_ro("dtype", &Tensor::dtype, "The type of the elements: td.f32.")
      .def_prop_ro("ndim", &Tensor::rank, "The number of axes.")
      .def_prop_ro("rank", &Tensor::rank, "The number of axes.")
      .def_prop_ro(
          "size", [](const Tensor& x) { return size_object(x.shape().open_size()); },
          "The number of elements.")
      .def_prop_ro(
          "nbytes", [](const Tensor& x) { return x.size_bytes().count; },
          "The bytes of its elements if they were contiguous.")
      .def_prop_ro(
          "itemsize", [](const Tensor& x) { return size_of(x.dtype()); }, "Bytes of one element.")
      .def_prop_ro(
          "real", [](const Tensor& x) { return real(x, calling_line()); },
          "The real parts, a view; of a real tensor, itself.")
      .def_prop_ro(
          "imag", [](const Tensor& x) { return imag(x, calling_line()); },
          "The imaginary parts, a view; of a real tensor, zeros.")
      .def_prop_ro("T", transposed, "All axes reversed.")
      .def_prop_ro("mT", matrix_transposed, "The last two axes exchanged.")
      .def_prop_ro(
          "device", [](const Tensor&) { return "cpu"; }, "\"cpu\"")
      .def_prop_ro(
          "source",
          [](const Tensor& x) {
            const Source at = x.source();
            return nb::make_tuple(at.file, at.line, at.function);
          },
          "The line that made it: (file, line, function).");
}

void def_conversions(nb::class_<Tensor>& cls) {
  cls.def("item", item, "The one element as a Python number.")
      .def(
          "tolist", [](const Tensor& x) { return list_of(x, calling_line()); },
          "The elements as nested lists of Python numbers.")
      .def(
          "__complex__",
          [](const Tensor& x) {
            const auto value = x.item<std::complex<double>>(calling_line());
            return nb::steal(PyComplex_FromDoubles(value.real(), value.imag()));
          },
          "The one element as a complex number of Python.")
      .def("numpy", to_numpy, "A NumPy array over the same memory, read-only.")
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::kw_only(),
           nb::arg("copy") = nb::none())
      .def(
          "tobytes", [](const Tensor& x) { return bytes_of_elements(x, calling_line()); },
          "The elements in row-major order as bytes.")
      .def(
          "flatten", [](const Tensor& x) { return reshape(x, {-1}, calling_line()); },
          "All elements along one axis.")
      .def(
          "ravel", [](const Tensor& x) { return reshape(x, {-1}, calling_line()); },
          "All elements along one axis.")
      .def(
          "copy", [](const Tensor& x) { return identity(x, calling_line()); },
          "The elements in memory of their own.")
      .def("__copy__", [](nb::object self) { return self; })
      .def("__deepcopy__", [](const Tensor& x, nb::handle) { return identity(x, calling_line()); })
      .def("__reduce__", reduced)
      .def("__repr__", representation)
      .def("__str__", text_of)
      .def("__format__", formatted)
      .def("__round__", rounded, nb::arg("ndigits") = 0)
      .def(
          "to_device",
          [](nb::object self, const std::string& device, nb::handle) {
            if (device != "cpu")
              throw UserError(cat("to_device: there is no \"", device, "\" here"), calling_line(),
                              "tensors of Python are on \"cpu\"");
            return self;
          },
          nb::arg("device"), nb::kw_only(), nb::arg("stream") = nb::none())
      .def(
          "__array_namespace__",
          [](const Tensor&, nb::handle version) {
            return nb::module_::import_("tidemark.array_api").attr("_namespace")(version);
          },
          nb::kw_only(), nb::arg("api_version") = nb::none());
  // NumPy's operators leave the work to ours.
  cls.attr("__array_priority__") = 1000;
}

}  // namespace

void bind_tensor(nb::module_& module) {
  static std::vector<PyType_Slot> slots;
  add_operator_slots(slots);
  add_index_slots(slots);
  slots.push_back({Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)});
  slots.push_back({Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)});
  slots.push_back({0, nullptr});
  nb::class_<Tensor> cls(module, "Tensor", nb::type_slots(slots.data()),
                         nb::is_weak_referenceable(), nb::is_final(),
                         "An array of numbers. Its elements never change: an operation makes a new "
                         "tensor, and `del x` gives the memory back at once.");
  tensor_class = reinterpret_cast<PyTypeObject*>(cls.ptr());
  cls.attr("__module__") = "tidemark";
  def_properties(cls);
  def_conversions(cls);
  module.def(
      "asarray",
      [](nb::handle object, nb::handle dtype, nb::handle copy) {
        const Source at = calling_line();
        const auto wanted =
            dtype.is_none() ? std::nullopt : std::optional(dtype_argument(dtype, at));
        return copy.ptr() == Py_True ? constant_from(object, wanted, at)
                                     : shared_from(object, wanted, at);
      },
      nb::arg("object"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("copy") = nb::none(),
      "A tensor of numbers, lists or an array. The memory of an array of the same dtype is shared: "
      "what its owner writes there, the tensor shows.");
  module.def(
      "identical",
      [](nb::handle a, nb::handle b) {
        const Source at = calling_line();
        return identical(tensor_from(a, at), tensor_from(b, at));
      },
      nb::arg("a"), nb::arg("b"),
      "Whether dtype, shape and bits are the same; `==` is elementwise.");
  module.def("_tensor_from_bytes", [](nb::handle data, nb::handle dtype, nb::handle shape) {
    const Source at = calling_line();
    return from_bytes(data, dtype_argument(dtype, at), shape_from(shape, at), at);
  });
}

}  // namespace tidemark::python
