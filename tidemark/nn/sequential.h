// Sequential: layers applied in order.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/nn/layer.h"

namespace tidemark::nn {

// Any callables of one tensor: layers, ops, lambdas, functions with custom gradients, and
// td::recompute of these.
//
//   td::nn::Sequential model{td::nn::Flatten(), td::nn::Dense(64), td::relu, td::nn::Dense(10)};
//
// A copy has the same layers. Variables are named by position: "1/kernel".
class Sequential {
 public:
  Sequential() = default;
  template <LayerFunction... F>
    requires(sizeof...(F) > 0)
  Sequential(F... layers) : layers_{AnyLayer(std::move(layers))...} {}

  Tensor operator()(const Tensor& x, Source at = Source::here()) const;

  // Appends a layer, to this handle only.
  Sequential& add(AnyLayer layer) {
    layers_.push_back(std::move(layer));
    return *this;
  }
  int64_t size() const { return static_cast<int64_t>(layers_.size()); }
  // Negative numbers count from the end.
  const AnyLayer& operator[](int64_t number) const;

  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    detail::walk_variables(layers_, path, see);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace) {
    detail::walk_variables(layers_, path, replace);
  }
  bool tidemark_identity(std::string& key) const { return detail::add_identity_of(layers_, key); }

 private:
  std::vector<AnyLayer> layers_;
};

}  // namespace tidemark::nn
