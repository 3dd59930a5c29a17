// Running products, extrema and log-sum-exps, and linear recurrences. `cumsum` is in ops.h.
#pragma once

#include "tidemark/calls/ops.h"

namespace tidemark {

// Running products along an axis, in order.
Tensor cumprod(const Operand& x, int64_t axis = 0, RunningOptions options = {},
               Source at = Source::here());
// log(exp(x[0]) + ... + exp(x[i])) along an axis, without overflow.
Tensor cumlogsumexp(const Operand& x, int64_t axis = 0, RunningOptions options = {},
                    Source at = Source::here());

struct DirectionOptions {
  bool reverse = false;  // From the last element to the first.
};
// The largest (least) element so far; NaN from the first NaN on. Of equal elements, the first has
// the slope.
Tensor cummax(const Operand& x, int64_t axis = 0, DirectionOptions options = {},
              Source at = Source::here());
Tensor cummin(const Operand& x, int64_t axis = 0, DirectionOptions options = {},
              Source at = Source::here());
// y[i] = a[i] * y[i - 1] + b[i] along an axis, from y = 0.
Tensor linear_scan(const Operand& a, const Operand& b, int64_t axis = 0,
                   DirectionOptions options = {}, Source at = Source::here());

}  // namespace tidemark
