// Shared by convolution, pooling and resizing: image layouts and padding. Internal to the library.
#pragma once

#include <string_view>
#include <utility>

#include "tidemark/calls/windows.h"

namespace tidemark::detail {

// How many elements `same` padding adds before and after.
std::pair<Dim, Dim> same_padding(Dim in, int64_t window, int64_t stride, int64_t dilation);

// Padding of one axis by hand, which has to be given for as many axes as there are.
void check_pairs(std::string_view name, const WindowPadding& padding, size_t axes, Source at);

// Of any number of axes between batch and channels.
Tensor channels_last(const Tensor& x, ImageLayout layout, Source at);
Tensor from_channels_last(const Tensor& y, ImageLayout layout, Source at);

}  // namespace tidemark::detail
