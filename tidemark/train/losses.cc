#include "tidemark/train/losses.h"

#include <optional>

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

// The weights with new last axes, so that they broadcast against the losses.
Tensor aligned(const char* name, Tensor weights, const Tensor& each, Source at) {
  bool fits = weights.rank() <= each.rank();
  for (int64_t axis = 0; fits && axis < weights.rank(); ++axis)
    fits = weights.shape()[axis] == each.shape()[axis];
  // Losses by row may have kept the last axis, with size 1.
  if (!fits)
    throw UserError(
        cat(name, ": weights ", type_text(weights), " do not fit the losses ", each.shape()), at,
        "give one weight for each example: the first axes of the losses");
  while (weights.rank() < each.rank()) weights = expand_dims(weights, -1);
  return cast(weights, each.dtype());
}

Tensor mean_of(const char* name, const Elements& elements, const std::optional<Tensor>& given,
               Source at) {
  const Tensor& each = elements.each;
  if (!given && !elements.weights) return mean(each);
  Tensor weights = elements.weights ? *elements.weights : ones_like(each);
  if (given) weights = weights * aligned(name, *given, each, at);
  weights = broadcast_to(weights, each.shape());
  const Tensor total = sum(weights);
  // What has weight 0 may be infinite or NaN.
  const Tensor weighed = where(weights == 0, 0, weights * each);
  return where(total == 0, 0, sum(weighed) / where(total == 0, 1, total));
}

void check_class_weights(const char* name, const Tensor& weights, Dim classes, Source at) {
  if (weights.rank() == 1 && weights.shape()[0] == classes) return;
  throw UserError(cat(name, ": class_weights ", type_text(weights), " are not one for each of ",
                      classes, " classes"),
                  at, cat("give them the shape [", classes, "]"));
}

}  // namespace

template <class Options>
Tensor LossOf<Options>::operator()(const Operand& y_true, const Operand& y_pred,
                                   const Options& options, Source at) const {
  const SourceScope scope(at);
  const Elements elements = body(tensor_of(y_true), tensor_of(y_pred), options, at);
  return mean_of(name, elements, options.weights, at);
}
template struct LossOf<LossOptions>;
template struct LossOf<HuberOptions>;
template struct LossOf<CrossEntropyOptions>;
template struct LossOf<FocalOptions>;
template struct LossOf<DivergenceOptions>;
template struct LossOf<PoissonOptions>;
template struct LossOf<CTCOptions>;

Tensor Triplet::operator()(const Operand& anchor, const Operand& positive, const Operand& negative,
                           const TripletOptions& options, Source at) const {
  const SourceScope scope(at);
  const Tensor a = wide(tensor_of(anchor)), p = wide(tensor_of(positive)),
               n = wide(tensor_of(negative));
  if (a.rank() == 0 || a.shape() != p.shape() || a.shape() != n.shape())
    throw UserError(cat("losses::triplet: anchor ", type_text(a), ", positive ", type_text(p),
                        " and negative ", type_text(n), " are not vectors of one shape"),
                    at, "give each of them [..., features]");
  const Tensor each = relu(norm(a - p, -1) - norm(a - n, -1) + options.margin);
  return mean_of("losses::triplet", {each}, options.weights, at);
}

namespace body {

Elements mse(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at) {
  need_same_shape("losses::mse", y_true, y_pred, at);
  return {square(wide(y_pred) - wide(y_true))};
}

Elements mae(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at) {
  need_same_shape("losses::mae", y_true, y_pred, at);
  return {abs(wide(y_pred) - wide(y_true))};
}

Elements huber(const Tensor& y_true, const Tensor& y_pred, const HuberOptions& options, Source at) {
  need_same_shape("losses::huber", y_true, y_pred, at);
  const double delta = options.delta;
  if (!(delta > 0))
    throw UserError(cat("losses::huber: delta must be positive, got ", delta), at,
                    "it is the difference above which the loss is linear");
  // Half the square of small differences, a line of slope delta beyond. Written without |x|, whose
  // slope at 0 would hide the curvature there.
  const Tensor difference = wide(y_pred) - wide(y_true);
  const Tensor small = clip(difference, -delta, delta);
  return {small * (difference - 0.5 * small)};
}

Elements hinge(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at) {
  need_same_shape("losses::hinge", y_true, y_pred, at);
  return {relu(1.0 - wide(y_true) * wide(y_pred))};
}

Elements cosine(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at) {
  need_same_shape("losses::cosine", y_true, y_pred, at);
  need_classes("losses::cosine", y_pred, at);
  const Tensor y = wide(y_true), x = wide(y_pred);
  const auto length = [](const Tensor& v) { return maximum(norm(v, -1), 1e-8); };
  return {1.0 - sum(x * y, -1) / (length(x) * length(y))};
}

Elements binary(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
                Source at) {
  constexpr const char* name = "losses::binary_crossentropy";
  need_same_shape(name, y_true, y_pred, at);
  check_smoothing(name, options, at);
  const Tensor x = wide(y_pred);
  Tensor y = wide(y_true);
  std::optional<Tensor> weights;
  if (options.class_weights) {
    check_class_weights(name, *options.class_weights, 2, at);
    const Tensor of_class = cast(*options.class_weights, x.dtype());
    weights = of_class[0] + y * (of_class[1] - of_class[0]);
  }
  if (options.label_smoothing > 0)
    y = y * (1 - options.label_smoothing) + options.label_smoothing / 2;
  if (!options.from_logits) return {-(y * log_of(x) + (1 - y) * log_of(1 - x)), weights};
  // -log sigmoid(x) is softplus(-x): neither a large exp nor a difference of large numbers.
  return {y * softplus(-x) + (1 - y) * softplus(x), weights};
}

Elements categorical(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
                     Source at) {
  constexpr const char* name = "losses::categorical_crossentropy";
  need_same_shape(name, y_true, y_pred, at);
  need_classes(name, y_pred, at);
  check_smoothing(name, options, at);
  const Tensor x = wide(y_pred);
  Tensor y = wide(y_true);
  std::optional<Tensor> weights;
  if (options.class_weights) {
    check_class_weights(name, *options.class_weights, y.shape()[-1], at);
    weights = sum(y * cast(*options.class_weights, x.dtype()), -1);
  }
  if (options.label_smoothing > 0)
    y = y * (1 - options.label_smoothing) +
        options.label_smoothing / cast(y.shape()[-1], x.dtype());
  const Tensor logarithm = options.from_logits ? log_softmax(x) : log_of(x);
  return {-sum(y * logarithm, -1), weights};
}

Elements sparse(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
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
  std::optional<Tensor> weights;
  if (options.class_weights) {
    check_class_weights(name, *options.class_weights, x.shape()[-1], at);
    weights = gather(cast(*options.class_weights, x.dtype()), label);
  }
  if (!options.from_logits) {
    if (smoothing == 0) return {-log_of(picked), weights};
    return {-((1 - smoothing) * log_of(picked) + smoothing * mean(log_of(x), -1, keepdims)),
            weights};
  }
  if (smoothing == 0) return {logsumexp(x, -1, keepdims) - picked, weights};
  return {logsumexp(x, -1, keepdims) - (1 - smoothing) * picked - smoothing * mean(x, -1, keepdims),
          weights};
}

Elements focal(const Tensor& y_true, const Tensor& y_pred, const FocalOptions& options, Source at) {
  need_same_shape("losses::focal", y_true, y_pred, at);
  if (!(options.gamma >= 0))
    throw UserError(cat("losses::focal: gamma must not be negative, got ", options.gamma), at,
                    "0 is the binary crossentropy; 2 is usual");
  const CrossEntropyOptions plain{.from_logits = options.from_logits};
  const Tensor y = wide(y_true), x = wide(y_pred);
  const Tensor entropy = binary(y, x, plain, at).each;
  const Tensor p = options.from_logits ? sigmoid(x) : x;
  // The probability of the other class: what is left to learn.
  const Tensor wrong = y * (1 - p) + (1 - y) * p;
  // A power below 1 has an infinite slope at 0, where the loss has slope 0.
  const Tensor base = options.gamma < 1 ? maximum(wrong, 1.1754944e-38) : wrong;
  Tensor each = pow(base, options.gamma) * entropy;
  if (options.alpha) each = each * (y * *options.alpha + (1 - y) * (1 - *options.alpha));
  return {each};
}

Elements kl(const Tensor& y_true, const Tensor& y_pred, const DivergenceOptions& options,
            Source at) {
  need_same_shape("losses::kl_divergence", y_true, y_pred, at);
  need_classes("losses::kl_divergence", y_pred, at);
  const Tensor y = wide(y_true), x = wide(y_pred);
  const Tensor logarithm = options.from_logits ? log_softmax(x) : log_of(x);
  // The limit of y log y at 0 is 0.
  return {sum(y * (log_of(y) - logarithm), -1)};
}

Elements poisson(const Tensor& y_true, const Tensor& y_pred, const PoissonOptions& options,
                 Source at) {
  need_same_shape("losses::poisson", y_true, y_pred, at);
  const Tensor y = wide(y_true), x = wide(y_pred);
  if (options.from_logs) return {exp(x) - y * x};
  return {x - y * log_of(x)};
}

}  // namespace body
}  // namespace tidemark::nn::losses
