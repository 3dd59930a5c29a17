// Losses: functions of (y_true, y_pred), as in Keras, that return the mean.
//
// They are objects, so that they can be passed: {.loss = td::nn::losses::mse}.
#pragma once

#include "tidemark/api/tensor.h"

namespace tidemark::nn {

struct CrossEntropyOptions {
  bool from_logits = true;     // Else y_pred is probabilities.
  double label_smoothing = 0;  // The fraction of each label that is spread evenly over all classes.
};

namespace losses {

struct Loss {
  Tensor (*body)(const Tensor& y_true, const Tensor& y_pred, Source at);
  Tensor operator()(const Operand& y_true, const Operand& y_pred, Source at = Source::here()) const;
};
struct CrossEntropy {
  Tensor (*body)(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
                 Source at);
  Tensor operator()(const Operand& y_true, const Operand& y_pred,
                    Source at = Source::here()) const {
    return (*this)(y_true, y_pred, CrossEntropyOptions{}, at);
  }
  Tensor operator()(const Operand& y_true, const Operand& y_pred,
                    const CrossEntropyOptions& options, Source at = Source::here()) const;
};
struct Huber {
  Tensor operator()(const Operand& y_true, const Operand& y_pred,
                    Source at = Source::here()) const {
    return (*this)(y_true, y_pred, 1.0, at);
  }
  Tensor operator()(const Operand& y_true, const Operand& y_pred, double delta,
                    Source at = Source::here()) const;
};

namespace body {
Tensor mse(const Tensor& y_true, const Tensor& y_pred, Source at);
Tensor mae(const Tensor& y_true, const Tensor& y_pred, Source at);
Tensor binary(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
              Source at);
Tensor categorical(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
                   Source at);
Tensor sparse(const Tensor& y_true, const Tensor& y_pred, const CrossEntropyOptions& options,
              Source at);
}  // namespace body

// The mean of squared differences, and of absolute differences.
inline constexpr Loss mse = {body::mse};
inline constexpr Loss mae = {body::mae};
// Half the squared difference up to delta, linear beyond.
inline constexpr Huber huber = {};
// Each element is a separate binary class: y_true is between 0 and 1.
inline constexpr CrossEntropy binary_crossentropy = {body::binary};
// Classes along the last axis: y_true has their probabilities, which add up to 1.
inline constexpr CrossEntropy categorical_crossentropy = {body::categorical};
// The same with y_true as class numbers, with one axis less. No table of probabilities is ever
// stored.
inline constexpr CrossEntropy sparse_categorical_crossentropy = {body::sparse};

}  // namespace losses
}  // namespace tidemark::nn
