// One call of a function of the catalogue: its parameters, and the objects passed for them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert.h"
#include "tidemark/calls/callables.h"

namespace tidemark::python {

class Arguments;

// Named tuples of Python's for results of several names.
PyObject* wrap(TopK&& result);
PyObject* wrap(Histogram&& result);
PyObject* wrap(Unique&& result);
PyObject* wrap(Nonzero&& result);
PyObject* wrap(linalg::Slogdet&& result);
PyObject* wrap(linalg::Lu&& result);
PyObject* wrap(linalg::Qr&& result);
PyObject* wrap(linalg::Eigh&& result);
PyObject* wrap(linalg::Svd&& result);

struct Parameter {
  std::string name;
  std::string kind;              // Of calls/callables.h.
  std::vector<PyObject*> keys;   // The name and other spellings of it, interned.
  PyObject* fallback = nullptr;  // As a Python object; null: the argument is required.
};

// A Python function made from a row of the catalogue.
struct Function {
  static constexpr size_t kMostParameters = 8;

  std::string name;  // "softmax", "random::normal"
  std::vector<Parameter> parameters;
  std::string results, brief;
  const OpDef* op = nullptr;
  PyObject* (*run)(Arguments& arguments) = nullptr;
  std::string signature, document;  // For Python: "softmax(x, axis=-1)".

  PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) const;
};

// The objects of one call, read as what C++ takes. Reading needs the GIL, so everything is read
// before `compute` runs the work.
class Arguments {
 public:
  Arguments(const Function& function, std::span<PyObject* const> objects, Source at)
      : at(at), function_(function), objects_(objects) {}

  nb::handle object(size_t i) const { return objects_[i]; }
  bool is_none(size_t i) const { return objects_[i] == Py_None; }
  const char* name(size_t i) const { return function_.parameters[i].name.c_str(); }

  const Operand& operand(size_t i) {
    const Operand& read = values_[i].emplace(objects_[i], at).operand();
    bytes_ += bytes_of(read);
    return read;
  }
  std::optional<Tensor> maybe_tensor(size_t i) const {
    return is_none(i) ? std::nullopt : std::optional(tensor_from(objects_[i], at));
  }
  Tensor tensor(size_t i);
  std::vector<Tensor> tensors(size_t i);
  int64_t integer(size_t i) const { return integer_from(objects_[i], name(i), at); }
  std::optional<int64_t> maybe_integer(size_t i) const {
    return is_none(i) ? std::nullopt : std::optional(integer(i));
  }
  std::vector<int64_t> integers(size_t i) const { return integers_from(objects_[i], name(i), at); }
  // One number for all axes of an image, or one for each.
  void axis_items(size_t i, std::span<int64_t> items) const;
  double real(size_t i) const { return real_from(objects_[i], name(i), at); }
  std::optional<double> maybe_real(size_t i) const {
    return is_none(i) ? std::nullopt : std::optional(real(i));
  }
  bool boolean(size_t i) const { return boolean_from(objects_[i], name(i), at); }
  std::string text(size_t i) const { return text_from(objects_[i], name(i), at); }
  Dim size(size_t i) const;
  Shape shape(size_t i);
  Axes axes(size_t i) const { return axes_from(objects_[i], at); }
  DType dtype(size_t i) const;
  std::optional<DType> maybe_dtype(size_t i) const {
    return is_none(i) ? std::nullopt : std::optional(dtype(i));
  }
  std::optional<random::Key> maybe_key(size_t i) const;
  Padding2 pairs(size_t i) const;
  // A list of axes, or one axis, of each of two operands.
  TensordotAxes contracted(size_t i) const;
  // "valid", "same", or pairs.
  WindowPadding padding(size_t i) const;
  // The number of a word in "valid|same".
  int word(size_t i) const;

  // For work that takes locks: another thread may hold one and wait for the GIL.
  void always_release() { bytes_ = Computing::kWorthBytes; }

  const OpDef& op() const { return *function_.op; }

  // Runs f, without the GIL where that is worth it, and wraps its result.
  template <class F>
  PyObject* compute(const F& f) {
    if constexpr (std::is_void_v<decltype(f())>) {
      {
        const Computing computing(bytes_);
        f();
      }
      return Py_NewRef(Py_None);
    } else {
      decltype(f()) result;
      {
        const Computing computing(bytes_);
        result = f();
      }
      return wrap(std::move(result));
    }
  }

  const Source at;

 private:
  const Function& function_;
  std::span<PyObject* const> objects_;
  std::array<std::optional<Value>, Function::kMostParameters> values_;
  int64_t bytes_ = 0;  // Of operands and of shapes to fill.
};

}  // namespace tidemark::python
