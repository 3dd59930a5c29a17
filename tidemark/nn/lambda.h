// Lambda: a closure together with the layers it uses.
#pragma once

#include <concepts>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tidemark/nn/layer.h"

namespace tidemark::nn {

// Variables captured by a closure are not found, so a closure as a model would have none. Lambda
// names the layers it uses:
//
//   td::nn::Dense dense(8);
//   td::nn::Lambda block([dense](const td::Tensor& x) { return x + dense(x); }, dense);
//
// A function that takes the layers as arguments, [](const Tensor& x, const Dense& dense), can also
// be cloned, and nn::predict compiles it if it captures nothing. Variables are named by position:
// "0/kernel".
template <class F, class... Layers>
class Lambda {
  static constexpr bool kTakesLayers =
      std::invocable<const F&, const Tensor&, const Layers&...> && sizeof...(Layers) > 0;
  static_assert(kTakesLayers || LayerFunction<F>,
                "nn::Lambda takes a function of one tensor, or of one tensor and the layers that "
                "follow, in their order");

 public:
  explicit Lambda(F f, Layers... layers) : f_(std::move(f)), layers_(std::move(layers)...) {}

  Tensor operator()(const Tensor& x) const {
    const UserCode user;
    if constexpr (kTakesLayers)
      return std::apply([&](const Layers&... each) -> Tensor { return f_(x, each...); }, layers_);
    else
      return f_(x);
  }

  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    detail::walk_variables(layers_, path, see);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace) {
    if constexpr (kTakesLayers || sizeof...(Layers) == 0)
      detail::walk_variables(layers_, path, replace);
    else
      detail::refuse_closure(path);
  }
  // Layers that a closure captures cannot be replaced.
  bool tidemark_identity(std::string& key) const {
    if constexpr (kTakesLayers || sizeof...(Layers) == 0)
      return detail::add_identity_of(f_, key) && detail::add_identity_of(layers_, key);
    else
      return false;
  }

 private:
  F f_;
  std::tuple<Layers...> layers_;
};

}  // namespace tidemark::nn
