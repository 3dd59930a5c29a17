// The Variables of a model. A model is any type; its Variables are found in its fields and named
// after them.
//
//   struct Model { td::nn::Dense up{256}; std::vector<Block> blocks; };
//   td::nn::named_variables(model)   // {"up/kernel", ...}, {"up/bias", ...}, ...
//
// structure/variable_walk.h lists the types that are searched. Closures are not: use nn::Lambda.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tidemark/api/variable_walk.h"

namespace tidemark::nn {

// In the order of declaration; a Variable that is reached twice (tied weights) is listed once,
// under its first name.
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

// The trainable ones.
template <class Model>
std::vector<Variable> trainable_variables(const Model& model) {
  std::vector<Variable> found;
  detail::VariablesOnce once;
  detail::see_variables(model, [&](const detail::VariablePath&, const Variable& variable) {
    if (variable.trainable() && once.add(variable)) found.push_back(variable);
  });
  return found;
}

// A deep copy: a model with new Variables of the same values. Tied weights stay tied. (A plain copy
// of a model shares its Variables.)
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
