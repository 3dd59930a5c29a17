#include "tidemark/calls/images.h"

#include "tidemark/calls/ops.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/mode.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace detail {

std::pair<Dim, Dim> same_padding(Dim in, int64_t window, int64_t stride, int64_t dilation) {
  const int64_t reach = dilation * (window - 1) + 1;
  // (out - 1) * stride + reach - in; the size is added last, since the rest may be negative.
  const Dim covered = (in + stride - 1) / stride * stride + reach;
  const Dim wanted = in + stride;
  const Dim total = is_less(covered, wanted) ? Dim(0) : covered - wanted;
  return {total / 2, total - total / 2};
}

Tensor to_nhwc(const Tensor& x, ImageLayout layout, Source at) {
  if (layout == ImageLayout::nhwc || x.rank() != 4) return x;
  return transpose(x, {0, 2, 3, 1}, at);
}

Tensor from_nhwc(const Tensor& y, ImageLayout layout, Source at) {
  return layout == ImageLayout::nhwc ? y : transpose(y, {0, 3, 1, 2}, at);
}

}  // namespace detail

using detail::bind_op;
using detail::tensor_of;
using detail::type_of;

namespace {

// If no window fits, the result would be empty and a mean over it NaN.
void need_room(const Tensor& image, const Tensor& kernel, const ConvOptions& options, Source at) {
  if (options.padding == Padding::same || image.rank() != 4 || kernel.rank() != 4) return;
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const Dim reach = (kernel.shape()[axis] - 1) * options.dilations[i] + 1;
    if (is_less(image.shape()[axis + 1], reach))
      throw UserError(cat("conv2d: a window of ", reach, " does not fit axis ", axis + 1, " of ",
                          type_of(image, at)),
                      at, "use td::Padding::same, or a smaller window");
  }
}

}  // namespace

Tensor conv2d(const Operand& x, const Operand& w, ConvOptions options, Source at) {
  const SourceScope scope(at);
  Tensor image = detail::to_nhwc(tensor_of(x, at), options.layout, at);
  Tensor kernel = tensor_of(w, at);
  const DType common = detail::product_dtype(image.dtype(), kernel.dtype());
  image = cast(image, common, at);
  kernel = cast(kernel, common, at);
  need_room(image, kernel, options, at);
  ops::ConvSpec spec;
  spec.groups = options.groups;
  for (size_t i = 0; i < 2; ++i) {
    spec.stride[i] = options.strides[i];
    spec.dilation[i] = options.dilations[i];
    if (options.padding == Padding::same && image.rank() == 4 && kernel.rank() == 4 &&
        options.strides[i] > 0) {
      const auto axis = static_cast<int64_t>(i);
      const auto [low, high] = detail::same_padding(image.shape()[axis + 1], kernel.shape()[axis],
                                                    options.strides[i], options.dilations[i]);
      spec.pad_low[i] = low;
      spec.pad_high[i] = high;
    }
  }
  const Tensor operands[] = {image, kernel};
  return detail::from_nhwc(bind_op(def_of(&ops::conv2d), operands, spec.attrs(), at),
                           options.layout, at);
}

}  // namespace tidemark
