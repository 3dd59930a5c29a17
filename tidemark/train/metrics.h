// Metrics of a batch: functions of (y_true, y_pred). Those that accumulate over batches are in
// train/running_metrics.h.
#pragma once

#include <cstdint>

#include "tidemark/api/tensor.h"

namespace tidemark::nn::metrics {

// Objects, so that they can be passed: {.metrics = {{"accuracy", td::nn::metrics::accuracy}}}.
struct Metric {
  Tensor (*body)(const Tensor& y_true, const Tensor& y_pred, Source at);
  Tensor operator()(const Operand& y_true, const Operand& y_pred, Source at = Source::here()) const;
};
struct TopK {
  // The fraction of rows whose class is among the k largest of y_pred.
  Tensor operator()(const Operand& y_true, const Operand& y_pred, int64_t k = 5,
                    Source at = Source::here()) const;
};

namespace body {
Tensor accuracy(const Tensor& y_true, const Tensor& y_pred, Source at);
Tensor sparse_accuracy(const Tensor& y_true, const Tensor& y_pred, Source at);
Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, Source at);
}  // namespace body

// The fraction of rows whose largest element of y_pred is the class. y_true is class numbers, or
// has the shape of y_pred and its largest element is the class.
inline constexpr Metric accuracy = {body::accuracy};
// y_true is class numbers.
inline constexpr Metric sparse_accuracy = {body::sparse_accuracy};
// The fraction of correct elements: y_pred is logits, above 0 means 1.
inline constexpr Metric binary_accuracy = {body::binary_accuracy};
inline constexpr TopK top_k = {};

}  // namespace tidemark::nn::metrics
