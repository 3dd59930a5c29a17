// References to Python objects inside objects of C++, as Python's garbage collector sees them.
//
// The collector subtracts from each object's count the references that others report, and takes
// what has none left. A reference that C++ code holds and nobody reports keeps its cycle alive for
// ever; one that is reported twice, or that has an owner the collector does not know, makes it take
// an object that is still in use. So each reference is a Held, which counts the copies of it, and
// it is reported by one Python object, `_Holds`, that every Python owner of the copies refers to. A
// reference of which there are more copies than these owners have is not reported.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "bindings.h"
#include "held.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::python {

// All under the GIL. It owns nothing: while a copy of a Held lives, or waits for the GIL to drop
// the object, the object is alive.
class Holds {
 public:
  // Reported while there are `copies` of it.
  void add(const Held& held, long copies);
  // The initializer of these Variables: reported while nothing else holds them, because a Variable
  // without a value needs its initializer.
  using Variables = std::vector<std::pair<std::weak_ptr<const detail::VariableState>, long>>;
  void add_initializer(const Held& held, long copies) { add_reference(held, copies, true); }
  void set_variables(Variables variables) { variables_ = std::move(variables); }

  bool empty() const { return references_.empty(); }
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Reference {
    PyObject* object;
    std::weak_ptr<PyObject> held;
    long copies;
    bool is_initializer;
  };
  void add_reference(const Held& held, long copies, bool is_initializer);

  std::vector<Reference> references_;
  Variables variables_;
};

// A new `_Holds`; `inputs` are others that it refers to.
nb::object holds_object(std::shared_ptr<Holds> holds, std::vector<nb::object> inputs = {});

// While a Python object is made (`_holding`), references that it will own. Outside of that they are
// references like others.
Held recorded(nb::handle object);
Held recorded_initializer(nb::handle object);

// For tp_traverse of classes with `nb::dynamic_attr`: what nanobind's own visits.
int traverse_instance(PyObject* self, visitproc visit, void* arg);

// The slots of a class whose objects report what they hold: `int traverse(visitproc, void*) const`.
template <class T>
PyType_Slot* traversed_slots() {
  constexpr traverseproc traverse = [](PyObject* self, visitproc visit, void* arg) -> int {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
  };
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {0, nullptr}};
  return slots;
}
// The same for a class whose objects may come to hold what refers to them: `void clear()`.
template <class T>
PyType_Slot* cleared_slots() {
  constexpr inquiry clear = [](PyObject* self) -> int {
    if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->clear();
    return 0;
  };
  static PyType_Slot slots[] = {
      traversed_slots<T>()[0], {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};
  return slots;
}

}  // namespace tidemark::python
