// Errors by cause: UserError (the user asked for something impossible), InternalError (a bug in
// Tidemark), DeviceError (the machine refused). Expected outcomes are return values, not errors.
//
// A message has three parts: what was asked, what is wrong with the numbers, what to do. The line
// of the user's program follows on a line of its own.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"

namespace tidemark {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Source at = Source::none());
  Source source() const { return at_; }

 private:
  Source at_;
};

// Throws with the text
//   <problem>
//     at train.cc:41
//     <remedy>
// The last two lines are left out if unknown or empty. The source line is the user's
// (Source::resolve). If the error was found in a composite of the library, that line follows: "at
// train.cc:41 [composite.cc:12]". Inside a NameScope its path comes last: "at train.cc:41, in
// encoder/dense".
class UserError : public Error {
 public:
  explicit UserError(const std::string& problem, Source at = Source::none(),
                     std::string_view remedy = {});
};

class InternalError : public Error {
 public:
  using Error::Error;
};

class DeviceError : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

// A condition that only a bug in Tidemark can break. The message is built only on failure.
#define TIDEMARK_CHECK(condition, ...)                                                        \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::tidemark::check_failed(__FILE__, __LINE__, #condition, ::tidemark::cat(__VA_ARGS__)); \
  } while (false)

}  // namespace tidemark
