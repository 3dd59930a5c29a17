#include "tidemark/train/running_metrics.h"

#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/effect.h"
#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/train/operand_tensor.h"

namespace tidemark::nn::metrics {
namespace {

Variable counter(const Shape& shape, DType dtype, std::string name, Source at) {
  return Variable(zeros(shape, dtype), {.name = std::move(name), .trainable = false}, at);
}

void clear(const Variable& variable) { variable.assign(zeros_like(variable)); }

// 0 where there is nothing to divide by.
Tensor fraction(const Tensor& part, const Tensor& whole) {
  return where(whole == 0, 0.0, part / where(whole == 0, 1.0, whole));
}

void need_same_shape(const char* name, const Tensor& y_true, const Tensor& y_pred, Source at) {
  if (y_true.shape() == y_pred.shape()) return;
  throw UserError(cat("metrics::", name, ": y_true ", type_text(y_true), " and y_pred ",
                      type_text(y_pred), " differ in shape"),
                  at, "reshape one of them: td::reshape(y_true, y_pred.shape())");
}

Tensor weights_for(const Tensor& x, const Operand& weights) {
  return broadcast_to(cast(tensor_of(weights), DType::f64), x.shape());
}

}  // namespace

Mean::Mean(std::string name, Source at)
    : total(zeros({}, DType::f64), {.name = name + "/total", .trainable = false}, at),
      count(zeros({}, DType::f64), {.name = std::move(name) + "/count", .trainable = false}, at) {}

void Mean::update(const Operand& x, Source at) const {
  const SourceScope scope(at);
  const Tensor value = tensor_of(x);
  total.assign_add(sum(cast(stop_gradient(value), DType::f64)));
  count.assign_add(cast(value.shape().open_size(), DType::f64));
}

void Mean::update(const Operand& x, const Operand& weight, Source at) const {
  const SourceScope scope(at);
  const Tensor value = cast(stop_gradient(tensor_of(x)), DType::f64);
  const Tensor times = broadcast_to(cast(tensor_of(weight), DType::f64), value.shape());
  total.assign_add(sum(value * times));
  count.assign_add(sum(times));
}

Tensor Mean::result(Source at) const {
  const SourceScope scope(at);
  return cast(total / maximum(count, 1e-300), DType::f32);
}

void Mean::reset(Source at) const {
  const SourceScope scope(at);
  total.assign(zeros({}, DType::f64));
  count.assign(zeros({}, DType::f64));
}

namespace {

AUCOptions checked(AUCOptions options, Source at) {
  if (options.thresholds >= 2) return options;
  throw UserError(cat("metrics::AUC: .thresholds is ", options.thresholds), at,
                  "give 2 or more; 200 is usual");
}

int64_t checked_classes(int64_t classes, Source at) {
  if (classes > 0) return classes;
  throw UserError(cat("metrics::ConfusionMatrix: there are ", classes, " classes"), at,
                  "give the number of classes, 1 or more");
}

}  // namespace

// ---- of two classes -----------------------------------------------------------------------------

BinaryCounts::BinaryCounts(const char* kind, const BinaryOptions& options, Source at)
    : true_positives(counter(
          {}, DType::f64, cat(options.name.empty() ? kind : options.name, "/true_positives"), at)),
      false_positives(counter(
          {}, DType::f64, cat(options.name.empty() ? kind : options.name, "/false_positives"), at)),
      false_negatives(counter(
          {}, DType::f64, cat(options.name.empty() ? kind : options.name, "/false_negatives"), at)),
      kind_(kind),
      threshold_(options.threshold) {}

void BinaryCounts::update(const Operand& y_true, const Operand& y_pred, Source at) const {
  update(y_true, y_pred, 1.0, at);
}

void BinaryCounts::update(const Operand& y_true, const Operand& y_pred, const Operand& weights,
                          Source at) const {
  const SourceScope scope(at);
  const Tensor wanted = tensor_of(y_true), given = stop_gradient(tensor_of(y_pred));
  need_same_shape(kind_, wanted, given, at);
  const Tensor is = wanted > 0.5, called = given > threshold_;
  const Tensor weight = weights_for(given, weights);
  const auto count = [&](const Tensor& hits) { return sum(where(hits, weight, 0.0)); };
  true_positives.assign_add(count(logical_and(is, called)));
  false_positives.assign_add(count(logical_and(logical_not(is), called)));
  false_negatives.assign_add(count(logical_and(is, logical_not(called))));
}

void BinaryCounts::reset(Source at) const {
  const SourceScope scope(at);
  clear(true_positives);
  clear(false_positives);
  clear(false_negatives);
}

Precision::Precision(const BinaryOptions& options, Source at)
    : BinaryCounts("Precision", options, at) {}
Recall::Recall(const BinaryOptions& options, Source at) : BinaryCounts("Recall", options, at) {}
F1::F1(const BinaryOptions& options, Source at) : BinaryCounts("F1", options, at) {}

Tensor Precision::result(Source at) const {
  const SourceScope scope(at);
  return fraction(true_positives, true_positives + false_positives);
}
Tensor Recall::result(Source at) const {
  const SourceScope scope(at);
  return fraction(true_positives, true_positives + false_negatives);
}
Tensor F1::result(Source at) const {
  const SourceScope scope(at);
  return fraction(2.0 * true_positives, 2.0 * true_positives + false_positives + false_negatives);
}

AUC::AUC(AUCOptions options, Source at)
    : positives(counter({checked(options, at).thresholds - 1}, DType::f64,
                        options.name + "/positives", at)),
      negatives(counter({options.thresholds - 1}, DType::f64, options.name + "/negatives", at)),
      options_(std::move(options)) {}

void AUC::update(const Operand& y_true, const Operand& y_pred, Source at) const {
  update(y_true, y_pred, 1.0, at);
}

// Thresholds are i / (thresholds - 1). Interval i holds the predictions above threshold i, but not
// above the next one.
void AUC::update(const Operand& y_true, const Operand& y_pred, const Operand& weights,
                 Source at) const {
  const SourceScope scope(at);
  const Tensor wanted = tensor_of(y_true), given = stop_gradient(tensor_of(y_pred));
  need_same_shape("AUC", wanted, given, at);
  const Tensor score = cast(given, DType::f64);
  const Tensor p = reshape(options_.from_logits ? sigmoid(score) : score, {-1});
  const double intervals = static_cast<double>(options_.thresholds - 1);
  const Tensor interval = cast(clip(ceil(p * intervals) - 1.0, 0.0, intervals - 1.0), DType::i32);
  const Tensor weight = reshape(weights_for(given, weights), {-1});
  const Tensor is = reshape(wanted > 0.5, {-1});
  positives.assign(scatter_add(positives, interval, where(is, weight, 0.0)));
  negatives.assign(scatter_add(negatives, interval, where(is, 0.0, weight)));
}

Tensor AUC::result(Source at) const {
  const SourceScope scope(at);
  // How many lie above each threshold, the highest first.
  const auto above = [](const Variable& counts) {
    return concat({zeros({1}, DType::f64), cumsum(flip(counts))});
  };
  const Tensor hits = above(positives), alarms = above(negatives);
  const auto high = [](const Tensor& x) { return x[{Slice{.begin = 1}}]; };
  const auto low = [](const Tensor& x) { return x[{Slice{.end = -1}}]; };
  const Tensor area = sum((high(alarms) - low(alarms)) * (high(hits) + low(hits)) * 0.5);
  return fraction(area, sum(positives) * sum(negatives));
}

void AUC::reset(Source at) const {
  const SourceScope scope(at);
  clear(positives);
  clear(negatives);
}

// ---- of several classes -------------------------------------------------------------------------

ConfusionMatrix::ConfusionMatrix(int64_t classes, std::string name, Source at)
    : counts(counter({checked_classes(classes, at) * classes}, DType::i64,
                     std::move(name) + "/counts", at)),
      classes_(classes) {}

void ConfusionMatrix::update(const Operand& y_true, const Operand& y_pred, Source at) const {
  const SourceScope scope(at);
  const Tensor wanted = tensor_of(y_true), given = stop_gradient(tensor_of(y_pred));
  Shape rows = given.shape();
  const bool is_scores = given.rank() == wanted.rank() + 1 && rows[-1] == classes_;
  if (is_scores) rows.erase(rows.rank() - 1);
  if (!is_integer(wanted.dtype()) || wanted.shape() != rows ||
      (!is_scores && !is_integer(given.dtype())))
    throw UserError(cat("metrics::ConfusionMatrix: y_true ", type_text(wanted), " and y_pred ",
                        type_text(given), " do not fit ", classes_, " classes"),
                    at, cat("give class numbers of one shape, or y_pred as [..., ", classes_, "]"));
  const Tensor is = cast(reshape(wanted, {-1}), DType::i64);
  const Tensor called = cast(reshape(is_scores ? argmax(given, -1) : given, {-1}), DType::i64);
  const auto is_class = [&](const Tensor& x) { return logical_and(x >= 0, x < classes_); };
  assert_that(logical_and(is_class(is), is_class(called)),
              cat("metrics::ConfusionMatrix: class numbers must go from 0 to ", classes_ - 1),
              {is, called}, at);
  counts.assign(scatter_add(counts, is * classes_ + called, ones_like(is)));
}

Tensor ConfusionMatrix::result(Source at) const {
  const SourceScope scope(at);
  return reshape(counts, {classes_, classes_});
}

namespace {
Tensor right(const Tensor& matrix) { return cast(diagonal(matrix), DType::f64); }
Tensor total(const Tensor& matrix, int64_t axis) { return cast(sum(matrix, axis), DType::f64); }
}  // namespace

Tensor ConfusionMatrix::precision(Source at) const {
  const SourceScope scope(at);
  const Tensor matrix = result();
  return fraction(right(matrix), total(matrix, 0));
}
Tensor ConfusionMatrix::recall(Source at) const {
  const SourceScope scope(at);
  const Tensor matrix = result();
  return fraction(right(matrix), total(matrix, 1));
}
Tensor ConfusionMatrix::f1(Source at) const {
  const SourceScope scope(at);
  const Tensor matrix = result();
  return fraction(2.0 * right(matrix), total(matrix, 0) + total(matrix, 1));
}

void ConfusionMatrix::reset(Source at) const {
  const SourceScope scope(at);
  clear(counts);
}

Perplexity::Perplexity(std::string name, Source at) : entropy(std::move(name), at) {}

void Perplexity::update(const Operand& y_true, const Operand& y_pred, Source at) const {
  update(y_true, y_pred, 1.0, at);
}

void Perplexity::update(const Operand& y_true, const Operand& y_pred, const Operand& weights,
                        Source at) const {
  const SourceScope scope(at);
  const Tensor labels = tensor_of(y_true), logits = stop_gradient(tensor_of(y_pred));
  Shape rows = logits.shape();
  if (rows.rank() > 0) rows.erase(rows.rank() - 1);
  if (logits.rank() == 0 || !is_integer(labels.dtype()) || labels.shape() != rows)
    throw UserError(cat("metrics::Perplexity: labels ", type_text(labels), " do not fit y_pred ",
                        type_text(logits)),
                    at, "one class number for each row: the shape of y_pred without its last axis");
  const Tensor picked = squeeze(detail::take_class(logits, expand_dims(labels, -1), at), -1);
  entropy.update(logsumexp(logits, -1) - picked, weights, at);
}

Tensor Perplexity::result(Source at) const {
  const SourceScope scope(at);
  return exp(entropy.result(at));
}

void Perplexity::reset(Source at) const { entropy.reset(at); }

}  // namespace tidemark::nn::metrics
