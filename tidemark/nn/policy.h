// Policy: the dtype of a layer's Variables, and the dtype it computes in.
//
//   td::nn::set_global_policy("mixed_bf16");          // For all layers made from now on.
//   td::nn::Dense head(10, {.dtype = td::f32});       // This one computes in f32.
//
// Under "mixed_bf16" and "mixed_f16" Variables are f32, and so are their gradients and updates; the
// layer computes in 16 bits, and so its results, which gradients keep, take half the bytes. f16 has
// a small range: train with a LossScaleOptimizer (train/optimizer.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tidemark/api/mode.h"
#include "tidemark/api/tensor.h"

namespace tidemark::nn {

struct Policy {
  // Variables of this dtype, which also decides, with that of the input, what is computed in.
  Policy(DType dtype) : variable(dtype), compute(dtype) {}
  // "f32", "bf16", "mixed_bf16", "mixed_f16", ...; or Keras' names: "mixed_bfloat16".
  Policy(const char* name, Source at = Source::here());
  explicit Policy(std::string_view name, Source at = Source::here());

  DType variable, compute;

  bool is_mixed() const { return variable != compute; }
  std::string name() const;
  bool operator==(const Policy&) const = default;
};

// The policy of layers that are made without a dtype; f32 unless set. It is the process's.
Policy global_policy();
void set_global_policy(const Policy& policy);

}  // namespace tidemark::nn

namespace tidemark::detail {

// Held while a layer computes.
class PolicyScope {
 public:
  explicit PolicyScope(const nn::Policy& policy) {
    if (policy.is_mixed()) autocast_.emplace(policy.compute, Source::none());
  }
  // An input of the layer: floats take the dtype that the layer computes in.
  Tensor input(const Tensor& x) const;

 private:
  std::optional<Autocast> autocast_;
};

}  // namespace tidemark::detail
