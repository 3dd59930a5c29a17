// Python objects as arguments of the library, and results as Python objects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bindings.h"

namespace tidemark::python {

extern PyTypeObject* tensor_class;

inline bool is_tensor(nb::handle object) { return Py_TYPE(object.ptr()) == tensor_class; }
inline const Tensor& tensor_in(nb::handle object) { return *nb::inst_ptr<Tensor>(object); }
// A new Python Tensor.
PyObject* wrap(Tensor&& tensor);
PyObject* wrap(std::vector<Tensor>&& tensors);

// What Python passes where C++ takes an Operand: a Tensor, a Variable, a plain number (weak, as in
// C++), an open size, or anything with an array inside. It lives only for the duration of the call.
class Value {
 public:
  Value(nb::handle object, Source at) : operand_(read(object, at)) {}
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  const Operand& operand() const { return operand_; }

 private:
  Operand read(nb::handle object, Source at);

  Tensor held_;  // What the operand refers to, where that is no object of Python's.
  Operand operand_;
};

// Whether an operator takes it beside a Tensor; of other objects the operator is theirs to define.
bool is_value(nb::handle object);

// The tensor that an object is or holds; a UserTypeError names other types. Arrays share memory;
// numbers and lists become new tensors.
Tensor tensor_from(nb::handle object, Source at);
std::vector<Tensor> tensors_from(nb::handle object, Source at);

// Numbers that are not tensors. What is no such number is a UserTypeError; `what` names it.
int64_t integer_from(nb::handle object, const char* what, Source at);
double real_from(nb::handle object, const char* what, Source at);
bool boolean_from(nb::handle object, const char* what, Source at);
std::string text_from(nb::handle object, const char* what, Source at);
// One number or a sequence of them.
std::vector<int64_t> integers_from(nb::handle object, const char* what, Source at);
// None stands for every axis.
Axes axes_from(nb::handle object, Source at);

// Elements as plain numbers, in nested lists.
nb::object list_of(const Tensor& tensor, Source at);

// Releases the GIL while it lives, if the work is worth it: for few bytes that costs more than the
// work itself.
class Computing {
 public:
  static constexpr int64_t kWorthBytes = 1 << 15;
  explicit Computing(int64_t bytes) {
    if (bytes >= kWorthBytes) state_ = PyEval_SaveThread();
  }
  ~Computing() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};
// Bytes that an op reads of this operand; 0 of one that is traced.
int64_t bytes_of(const Operand& operand);

}  // namespace tidemark::python
