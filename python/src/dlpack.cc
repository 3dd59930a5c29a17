// DLPack in both directions. What others get is marked read-only, in capsules of version 1; older
// capsules cannot say so.
#include "dlpack.h"

#include <memory>

#include "convert.h"
#include "errors.h"
#include "exchange.h"
#include "later.h"
#include "source.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::python {
namespace {

using dlpack::Array;
using dlpack::Code;
using dlpack::Managed;
using dlpack::Versioned;

dlpack::ElementCode code_of(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * size_of(dtype));
  if (dtype == DType::bf16) return {Code::bfloat, bits, 1};
  if (dtype == DType::boolean) return {Code::boolean, bits, 1};
  if (is_complex(dtype)) return {Code::complex, bits, 1};
  if (is_unsigned_integer(dtype)) return {Code::unsigned_integer, bits, 1};
  return {is_float(dtype) ? Code::real : Code::integer, bits, 1};
}

std::optional<DType> dtype_of(const dlpack::ElementCode& element) {
  for (int i = 0; i < kStoredDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const dlpack::ElementCode ours = code_of(dtype);
    if (element.code == ours.code && element.bits == ours.bits && element.lanes == ours.lanes)
      return dtype;
  }
  return {};
}

ArrayRef array_of(const Array& array, DType dtype) {
  ArrayRef seen;
  seen.data = static_cast<std::byte*>(array.data) + array.byte_offset;
  seen.dtype = dtype;
  for (int32_t i = 0; i < array.rank; ++i) seen.shape.push_back(array.shape[i]);
  seen.strides = contiguous_strides(seen.shape);
  for (int32_t i = 0; array.strides != nullptr && i < array.rank; ++i)
    seen.strides[static_cast<size_t>(i)] = array.strides[i];
  return seen;
}

template <class T>
Tensor take(nb::handle capsule, const char* name, const char* used, Source at) {
  auto* const managed = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr) nb::raise_python_error();
  const std::optional<DType> dtype = dtype_of(managed->array.dtype);
  if (managed->array.device.type != dlpack::kCpu)
    throw UserError(cat("DLPack: the array is on device ", managed->array.device.type,
                        ", not in the CPU's memory"),
                    at, "copy it to the CPU first: x.cpu()");
  if (!dtype)
    throw UserTypeError(
        cat("DLPack: elements of code ", int{static_cast<uint8_t>(managed->array.dtype.code)},
            " with ", int{managed->array.dtype.bits}, " bits are not Tidemark's"),
        at, "convert the array first: x.float()");
  const auto release = [managed] {
    release_with_gil([managed] {
      if (managed->deleter != nullptr) managed->deleter(managed);
    });
  };
  Tensor made = over_memory(array_of(managed->array, *dtype), release, at);
  PyCapsule_SetName(capsule.ptr(), used);
  return made;
}

// What a capsule owns until its consumer calls the deleter.
template <class T>
struct Export {
  T managed = {};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class T>
void destroy_unused(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;  // Consumed.
  auto* const managed = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class T>
T* exported(const Tensor& tensor, Source at) {
  const ArrayRef& array = detail::array_of(tensor, at);
  auto made = std::make_unique<Export<T>>();
  made->tensor = tensor;
  for (int64_t i = 0; i < array.rank(); ++i) {
    made->shape.push_back(array.shape[i]);
    made->strides.push_back(array.strides[static_cast<size_t>(i)]);
  }
  made->managed.array = {array.data,
                         {dlpack::kCpu, 0},
                         static_cast<int32_t>(array.rank()),
                         code_of(array.dtype),
                         made->shape.data(),
                         made->strides.data(),
                         0};
  made->managed.context = made.get();
  made->managed.deleter = [](T* self) { delete static_cast<Export<T>*>(self->context); };
  return &made.release()->managed;
}

nb::object legacy_capsule(const Tensor& tensor, Source at) {
  Managed* const managed = exported<Managed>(tensor, at);
  return nb::steal(PyCapsule_New(managed, "dltensor", [](PyObject* capsule) {
    destroy_unused<Managed>(capsule, "dltensor");
  }));
}

nb::object capsule(const Tensor& tensor, bool copied, Source at) {
  Versioned* const managed = exported<Versioned>(tensor, at);
  managed->major = 1;
  managed->flags = copied ? dlpack::kCopied : dlpack::kReadOnly;
  return nb::steal(PyCapsule_New(managed, "dltensor_versioned", [](PyObject* object) {
    destroy_unused<Versioned>(object, "dltensor_versioned");
  }));
}

nb::object export_tensor(const Tensor& x, nb::handle max_version, bool copy) {
  const Source at = calling_line();
  const Tensor sent = copy ? identity(x, at) : x;
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  return versioned ? capsule(sent, copy, at) : legacy_capsule(sent, at);
}

}  // namespace

Tensor from_dlpack(nb::handle object, Source at) {
  nb::object capsule;
  try {
    capsule = object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {  // Of a library that knows no versions.
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = object.attr("__dlpack__")();
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0)
    return take<Versioned>(capsule, "dltensor_versioned", "used_dltensor_versioned", at);
  return take<Managed>(capsule, "dltensor", "used_dltensor", at);
}

void bind_dlpack(nb::module_& module) {
  const nb::object cls = nb::borrow(reinterpret_cast<PyObject*>(tensor_class));
  nb::class_<Tensor> tensor = nb::borrow<nb::class_<Tensor>>(cls);
  tensor.def(
      "__dlpack__",
      [](const Tensor& x, nb::handle, nb::handle max_version, nb::handle, nb::handle copy) {
        return export_tensor(x, max_version, copy.ptr() == Py_True);
      },
      nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
      nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
      "A DLPack capsule over the same memory, read-only.");
  tensor.def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(dlpack::kCpu, 0); });
  module.def(
      "from_dlpack", [](nb::handle x) { return from_dlpack(x, calling_line()); }, nb::arg("x"),
      "A tensor over the memory of an array of another library.");
}

}  // namespace tidemark::python
