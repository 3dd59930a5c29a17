// Subscripts as Python writes them: x[0], x[1:3, None, ..., mask].
#pragma once

#include <deque>

#include "bindings.h"

namespace tidemark::python {

// A subscript, read for one call. Tensors among its parts live here.
class Subscript {
 public:
  Subscript(nb::handle key, Source at);
  Subscript(const Subscript&) = delete;
  Subscript& operator=(const Subscript&) = delete;

  const Slices& slices() const { return slices_; }

 private:
  Index read(nb::handle part, Source at);

  std::deque<Tensor> tensors_;
  Slices slices_;
};

}  // namespace tidemark::python
