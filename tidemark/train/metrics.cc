#include "tidemark/train/metrics.h"

#include "tidemark/api/create.h"
#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/train/operand_tensor.h"

namespace tidemark::nn::metrics {
namespace {

Tensor share(const Tensor& hits) { return mean(cast(hits, DType::f32)); }

// Class numbers with the shape of y_pred without its last axis, as [n] or as [n, 1].
Tensor labels_of(const char* name, const Tensor& y_true, const Tensor& y_pred, Source at) {
  Shape rows = y_pred.shape();
  if (rows.rank() > 0) rows.erase(rows.rank() - 1);
  const bool has_axis =
      y_true.rank() > 0 && y_true.rank() == y_pred.rank() && y_true.shape()[-1] == 1;
  const Tensor labels = has_axis ? squeeze(y_true, -1) : y_true;
  if (y_pred.rank() == 0 || !is_integer(labels.dtype()) || labels.shape() != rows)
    throw UserError(
        cat(name, ": labels ", type_text(y_true), " do not fit y_pred ", type_text(y_pred)), at,
        "one class number for each row: the shape of y_pred without its last axis");
  return labels;
}

}  // namespace

Tensor Metric::operator()(const Operand& y_true, const Operand& y_pred, Source at) const {
  const SourceScope scope(at);
  return body(tensor_of(y_true), tensor_of(y_pred), at);
}

// The rank of a class is the number of larger elements, or equal ones before it: no sort is needed.
Tensor TopK::operator()(const Operand& y_true, const Operand& y_pred, int64_t k, Source at) const {
  const SourceScope scope(at);
  const Tensor scores = tensor_of(y_pred);
  if (k <= 0)
    throw UserError(cat("metrics::top_k: k must be positive, got ", k), at,
                    "it is the number of classes that count as a hit");
  const Tensor label = expand_dims(labels_of("metrics::top_k", tensor_of(y_true), scores, at), -1);
  const Tensor mine = detail::take_class(scores, label, at);
  const Tensor before = arange(scores.shape()[-1]) < label;
  const Tensor ahead = where(before, scores >= mine, scores > mine);
  return share(sum(cast(ahead, DType::i32), -1) < k);
}

namespace body {

Tensor sparse_accuracy(const Tensor& y_true, const Tensor& y_pred, Source at) {
  const Tensor labels = labels_of("metrics::sparse_accuracy", y_true, y_pred, at);
  return share(argmax(y_pred, -1) == labels);
}

Tensor accuracy(const Tensor& y_true, const Tensor& y_pred, Source at) {
  if (y_true.rank() == y_pred.rank() && y_true.rank() > 0 && y_true.shape() == y_pred.shape() &&
      y_true.shape()[-1] != 1)
    return share(argmax(y_pred, -1) == argmax(y_true, -1));
  const Tensor labels = labels_of("metrics::accuracy", y_true, y_pred, at);
  return share(argmax(y_pred, -1) == labels);
}

Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, Source at) {
  if (y_true.shape() != y_pred.shape())
    throw UserError(cat("metrics::binary_accuracy: y_true ", type_text(y_true), " and y_pred ",
                        type_text(y_pred), " differ in shape"),
                    at, "reshape one of them: td::reshape(y_true, y_pred.shape())");
  return share((y_pred > 0) == (y_true > 0.5));
}

}  // namespace body

}  // namespace tidemark::nn::metrics
