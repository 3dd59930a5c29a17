// C++ errors as Python exceptions, with the same text and the numbers as attributes.
#pragma once

#include <utility>

#include "bindings.h"

namespace tidemark::python {

// Sets the Python error for the C++ exception being handled.
void set_error_from_current() noexcept;

// Runs f and returns its result; if it throws, sets the Python error and returns `failed`. For
// slots and functions that Python calls directly; nanobind's own functions translate by themselves.
template <class F, class R = decltype(std::declval<F>()())>
R guarded(F&& f, R failed = {}) noexcept {
  try {
    return f();
  } catch (...) {
    set_error_from_current();
    return failed;
  }
}

// A UserError that is a TypeError of Python's too; IndexError (base/index_error.h) is its own.
class UserTypeError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace tidemark::python
