// Losses: what was wanted first, what was given second, as in Keras; the mean as one number.
//
// They are objects, so that they can be passed: {.loss = td::nn::losses::mse}.
#pragma once

#include "tidemark/api/tensor.h"

namespace tidemark::nn {

struct CrossEntropyOptions {
  bool from_logits = true;     // Else y_pred is probabilities.
  double label_smoothing = 0;  // The share of each label that goes to all classes alike.
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

// The mean of squares, and of sizes, of the differences.
inline constexpr Loss mse = {body::mse};
inline constexpr Loss mae = {body::mae};
// Half the square of differences up to delta, and a line beyond.
inline constexpr Huber huber = {};
// Each element is a class of its own: y_true is 0 or 1, or between.
inline constexpr CrossEntropy binary_crossentropy = {body::binary};
// One class of those along the last axis: y_true has their shares, which add up to 1.
inline constexpr CrossEntropy categorical_crossentropy = {body::categorical};
// The same where y_true is the number of the class, with one axis less: no table of shares or of
// probabilities is ever made.
inline constexpr CrossEntropy sparse_categorical_crossentropy = {body::sparse};

}  // namespace losses
}  // namespace tidemark::nn
