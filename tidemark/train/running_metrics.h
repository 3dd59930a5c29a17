// Metrics that accumulate over batches in a few numbers, so that they are exact for the whole set
// without keeping it. Handles: a copy is the same. They work in eager code and in functions, are
// saved in checkpoints, and can be passed to fit: {.metrics = {{"f1", td::nn::metrics::F1()}}}.
//
//   td::nn::metrics::F1 f1;
//   for (const auto& [x, y] : batches) f1.update(y, model(x));
//   std::cout << f1.result();
#pragma once

#include <cstdint>
#include <string>

#include "tidemark/api/fields.h"
#include "tidemark/api/variable.h"

namespace tidemark::nn::metrics {

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

struct BinaryOptions {
  double threshold = 0;  // Elements of y_pred above it count as positive. 0 is right for logits.
  std::string name = {};
};

// What Precision, Recall and F1 count. y_true is 0 or 1, or a probability above 0.5.
class BinaryCounts {
 public:
  void update(const Operand& y_true, const Operand& y_pred, Source at = Source::here()) const;
  // The weights broadcast to the shape of y_pred.
  void update(const Operand& y_true, const Operand& y_pred, const Operand& weights,
              Source at = Source::here()) const;
  void reset(Source at = Source::here()) const;

  Variable true_positives, false_positives, false_negatives;  // f64, not trained.
  TIDEMARK_FIELDS(true_positives, false_positives, false_negatives)

 protected:
  BinaryCounts(const char* kind, const BinaryOptions& options, Source at);

 private:
  const char* kind_;
  double threshold_;
};

// Of the elements that were called positive, the fraction that are; 0 if none was.
class Precision : public BinaryCounts {
 public:
  explicit Precision(const BinaryOptions& options = {}, Source at = Source::here());
  Tensor result(Source at = Source::here()) const;
};
// Of the elements that are positive, the fraction that were called so; 0 if none is.
class Recall : public BinaryCounts {
 public:
  explicit Recall(const BinaryOptions& options = {}, Source at = Source::here());
  Tensor result(Source at = Source::here()) const;
};
// The harmonic mean of both; 0 if there is no true positive.
class F1 : public BinaryCounts {
 public:
  explicit F1(const BinaryOptions& options = {}, Source at = Source::here());
  Tensor result(Source at = Source::here()) const;
};

struct AUCOptions {
  int64_t thresholds = 200;  // At evenly spaced probabilities.
  bool from_logits = true;   // Else y_pred is probabilities.
  std::string name = "auc";
};

// The area under the ROC curve, by the trapezoids between thresholds. A histogram of predictions
// takes 16 bytes for each threshold, whatever the number of examples.
class AUC {
 public:
  explicit AUC(AUCOptions options = {}, Source at = Source::here());

  void update(const Operand& y_true, const Operand& y_pred, Source at = Source::here()) const;
  void update(const Operand& y_true, const Operand& y_pred, const Operand& weights,
              Source at = Source::here()) const;
  // 0 until there were both positives and negatives.
  Tensor result(Source at = Source::here()) const;
  void reset(Source at = Source::here()) const;

  Variable positives, negatives;  // f64, one number between two neighbouring thresholds.
  TIDEMARK_FIELDS(positives, negatives)

 private:
  AUCOptions options_;
};

// How often class i (the row) was called class j (the column).
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes, std::string name = "confusion_matrix",
                           Source at = Source::here());

  // y_true is class numbers. y_pred is class numbers of the same shape, or [..., classes], whose
  // largest element is the class.
  void update(const Operand& y_true, const Operand& y_pred, Source at = Source::here()) const;
  Tensor result(Source at = Source::here()) const;  // i64[classes, classes]
  // By class, f64[classes]; 0 where a fraction has no denominator. Their means are the macro
  // averages.
  Tensor precision(Source at = Source::here()) const;
  Tensor recall(Source at = Source::here()) const;
  Tensor f1(Source at = Source::here()) const;
  void reset(Source at = Source::here()) const;

  Variable counts;  // i64[classes * classes]
  TIDEMARK_FIELDS(counts)

 private:
  int64_t classes_;
};

// exp of the mean crossentropy of class numbers under logits.
class Perplexity {
 public:
  explicit Perplexity(std::string name = "perplexity", Source at = Source::here());

  void update(const Operand& y_true, const Operand& y_pred, Source at = Source::here()) const;
  // The weights have the shape of y_true; 0 leaves padding out.
  void update(const Operand& y_true, const Operand& y_pred, const Operand& weights,
              Source at = Source::here()) const;
  Tensor result(Source at = Source::here()) const;  // 1 if nothing was added.
  void reset(Source at = Source::here()) const;

  Mean entropy;
  TIDEMARK_FIELDS(entropy)
};

}  // namespace tidemark::nn::metrics
