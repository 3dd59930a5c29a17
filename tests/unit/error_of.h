// The message of the error that a call throws.
#pragma once

#include <string>

#include "tidemark/base/error.h"

namespace tidemark {

template <class E = UserError, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tidemark
