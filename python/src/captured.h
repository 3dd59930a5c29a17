// The plain Python values that a function captures: they are frozen into a trace, and may change.
#pragma once

#include <string>
#include <vector>

#include "bindings.h"

namespace tidemark::python {

// The values of now, as text: of closure cells, of globals that the code names, and of attributes
// of `self` that it names. Numbers, texts, bools, None, and lists, tuples, dicts and sets of them.
class Captured {
 public:
  // `self` may be null.
  Captured(nb::handle f, nb::handle self);
  // One line for each that is another in `now`: "the global `scale` was 3.0 when the function was
  // traced, and is 4.0 now\n".
  std::string changes(const Captured& now) const;

 private:
  struct Value {
    std::string name, text;
  };
  void add_code(PyObject* code, nb::handle globals, nb::handle self);
  void add(std::string name, nb::handle value);

  std::vector<Value> values_;
};

}  // namespace tidemark::python
