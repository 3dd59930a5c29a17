#include "tidemark/nn/basic.h"

#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::nn {

Embedding::Embedding(int64_t ids, int64_t features, EmbeddingOptions options, Source at)
    : table(
          {ids, features}, options.initializer,
          {.name = detail::parameter_name(options.name, "table"), .dtype = options.dtype.variable},
          at),
      policy_(options.dtype),
      name_(std::move(options.name)) {
  if (ids <= 0 || features <= 0)
    detail::refuse(kKind, name_, cat("cannot have a table of ", ids, " x ", features),
                   "both sizes must be positive", at);
}

Tensor Embedding::call(const Tensor& ids, Source at) const {
  if (!is_integer(ids.dtype()))
    detail::refuse(kKind, name_, cat("ids are ", ids.dtype(), ", not integers"),
                   "give it row numbers: td::cast(x, td::i32)", at);
  return gather(table, ids, 0, at);
}

Tensor Embedding::operator()(const Tensor& ids, Source at) const {
  return detail::run_layer(*this, ids, at);
}

Tensor Flatten::call(const Tensor& x, Source at) const {
  if (x.rank() == 0)
    detail::refuse(kKind, name_, "the input is a scalar, without a batch axis", "give it [n, ...]",
                   at);
  Dim features = 1;
  for (int64_t axis = 1; axis < x.rank(); ++axis) features = features * x.shape()[axis];
  return reshape(x, {x.shape()[0], features}, at);
}

Tensor Flatten::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

Dropout::Dropout(double rate, Source at) : rate_(rate) {
  if (!(rate >= 0 && rate < 1))
    detail::refuse(kKind, name_, cat("the rate must be in [0, 1), got ", rate),
                   "it is the fraction of elements that become zero", at);
}

Tensor Dropout::call(const Tensor& x, Source at) const {
  if (!is_training() || rate_ == 0) return x;
  return dropout(x, {.rate = rate_}, at);
}

Tensor Dropout::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

}  // namespace tidemark::nn
