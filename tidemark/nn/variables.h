// The Variables of a model, which is any type: they are found in its fields and named by them.
//
//   struct Model { td::nn::Dense up{256}; std::vector<Block> blocks; };
//   td::nn::named_variables(model)       // {"up/kernel", ...}, {"up/bias", ...}, {"blocks/0/...",
//   ...}
//
// structure/variable_walk.h says what is looked into. Closures are not: nn::Lambda names what one
// uses.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tidemark/api/variable_walk.h"

namespace tidemark::nn {

// Each once, in the order of declaration; one that is reached twice (tied weights) has its first
// name.
template <class Model>
NamedVariables named_variables(const Model& model) {
  NamedVariables found;
  detail::VariablesOnce once;
  detail::see_variables(model, [&](const detail::VariablePath& path, const Variable& variable) {
    if (once.add(variable)) found.emplace_back(path.text(), variable);
  });
  return found;
}

template <class Model>
std::vector<Variable> variables(const Model& model) {
  std::vector<Variable> found;
  detail::VariablesOnce once;
  detail::see_variables(model, [&](const detail::VariablePath&, const Variable& variable) {
    if (once.add(variable)) found.push_back(variable);
  });
  return found;
}

// Those that are trained.
template <class Model>
std::vector<Variable> trainable_variables(const Model& model) {
  std::vector<Variable> found;
  detail::VariablesOnce once;
  detail::see_variables(model, [&](const detail::VariablePath&, const Variable& variable) {
    if (variable.trainable() && once.add(variable)) found.push_back(variable);
  });
  return found;
}

// A model of the same kind with Variables of its own, of the same values. What is tied stays tied.
// A plain copy of a model has the same Variables.
template <class Model>
Model clone(const Model& model, Source at = Source::here()) {
  Model copy = model;
  detail::VariableClones clones(at);
  const detail::ReplaceVariable replace = [&](const detail::VariablePath&, Variable& variable) {
    clones.replace(variable);
  };
  detail::walk_variables(copy, detail::VariablePath(), replace);
  return copy;
}

}  // namespace tidemark::nn
