// Distances from a truth in a wider type, in units in the last place, over many drawn operands.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tidemark/api/random.h"
#include "tidemark/api/tensor.h"

namespace tidemark {

template <class T>
double ulps_apart(T got, long double want) {
  const T nearest = static_cast<T>(want);
  const T next = std::nextafter(std::fabs(nearest), std::numeric_limits<T>::infinity());
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) /
                             static_cast<long double>(next - std::fabs(nearest)));
}

template <class T, class Truth>
double worst_of(const Tensor& got, const Tensor& y, const Tensor& x, const Truth& truth) {
  const std::vector<T> values = got.to_vector<T>(), ys = y.to_vector<T>(), xs = x.to_vector<T>();
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, ulps_apart(values[i], truth(static_cast<long double>(ys[i]),
                                                        static_cast<long double>(xs[i]))));
  return worst;
}

inline Tensor drawn(DType dtype, double low, double high, uint64_t seed) {
  return random::uniform({200000},
                         {.low = low, .high = high, .dtype = dtype, .key = random::Key(seed)});
}

}  // namespace tidemark
