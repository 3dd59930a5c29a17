#include "tidemark/nn/pool.h"

#include "tidemark/nn/images.h"

namespace tidemark::nn {
namespace {

using detail::need_image;
using detail::numbers;
using detail::run_layer;

template <size_t axes>
Axes spatial_axes() {
  std::vector<int64_t> list;
  for (size_t i = 0; i < axes; ++i) list.push_back(static_cast<int64_t>(i) + 1);
  return list;
}

template <size_t axes, PoolKind kind>
Tensor pooled(const Tensor& x, WindowSize<axes> window, const PoolLayerOptions<axes>& options,
              Source at) {
  const auto run = [&]<class Options>(auto largest, auto mean, Options call) {
    call.size = numbers<decltype(call.size)>(window);
    if (options.strides) call.strides = numbers<decltype(call.size)>(*options.strides);
    call.padding = options.padding;
    return kind == PoolKind::max ? largest(x, call, at) : mean(x, call, at);
  };
  if constexpr (axes == 1) return run(max_pool1d, avg_pool1d, Pool1dOptions{});
  if constexpr (axes == 2) return run(max_pool, avg_pool, PoolOptions{});
  if constexpr (axes == 3) return run(max_pool3d, avg_pool3d, Pool3dOptions{});
}

}  // namespace

template <size_t axes, PoolKind kind>
Tensor PoolLayer<axes, kind>::call(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, name_, at);
  return pooled<axes, kind>(x, window_, options_, at);
}
template <size_t axes, PoolKind kind>
Tensor PoolLayer<axes, kind>::operator()(const Tensor& x, Source at) const {
  return run_layer(*this, x, at);
}

template <size_t axes, PoolKind kind>
Tensor GlobalPoolLayer<axes, kind>::call(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, name_, at);
  if (kind == PoolKind::max) return max(x, spatial_axes<axes>(), Keep::no, at);
  return mean(x, spatial_axes<axes>(), Keep::no, at);
}
template <size_t axes, PoolKind kind>
Tensor GlobalPoolLayer<axes, kind>::operator()(const Tensor& x, Source at) const {
  return run_layer(*this, x, at);
}

template <size_t axes, PoolKind kind>
Tensor AdaptivePoolLayer<axes, kind>::call(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, name_, at);
  const std::vector<int64_t> sizes(sizes_.items.begin(), sizes_.items.end());
  if (kind == PoolKind::max) return adaptive_max_pool(x, sizes, {}, at);
  return adaptive_avg_pool(x, sizes, {}, at);
}
template <size_t axes, PoolKind kind>
Tensor AdaptivePoolLayer<axes, kind>::operator()(const Tensor& x, Source at) const {
  return run_layer(*this, x, at);
}

template <size_t axes>
UpSamplingLayer<axes>::UpSamplingLayer(WindowSize<axes> factor, Resizing method, Source at)
    : factor_(factor), method_(method) {
  for (const int64_t item : factor.items)
    if (item < 1)
      detail::refuse(kKind, name_, cat("cannot make images ", item, " times as large"),
                     "factors are at least 1", at);
}
template <size_t axes>
Tensor UpSamplingLayer<axes>::call(const Tensor& x, Source at) const {
  need_image<axes>(x, kKind, name_, at);
  Shape sizes;
  for (size_t i = 0; i < axes; ++i)
    sizes.push_back(x.shape()[static_cast<int64_t>(i) + 1] * factor_.items[i]);
  return resize(x, sizes, {.method = method_}, at);
}
template <size_t axes>
Tensor UpSamplingLayer<axes>::operator()(const Tensor& x, Source at) const {
  return run_layer(*this, x, at);
}

Tensor Resize::call(const Tensor& x, Source at) const {
  need_image<2>(x, kKind, name_, at);
  return resize(x, {sizes_.items[0], sizes_.items[1]}, {.method = method_, .antialias = antialias_},
                at);
}
Tensor Resize::operator()(const Tensor& x, Source at) const { return run_layer(*this, x, at); }

template class PoolLayer<1, PoolKind::max>;
template class PoolLayer<2, PoolKind::max>;
template class PoolLayer<3, PoolKind::max>;
template class PoolLayer<1, PoolKind::average>;
template class PoolLayer<2, PoolKind::average>;
template class PoolLayer<3, PoolKind::average>;
template class GlobalPoolLayer<1, PoolKind::max>;
template class GlobalPoolLayer<2, PoolKind::max>;
template class GlobalPoolLayer<3, PoolKind::max>;
template class GlobalPoolLayer<1, PoolKind::average>;
template class GlobalPoolLayer<2, PoolKind::average>;
template class GlobalPoolLayer<3, PoolKind::average>;
template class AdaptivePoolLayer<1, PoolKind::max>;
template class AdaptivePoolLayer<2, PoolKind::max>;
template class AdaptivePoolLayer<3, PoolKind::max>;
template class AdaptivePoolLayer<1, PoolKind::average>;
template class AdaptivePoolLayer<2, PoolKind::average>;
template class AdaptivePoolLayer<3, PoolKind::average>;
template class UpSamplingLayer<1>;
template class UpSamplingLayer<2>;
template class UpSamplingLayer<3>;

}  // namespace tidemark::nn
