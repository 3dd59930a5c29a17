// predict: a model's output in evaluation mode.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/api/plan.h"
#include "tidemark/nn/summary.h"

namespace tidemark::nn {

struct PredictOptions {
  // Of a call. A model that runs eagerly has no plan, and is refused.
  std::optional<Budget> budget = {};
};

}  // namespace tidemark::nn

namespace tidemark::detail {

// A model with placeholders for its Variables.
struct ModelOfStandIns {
  nn::AnyLayer model;
  std::vector<Variable> variables;
};
struct PredictCall {
  const Tensor& x;
  const nn::PredictOptions& options;
  Source at;
};
// Runs the cached program of a key, or compiles one. `make` is called once.
Tensor predicted(std::string key, const std::vector<Variable>& variables, const nn::AnyLayer& model,
                 const std::function<ModelOfStandIns()>& make, const PredictCall& call);
// Runs eagerly, in evaluation mode. The reason is for an error: a budget cannot be kept.
Tensor predicted_eagerly(const nn::AnyLayer& model, const PredictCall& call, const char* reason);

}  // namespace tidemark::detail

namespace tidemark::nn {

// Always runs in evaluation mode. The program is compiled once and cached for the most recent
// models, as a function of the parameters, so that it keeps none of their memory alive. A model
// that is or contains a closure with captures runs eagerly: its captures cannot be inspected, so a
// cached program could be stale or keep their memory alive. nn::Lambda, which takes the layers
// beside the function, is compiled.
template <LayerFunction Model>
Tensor predict(const Model& model, const Tensor& x, const PredictOptions& options = {},
               Source at = Source::here()) {
  const detail::PredictCall call{x, options, at};
  std::string key = typeid(Model).name();
  if (!detail::add_identity_of(model, key))
    return detail::predicted_eagerly(model, call, "it has a closure with captures");
  const auto make = [&model] {
    Model copy = model;
    detail::VariablePlaceholders placeholders;
    const detail::ReplaceVariable replace = [&](const detail::VariablePath&, Variable& variable) {
      placeholders.replace(variable);
    };
    detail::walk_variables(copy, detail::VariablePath(), replace);
    return detail::ModelOfStandIns{std::move(copy), placeholders.list()};
  };
  return detail::predicted(std::move(key), variables(model), model, make, call);
}

}  // namespace tidemark::nn
