// A Python object that C++ code holds: copied and dropped on any thread, with or without the GIL.
#pragma once

#include <cstdint>
#include <memory>

#include "bindings.h"
#include "later.h"

namespace tidemark::python {

class Held {
 public:
  // When the last copy goes on a thread without the GIL: the object is dropped there, which waits
  // for the GIL, or later on the main thread.
  enum class Drop : uint8_t { waits, later };

  Held() = default;
  // Needs the GIL.
  explicit Held(nb::handle object, Drop drop = Drop::waits)
      : object_(nb::object(nb::borrow(object)).release().ptr(),
                drop == Drop::waits ? drop_now : drop_later) {}

  nb::handle get() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }
  // How many copies share the one reference to the object.
  long copies() const { return object_.use_count(); }
  std::weak_ptr<PyObject> weak() const { return object_; }

 private:
  static void drop_now(PyObject* object) {
    // A cache of the library may outlive the interpreter, and with it every object.
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire gil;
    Py_DECREF(object);
  }
  static void drop_later(PyObject* object) {
    release_with_gil([object] { Py_DECREF(object); });
  }

  std::shared_ptr<PyObject> object_;
};

// What a module has under a name, for a static variable: held for ever, because the interpreter
// ends before static variables do.
inline nb::handle imported(const char* module, const char* name) {
  return nb::object(nb::module_::import_(module).attr(name)).release();
}

}  // namespace tidemark::python
