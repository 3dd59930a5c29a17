// Pooling: composites with a custom gradient.
#pragma once

#include <array>
#include <optional>

#include "tidemark/calls/ops.h"

namespace tidemark {

struct PoolOptions {
  std::array<int64_t, 2> size = {2, 2};
  std::optional<std::array<int64_t, 2>> strides = {};  // Default: the window's size.
  Padding padding = Padding::valid;
  ImageLayout layout = ImageLayout::nhwc;
};
Tensor max_pool(const Operand& x, PoolOptions options = {}, Source at = Source::here());
// Padding does not count towards the average.
Tensor avg_pool(const Operand& x, PoolOptions options = {}, Source at = Source::here());

}  // namespace tidemark
