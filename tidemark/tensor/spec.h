// What stands for an argument, or says how it is passed.
#pragma once

#include <string>

#include "tidemark/tensor/tensor.h"

namespace tidemark {

// A type without bytes, for plans and signatures: td::spec({td::open, 784}).
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

// Moves x out, or is a UserError where someone else holds its bytes: step(td::donate(x)).
[[nodiscard]] Tensor donate(Tensor& x, Source at = Source::here());

}  // namespace tidemark
