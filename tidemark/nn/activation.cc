#include "tidemark/nn/activation.h"

#include <map>
#include <string_view>

#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"

namespace tidemark::nn {
namespace {

using Function = Tensor (*)(const Tensor& x, Source at);

struct NamedActivation {
  std::string_view name;
  Function function;
};

constexpr NamedActivation kActivations[] = {
    {"elu",
     // exp of large numbers is not selected, but it must not be infinite in the gradient either.
     [](const Tensor& x, Source at) {
       const Tensor above = x > 0;
       return where(above, x, expm1(where(above, 0, x, at), at), at);
     }},
    {"gelu", [](const Tensor& x, Source at) { return gelu(x, at); }},
    {"leaky_relu", [](const Tensor& x, Source at) { return leaky_relu(x, 0.01, at); }},
    {"linear", nullptr},
    {"log_softmax", [](const Tensor& x, Source at) { return log_softmax(x, -1, at); }},
    {"relu", [](const Tensor& x, Source at) { return relu(x, at); }},
    {"sigmoid", [](const Tensor& x, Source at) { return sigmoid(x, at); }},
    {"silu", [](const Tensor& x, Source at) { return silu(x, at); }},
    {"softmax", [](const Tensor& x, Source at) { return softmax(x, -1, at); }},
    {"softplus", [](const Tensor& x, Source at) { return softplus(x, at); }},
    {"swish", [](const Tensor& x, Source at) { return silu(x, at); }},
    {"tanh", [](const Tensor& x, Source at) { return tanh(x, at); }},
};

const NamedActivation* find(std::string_view name) {
  for (const NamedActivation& one : kActivations)
    if (one.name == name) return &one;
  return nullptr;
}

std::string all_names() {
  std::string text;
  for (const NamedActivation& one : kActivations) text += cat(text.empty() ? "" : ", ", one.name);
  return text;
}

// An op that is called with the caller's line.
struct NamedFunction {
  Function function;
  Tensor operator()(const Tensor& x, Source at = Source::here()) const {
    const SourceScope scope(at);
    return function(x, at);
  }
};

}  // namespace

Activation::Activation(const std::string& name, Source at) {
  const NamedActivation* const found = find(name);
  if (found == nullptr)
    throw UserError(cat("nn::Activation: there is no \"", name, "\""), at,
                    cat("there are ", all_names(), "; or give an op or a lambda: td::relu"));
  if (found->function != nullptr)
    function_ = std::make_shared<const AnyLayer>(NamedFunction{found->function});
}

}  // namespace tidemark::nn
