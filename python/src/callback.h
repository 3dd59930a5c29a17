// Calls of users' Python functions from the library.
#pragma once

#include <vector>

#include "bindings.h"
#include "tensor_tree.h"

namespace tidemark::python {

// Held while a function is traced: whether users' functions that the library calls are rewritten by
// tidemark.autograph, as the traced function itself is.
class AutographScope {
 public:
  explicit AutographScope(bool on);
  ~AutographScope();
  AutographScope(const AutographScope&) = delete;
  AutographScope& operator=(const AutographScope&) = delete;

 private:
  bool previous_;
};
// What is called for a user's function here: in a trace with autograph, the rewritten function.
nb::object function_to_call(nb::handle f);

// Calls f: its lines are charged, not those of the library around it. Needs the GIL.
nb::object call_user(nb::handle f, const std::vector<nb::object>& arguments);
nb::object call_user(nb::handle f, const nb::list& arguments, nb::handle keywords);
// The parts of a tuple or a list are the arguments; anything else is one. `first` comes before.
nb::object call_unpacked(nb::handle f, const nb::object& carried,
                         std::vector<nb::object> first = {});

}  // namespace tidemark::python
