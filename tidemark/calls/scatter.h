// Elements combined where indices say: extrema, products, sums by segment. `scatter_add` is in
// ops.h.
#pragma once

#include "tidemark/calls/ops.h"

namespace tidemark {

// x with each element at the indices the largest (least) of it and its updates; equal ones share
// the gradient.
Tensor scatter_max(const Operand& x, const Operand& indices, const Operand& updates,
                   int64_t axis = 0, Source at = Source::here());
Tensor scatter_min(const Operand& x, const Operand& indices, const Operand& updates,
                   int64_t axis = 0, Source at = Source::here());
// x with updates multiplied at the indices, in order. Slopes at factors of 0 are right, but count
// as constants when they are differentiated again.
Tensor scatter_mul(const Operand& x, const Operand& indices, const Operand& updates,
                   int64_t axis = 0, Source at = Source::here());
// Zeros of this shape, with updates added at the indices: the last axis of the indices names an
// element or a slice of the result.
Tensor scatter_nd(const Operand& indices, const Operand& updates, const Shape& shape,
                  Source at = Source::here());

// Slices of `data` combined by their segment: the axes of `segments` are the first axes of `data`.
// The result has one slice for each segment from 0 to count - 1. Without a count, in eager code,
// the last segment is the largest number. Slices of other segments, such as -1, are left out. A
// segment without slices is 0, for products 1, for extrema the least or largest number of the
// dtype.
Tensor segment_sum(const Operand& data, const Operand& segments, std::optional<Dim> count = {},
                   Source at = Source::here());
Tensor segment_mean(const Operand& data, const Operand& segments, std::optional<Dim> count = {},
                    Source at = Source::here());
Tensor segment_prod(const Operand& data, const Operand& segments, std::optional<Dim> count = {},
                    Source at = Source::here());
Tensor segment_max(const Operand& data, const Operand& segments, std::optional<Dim> count = {},
                   Source at = Source::here());
Tensor segment_min(const Operand& data, const Operand& segments, std::optional<Dim> count = {},
                   Source at = Source::here());

}  // namespace tidemark
