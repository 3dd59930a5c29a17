// Shared by convolution and pooling: image layouts and padding. Internal to the library.
#pragma once

#include <utility>

#include "tidemark/calls/ops.h"

namespace tidemark::detail {

// How many elements `same` padding adds before and after.
std::pair<Dim, Dim> same_padding(Dim in, int64_t window, int64_t stride, int64_t dilation);

Tensor to_nhwc(const Tensor& x, ImageLayout layout, Source at);
Tensor from_nhwc(const Tensor& y, ImageLayout layout, Source at);

}  // namespace tidemark::detail
