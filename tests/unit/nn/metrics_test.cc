#include "tidemark/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"
#include "tidemark/train/running_metrics.h"

namespace tidemark {
namespace {

namespace metrics = nn::metrics;

double number(const Tensor& x) { return x.item<double>(); }

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "metrics_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

TEST(Metrics, CountWhatIsRight) {
  const Tensor scores = constant({{1.0, 3.0, 2.0}, {5.0, 0.0, 5.0}, {0.0, 1.0, 2.0}});
  const Tensor labels = constant({1, 2, 0});
  EXPECT_NEAR(number(metrics::sparse_accuracy(labels, scores)), 1.0 / 3, 1e-6);
  EXPECT_NEAR(number(metrics::accuracy(labels, scores)), 1.0 / 3, 1e-6);
  EXPECT_NEAR(number(metrics::accuracy(one_hot(labels, 3), scores)), 1.0 / 3, 1e-6);
  EXPECT_NEAR(number(metrics::top_k(labels, scores, 1)), 1.0 / 3, 1e-6);
  EXPECT_NEAR(number(metrics::top_k(labels, scores, 2)), 2.0 / 3, 1e-6);
  EXPECT_NEAR(number(metrics::top_k(labels, scores, 3)), 1, 1e-6);
  EXPECT_NEAR(
      number(metrics::binary_accuracy(constant({1, 0, 1, 1}), constant({2.0, -1.0, -3.0, 0.1}))),
      0.75, 1e-6);
  const auto call = [&] { metrics::sparse_accuracy(constant({1, 2}), scores); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(
      error_of(call),
      cat("metrics::sparse_accuracy: labels i32[2] do not fit y_pred f32[3, 3]\n  at "
          "metrics_test.cc:",
          line, "\n  one class number for each row: the shape of y_pred without its last axis"));
}

TEST(Metrics, AMeanRunsOverCallsEagerAndInFunctions) {
  const metrics::Mean mean;
  EXPECT_EQ(number(mean.result()), 0);
  mean.update(3.0);
  mean.update(constant({1.0, 2.0}));
  EXPECT_EQ(number(mean.result()), 2);
  const auto f = function([mean](const Tensor& x) { mean.update(x, 3); });
  f(constant({4.0}));
  EXPECT_EQ(number(mean.result()), 3);
  mean.reset();
  EXPECT_EQ(number(mean.result()), 0);
}

// ---- over batches -------------------------------------------------------------------------------

TEST(RunningMetrics, OfTwoClassesCountOverCallsEagerAndInFunctions) {
  const metrics::Precision precision;
  const metrics::Recall recall;
  const metrics::F1 f1;
  const auto update = [=](const Tensor& y, const Tensor& p) {
    precision.update(y, p);
    recall.update(y, p);
    f1.update(y, p);
  };
  EXPECT_EQ(number(precision.result()) + number(recall.result()) + number(f1.result()), 0);
  update(constant({1, 0, 1, 0}), constant({2.0, 1.0, -1.0, -3.0}));
  function(update)(constant({1, 1}), constant({0.5, 0.0}));  // 0 is not above 0.
  EXPECT_NEAR(number(precision.result()), 2.0 / 3, 1e-12);
  EXPECT_NEAR(number(recall.result()), 2.0 / 4, 1e-12);
  EXPECT_NEAR(number(f1.result()), 2 * (2.0 / 3) * 0.5 / (2.0 / 3 + 0.5), 1e-12);
  f1.update(constant({1, 0}), constant({1.0, 1.0}), constant({0.5, 0.0}));
  EXPECT_NEAR(number(f1.result()), 5.0 / (5 + 1 + 2), 1e-12);
  f1.reset();
  EXPECT_EQ(number(f1.result()), 0);
  const metrics::Precision strict({.threshold = 1.5});
  strict.update(constant({1, 0, 1}), constant({2.0, 1.0, 1.0}));
  EXPECT_EQ(number(strict.result()), 1);
}

// The probability that a positive is ranked above a negative, by looking at all pairs.
TEST(RunningMetrics, AreaUnderTheCurveIsTheFractionOfPairsInOrder) {
  const metrics::AUC auc({.thresholds = 100'001, .from_logits = false});
  const Values p = {0.1, 0.4, 0.35, 0.8, 0.65, 0.4, 0.9, 0.05};
  const std::vector<int> y = {0, 0, 1, 1, 0, 1, 1, 0};
  double in_order = 0, pairs = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    for (size_t k = 0; k < y.size(); ++k) {
      if (y[i] != 1 || y[k] != 0) continue;
      ++pairs;
      in_order += p[i] > p[k] ? 1 : p[i] == p[k] ? 0.5 : 0;
    }
  }
  const auto update = function([=](const Tensor& y, const Tensor& p) { auc.update(y, p); });
  EXPECT_EQ(number(auc.result()), 0);
  update(constant(y), constant(p));
  EXPECT_NEAR(number(auc.result()), in_order / pairs, 1e-9);
  const metrics::AUC logits;
  logits.update(constant({0, 1}), constant({-9.0, 9.0}));
  EXPECT_NEAR(number(logits.result()), 1, 1e-12);
}

TEST(RunningMetrics, AConfusionMatrixHasRowsOfClassesAndColumnsOfAnswers) {
  const metrics::ConfusionMatrix matrix(3);
  matrix.update(constant({0, 1, 2, 2}), constant({0, 2, 2, 0}));
  function([=](const Tensor& y, const Tensor& p) { matrix.update(y, p); })(
      constant({1, 2}), constant({{0.0, 1.0, 0.5}, {0.0, 0.1, 7.0}}));
  EXPECT_EQ(matrix.result().to_vector<int>(), (std::vector<int>{1, 0, 0, 0, 1, 1, 1, 0, 2}));
  expect_near(matrix.precision(), {0.5, 1, 2.0 / 3});
  expect_near(matrix.recall(), {1, 0.5, 2.0 / 3});
  expect_near(matrix.f1(), {2.0 / 3, 2.0 / 3, 2.0 / 3});
  matrix.reset();
  EXPECT_EQ(number(sum(matrix.result())), 0);
}

TEST(RunningMetrics, PerplexityOfEqualChancesIsTheNumberOfClasses) {
  const metrics::Perplexity perplexity;
  EXPECT_EQ(number(perplexity.result()), 1);
  perplexity.update(zeros({2, 3}, i32), zeros({2, 3, 7}));
  EXPECT_NEAR(number(perplexity.result()), 7, 1e-4);
  // Padding has weight 0.
  perplexity.update(constant({0, 1}), constant({{0.0, 0.0}, {99.0, 0.0}}), constant({6.0, 0.0}));
  EXPECT_NEAR(number(perplexity.result()), std::sqrt(14), 1e-4);
}

TEST(RunningMetrics, TakeNoBytesOfTheBatchBesideIt) {
  const MachineCode machine;
  const metrics::F1 f1;
  const metrics::AUC auc;
  const auto update = function([=](const Tensor& y, const Tensor& p) {
    f1.update(y, p);
    auc.update(y, p);
  });
  const Plan plan = update.plan(spec({100'000}), spec({100'000}));
  // The intervals of predictions and the two lists of weights.
  EXPECT_LE(plan.peak().count, 100'000 * (4 + 8 + 8) + 8192) << plan.explain();
  const Bytes before = memory::current();
  const auto profile = update.profile(ones({100'000}), ones({100'000}));
  EXPECT_EQ(profile.touched, profile.planned);
  for (int i = 0; i < 3; ++i) update(ones({100'000}), ones({100'000}));
  EXPECT_LE((memory::current() - before).count, 2 * 8 * 200 + 512);
}

TEST(RunningMetrics, AreSavedInCheckpoints) {
  const std::string file = testing::TempDir() + "metrics.safetensors";
  const metrics::F1 f1, other;
  f1.update(constant({1, 0, 1}), constant({1.0, 1.0, -1.0}));
  io::Checkpoint({{"f1", f1}}).save(file);
  io::Checkpoint({{"f1", other}}).load(file);
  EXPECT_EQ(number(other.result()), number(f1.result()));
  EXPECT_EQ(names_of(nn::named_variables(f1)),
            (std::vector<std::string>{"true_positives", "false_positives", "false_negatives"}));
}

TEST(RunningMetrics, SayWhatDoesNotFit) {
  const std::string at = "\n  at metrics_test.cc:\n  ";
  EXPECT_EQ(said([] { metrics::F1().update(ones({3}), ones({3, 1})); }),
            "metrics::F1: y_true f32[3] and y_pred f32[3, 1] differ in shape" + at +
                "reshape one of them: td::reshape(y_true, y_pred.shape())");
  EXPECT_EQ(said([] { metrics::AUC({.thresholds = 1}); }),
            "metrics::AUC: .thresholds is 1" + at + "give 2 or more; 200 is usual");
  EXPECT_EQ(said([] { metrics::ConfusionMatrix(0); }),
            "metrics::ConfusionMatrix: there are 0 classes" + at +
                "give the number of classes, 1 or more");
  const metrics::ConfusionMatrix matrix(3);
  EXPECT_EQ(said([&] { matrix.update(constant({0, 1}), ones({2, 4})); }),
            "metrics::ConfusionMatrix: y_true i32[2] and y_pred f32[2, 4] do not fit 3 classes" +
                at + "give class numbers of one shape, or y_pred as [..., 3]");
  EXPECT_THROW(matrix.update(constant({0, -1}), constant({0, 1})), UserError);
  EXPECT_EQ(number(sum(matrix.result())), 0);
  EXPECT_EQ(said([] { metrics::Perplexity().update(constant({0, 1}), ones({3, 4})); }),
            "metrics::Perplexity: labels i32[2] do not fit y_pred f32[3, 4]" + at +
                "one class number for each row: the shape of y_pred without its last axis");
}

}  // namespace
}  // namespace tidemark
