// Activation: a function of one tensor that keeps its shape, given by name, as an op or as a
// lambda.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "tidemark/api/ops.h"
#include "tidemark/nn/layer.h"

namespace tidemark::nn {

// "relu", "gelu", "silu" ("swish"), "sigmoid", "tanh", "softmax", "log_softmax", "softplus",
// "leaky_relu", "elu", "linear"; td::relu; a lambda. Also a layer: Sequential{Dense(8),
// Activation("relu")}.
class Activation {
 public:
  // The identity.
  Activation() = default;
  Activation(const char* name, Source at = Source::here()) : Activation(std::string(name), at) {}
  Activation(const std::string& name, Source at = Source::here());
  template <class F>
    requires(!std::same_as<F, Activation> && !std::convertible_to<F, std::string> &&
             LayerFunction<F>)
  Activation(F f)
      : function_(std::make_shared<const AnyLayer>(std::move(f))), is_by_row_(kActsByRow<F>) {}

  bool is_linear() const { return function_ == nullptr; }
  // Whether it is known to act on each row of the last axis separately.
  bool is_by_row() const { return is_by_row_; }
  Tensor operator()(const Tensor& x, Source at = Source::here()) const {
    return is_linear() ? x : (*function_)(x, at);
  }
  // A user's function may have Variables.
  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    detail::walk_variables(function_, path, see);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace) {
    detail::walk_variables(function_, path, replace);
  }
  bool tidemark_identity(std::string& key) const { return detail::add_identity_of(function_, key); }

 private:
  template <class F>
  static constexpr bool kActsByRow = std::is_same_v<F, UnaryOp> || std::is_same_v<F, RowOp>;
  std::shared_ptr<const AnyLayer> function_;
  bool is_by_row_ = true;
};

}  // namespace tidemark::nn
