// Products with a kernel that takes its shape from the first input; internal to nn/.
#pragma once

#include <optional>
#include <string>

#include "tidemark/api/variable.h"
#include "tidemark/nn/activation.h"

namespace tidemark::detail {

// A layer, for messages.
struct LayerTitle {
  const char* kind;
  const std::string& name;
};

// The last size of x. Sets the kernel's shape, [that size, units], if it has none yet; a UserError
// if it was built for another.
Dim build_kernel(const Variable& kernel, const Tensor& x, int64_t units, LayerTitle layer,
                 Source at);
void build_vector(const std::optional<Variable>& vector, const Dim& size, Source at);

// activation(x kernel + bias), over the last axis of x: one product, however many axes x has.
Tensor linear(const Tensor& x, const Variable& kernel, const std::optional<Variable>& bias,
              const nn::Activation& activation, Source at);

}  // namespace tidemark::detail
