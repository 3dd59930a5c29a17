// Losses: functions of (y_true, y_pred), as in Keras, that return the mean.
//
// They are objects, so that they can be passed: {.loss = td::nn::losses::mse}.
//
// Each takes `.weights`: one weight for each example, or for each element, so that the result is
// the weighted mean, sum(w * loss) / sum(w), and 0 if all weights are. Their axes are the first
// axes of the losses. A weight of 0 leaves an example out.
#pragma once

#include <cstdint>
#include <optional>

#include "tidemark/api/tensor.h"

namespace tidemark::nn {

struct LossOptions {
  std::optional<Tensor> weights = {};
};
struct HuberOptions {
  double delta = 1;
  std::optional<Tensor> weights = {};
};
struct CrossEntropyOptions {
  bool from_logits = true;     // Else y_pred is probabilities.
  double label_smoothing = 0;  // The fraction of each label that is spread evenly over all classes.
  std::optional<Tensor> weights = {};
  // One for each class, [classes]; [2] for binary classes. An example weighs as much as its class,
  // times its own weight; one of several classes as much as their mean by y_true.
  std::optional<Tensor> class_weights = {};
};
struct FocalOptions {
  double gamma = 2;                  // The exponent that makes easy examples count less.
  std::optional<double> alpha = {};  // The weight of class 1; class 0 has 1 - alpha.
  bool from_logits = true;           // Else y_pred is probabilities.
  std::optional<Tensor> weights = {};
};
struct DivergenceOptions {
  bool from_logits = true;  // Else y_pred is probabilities.
  std::optional<Tensor> weights = {};
};
struct PoissonOptions {
  bool from_logs = true;  // y_pred is the logarithm of the rate; else the rate.
  std::optional<Tensor> weights = {};
};
struct TripletOptions {
  double margin = 1;
  std::optional<Tensor> weights = {};
};
struct CTCOptions {
  // How many labels and steps of each sequence count; default all. What follows is ignored.
  std::optional<Tensor> label_lengths = {}, logit_lengths = {};
  int64_t blank = 0;           // The class that is no label.
  bool zero_infinity = false;  // The loss of a sequence of too few steps is 0 instead of infinite.
  std::optional<Tensor> weights = {};
};

namespace losses {

// Losses by element, before the mean, and the weights that come with them.
struct Elements {
  Tensor each;
  std::optional<Tensor> weights = {};
};

template <class Options>
struct LossOf {
  Elements (*body)(const Tensor& y_true, const Tensor& y_pred, const Options& options, Source at);
  const char* name;

  Tensor operator()(const Operand& y_true, const Operand& y_pred,
                    Source at = Source::here()) const {
    return (*this)(y_true, y_pred, Options{}, at);
  }
  Tensor operator()(const Operand& y_true, const Operand& y_pred, const Options& options,
                    Source at = Source::here()) const;
  // As with {.weights = weights}.
  Tensor weighted(const Operand& y_true, const Operand& y_pred, const Tensor& weights,
                  Source at = Source::here()) const {
    return (*this)(y_true, y_pred, Options{.weights = weights}, at);
  }
};
using Loss = LossOf<LossOptions>;
using CrossEntropy = LossOf<CrossEntropyOptions>;
using Focal = LossOf<FocalOptions>;
using Divergence = LossOf<DivergenceOptions>;
using Poisson = LossOf<PoissonOptions>;
using CTC = LossOf<CTCOptions>;
struct Huber : LossOf<HuberOptions> {
  using LossOf<HuberOptions>::operator();
  Tensor operator()(const Operand& y_true, const Operand& y_pred, double delta,
                    Source at = Source::here()) const {
    return (*this)(y_true, y_pred, HuberOptions{.delta = delta}, at);
  }
};
struct Triplet {
  Tensor operator()(const Operand& anchor, const Operand& positive, const Operand& negative,
                    Source at = Source::here()) const {
    return (*this)(anchor, positive, negative, TripletOptions{}, at);
  }
  Tensor operator()(const Operand& anchor, const Operand& positive, const Operand& negative,
                    const TripletOptions& options, Source at = Source::here()) const;
};

namespace body {
Elements mse(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at);
Elements mae(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at);
Elements huber(const Tensor& y_true, const Tensor& y_pred, const HuberOptions&, Source at);
Elements hinge(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at);
Elements cosine(const Tensor& y_true, const Tensor& y_pred, const LossOptions&, Source at);
Elements binary(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions&, Source at);
Elements categorical(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions&,
                     Source at);
Elements sparse(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions&, Source at);
Elements focal(const Tensor& y_true, const Tensor& y_pred, const FocalOptions&, Source at);
Elements kl(const Tensor& y_true, const Tensor& y_pred, const DivergenceOptions&, Source at);
Elements poisson(const Tensor& y_true, const Tensor& y_pred, const PoissonOptions&, Source at);
Elements ctc(const Tensor& labels, const Tensor& logits, const CTCOptions&, Source at);
}  // namespace body

// The mean of squared differences, and of absolute differences.
inline constexpr Loss mse = {body::mse, "losses::mse"};
inline constexpr Loss mae = {body::mae, "losses::mae"};
// Half the squared difference up to delta, linear beyond.
inline constexpr Huber huber = {{body::huber, "losses::huber"}};
// max(0, 1 - y_true * y_pred): y_true is -1 or 1.
inline constexpr Loss hinge = {body::hinge, "losses::hinge"};
// 1 - the cosine of the angle between the vectors along the last axis. A vector of zeros has
// cosine 0 with all others.
inline constexpr Loss cosine = {body::cosine, "losses::cosine"};
// Each element is a separate binary class: y_true is between 0 and 1.
inline constexpr CrossEntropy binary_crossentropy = {body::binary, "losses::binary_crossentropy"};
// Classes along the last axis: y_true has their probabilities, which add up to 1.
inline constexpr CrossEntropy categorical_crossentropy = {body::categorical,
                                                          "losses::categorical_crossentropy"};
// The same with y_true as class numbers, with one axis less. No table of probabilities is ever
// stored.
inline constexpr CrossEntropy sparse_categorical_crossentropy = {
    body::sparse, "losses::sparse_categorical_crossentropy"};
// The binary crossentropy, times (1 - p)^gamma with p the probability of the true class.
inline constexpr Focal focal = {body::focal, "losses::focal"};
// The divergence of y_pred from y_true, sum(y_true * log(y_true / y_pred)) over the last axis.
inline constexpr Divergence kl_divergence = {body::kl, "losses::kl_divergence"};
// rate - y_true * log(rate), the negative log-likelihood of counts without the part that does not
// depend on the rate.
inline constexpr Poisson poisson = {body::poisson, "losses::poisson"};
// max(0, |anchor - positive| - |anchor - negative| + margin), with distances along the last axis.
inline constexpr Triplet triplet = {};
// The negative log-likelihood of label sequences [n, labels] under logits [n, steps, classes],
// summed over all alignments (connectionist temporal classification). It is infinite, with gradient
// 0, where a sequence has fewer steps than its labels need. The alignments of one step are held at
// a time, and those of all steps for gradients.
inline constexpr CTC ctc = {body::ctc, "losses::ctc"};

}  // namespace losses
}  // namespace tidemark::nn
