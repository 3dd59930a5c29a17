// What layers of images have in common; internal to nn/.
#pragma once

#include <string>

#include "tidemark/nn/layer_scope.h"
#include "tidemark/nn/window_size.h"

namespace tidemark::detail {

template <size_t axes>
void need_image(const Tensor& x, const char* kind, const std::string& name, Source at) {
  if (x.rank() == static_cast<int64_t>(axes) + 2) return;
  constexpr const char* batches[] = {"rows", "images", "volumes"};
  constexpr const char* remedies[] = {
      "give it [n, width, channels]: td::expand_dims adds an axis",
      "give it [n, height, width, channels]: td::expand_dims adds an axis",
      "give it [n, depth, height, width, channels]: td::expand_dims adds an axis"};
  refuse(kind, name,
         cat("the input ", x.dtype(), x.shape(), " is not a batch of ", batches[axes - 1]),
         remedies[axes - 1], at);
}

// The numbers of an options struct of calls/windows.h: one number has no list.
template <class To, size_t axes>
To numbers(const nn::WindowSize<axes>& size) {
  if constexpr (axes == 1)
    return size.items[0];
  else
    return size.items;
}

}  // namespace tidemark::detail
