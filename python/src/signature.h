// The parameters of a user's Python function, and the arguments of a call in their order.
#pragma once

#include <string>
#include <vector>

#include "bindings.h"

namespace tidemark::python {

// Arguments in the order of the parameters: those with names, then *args as a tuple, then
// keyword-only ones, then **kwargs as a dict.
using BoundArguments = SmallVec<PyObject*, 8>;

class Signature {
 public:
  // Of a function, a method, or an object with __call__; anything else takes *args and **kwargs.
  // The first `skipped` parameters are not passed by callers.
  explicit Signature(nb::handle callable, int skipped = 0);

  // Arguments as Python's vectorcall passes them. `held` keeps what had to be made. A UserTypeError
  // says what is missing or too much.
  BoundArguments bind(PyObject* const* arguments, Py_ssize_t count, PyObject* names,
                      std::vector<nb::object>& held) const;
  // Calls a function with arguments in this order, after `first` if it is given.
  nb::object call(nb::handle callable, nb::handle first,
                  const std::vector<nb::object>& bound) const;

  size_t size() const { return names_.size(); }
  // The name of each bound argument.
  const std::vector<std::string>& names() const { return names_; }
  // For tp_traverse of the object that owns it.
  int traverse(visitproc visit, void* arg) const;

 private:
  void read_code(nb::handle function, int skipped);
  void take_anything();
  [[noreturn]] void refuse(const std::string& problem) const;
  int find(PyObject* name) const;

  std::string title_;                 // "step()"
  std::vector<std::string> names_;    // Of all bound arguments.
  std::vector<nb::object> keys_;      // The same as Python texts; null for *args and **kwargs.
  std::vector<nb::object> defaults_;  // Null if there is none.
  int positional_ = 0, positional_only_ = 0, keyword_only_ = 0;
  bool rest_ = false, keywords_ = false;
};

}  // namespace tidemark::python
