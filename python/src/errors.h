// C++ errors as Python exceptions, with the same text and the numbers as attributes.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "bindings.h"

namespace tidemark::python {

// Sets the Python error for the C++ exception being handled.
void set_error_from_current() noexcept;

// Text that may quote a file, in which bytes that are not UTF-8 are shown as such.
nb::object readable(std::string_view text);

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

// A Dataset is read while a function is traced. The Function that is called then runs without a
// trace; where there is none, it is an error like others.
class DatasetInTrace : public UserError {
 public:
  using UserError::UserError;
};
// The line of the exception if it is such an error.
std::optional<Source> dataset_in_trace(const nb::python_error& error);

// An exception of a user's function, in the form in which the library adds to its text: the class
// and the message, without the traceback. Made and read with the GIL.
class RaisedByUser : public std::exception {
 public:
  explicit RaisedByUser(nb::python_error&& error);
  const char* what() const noexcept override { return text_.c_str(); }
  nb::handle exception() const { return error_.value(); }

 private:
  nb::python_error error_;
  std::string text_;
};

// One that ends the program, such as KeyboardInterrupt: nothing is added to it.
class EndsProgram : public data::Undecorated {
 public:
  explicit EndsProgram(nb::python_error&& error) : error_(std::move(error)) {}
  nb::python_error& error() const { return error_; }

 private:
  mutable nb::python_error error_;
};

}  // namespace tidemark::python
