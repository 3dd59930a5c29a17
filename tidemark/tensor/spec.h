// Specs, which stand for arguments in plans, and donation.
#pragma once

#include <string>

#include "tidemark/tensor/tensor.h"

namespace tidemark {

// A type without elements, for plans and signatures: td::spec({td::open, 784}).
struct TensorSpec {
  Shape shape = {};
  DType dtype = DType::f32;
  std::string name = {};
  bool is_donated = false;
  TensorSpec donated() const {
    TensorSpec spec = *this;
    spec.is_donated = true;
    return spec;
  }
};
TensorSpec spec(Shape shape, DType dtype = DType::f32, std::string name = {});

// Moves x out, so that the function may reuse its memory: step(td::donate(x)). A UserError if the
// memory is shared.
[[nodiscard]] Tensor donate(Tensor& x, Source at = Source::here());

}  // namespace tidemark
