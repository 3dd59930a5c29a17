// What a model gives when it is used.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/nn/summary.h"

namespace tidemark::detail {

// A model with stand-ins for its Variables.
struct ModelOfStandIns {
  nn::AnyLayer model;
  std::vector<Variable> variables;
};
// Runs the program that is remembered for a key, or makes one. `make` is asked once.
Tensor predicted(const std::string& key, const std::vector<Variable>& variables,
                 const nn::AnyLayer& model, const std::function<ModelOfStandIns()>& make,
                 const Tensor& x, Source at);
// In evaluation mode, op by op.
Tensor predicted_eagerly(const nn::AnyLayer& model, const Tensor& x, Source at);

}  // namespace tidemark::detail

namespace tidemark::nn {

// In evaluation mode, whatever the mode is. The program is compiled once and remembered, for the
// models used last, as a function of the parameters: it holds none of their bytes. A model that is
// or holds a closure with captures is run op by op: nobody can tell what such a closure holds, so
// that a program remembered for it would keep its bytes alive, and might be that of another value.
// nn::Lambda takes the layers beside the function instead, and is compiled.
template <LayerFunction Model>
Tensor predict(const Model& model, const Tensor& x, Source at = Source::here()) {
  std::string key = typeid(Model).name();
  if (!detail::add_identity_of(model, key)) return detail::predicted_eagerly(model, x, at);
  const auto make = [&model] {
    Model copy = model;
    detail::VariablePlaceholders placeholders;
    const detail::ReplaceVariable replace = [&](const detail::VariablePath&, Variable& variable) {
      placeholders.replace(variable);
    };
    detail::walk_variables(copy, detail::VariablePath(), replace);
    return detail::ModelOfStandIns{std::move(copy), placeholders.list()};
  };
  return detail::predicted(key, variables(model), model, make, x, at);
}

}  // namespace tidemark::nn
