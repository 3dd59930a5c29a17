// What tests of layers compare with.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/slopes.h"
#include "tidemark/tidemark.h"

namespace tidemark {

inline void expect_near(const Tensor& got, const Values& want, double tolerance = 1e-5) {
  expect_slopes(got, want, "value", tolerance);
}

inline std::vector<std::string> names_of(const NamedVariables& named) {
  std::vector<std::string> names;
  for (const auto& [name, variable] : named) names.push_back(name);
  return names;
}

// The gradients of sum(layer(x) * weights) by x and by every Variable of the layer, which is in
// f64, are the slopes that differences give.
template <class Layer>
void expect_gradients(const Layer& layer, const Tensor& x, double tolerance = 1e-5) {
  const Tensor weights = drawn_f64(layer(x).shape(), 99);
  const ScalarFunction loss = [&](const Tensor& at) { return sum(layer(at) * weights); };
  expect_slopes(grad(loss)(x), differences(loss, x), "input", tolerance);
  for (const auto& [name, variable] : nn::named_variables(layer)) {
    if (!variable.trainable()) continue;
    GradientTape tape;
    const Tensor target = loss(x);
    const Tensor got = tape.gradient(target, variable);
    const Tensor before = variable.value();
    const ScalarFunction by_variable = [&, v = variable](const Tensor& at) {
      v.assign(at);
      return loss(x);
    };
    const Values want = differences(by_variable, before);
    variable.assign(before);
    expect_slopes(got, want, name, tolerance);
  }
}

}  // namespace tidemark
