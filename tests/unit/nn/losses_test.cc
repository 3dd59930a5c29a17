#include "tidemark/train/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

namespace losses = nn::losses;

double number(const Tensor& x) { return x.item<double>(); }

// -log softmax(row)[label], by its definition.
double entropy_of(const Values& row, size_t label) {
  double total = 0;
  for (const double x : row) total += std::exp(x);
  return std::log(total) - row[label];
}

TEST(Losses, OfDifferencesAreTheirMeans) {
  const Tensor wanted = constant({1.0, 2.0, 3.0}), given = constant({1.5, 2.0, 0.0});
  EXPECT_NEAR(number(losses::mse(wanted, given)), (0.25 + 9) / 3, 1e-6);
  EXPECT_NEAR(number(losses::mae(wanted, given)), 3.5 / 3, 1e-6);
  EXPECT_NEAR(number(losses::huber(wanted, given)), (0.125 + 2.5) / 3, 1e-6);
  EXPECT_NEAR(number(losses::huber(wanted, given, 2.0)), (0.125 + 4) / 3, 1e-6);
}

TEST(Losses, OfClassesByNumberAndByShareAgreeWithTheDefinition) {
  const Tensor logits = constant({{1.0, -2.0, 0.5}, {0.0, 3.0, -1.0}});
  const double want = (entropy_of({1, -2, 0.5}, 2) + entropy_of({0, 3, -1}, 0)) / 2;
  const Tensor labels = constant({2, 0});
  EXPECT_NEAR(number(losses::sparse_categorical_crossentropy(labels, logits)), want, 1e-6);
  EXPECT_NEAR(number(losses::sparse_categorical_crossentropy(expand_dims(labels, 1), logits)), want,
              1e-6);
  EXPECT_NEAR(number(losses::categorical_crossentropy(one_hot(labels, 3), logits)), want, 1e-6);
  EXPECT_NEAR(number(losses::sparse_categorical_crossentropy(labels, softmax(logits),
                                                             {.from_logits = false})),
              want, 1e-6);
  EXPECT_NEAR(number(losses::categorical_crossentropy(one_hot(labels, 3), softmax(logits),
                                                      {.from_logits = false})),
              want, 1e-6);
}

TEST(Losses, SmoothLabelsAlikeByNumberAndByShare) {
  const Tensor logits = random::normal({4, 5}, {.key = random::Key(1)});
  const Tensor labels = constant({2, 0, 4, 4});
  const Tensor shares = one_hot(labels, 5) * 0.9 + 0.02;
  const double want = number(losses::categorical_crossentropy(shares, logits));
  EXPECT_NEAR(number(losses::categorical_crossentropy(one_hot(labels, 5), logits,
                                                      {.label_smoothing = 0.1})),
              want, 1e-5);
  EXPECT_NEAR(
      number(losses::sparse_categorical_crossentropy(labels, logits, {.label_smoothing = 0.1})),
      want, 1e-5);
  EXPECT_NEAR(number(losses::sparse_categorical_crossentropy(
                  labels, softmax(logits), {.from_logits = false, .label_smoothing = 0.1})),
              want, 1e-5);
}

TEST(Losses, OfTwoClassesAreStableWhereLogitsAreLarge) {
  const Tensor labels = constant({1.0, 0.0, 1.0}), logits = constant({2.0, -1.0, -200.0});
  const double want = (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-1.0)) + 200) / 3;
  EXPECT_NEAR(number(losses::binary_crossentropy(labels, logits)), want, 1e-4);
  const Tensor moderate = constant({2.0, -1.0, 0.5});
  EXPECT_NEAR(
      number(losses::binary_crossentropy(labels, sigmoid(moderate), {.from_logits = false})),
      number(losses::binary_crossentropy(labels, moderate)), 1e-6);
}

// A head that starts at zero has all its logits there.
TEST(Losses, HaveTheirSlopesAtZero) {
  const Tensor zero = zeros({3}), labels = constant({0.0F, 1.0F, 0.5F});
  const auto binary = [&](const Tensor& x) { return 3 * losses::binary_crossentropy(labels, x); };
  EXPECT_EQ(grad(binary)(zero).to_vector<float>(), (std::vector<float>{0.5, -0.5, 0}));
  EXPECT_EQ(hvp(binary, zero, ones({3})).to_vector<float>(),
            (std::vector<float>{0.25, 0.25, 0.25}));
  const auto huber = [&](const Tensor& x) { return 3 * losses::huber(zero, x); };
  EXPECT_EQ(grad(huber)(constant({0.0F, 1.0F, -2.0F})).to_vector<float>(),
            (std::vector<float>{0, 1, -1}));
  EXPECT_EQ(hvp(huber, zero, ones({3})).to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

// The loss of a sure and right answer is small, not 0.
TEST(Losses, OfTwoClassesKeepTheirDigitsWhereTheyAreSmall) {
  EXPECT_NEAR(number(losses::binary_crossentropy(ones({1}), full({1}, 20.0))), std::exp(-20.0),
              1e-14);
  EXPECT_NEAR(number(losses::binary_crossentropy(zeros({1}), full({1}, -20.0))), std::exp(-20.0),
              1e-14);
}

TEST(Losses, HaveTheGradientsOfDifferences) {
  const Tensor labels = constant({1, 0, 2}), shares = softmax(drawn_f64({3, 4}, 1));
  const std::vector<ScalarFunction> all = {
      [&](const Tensor& x) { return losses::mse(shares, x); },
      [&](const Tensor& x) { return losses::mae(shares, x); },
      [&](const Tensor& x) { return losses::huber(shares, x, 0.7); },
      [&](const Tensor& x) { return losses::binary_crossentropy(shares, x); },
      [&](const Tensor& x) { return losses::categorical_crossentropy(shares, x); },
      [&](const Tensor& x) { return losses::sparse_categorical_crossentropy(labels, x); },
      [&](const Tensor& x) {
        return losses::sparse_categorical_crossentropy(labels, x, {.label_smoothing = 0.2});
      },
      [&](const Tensor& x) { return losses::hinge(sign(shares - 0.25), x); },
      [&](const Tensor& x) { return losses::cosine(shares, x); },
      [&](const Tensor& x) { return losses::kl_divergence(shares, x); },
      [&](const Tensor& x) { return losses::poisson(shares, x); },
      [&](const Tensor& x) { return losses::focal(round(shares), x, {.alpha = 0.3}); },
      [&](const Tensor& x) { return losses::triplet(x, shares, shares - 1.0); },
      [&](const Tensor& x) {
        return losses::ctc(constant({{1, 1, 2}, {3, 0, 0}}), stack({x, x + shares}),
                           {.label_lengths = constant({1, 1})});
      },
      [&](const Tensor& x) { return losses::mse(shares, x, {.weights = constant({1, 0, 3})}); },
      [&](const Tensor& x) {
        return losses::categorical_crossentropy(
            shares, x, {.class_weights = constant({1.0, 0.5, 2.0, 0.0}, f64)});
      }};
  const Tensor x = drawn_f64({3, 4}, 2);
  for (size_t i = 0; i < all.size(); ++i)
    expect_slopes(grad(all[i])(x), differences(all[i], x), cat("loss ", i), 1e-6);
}

TEST(Losses, HaveTheirClosedForms) {
  const Tensor sides = constant({1.0, -1.0, 1.0}), given = constant({0.25, 0.5, 3.0});
  EXPECT_NEAR(number(losses::hinge(sides, given)), (0.75 + 1.5 + 0) / 3, 1e-6);
  EXPECT_NEAR(number(losses::cosine(constant({{1.0, 0.0}, {1.0, 1.0}, {0.0, 0.0}}),
                                    constant({{3.0, 0.0}, {-2.0, 2.0}, {1.0, 2.0}}))),
              (0.0 + 1.0 + 1.0) / 3, 1e-6);
  EXPECT_NEAR(number(losses::kl_divergence(constant({{0.5, 0.5, 0.0}}), zeros({1, 3}))),
              std::log(1.5), 1e-6);
  EXPECT_NEAR(number(losses::kl_divergence(constant({{0.25, 0.75}}), constant({{0.5, 0.5}}),
                                           {.from_logits = false})),
              0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-6);
  EXPECT_NEAR(number(losses::poisson(constant({2.0}), constant({0.5}))), std::exp(0.5) - 1, 1e-6);
  EXPECT_NEAR(number(losses::poisson(constant({2.0}), constant({0.5}), {.from_logs = false})),
              0.5 - 2 * std::log(0.5), 1e-6);
  EXPECT_NEAR(number(losses::focal(constant({1.0, 0.0}), constant({0.9, 0.2}),
                                   {.gamma = 2, .alpha = 0.25, .from_logits = false})),
              -(0.25 * 0.01 * std::log(0.9) + 0.75 * 0.04 * std::log(0.8)) / 2, 1e-6);
  EXPECT_NEAR(
      number(losses::triplet(constant({{0.0, 0.0}, {1.0, 1.0}}), constant({{3.0, 4.0}, {1.0, 1.0}}),
                             constant({{0.0, 4.5}, {9.0, 1.0}}))),
      (5 - 4.5 + 1) / 2, 1e-6);
}

// By counting alignments: with equal logits each has the probability classes^-steps.
TEST(Losses, CtcAddsUpAllAlignments) {
  const auto loss = [](const Tensor& labels, int64_t steps) {
    return number(losses::ctc(labels, zeros({1, steps, 3}, f64)));
  };
  const double third = std::log(3.0);
  EXPECT_NEAR(loss(constant({{1}}), 1), third, 1e-9);
  EXPECT_NEAR(loss(constant({{1}}), 2), 2 * third - std::log(3), 1e-9);  // 11, 01, 10.
  EXPECT_NEAR(loss(constant({{1, 2}}), 2), 2 * third, 1e-9);
  EXPECT_NEAR(loss(constant({{1, 2}}), 3), 3 * third - std::log(5), 1e-9);  // 112 122 012 102 120.
  EXPECT_NEAR(loss(constant({{1, 1}}), 3), 3 * third, 1e-9);                // 101 alone.
  EXPECT_NEAR(loss(zeros({1, 0}, i32), 4), 4 * third, 1e-9);
  EXPECT_EQ(loss(constant({{1, 1}}), 2), std::numeric_limits<double>::infinity());
  const Tensor slope =
      grad([](const Tensor& x) { return losses::ctc(constant({{1, 1}}), x); })(zeros({1, 2, 3}));
  EXPECT_TRUE(identical(slope, zeros({1, 2, 3})));
}

TEST(Losses, CtcIgnoresWhatIsBeyondTheLengths) {
  const Tensor logits = drawn_f64({1, 6, 4}, 3);
  const double want = number(losses::ctc(constant({{2, 3}}), logits[{all, Slice{.end = 4}}]));
  EXPECT_NEAR(number(losses::ctc(constant({{2, 3, -1, 77}}), logits,
                                 {.label_lengths = constant({2}), .logit_lengths = constant({4})})),
              want, 1e-12);
  // Another class may be the blank.
  EXPECT_NEAR(number(losses::ctc(constant({{1, 2}}), roll(logits, -1, 2)[{all, Slice{.end = 4}}],
                                 {.blank = 3})),
              want, 1e-12);
}

TEST(Losses, CtcOfTooFewStepsIsLeftOutOrZero) {
  const Tensor labels = constant({{1, 1}, {1, 2}}), logits = drawn_f64({2, 2, 3}, 3);
  const double fits = number(losses::ctc(labels[{Slice{1}}], logits[{Slice{1}}]));
  EXPECT_NEAR(number(losses::ctc(labels, logits, {.zero_infinity = true})), fits / 2, 1e-12);
  EXPECT_NEAR(number(losses::ctc(labels, logits, {.weights = constant({0, 1})})), fits, 1e-12);
}

// Where a class is certain the loss has slope 0, whatever the exponent.
TEST(Losses, FocalOfAPowerBelowOneHasFiniteSlopes) {
  const Tensor slope = grad([](const Tensor& x) {
    return losses::focal(constant({1.0, 0.0}), x, {.gamma = 0.5});
  })(constant({200.0, -200.0}));
  EXPECT_TRUE(identical(slope, zeros({2})));
}

TEST(Losses, AreWeightedMeans) {
  const Tensor wanted = zeros({3, 2}), given = constant({{1.0, 1.0}, {2.0, 2.0}, {4.0, 6.0}});
  const auto mse = [&](const Tensor& weights) {
    return number(losses::mse(wanted, given, {.weights = weights}));
  };
  EXPECT_NEAR(mse(ones({3})), number(losses::mse(wanted, given)), 1e-6);
  EXPECT_NEAR(mse(constant({1, 3, 0})), (1 * 1 + 3 * 4) / 4.0, 1e-6);
  EXPECT_NEAR(mse(constant({{0.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}})), (4 + 16) / 2.0, 1e-6);
  EXPECT_EQ(mse(zeros({3})), 0);
  const Tensor logits = drawn_f64({4, 3}, 5), labels = constant({0, 2, 1, 2});
  const auto each = [&](int64_t row) {
    return number(losses::sparse_categorical_crossentropy(labels[row], logits[row]));
  };
  const Tensor by_class = constant({1.0, 2.0, 5.0}, f64);
  const double expected = (1 * each(0) + 5 * each(1) + 2 * each(2) + 5 * each(3)) / 13;
  EXPECT_NEAR(
      number(losses::sparse_categorical_crossentropy(labels, logits, {.class_weights = by_class})),
      expected, 1e-12);
  EXPECT_NEAR(number(losses::categorical_crossentropy(one_hot(labels, 3, f64), logits,
                                                      {.class_weights = by_class})),
              expected, 1e-12);
  EXPECT_NEAR(number(losses::sparse_categorical_crossentropy(
                  labels, logits, {.weights = constant({1, 0, 0, 2}), .class_weights = by_class})),
              (each(0) + 10 * each(3)) / 11, 1e-12);
  EXPECT_NEAR(number(losses::binary_crossentropy(
                  constant({1.0, 0.0}), constant({0.5, 0.5}),
                  {.from_logits = false, .class_weights = constant({1.0, 3.0})})),
              std::log(2.0), 1e-6);
}

// A table of probabilities, or of shares of labels, would be as large as the gradient once more.
TEST(Losses, ByClassNumberMakeNoTableBesideTheGradient) {
  const MachineCode machine;
  const auto f = function([](const Tensor& labels, const Tensor& logits) {
    GradientTape tape;
    tape.watch(logits);
    const Tensor loss = losses::sparse_categorical_crossentropy(labels, logits);
    return std::tuple{loss, tape.gradient(loss, logits)};
  });
  const Plan plan = f.plan(spec({1024}, i32), spec({1024, 1000}));
  EXPECT_EQ(plan.of(ByteClass::outputs), Bytes(4096000 + 64));
  EXPECT_LE(plan.of(ByteClass::temporaries) + plan.of(ByteClass::saved), 16_KiB);
  EXPECT_LE(plan.peak(), Bytes(4096000) + 64_KiB);
}

TEST(Losses, ArePassedAsFunctions) {
  const std::function<Tensor(const Tensor&, const Tensor&)> loss =
      losses::sparse_categorical_crossentropy;
  const std::function<Tensor(const Tensor&, const Tensor&)> other = losses::mse;
  EXPECT_NEAR(number(loss(constant({0}), constant({{0.0, 0.0}}))), std::log(2.0), 1e-6);
  EXPECT_EQ(number(other(ones({2}), zeros({2}))), 1);
}

TEST(Losses, AddUp16BitFloatsIn32Bits) {
  const Tensor wanted = zeros({1000}, f16), given = full({1000}, 100.0, f16);
  EXPECT_EQ(number(losses::mse(wanted, given)), 10000);  // Its sum, ten millions, is no f16.
}

TEST(Losses, SayWhatDoesNotFit) {
  const auto call = [] { losses::mse(ones({64, 1}), ones({64})); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("losses::mse: y_true f32[64, 1] and y_pred f32[64] differ in shape\n  at "
                "losses_test.cc:",
                line, "\n  reshape one of them: td::reshape(y_true, y_pred.shape())"));
  const auto second_call = [] {
    losses::sparse_categorical_crossentropy(zeros({3}, i32), ones({4, 5}));
  };
  const unsigned second_line = __LINE__ - 2;
  EXPECT_EQ(error_of(second_call),
            cat("losses::sparse_categorical_crossentropy: labels i32[3] do not fit y_pred f32[4, "
                "5]\n  at losses_test.cc:",
                second_line,
                "\n  one class number for each row: the shape of y_pred without its last axis"));
  const auto third_call = [] { losses::sparse_categorical_crossentropy(zeros({4}), ones({4, 5})); };
  const unsigned third_line = __LINE__ - 1;
  EXPECT_EQ(error_of(third_call),
            cat("losses::sparse_categorical_crossentropy: labels are f32[4], not integers\n  at "
                "losses_test.cc:",
                third_line,
                "\n  cast class numbers with td::cast(y, td::i32); for probabilities use "
                "losses::categorical_crossentropy"));
  const auto fourth_call = [] { losses::huber(1.0, 2.0, 0.0); };
  const unsigned fourth_line = __LINE__ - 1;
  EXPECT_EQ(error_of(fourth_call),
            cat("losses::huber: delta must be positive, got 0\n  at losses_test.cc:", fourth_line,
                "\n  it is the difference above which the loss is linear"));
}

TEST(Losses, SayWhichWeightsDoNotFit) {
  const auto said = [](auto f) {
    const std::string text = error_of(f), file = "losses_test.cc:";
    const size_t begin = text.find(file) + file.size();
    return text.substr(0, begin) + text.substr(text.find('\n', begin));
  };
  const std::string at = "\n  at losses_test.cc:\n  ";
  EXPECT_EQ(said([] { losses::mse(ones({3, 2}), ones({3, 2}), {.weights = ones({2})}); }),
            "losses::mse: weights f32[2] do not fit the losses [3, 2]" + at +
                "give one weight for each example: the first axes of the losses");
  EXPECT_EQ(said([] {
              losses::sparse_categorical_crossentropy(zeros({3}, i32), ones({3, 4}),
                                                      {.class_weights = ones({3})});
            }),
            "losses::sparse_categorical_crossentropy: class_weights f32[3] are not one for each "
            "of 4 classes" +
                at + "give them the shape [4]");
  EXPECT_EQ(said([] { losses::focal(ones({3}), ones({3}), {.gamma = -1}); }),
            "losses::focal: gamma must not be negative, got -1" + at +
                "0 is the binary crossentropy; 2 is usual");
  EXPECT_EQ(said([] { losses::triplet(ones({3}), ones({3}), ones({4})); }),
            "losses::triplet: anchor f32[3], positive f32[3] and negative f32[4] are not vectors "
            "of one shape" +
                at + "give each of them [..., features]");
  EXPECT_EQ(said([] { losses::ctc(ones({2, 3}), ones({2, 5, 4})); }),
            "losses::ctc: labels f32[2, 3] do not fit logits f32[2, 5, 4]" + at +
                "give class numbers [n, labels] and logits [n, steps, classes]");
  EXPECT_EQ(said([] { losses::ctc(ones({2, 3}, i32), ones({2, 5, 4}), {.blank = 4}); }),
            "losses::ctc: blank is 4 of 4 classes" + at +
                "give the number of the class that is no label, 0 by default");
  EXPECT_EQ(said([] {
              losses::ctc(ones({2, 3}, i32), ones({2, 5, 4}), {.label_lengths = constant({3})});
            }),
            "losses::ctc: label_lengths i32[1] do not fit 2 sequences" + at +
                "give one whole number for each: [2]");
}

// A negative index would count from the end: a label of -1, as files have for "none", would teach
// the last class.
TEST(Losses, ByClassNumberRefuseLabelsThatAreNoClass) {
  const Tensor scores = ones({2, 5});
  const auto loss = [](const Tensor& labels, const Tensor& logits) {
    return losses::sparse_categorical_crossentropy(labels, logits);
  };
  const unsigned line = __LINE__ - 2;
  const auto compiled = function(loss);
  const auto trained = function([&](const Tensor& labels, const Tensor& logits) {
    GradientTape tape;
    tape.watch(logits);
    const Tensor value = loss(labels, logits);
    return std::tuple{value, tape.gradient(value, logits)};
  });
  for (const int label : {-1, 5, -6}) {
    for (const DType dtype : {i32, i64}) {
      const Tensor labels = constant({1, label}, dtype);
      const auto wanted = [&](const std::string& lines) {
        return cat("class ", label, " is out of range for axis 1 of f32[2, 5]\n  at ", lines,
                   "\n  class numbers go from 0 to 4");
      };
      const std::string mine = cat("losses_test.cc:", line);
      const auto call = [&] { compiled(labels, scores); };
      const auto step = [&] { trained(labels, scores); };
      const unsigned last = __LINE__ - 1;
      EXPECT_EQ(error_of([&] { loss(labels, scores); }), wanted(mine));
      EXPECT_EQ(error_of(call), wanted(cat("losses_test.cc:", last - 1, " [", mine, "]")));
      EXPECT_EQ(error_of(step), wanted(cat("losses_test.cc:", last, " [", mine, "]")));
      EXPECT_THROW(sparse_softmax_cross_entropy(labels, scores), UserError);
      EXPECT_THROW(nn::metrics::top_k(labels, scores, 2), UserError);
    }
  }
  EXPECT_NEAR(number(compiled(constant({4, 0}), scores)), std::log(5.0), 1e-6);
  // Elsewhere indices do count from the end.
  EXPECT_EQ(take_along_axis(constant({{1, 2}}), constant({{-1}}), 1).item<int>(), 2);
}

// That an index was looked at before says nothing of a label: no Variable is written before it is.
TEST(Losses, ByClassNumberLeaveAllAsItWasWhereALabelIsNoClass) {
  const Variable scores(ones({2, 5}));
  const auto step = function([=](const Tensor& labels) {
    const Tensor index = expand_dims(labels, -1);
    const Tensor picked = take_along_axis(scores, index, -1);
    const Tensor loss = losses::sparse_categorical_crossentropy(labels, scores.value() + picked);
    scores.assign_sub(loss);
    return loss;
  });
  step(constant({1, 4}));
  const Tensor before = scores.value() + 0;
  EXPECT_THROW(step(constant({1, -1})), UserError);
  EXPECT_TRUE(identical(scores, before));
}

}  // namespace
}  // namespace tidemark
