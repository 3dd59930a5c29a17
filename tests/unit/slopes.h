// Gradients by central differences, for tests to compare with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark {

using Values = std::vector<double>;
using ScalarFunction = std::function<Tensor(const Tensor&)>;

inline Tensor drawn_f64(const Shape& shape, int64_t key) {
  return random::normal(shape, {.dtype = DType::f64, .key = random::Key(key)});
}

// The slope of f in every element of x.
inline Values differences(const ScalarFunction& f, const Tensor& x) {
  constexpr double step = 1e-6;
  Values found, at = x.to_vector<double>();
  for (size_t i = 0; i < at.size(); ++i) {
    const double before = at[i];
    at[i] = before + step;
    const double high = f(constant(at, x.shape())).item<double>();
    at[i] = before - step;
    const double low = f(constant(at, x.shape())).item<double>();
    at[i] = before;
    found.push_back((high - low) / (2 * step));
  }
  return found;
}

inline void expect_slopes(const Tensor& got, const Values& want, const std::string& what,
                          double tolerance) {
  const Values values = got.to_vector<double>();
  ASSERT_EQ(values.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], tolerance * (1 + std::abs(want[i])))
        << what << ", element " << i;
}

}  // namespace tidemark
