#include "tidemark/nn/sequential.h"

#include <optional>
#include <string>

#include "tidemark/base/error.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::nn {

Tensor Sequential::operator()(const Tensor& x, Source at) const {
  Tensor value = x;
  for (size_t place = 0; place < layers_.size(); ++place) {
    const AnyLayer& layer = layers_[place];
    detail::LayerObserver* const observer = detail::LayerObserver::current();
    const int64_t before = observer != nullptr ? observer->count() : 0;
    // A layer without a name is identified by its position, as its Variables are.
    std::optional<NameScope> numbered;
    if (!layer.has_name()) numbered.emplace(std::to_string(place), at);
    Tensor next = layer(value, at);
    // Callables that are not layers of the library do not open a scope of their own.
    if (observer != nullptr && observer->count() == before) [[unlikely]]
      observer->see({"function", {}, layer, value, next});
    value = std::move(next);
  }
  return value;
}

const AnyLayer& Sequential::operator[](int64_t number) const {
  const int64_t place = number < 0 ? number + size() : number;
  if (place < 0 || place >= size())
    throw UserError(cat("nn::Sequential: there is no layer ", number, " of ", size()),
                    Source::none(), "the first is 0, the last is -1");
  return layers_[static_cast<size_t>(place)];
}

}  // namespace tidemark::nn
