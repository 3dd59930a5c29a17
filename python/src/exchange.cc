#include "exchange.h"

#include <algorithm>
#include <memory>

#include "convert.h"
#include "errors.h"
#include "held.h"
#include "later.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/stored.h"
#include "variable.h"

namespace tidemark::python {
namespace {

bool type_has(PyObject* object, const char* attribute) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return PyObject_HasAttrString(type, attribute) != 0;
}

// Of the integers with a sign or without, that of so many bytes.
std::optional<DType> integer_of(DType narrowest, Py_ssize_t bytes) {
  for (int i = 0; i < 4; ++i) {
    const auto dtype = static_cast<DType>(static_cast<int>(narrowest) + i);
    if (size_of(dtype) == bytes) return dtype;
  }
  return {};
}

std::optional<DType> dtype_of_format(const char* format, Py_ssize_t bytes) {
  if (format == nullptr) return DType::u8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && format[2] == 0)
    return format[1] == 'f' ? DType::c64 : DType::c128;
  if (format[0] == 0 || format[1] != 0) return {};
  switch (*format) {
    case 'e':
      return DType::f16;
    case 'f':
      return DType::f32;
    case 'd':
      return DType::f64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return integer_of(DType::i8, bytes);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return integer_of(DType::u8, bytes);
    case '?':
      return DType::boolean;
    default:
      return {};
  }
}

const char* format_of(DType dtype) {
  constexpr const char* formats[kStoredDTypes] = {"e", nullptr, "f", "d", "b", "h",  "i", "l",
                                                  "B", "H",     "I", "L", "?", "Zf", "Zd"};
  return formats[static_cast<int>(dtype)];
}

// ---- the buffer protocol ------------------------------------------------------------------------

// Of one that a tensor is over. Released with the GIL.
struct HeldBuffer {
  Py_buffer view = {};
  ~HeldBuffer() { PyBuffer_Release(&view); }
};

// Whether elements begin at multiples of their size, counted from an aligned first one.
bool in_whole_elements(const Py_buffer& view) {
  if (reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) != 0)
    return false;
  return std::all_of(view.strides, view.strides + view.ndim,
                     [&](Py_ssize_t stride) { return stride % view.itemsize == 0; });
}

Tensor copy_of(const Py_buffer& view, DType dtype, const Shape& shape, Source at) {
  return from_callback(
      shape, dtype,
      [&](std::span<std::byte> bytes) {
        if (PyBuffer_ToContiguous(bytes.data(), &view, view.len, 'C') != 0)
          nb::raise_python_error();
      },
      at);
}

std::shared_ptr<HeldBuffer> buffer_of(nb::handle object, int flags) {
  auto held = std::make_shared<HeldBuffer>();
  if (PyObject_GetBuffer(object.ptr(), &held->view, flags) == 0) return held;
  PyErr_Clear();
  return nullptr;
}

// Of a class that is written in Python.
bool may_have_attributes(nb::handle object) {
  PyTypeObject* const type = Py_TYPE(object.ptr());
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) != 0 &&
         PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) == 0;
}

bool is_numpy_array(nb::handle object) {
  if (!type_has(object.ptr(), "__array_interface__")) return false;
  static const nb::handle ndarray = imported("numpy", "ndarray");
  return nb::isinstance(object, ndarray);
}

// Also of a class that gives the name another meaning.
nb::object base_of_array(nb::handle array) {
  static const nb::handle base = nb::object(imported("numpy", "ndarray").attr("base")).release();
  return base.attr("__get__")(array);
}

// What keeps the memory. An array of a subclass of NumPy's has attributes, and the tensor may be
// one of them, in a cycle that the collector does not see. So a tensor over such an array holds
// the plain array or buffer that the memory belongs to, where there is one.
std::shared_ptr<HeldBuffer> memory_of(nb::handle array, const std::shared_ptr<HeldBuffer>& held) {
  if (held->view.obj != array.ptr()) return held;  // The class has a buffer of its own.
  nb::object owner = nb::borrow(array);
  bool passed_attributes = false;
  while (is_numpy_array(owner)) {
    const nb::object base = base_of_array(owner);
    if (base.is_none()) break;
    passed_attributes |= may_have_attributes(owner);
    owner = base;
  }
  if (!passed_attributes || may_have_attributes(owner)) return held;
  std::shared_ptr<HeldBuffer> memory = buffer_of(owner, PyBUF_STRIDES);
  return memory != nullptr ? memory : held;
}

Tensor shared_buffer(nb::handle object, const std::shared_ptr<HeldBuffer>& held, DType dtype,
                     Source at) {
  const Py_buffer& view = held->view;
  Shape shape;
  for (int i = 0; i < view.ndim; ++i) shape.push_back(view.shape[i]);
  if (!in_whole_elements(view)) return copy_of(view, dtype, shape, at);
  ArrayRef array{static_cast<std::byte*>(view.buf), dtype, shape, {}};
  for (int i = 0; i < view.ndim; ++i)
    array.strides.push_back(view.shape[i] == 1 ? 1 : view.strides[i] / view.itemsize);
  return over_memory(
      array,
      [memory = memory_of(object, held)]() mutable {
        release_with_gil([last = std::move(memory)]() mutable { last.reset(); });
      },
      at);
}

[[noreturn]] void refuse_elements(nb::handle object, const char* elements, Source at) {
  throw UserTypeError(cat(Py_TYPE(object.ptr())->tp_name, ": its elements are ", elements,
                          ", which Tidemark has not"),
                      at, "convert it first: array.astype(\"float32\")");
}

// Nothing if the object has no buffer that can be read.
std::optional<Tensor> from_buffer(nb::handle object, std::optional<DType> as, Source at) {
  const std::shared_ptr<HeldBuffer> held = buffer_of(object, PyBUF_FORMAT | PyBUF_STRIDES);
  if (held == nullptr) return {};
  const std::optional<DType> dtype =
      as ? as : dtype_of_format(held->view.format, held->view.itemsize);
  if (!dtype) refuse_elements(object, held->view.format, at);
  return shared_buffer(object, held, *dtype, at);
}

// Arrays of ml_dtypes.bfloat16 have no buffer; as uint16 they do.
std::optional<Tensor> from_bfloat16(nb::handle object, Source at) {
  const nb::object name = nb::getattr(nb::getattr(object, "dtype", nb::none()), "name", nb::none());
  if (!name.equal(nb::str("bfloat16")) || !nb::hasattr(object, "view")) return {};
  return from_buffer(object.attr("view")("uint16"), DType::bf16, at);
}

}  // namespace

Tensor over_memory(const ArrayRef& array, std::function<void()> release, Source at) {
  int64_t low = 0, high = 0;  // The elements before and after the first one.
  for (int64_t axis = 0; axis < array.rank(); ++axis) {
    const int64_t reach =
        (int64_t{array.shape[axis]} - 1) * array.strides[static_cast<size_t>(axis)];
    (reach < 0 ? low : high) += reach;
  }
  if (array.size() == 0) low = 0, high = -1;
  const Tensor flat = detail::make_borrowed(array.data + low * size_of(array.dtype), array.dtype,
                                            {high - low + 1}, std::move(release), at);
  return detail::make_view(flat, array, at);
}

bool has_array(nb::handle object) {
  PyObject* const o = object.ptr();
  if (o == Py_None || PyUnicode_Check(o) || PyBytes_Check(o) || PyList_Check(o) ||
      PyTuple_Check(o) || PyType_Check(o))
    return false;
  return PyObject_CheckBuffer(o) != 0 || type_has(o, "__dlpack__") || type_has(o, "__array__");
}

Tensor shared_array(nb::handle object, Source at) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    if (std::optional<Tensor> made = from_buffer(object, {}, at)) return *made;
    if (std::optional<Tensor> made = from_bfloat16(object, at)) return *made;
    if (nb::hasattr(object, "__array_interface__"))  // One of NumPy's, of dates or texts.
      refuse_elements(object, nb::str(nb::getattr(object, "dtype")).c_str(), at);
  }
  if (type_has(object.ptr(), "__dlpack__")) return from_dlpack(object, at);
  const nb::object array = object.attr("__array__")();
  if (std::optional<Tensor> made = from_buffer(array, {}, at)) return *made;
  if (std::optional<Tensor> made = from_bfloat16(array, at)) return *made;
  refuse_elements(object, nb::str(nb::getattr(array, "dtype", nb::none())).c_str(), at);
}

namespace {

// Of a buffer that others hold. It has its own handle of the tensor, so that the library does not
// take the memory for another result.
struct Lent {
  Tensor tensor;
  Py_ssize_t shape[16], strides[16];
};

void lend(const Tensor& tensor, PyObject* owner, Py_buffer* view, int flags) {
  const Source at = tensor.source();
  const ArrayRef& array = detail::array_of(tensor, at);
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE)
    throw nb::buffer_error("the elements of a Tensor are read-only: copy it to change it");
  if (format_of(array.dtype) == nullptr)
    throw nb::buffer_error("bf16 has no format in the buffer protocol: cast it, or use numpy()");
  const bool dense = array.is_contiguous();
  const bool wants_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  if (!dense && (wants_c || (flags & PyBUF_STRIDES) != PyBUF_STRIDES))
    throw nb::buffer_error("the tensor is not contiguous: td.identity(x) is a copy that is");
  if (array.rank() > 16) throw nb::buffer_error("the tensor has more than 16 axes");
  auto lent = std::make_unique<Lent>(Lent{tensor, {}, {}});
  const Py_ssize_t bytes = size_of(array.dtype);
  for (int64_t i = 0; i < array.rank(); ++i) {
    lent->shape[i] = array.shape[i];
    lent->strides[i] = array.strides[static_cast<size_t>(i)] * bytes;
  }
  if (dense) {  // Strides of axes of size 1 may be anything here, but not to every reader.
    Py_ssize_t stride = bytes;
    for (int64_t i = array.rank() - 1; i >= 0; --i) {
      lent->strides[i] = stride;
      stride *= std::max<Py_ssize_t>(lent->shape[i], 1);
    }
  }
  view->buf = array.data;
  view->len = array.size() * bytes;
  view->itemsize = bytes;
  view->readonly = 1;
  view->ndim = (flags & PyBUF_ND) == PyBUF_ND ? static_cast<int>(array.rank()) : 1;
  view->format =
      (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? const_cast<char*>(format_of(array.dtype)) : nullptr;
  view->shape = (flags & PyBUF_ND) == PyBUF_ND ? lent->shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? lent->strides : nullptr;
  view->suboffsets = nullptr;
  view->obj = Py_NewRef(owner);
  view->internal = lent.release();
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  return guarded(
      [&] {
        lend(tensor_in(self), self, view, flags);
        return 0;
      },
      -1);
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Lent*>(view->internal);
}

// ---- nested lists -------------------------------------------------------------------------------

namespace {

constexpr const char* kRagged = "all lists of one depth must be equally long";

bool is_list(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

class Lists {
 public:
  Lists(nb::handle object, Source at) : object_(object), at_(at) {
    for (nb::handle level = object; is_list(level); level = PySequence_Fast_ITEMS(level.ptr())[0]) {
      const Py_ssize_t length = PySequence_Fast_GET_SIZE(level.ptr());
      sizes_.push_back(length);
      if (length == 0) break;
    }
    check(object, 0);
  }

  // Tensors and arrays among the numbers.
  bool has_arrays() const { return has_arrays_; }
  DType natural() const {
    constexpr DType kinds[] = {DType::f32, DType::boolean, DType::i32, DType::f32, DType::c64};
    return kinds[kind_ + 1];
  }

  Tensor numbers(DType dtype) const {
    return from_callback(
        sizes_, dtype,
        [&](std::span<std::byte> bytes) {
          visit_stored(dtype, [&](auto element) {
            auto* next = reinterpret_cast<decltype(element)*>(bytes.data());
            write(object_, next);
          });
        },
        at_);
  }

 private:
  void check(nb::handle object, int64_t depth) {
    PyObject* const o = object.ptr();
    if (is_list(object)) {
      const int64_t length = PySequence_Fast_GET_SIZE(o);
      if (depth >= sizes_.rank()) throw mixed();
      if (sizes_[depth] != length)
        throw UserError(cat("constant: lists of different lengths at depth ", depth, " (",
                            sizes_[depth], " and ", length, ")"),
                        at_, kRagged);
      for (int64_t i = 0; i < length; ++i) check(PySequence_Fast_ITEMS(o)[i], depth + 1);
      return;
    }
    if (PyBool_Check(o))
      kind_ = std::max(kind_, 0);
    else if (PyLong_Check(o))
      kind_ = std::max(kind_, 1);
    else if (PyFloat_Check(o))
      kind_ = std::max(kind_, 2);
    else if (PyComplex_Check(o))
      kind_ = 3;
    else if (is_value(object))
      has_arrays_ = true;
    else
      throw UserTypeError(cat("constant: ", nb::repr(object).c_str(), " (", Py_TYPE(o)->tp_name,
                              ") is not a number"),
                          at_, "give numbers, lists of numbers, or an array");
    if (!has_arrays_ && depth != sizes_.rank()) throw mixed();
  }

  UserError mixed() const {
    return UserError("constant: numbers and lists are mixed at the same depth", at_,
                     "put every number inside equally many lists");
  }

  template <class T>
  void write(nb::handle object, T*& next) const {
    PyObject* const o = object.ptr();
    if (is_list(object)) {
      const Py_ssize_t length = PySequence_Fast_GET_SIZE(o);
      for (Py_ssize_t i = 0; i < length; ++i) write(PySequence_Fast_ITEMS(o)[i], next);
    } else if (PyFloat_Check(o)) {
      *next++ = of_real<T>(PyFloat_AS_DOUBLE(o));
    } else if (PyComplex_Check(o)) {
      *next++ = of_complex<T>(o);
    } else {
      *next++ = of_whole<T>(o);
    }
  }

  template <class T>
  static T of_real(double value) {
    if constexpr (std::is_arithmetic_v<T>)
      return detail::converted<T>(value);
    else if constexpr (ComplexNumber<T>)
      return T(static_cast<typename T::value_type>(value));
    else
      return T(static_cast<float>(value));
  }

  template <class T>
  T of_complex(PyObject* number) const {
    if constexpr (ComplexNumber<T>) {
      const Py_complex value = PyComplex_AsCComplex(number);
      return T(std::complex<double>(value.real, value.imag));
    } else {
      throw UserTypeError(cat("constant: ", nb::repr(nb::handle(number)).c_str(),
                              " is complex, and does not fit ", dtype_of<T>),
                          at_, "name a complex dtype: td.c64");
    }
  }

  template <class T>
  T of_whole(PyObject* number) const {
    if constexpr (std::is_same_v<T, bool>) {
      return PyObject_IsTrue(number) == 1;
    } else {
      if constexpr (std::is_same_v<T, uint64_t>) {
        const uint64_t large = PyLong_AsUnsignedLongLong(number);
        if (PyErr_Occurred() == nullptr) return large;
        PyErr_Clear();
      }
      const int64_t value = integer_from(number == Py_True    ? nb::int_(1)
                                         : number == Py_False ? nb::int_(0)
                                                              : nb::borrow<nb::int_>(number),
                                         "constant", at_);
      if constexpr (std::is_integral_v<T>) {
        if (!fits(value, dtype_of<T>))
          throw UserError(cat("constant: ", value, " does not fit ", dtype_of<T>), at_,
                          "name a wider dtype: td::constant(values, td::i64)");
        return static_cast<T>(value);
      } else {
        return of_real<T>(static_cast<double>(value));
      }
    }
  }

  nb::handle object_;
  Source at_;
  Shape sizes_;
  int kind_ = -1;  // 0 bool, 1 integer, 2 float, 3 complex; -1: there is no number.
  bool has_arrays_ = false;
};

// Lists of lists of tensors, from the inside out.
Tensor stacked(nb::handle object, Source at) {
  if (!is_list(object)) return tensor_from(object, at);
  std::vector<Tensor> parts;
  for (const nb::handle item : nb::borrow<nb::sequence>(object)) parts.push_back(stacked(item, at));
  return stack(parts, 0, at);
}

}  // namespace

Tensor from_lists(nb::handle object, std::optional<DType> dtype, Source at) {
  const Lists lists(object, at);
  if (!lists.has_arrays()) return lists.numbers(dtype.value_or(lists.natural()));
  const Tensor made = stacked(object, at);
  return dtype ? cast(made, *dtype, at) : made;
}

namespace {

bool holds_array(nb::handle object) {
  return is_tensor(object) || variable_in(object.ptr()) != nullptr || has_array(object);
}

// Its elements and dtype as they are; tensor_from would take NumPy's float64 for a plain number.
Tensor array_in(nb::handle object, Source at) {
  return is_tensor(object) || !has_array(object) ? tensor_from(object, at)
                                                 : shared_array(object, at);
}

}  // namespace

Tensor shared_from(nb::handle object, std::optional<DType> dtype, Source at) {
  if (!holds_array(object)) return from_lists(object, dtype, at);
  const Tensor made = array_in(object, at);
  return dtype && *dtype != made.dtype() ? cast(made, *dtype, at) : made;
}

Tensor constant_from(nb::handle object, std::optional<DType> dtype, Source at) {
  if (!holds_array(object)) return from_lists(object, dtype, at);
  const Tensor made = array_in(object, at);
  return dtype && *dtype != made.dtype() ? cast(made, *dtype, at) : identity(made, at);
}

}  // namespace tidemark::python
