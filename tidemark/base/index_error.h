// IndexError: a UserError about a subscript out of range, for languages whose loops end with it.
#pragma once

#include "tidemark/base/error.h"

namespace tidemark {

class IndexError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace tidemark
