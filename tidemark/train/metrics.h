// Metrics: functions of (y_true, y_pred).
#pragma once

#include <string>

#include "tidemark/api/fields.h"
#include "tidemark/api/variable.h"

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

// A mean over many calls, eager or in a function. A handle: a copy is the same.
//
//   td::nn::metrics::Mean loss;
//   loss.update(batch_loss);
//   std::cout << loss.result();
class Mean {
 public:
  explicit Mean(std::string name = "mean", Source at = Source::here());

  // Adds all elements of x, or x with this weight.
  void update(const Operand& x, Source at = Source::here()) const;
  void update(const Operand& x, const Operand& weight, Source at = Source::here()) const;
  // 0 if nothing was added.
  Tensor result(Source at = Source::here()) const;
  void reset(Source at = Source::here()) const;

  Variable total, count;  // f64, not trained.
  TIDEMARK_FIELDS(total, count)
};

}  // namespace tidemark::nn::metrics
