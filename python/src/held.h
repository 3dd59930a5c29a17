// A Python object that C++ code holds: copied and dropped on any thread, with or without the GIL.
#pragma once

#include <memory>

#include "bindings.h"

namespace tidemark::python {

class Held {
 public:
  Held() = default;
  // Needs the GIL.
  explicit Held(nb::handle object)
      : object_(nb::object(nb::borrow(object)).release().ptr(), drop) {}

  nb::handle get() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }
  // How many copies share the one reference to the object.
  long copies() const { return object_.use_count(); }

 private:
  static void drop(PyObject* object) {
    // A cache of the library may outlive the interpreter, and with it every object.
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire gil;
    Py_DECREF(object);
  }

  std::shared_ptr<PyObject> object_;
};

// What a module has under a name, for a static variable: held for ever, because the interpreter
// ends before static variables do.
inline nb::handle imported(const char* module, const char* name) {
  return nb::object(nb::module_::import_(module).attr(name)).release();
}

}  // namespace tidemark::python
