#include "tidemark/nn/policy.h"

#include <atomic>
#include <utility>

#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"

namespace tidemark::nn {
namespace {

constexpr std::pair<std::string_view, DType> kNames[] = {
    {"f16", DType::f16}, {"float16", DType::f16}, {"bf16", DType::bf16}, {"bfloat16", DType::bf16},
    {"f32", DType::f32}, {"float32", DType::f32}, {"f64", DType::f64},   {"float64", DType::f64},
};

std::optional<DType> dtype_called(std::string_view name) {
  for (const auto& [each, dtype] : kNames)
    if (each == name) return dtype;
  return {};
}

Policy policy_called(std::string_view name, Source at) {
  constexpr std::string_view mixed = "mixed_";
  const bool is_mixed = name.starts_with(mixed);
  const std::optional<DType> dtype = dtype_called(is_mixed ? name.substr(mixed.size()) : name);
  if (!dtype || (is_mixed && !is_low_precision(*dtype)))
    throw UserError(cat("nn::Policy: there is no policy \"", name, "\""), at,
                    "one of: f32, f64, bf16, f16, mixed_bf16, mixed_f16");
  Policy policy = *dtype;
  if (is_mixed) policy.variable = DType::f32;
  return policy;
}

constinit std::atomic<DType> global_variable{DType::f32}, global_compute{DType::f32};

}  // namespace

Policy::Policy(const char* name, Source at) : Policy(policy_called(name, at)) {}
Policy::Policy(std::string_view name, Source at) : Policy(policy_called(name, at)) {}

std::string Policy::name() const { return cat(is_mixed() ? "mixed_" : "", compute); }

Policy global_policy() {
  Policy policy = global_compute.load(std::memory_order_relaxed);
  policy.variable = global_variable.load(std::memory_order_relaxed);
  return policy;
}

void set_global_policy(const Policy& policy) {
  global_variable.store(policy.variable, std::memory_order_relaxed);
  global_compute.store(policy.compute, std::memory_order_relaxed);
}

}  // namespace tidemark::nn

namespace tidemark::detail {

Tensor PolicyScope::input(const Tensor& x) const {
  return autocast_ && is_float(x.dtype()) ? cast(x, autocast()) : x;
}

}  // namespace tidemark::detail
