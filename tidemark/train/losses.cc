#include "tidemark/train/losses.h"

#include "tidemark/api/create.h"
#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/train/operand_tensor.h"

namespace tidemark::nn::losses {
namespace {

// 16-bit floats are summed in f32.
Tensor wide(const Tensor& x) {
  const bool enough = x.dtype() == DType::f32 || x.dtype() == DType::f64;
  return enough ? x : cast(x, DType::f32);
}

// Broadcasting [64, 1] against [64] would silently compare every pair.
void need_same_shape(const char* name, const Tensor& y_true, const Tensor& y_pred, Source at) {
  if (y_true.shape() == y_pred.shape()) return;
  throw UserError(cat(name, ": y_true ", type_text(y_true), " and y_pred ", type_text(y_pred),
                      " differ in shape"),
                  at, "reshape one of them: td::reshape(y_true, y_pred.shape())");
}

void need_classes(const char* name, const Tensor& y_pred, Source at) {
  if (y_pred.rank() > 0) return;
  throw UserError(cat(name, ": y_pred is a scalar, without an axis of classes"), at,
                  "give it [..., classes]");
}

void check_smoothing(const char* name, const CrossEntropyOptions& options, Source at) {
  if (options.label_smoothing >= 0 && options.label_smoothing < 1) return;
  throw UserError(cat(name, ": label_smoothing must be in [0, 1), got ", options.label_smoothing),
                  at, "it is the fraction of each label that is spread evenly over all classes");
}

// The logarithm of probabilities. 0 is replaced by the smallest normal f32, so that the loss is
// finite.
Tensor log_of(const Tensor& probability) { return log(maximum(probability, 1.1754944e-38)); }

}  // namespace

Tensor Loss::operator()(const Operand& y_true, const Operand& y_pred, Source at) const {
  const SourceScope scope(at);
  return body(tensor_of(y_true), tensor_of(y_pred), at);
}

Tensor CrossEntropy::operator()(const Operand& y_true, const Operand& y_pred,
                                const CrossEntropyOptions& options, Source at) const {
  const SourceScope scope(at);
  return body(tensor_of(y_true), tensor_of(y_pred), options, at);
}

Tensor Huber::operator()(const Operand& y_true, const Operand& y_pred, double delta,
                         Source at) const {
  const SourceScope scope(at);
  const Tensor wanted = tensor_of(y_true), got = tensor_of(y_pred);
  need_same_shape("losses::huber", wanted, got, at);
  if (!(delta > 0))
    throw UserError(cat("losses::huber: delta must be positive, got ", delta), at,
                    "it is the difference above which the loss is linear");
  // Half the square of small differences, a line of slope delta beyond. Written without |x|, whose
  // slope at 0 would hide the curvature there.
  const Tensor difference = wide(got) - wide(wanted);
  const Tensor small = clip(difference, -delta, delta);
  return mean(small * (difference - 0.5 * small));
}

namespace body {

Tensor mse(const Tensor& y_true, const Tensor& y_pred, Source at) {
  need_same_shape("losses::mse", y_true, y_pred, at);
  return mean(square(wide(y_pred) - wide(y_true)));
}

Tensor mae(const Tensor& y_true, const Tensor& y_pred, Source at) {
  need_same_shape("losses::mae", y_true, y_pred, at);
  return mean(abs(wide(y_pred) - wide(y_true)));
}

Tensor binary(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
              Source at) {
  constexpr const char* name = "losses::binary_crossentropy";
  need_same_shape(name, y_true, y_pred, at);
  check_smoothing(name, options, at);
  const Tensor x = wide(y_pred);
  Tensor y = wide(y_true);
  if (options.label_smoothing > 0)
    y = y * (1 - options.label_smoothing) + options.label_smoothing / 2;
  if (!options.from_logits) return -mean(y * log_of(x) + (1 - y) * log_of(1 - x));
  // -log sigmoid(x) is softplus(-x): neither a large exp nor a difference of large numbers.
  return mean(y * softplus(-x) + (1 - y) * softplus(x));
}

Tensor categorical(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
                   Source at) {
  constexpr const char* name = "losses::categorical_crossentropy";
  need_same_shape(name, y_true, y_pred, at);
  need_classes(name, y_pred, at);
  check_smoothing(name, options, at);
  const Tensor x = wide(y_pred);
  Tensor y = wide(y_true);
  if (options.label_smoothing > 0)
    y = y * (1 - options.label_smoothing) +
        options.label_smoothing / cast(y.shape()[-1], x.dtype());
  const Tensor logarithm = options.from_logits ? log_softmax(x) : log_of(x);
  return -mean(sum(y * logarithm, -1));
}

Tensor sparse(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
              Source at) {
  constexpr const char* name = "losses::sparse_categorical_crossentropy";
  need_classes(name, y_pred, at);
  check_smoothing(name, options, at);
  if (!is_integer(y_true.dtype()))
    throw UserError(cat(name, ": labels are ", type_text(y_true), ", not integers"), at,
                    "cast class numbers with td::cast(y, td::i32); for probabilities use "
                    "losses::categorical_crossentropy");
  // As [n], or as [n, 1].
  const bool has_axis = y_true.rank() == y_pred.rank() && y_true.shape()[-1] == 1;
  const Tensor label = has_axis ? y_true : expand_dims(y_true, -1);
  Shape rows = y_pred.shape();
  rows.set(rows.rank() - 1, 1);
  if (label.shape() != rows)
    throw UserError(
        cat(name, ": labels ", type_text(y_true), " do not fit y_pred ", type_text(y_pred)), at,
        "one class number for each row: the shape of y_pred without its last axis");
  const Tensor x = wide(y_pred);
  const Tensor picked = detail::take_class(x, label, at);
  const double smoothing = options.label_smoothing;
  if (!options.from_logits) {
    if (smoothing == 0) return -mean(log_of(picked));
    return -mean((1 - smoothing) * log_of(picked) + smoothing * mean(log_of(x), -1, keepdims));
  }
  if (smoothing == 0) return mean(logsumexp(x, -1, keepdims) - picked);
  return mean(logsumexp(x, -1, keepdims) - (1 - smoothing) * picked -
              smoothing * mean(x, -1, keepdims));
}

}  // namespace body
}  // namespace tidemark::nn::losses
