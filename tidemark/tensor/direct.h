// Shortcuts of eager code: one pass over the elements where a composite runs many ops, one after
// another. Internal to the library. Each has the bits of its composite, which traces and tapes run.
#pragma once

#include <limits>
#include <optional>

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// Whether the elements are there to be read: nothing traces or watches the call.
bool is_plain(const Tensor& x);

// The indices of the elements of a boolean tensor that are true.
Tensor true_indices(const Tensor& hits, Source at);
// The distinct elements of a list in increasing order, the place of each element among them in this
// shape, how often each occurs, and their number.
struct Distinct {
  Tensor values, inverse, counts, size;
};
Distinct distinct(const Tensor& list, const Shape& shape, Source at);
// How often each of [0, length) occurs in a list of i64.
Tensor occurrences(const Tensor& numbers, int64_t length, Source at);
// How many elements of a list lie between neighbours of these edges, of the same dtype and at equal
// distances; nothing if they cannot be counted so.
std::optional<Tensor> between_edges(const Tensor& list, const Tensor& edges, Source at);

// The part of each matrix whose column - row is in a band; zeros elsewhere. Of any dtype but bool
// and complex numbers.
struct Band {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
};
std::optional<Tensor> within_band(const Tensor& x, Band band, Source at);
// A matrix of zeros, but for the elements of a vector, or ones if there is none, on a diagonal.
std::optional<Tensor> on_diagonal(const Tensor* vector, DType dtype, const Shape& shape,
                                  int64_t offset, Source at);
// Of two lists of vectors of three, of one shape and dtype, f32 or f64.
std::optional<Tensor> cross_products(const Tensor& a, const Tensor& b, Source at);

// Of complex numbers; the two tensors have one shape and dtype.
std::optional<Tensor> conjugates(const Tensor& z, Source at);
std::optional<Tensor> complex_products(const Tensor& a, const Tensor& b, Source at);

}  // namespace tidemark::detail
