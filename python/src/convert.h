// Python objects as arguments of the library, and results as Python objects.
#pragma once

#include "bindings.h"

namespace tidemark::python {

extern PyTypeObject* tensor_class;

inline bool is_tensor(nb::handle object) { return Py_TYPE(object.ptr()) == tensor_class; }
inline const Tensor& tensor_in(nb::handle object) { return *nb::inst_ptr<Tensor>(object); }

// What Python passes where C++ takes an Operand: a Tensor, a Variable, a plain number (weak, as in
// C++), or anything with an array inside. It lives only for the duration of the call.
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

// Whether `Value` can be made of it: what a binary operator answers NotImplemented for otherwise.
bool is_value(nb::handle object);

// The tensor that an object is or holds; a UserError names other types.
Tensor tensor_from(nb::handle object, Source at);

// A new Python Tensor.
PyObject* wrap(Tensor&& tensor);

}  // namespace tidemark::python
