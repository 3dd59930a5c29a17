#include "tidemark/nn/kv_cache.h"

#include <utility>
#include <vector>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/nn/initializers.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::nn {
namespace {

Variable declared(const KVCacheOptions& options, const char* name, Source at) {
  return Variable::unshaped(initializers::zeros,
                            {.name = detail::parameter_name(options.name, name),
                             .trainable = false,
                             .dtype = options.dtype},
                            at);
}

// [..., tokens, size] becomes [tokens, ..., size], and back.
std::vector<int64_t> tokens_first(int64_t rank) {
  std::vector<int64_t> order = {rank - 2};
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != rank - 2) order.push_back(axis);
  return order;
}
std::vector<int64_t> tokens_back(int64_t rank) {
  std::vector<int64_t> order;
  for (int64_t axis = 1; axis < rank - 1; ++axis) order.push_back(axis);
  order.push_back(0);
  order.push_back(rank - 1);
  return order;
}

}  // namespace

KVCache::KVCache(int64_t capacity, KVCacheOptions options, Source at)
    : keys(declared(options, "keys", at)),
      values(declared(options, "values", at)),
      length(zeros({}, DType::i32),
             {.name = detail::parameter_name(options.name, "length"), .trainable = false}, at),
      capacity_(capacity) {
  if (capacity <= 0)
    throw UserError(cat("nn::KVCache: cannot hold ", capacity, " tokens"), at,
                    "give the largest number of tokens it will hold");
}

void KVCache::reset(const Operand& kept, Source at) const {
  const SourceScope scope(at);
  length.assign(clip(cast(kept, DType::i32), 0, length.value(at)));
}

KVCache::Both KVCache::add(const Tensor& new_keys, const Tensor& new_values, Source at) const {
  const int64_t rank = new_keys.rank();
  const Dim tokens = new_keys.shape()[-2];
  const Tensor places = length.value(at) + arange(tokens);
  const auto put = [&](const Variable& rows, const Tensor& given) {
    const Tensor first = transpose(given, tokens_first(rank));
    Shape shape = first.shape();
    shape.set(0, capacity_);
    if (!rows.has_shape()) rows.set_shape(shape, at);
    if (rows.shape(at) != shape)
      throw UserError(cat("nn::KVCache: was made for ", rows.shape(at), ", got ", shape), at,
                      "make another cache for another batch or layer");
    rows.scatter_update(places, cast(first, rows.dtype()));
    return cast(transpose(rows.value(at), tokens_back(rank)), given.dtype());
  };
  const Both all{put(keys, new_keys), put(values, new_values)};
  length.assign_add(cast(tokens, DType::i32));
  return all;
}

}  // namespace tidemark::nn
