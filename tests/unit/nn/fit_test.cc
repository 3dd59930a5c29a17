#include "tidemark/train/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"
#include "tidemark/train/fit_progress.h"

namespace tidemark {
namespace {

using nn::Epoch;
using nn::History;
using nn::Progress;

// Two layers, by hand.
struct Net {
  explicit Net(int64_t wide = 32, int64_t seed = 1)
      : w1(drawn({2, wide}, 1.0, seed), {.name = "w1"}),
        b1(zeros({wide}), {.name = "b1"}),
        w2(drawn({wide, wide}, std::sqrt(2.0 / static_cast<double>(wide)), seed + 1),
           {.name = "w2"}),
        b2(zeros({wide}), {.name = "b2"}),
        w3(drawn({wide, 2}, 0.1, seed + 2), {.name = "w3"}) {}
  static Tensor drawn(const Shape& shape, double stddev, int64_t key) {
    return random::normal(shape, {.stddev = stddev, .key = random::Key(key)});
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor h = relu(matmul(relu(matmul(x, w1) + b1), w2) + b2);
    return matmul(h, w3);
  }

  Variable w1, b1, w2, b2, w3;
  TIDEMARK_FIELDS(w1, b1, w2, b2, w3)
};

// Two spirals in each other, of `count` points, in batches.
using Pairs = std::vector<std::pair<Tensor, Tensor>>;
Pairs spirals(int64_t count, int64_t batch) {
  std::vector<float> points;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    // A walk that mixes the points.
    const int64_t k = (i * 617) % count;
    const double t =
        0.3 + 1.2 * 3.14159265 * static_cast<double>(k / 2 * 2) / static_cast<double>(count);
    const double side = k % 2 == 0 ? 1 : -1;
    points.push_back(static_cast<float>(side * t * std::cos(2 * t)));
    points.push_back(static_cast<float>(side * t * std::sin(2 * t)));
    labels.push_back(static_cast<int32_t>(k % 2));
  }
  Pairs batches;
  for (int64_t begin = 0; begin < count; begin += batch) {
    const int64_t size = std::min(batch, count - begin);
    const auto at = static_cast<std::ptrdiff_t>(begin);
    batches.emplace_back(
        constant(std::vector<float>(points.begin() + 2 * at, points.begin() + 2 * (at + size)),
                 {size, 2}),
        constant(std::vector<int32_t>(labels.begin() + at, labels.begin() + at + size)));
  }
  return batches;
}

Tensor cross_entropy(const Tensor& y, const Tensor& logits) {
  return sparse_softmax_cross_entropy(y, logits);
}
Tensor accuracy(const Tensor& y, const Tensor& logits) {
  return mean(cast(cast(argmax(logits, -1), i32) == y, f32));
}

TEST(Fit, LearnsTwoSpirals) {
  const Net model;
  const History history = nn::fit(model, spirals(500, 64),
                                  {.loss = cross_entropy,
                                   .optimizer = nn::Adam({.learning_rate = 0.01}),
                                   .epochs = 60,
                                   .metrics = {{"accuracy", accuracy}},
                                   .progress = Progress::none});
  ASSERT_EQ(history.epochs.size(), 60U);
  EXPECT_GT(history.epochs.front().loss, 0.5);
  EXPECT_LT(history.epochs.back().loss, 0.05);
  EXPECT_GT(history.epochs.back().metric("accuracy"), 0.98);
  EXPECT_EQ(history.epochs.back().examples, 500);
  EXPECT_EQ(history.epochs.back().batches, 8);
  // One trace for 64 points, and one for the 52 of the last batch and whatever comes.
  EXPECT_EQ(history.traces, 2);
  EXPECT_GT(history.planned.count, 0);
  EXPECT_TRUE(history.stopped.empty());
}

TEST(Fit, GivesTheSameBitsForOneThreadAndTwo) {
  const auto run = [](int threads) {
    set_num_threads(threads);
    const Net model(256);
    nn::fit(model, spirals(600, 256),
            {.loss = cross_entropy, .epochs = 2, .progress = Progress::none});
    std::vector<Tensor> values;
    for (const Variable& each : nn::variables(model)) values.push_back(each.value());
    return values;
  };
  const int before = num_threads();
  const std::vector<Tensor> one = run(1), two = run(2);
  set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(identical(one[i], two[i])) << i;
}

TEST(Fit, WithinABudgetGivesTheSameBits) {
  const Pairs batches = spirals(256, 64);
  const auto trained = [&](std::optional<Budget> budget) {
    const Net model(32);
    nn::fit(model, batches,
            {.loss = cross_entropy,
             .optimizer = nn::SGD({.learning_rate = 0.1}),
             .epochs = 2,
             .budget = budget,
             .validation = batches,
             .progress = Progress::none});
    return model.w2.value();
  };
  const Tensor usual = trained({});
  EXPECT_TRUE(identical(trained(Bytes(64 << 20)), usual));
  EXPECT_TRUE(identical(trained(Budget::available), usual));
  Bytes floor = 0;
  try {
    trained(Bytes(64));
  } catch (const OverBudget& error) {
    floor = error.floor();
  }
  ASSERT_GT(floor.count, 64);
  EXPECT_TRUE(identical(trained(floor), usual));
}

TEST(Fit, IsFlatFromTheSecondEpochOn) {
  const Net model;
  std::vector<int64_t> bytes, peaks;
  nn::fit(model, spirals(300, 64),
          {.loss = cross_entropy,
           .epochs = 4,
           .validation = spirals(100, 64),
           .on_epoch =
               [&](const Epoch& epoch) {
                 bytes.push_back(memory::current().count);
                 peaks.push_back(epoch.peak.count);
               },
           .progress = Progress::none});
  ASSERT_EQ(bytes.size(), 4U);
  EXPECT_EQ(bytes[1], bytes[2]);
  EXPECT_EQ(bytes[2], bytes[3]);
  EXPECT_EQ(peaks[2], peaks[3]);
}

TEST(Fit, TakesTuplesStructsAndModelsOfTheirOwnKind) {
  struct Batch {
    Tensor x, y;
  };
  const Variable slope(0.0f, {.name = "slope"});
  struct Line {
    Variable slope;
    Tensor operator()(const Tensor& x) const { return x * slope; }
  };
  const auto loss = [](const Tensor& y, const Tensor& given) { return mean(square(y - given)); };
  const std::vector<std::tuple<Tensor, Tensor>> tuples(4, {ones({2}), full({2}, 3.0f)});
  const std::vector<Batch> structs(4, Batch{ones({2}), full({2}, 3.0f)});
  nn::fit(Line{slope}, tuples,
          {.loss = loss, .optimizer = nn::SGD({.learning_rate = 0.5}), .progress = Progress::none});
  EXPECT_EQ(slope.value().item<float>(), 3.0F);
  slope.assign(0);
  nn::fit(Line{slope}, structs,
          {.loss = loss, .optimizer = nn::SGD({.learning_rate = 0.5}), .progress = Progress::none});
  EXPECT_EQ(slope.value().item<float>(), 3.0F);
}

// A model whose loss is what it was told: the batch's y, whatever it learns. Each step adds 1 to w.
struct Scripted {
  Variable w{zeros({}), {.name = "w"}};
  Tensor operator()(const Tensor& x) const { return x * 0 + w; }
};
Tensor scripted_loss(const Tensor& y, const Tensor& given) {
  return mean(y - given + stop_gradient(given));
}

// Batches that are other ones in each epoch.
struct Script {
  std::vector<float> losses;
  std::shared_ptr<size_t> epoch = std::make_shared<size_t>(0);
  struct Iterator {
    const Script* script;
    bool done;
    std::pair<Tensor, Tensor> operator*() const {
      const float loss = script->losses[(*script->epoch)++];
      return {ones({1}), full({1}, loss)};
    }
    Iterator& operator++() {
      done = true;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return done != other.done; }
  };
  Iterator begin() const { return {this, false}; }
  Iterator end() const { return {this, true}; }
};

TEST(Fit, StopsEarlyAndRestoresTheBest) {
  const Scripted model;
  const History history = nn::fit(model, Script{{5, 3, 4, 2.5, 2.6, 2.7, 2.6, 1}},
                                  {.loss = scripted_loss,
                                   .optimizer = nn::SGD({.learning_rate = 1}),
                                   .epochs = 8,
                                   .early_stopping = nn::EarlyStopping{.patience = 2},
                                   .progress = Progress::none});
  EXPECT_EQ(history.epochs.size(), 7U);
  EXPECT_EQ(history.best, 4);
  EXPECT_EQ(history.stopped, "no improvement since epoch 4");
  EXPECT_EQ(model.w.value().item<float>(), 4.0F);  // As it was after the fourth step.
}

TEST(Fit, LooksAtTheValidationWhereThereIsOne) {
  const Scripted model;
  std::vector<double> seen;
  const History history = nn::fit(
      model, Script{{1, 1, 1, 1, 1}},
      {.loss = scripted_loss,
       .optimizer = nn::SGD({.learning_rate = 1}),
       .epochs = 5,
       .validation = Script{{3, 2, 2, 2, 2}},
       .on_epoch = [&](const Epoch& epoch) { seen.push_back(epoch.validation_loss.value()); },
       .early_stopping = nn::EarlyStopping{.patience = 1, .restore_best = false},
       .progress = Progress::none});
  EXPECT_EQ(seen, (std::vector<double>{3, 2, 2, 2}));
  EXPECT_EQ(history.best, 2);
  EXPECT_EQ(model.w.value().item<float>(), 4.0F);
}

TEST(Fit, StopsWhereTheCallbackSaysSoOrTheLossIsNoNumber) {
  const Scripted model;
  const nn::FitOptions options{.loss = scripted_loss,
                               .epochs = 5,
                               .on_epoch = [](Epoch& epoch) { epoch.stop = epoch.loss < 3; },
                               .progress = Progress::none};
  const History asked = nn::fit(model, Script{{5, 4, 2, 1, 1}}, options);
  EXPECT_EQ(asked.epochs.size(), 3U);
  EXPECT_EQ(asked.stopped, "on_epoch asked for it");
  const float none = std::numeric_limits<float>::quiet_NaN();
  const History lost = nn::fit(model, Script{{5, none, 2, 1, 1}}, options);
  EXPECT_EQ(lost.epochs.size(), 2U);
  EXPECT_EQ(lost.stopped, "the loss of epoch 2 is nan");
  EXPECT_EQ(nn::fit(model, Script{{-none, 1}}, options).stopped, "the loss of epoch 1 is nan");
}

TEST(Fit, StopsAfterABatchWhereTheCallbackSaysSo) {
  const nn::Dense dense(1);
  const Pairs pairs(4, {ones({2, 3}), ones({2, 1})});
  std::vector<std::pair<int64_t, int64_t>> seen;
  const History history = nn::fit(dense, pairs,
                                  {.loss = nn::losses::mse,
                                   .epochs = 3,
                                   .on_batch =
                                       [&](nn::Batch& batch) {
                                         seen.emplace_back(batch.epoch, batch.number);
                                         batch.stop = batch.epoch == 2 && batch.number == 2;
                                       },
                                   .progress = Progress::none});
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, int64_t>>{
                      {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}}));
  EXPECT_EQ(history.stopped, "on_batch asked for it");
  EXPECT_EQ(history.epochs.back().batches, 2);
}

TEST(Fit, MakesTheEpochsThatAreLeft) {
  const nn::Dense dense(1);
  const Pairs pairs = {{ones({2, 3}), ones({2, 1})}};
  const History history = nn::fit(
      dense, pairs,
      {.loss = nn::losses::mse, .epochs = 5, .initial_epoch = 3, .progress = Progress::none});
  ASSERT_EQ(history.epochs.size(), 2U);
  EXPECT_EQ(history.epochs[0].number, 4);
}

// A mean of F1 over batches is not the F1 of the set.
TEST(Fit, RunsMetricsOverAllBatchesWithoutKeepingThem) {
  struct Given {
    Variable weight{constant({1.0F}), {.name = "weight"}};
    Tensor operator()(const Tensor& x) const { return x * weight; }
  } const model;
  const Pairs pairs = {{constant({1.0F, 2.0F}), constant({1.0F, 0.0F})},
                       {constant({-1.0F, 3.0F}), constant({1.0F, 1.0F})}};
  const auto nothing = [](const Tensor& y, const Tensor& p) { return mean(square(p - y)) * 0.0; };
  const auto fitted = [&](const nn::Batches& validation) {
    return nn::fit(model, pairs,
                   {.loss = nothing,
                    .optimizer = nn::SGD(),
                    .epochs = 2,
                    .validation = validation,
                    .metrics = {{"error", nn::losses::mae}, {"f1", nn::metrics::F1()}},
                    .progress = Progress::none});
  };
  const History history = fitted(pairs);
  for (const Epoch& epoch : history.epochs) {
    EXPECT_NEAR(epoch.metric("f1"), 2 * 2.0 / (2 * 2 + 1 + 1), 1e-6);
    EXPECT_NEAR(epoch.metric("error"), (0 + 2 + 2 + 2) / 4.0, 1e-6);
    EXPECT_NEAR(epoch.validation_metrics[1].second, 2 * 2.0 / (2 * 2 + 1 + 1), 1e-6);
  }
}

TEST(Fit, TrainsInTrainModeAndJudgesInTheOther) {
  struct Model {
    Variable w{zeros({}), {.name = "w"}};
    Tensor operator()(const Tensor& x) const { return x * w + (nn::is_training() ? 1.0 : 2.0); }
  };
  const auto given = [](const Tensor&, const Tensor& given) { return mean(given); };
  const Pairs batches = {{zeros({2}), zeros({2})}};
  const History history =
      nn::fit(Model{}, batches, {.loss = given, .validation = batches, .progress = Progress::none});
  EXPECT_EQ(history.epochs[0].loss, 1.0);
  EXPECT_EQ(history.epochs[0].validation_loss, 2.0);
}

TEST(Fit, SavesACheckpointThatTrainingGoesOnFrom) {
  const std::string path = testing::TempDir() + "fit_checkpoint.safetensors";
  const auto train = [&](const Net& model, const nn::Adam& optimizer, int64_t epochs) {
    nn::fit(model, spirals(128, 64),
            {.loss = cross_entropy,
             .optimizer = optimizer,
             .epochs = epochs,
             .checkpoint = path,
             .progress = Progress::none});
  };
  const Net whole;
  train(whole, nn::Adam(), 4);
  const Net first, second(32, 99);
  train(first, nn::Adam(), 2);
  const nn::Adam optimizer;
  io::Checkpoint{{"model", second}, {"optimizer", optimizer}}.load(path);
  EXPECT_EQ(optimizer.iterations.value().item<int>(), 4);
  train(second, optimizer, 2);
  const std::vector<Variable> a = nn::variables(whole), b = nn::variables(second);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(identical(a[i].value(), b[i].value())) << a[i].name();
  std::remove(path.c_str());
}

// As a checkpoint of a whole epoch leaves it: nothing is left of that pass.
TEST(Fit, BeginsTheNextPassOfADatasetThatStandsAtItsEnd) {
  const Tensor x = random::normal({12, 3}, {.key = random::Key(1)});
  const auto batches = data::from_tensor_slices(std::tuple{x, x}).shuffle({.seed = 3}).batch(4);
  for (const auto& batch : batches) (void)batch;
  const data::Position end = batches.position();
  batches.restore(end);
  const History history = nn::fit(
      nn::Dense(3), batches, {.loss = nn::losses::mse, .epochs = 2, .progress = Progress::none});
  ASSERT_EQ(history.epochs.size(), 2u);
  for (const Epoch& epoch : history.epochs) EXPECT_EQ(epoch.batches, 3);
  EXPECT_EQ(batches.position().pass, end.pass + 2);
}

TEST(Fit, WritesALineAnEpochWhereThereIsNoTerminal) {
  std::vector<std::string> lines;
  set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  nn::fit(Scripted(), Script{{5, 3}},
          {.loss = scripted_loss,
           .epochs = 2,
           .metrics = {{"accuracy", [](const Tensor&, const Tensor&) { return Tensor(0.5f); }}},
           .progress = Progress::lines});
  set_print_sink(nullptr);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].substr(0, 32), "epoch 1: loss 5, accuracy 0.5, 0");
  EXPECT_EQ(lines[1].substr(0, 32), "epoch 2: loss 3, accuracy 0.5, 0");
  EXPECT_EQ(lines[1].back(), '\n');
}

TEST(Fit, DrawsItsBarInTheSinkIfThereIsOne) {
  std::vector<std::string> drawn, lines;
  set_bar_sink([&](std::string_view text) { drawn.emplace_back(text); });
  set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  nn::fit(Scripted(), Script{{5, 3}}, {.loss = scripted_loss, .epochs = 2});
  set_bar_sink(nullptr);
  set_print_sink(nullptr);
  ASSERT_EQ(drawn.size(), 4U);  // In each epoch the bar, and its end.
  EXPECT_EQ(drawn[0].substr(0, 10), "epoch 1/2 ");
  EXPECT_EQ(drawn[1], "");
  EXPECT_EQ(drawn[2].substr(0, 10), "epoch 2/2 ");
  EXPECT_EQ(drawn[3], "");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].substr(0, 15), "epoch 2: loss 3");
}

// ---- weights ------------------------------------------------------------------------------------

using Weighted = std::vector<std::tuple<Tensor, Tensor, Tensor>>;

TEST(Fit, TheWeightsOfBatchesAreThoseOfOneMean) {
  const nn::Lambda same([](const Tensor& x) { return x; });
  // Squares 1, 4, 9 and 16, 25; the batches weigh 4 and 6.
  const Weighted batches = {
      {constant({{1.0}, {2.0}, {3.0}}), zeros({3, 1}, f64), constant({1.0, 0.0, 3.0})},
      {constant({{4.0}, {5.0}}), zeros({2, 1}, f64), constant({2, 4})}};
  const nn::FitOptions options = {.loss = nn::losses::mse, .metrics = {{"mae", nn::losses::mae}}};
  const nn::Evaluation found = nn::evaluate(same, batches, options);
  EXPECT_DOUBLE_EQ(*found.loss, (1 + 27 + 32 + 100) / 10.0);
  EXPECT_DOUBLE_EQ(found.metric("mae"), 3);  // Metrics take no weights.
  const Weighted nothing = {{ones({2, 1}), zeros({2, 1}), zeros({2})}};
  EXPECT_EQ(*nn::evaluate(same, nothing, options).loss, 0);
}

TEST(Fit, AWeightOfThreeIsThreeExamples) {
  const auto trained = [](const nn::Batches& batches) {
    const nn::Dense dense(1, {.kernel_initializer = nn::initializers::zeros});
    const nn::History history = nn::fit(dense, batches,
                                        {.loss = nn::losses::mse,
                                         .optimizer = nn::SGD({.learning_rate = 0.1}),
                                         .epochs = 3,
                                         .progress = nn::Progress::none});
    return std::pair(history.epochs.back().loss, dense.kernel.value().item<double>());
  };
  const auto weighted = trained(
      Weighted{{constant({{1.0F}, {2.0F}}), constant({{1.0F}, {3.0F}}), constant({1.0F, 3.0F})}});
  const auto repeated = trained(Pairs{
      {constant({{1.0F}, {2.0F}, {2.0F}, {2.0F}}), constant({{1.0F}, {3.0F}, {3.0F}, {3.0F}})}});
  EXPECT_NEAR(weighted.first, repeated.first, 1e-6);
  EXPECT_NEAR(weighted.second, repeated.second, 1e-6);
}

// A metric whose result is no number runs over the batches and keeps it.
TEST(Fit, AConfusionMatrixIsAskedItself) {
  const nn::metrics::ConfusionMatrix matrix(2);
  const nn::Lambda same([](const Tensor& x) { return x; });
  const Tensor seen = constant({{1.0, 0.0}, {0.0, 1.0}, {3.0, 2.0}});
  const Pairs batches = {{seen, constant({0, 1, 1})}, {seen, constant({1, 1, 1})}};
  const nn::FitOptions options = {
      .loss = nn::losses::sparse_categorical_crossentropy,
      .metrics = {{"matrix", matrix}, {"right", nn::metrics::sparse_accuracy}}};
  const nn::Evaluation found = nn::evaluate(same, batches, options);
  EXPECT_EQ(matrix.result().to_vector<int>(), (std::vector<int>{1, 0, 3, 2}));
  EXPECT_EQ(found.metrics.size(), 1u);
  EXPECT_FLOAT_EQ(static_cast<float>(found.metric("right")), 0.5F);
  nn::fit(nn::Dense(2), batches, options);
  EXPECT_EQ(sum(matrix.result()).item<int>(), 6);
}

TEST(Fit, SaysWhatIsWrong) {
  const auto said = [](const auto& f) {
    const std::string text = error_of(f), file = "fit_test.cc:";
    const size_t begin = text.find(file) + file.size();
    return text.substr(0, begin) + text.substr(text.find('\n', begin));
  };
  const Scripted model;
  const std::string at = "\n  at fit_test.cc:\n  ";
  EXPECT_EQ(said([&] { nn::fit(model, Pairs(), {}); }),
            "fit: there is no loss" + at + "give one: {.loss = td::nn::losses::mse}");
  EXPECT_EQ(said([&] { nn::fit(model, nn::Batches(), {.loss = scripted_loss}); }),
            "fit: there are no batches" + at + "give a dataset");
  EXPECT_EQ(
      said([&] { nn::fit(model, Pairs(), {.loss = scripted_loss}); }),
      "fit: there is no batch in epoch 1" + at + "give a range that can be iterated once an epoch");
  EXPECT_EQ(said([&] { nn::fit(model, Pairs(), {.loss = scripted_loss, .epochs = -1}); }),
            "fit: .epochs is -1" + at + "give 0 or more");
  EXPECT_EQ(said([&] { nn::fit(model, Pairs(), {.loss = nn::metrics::F1()}); }),
            "fit: the loss is a metric that runs over batches" + at +
                "give a function, {.loss = td::nn::losses::mse}, and the metric in .metrics");
  EXPECT_EQ(said([&] { nn::fit(model, Pairs(), {.loss = scripted_loss, .initial_epoch = -2}); }),
            "fit: .initial_epoch is -2" + at + "give 0 or more");
  const Pairs one = {{ones({1}), ones({1})}};
  EXPECT_EQ(
      said([&] { nn::fit(model, one, {.loss = scripted_loss, .validation = Pairs()}); }),
      "fit: .validation has no batches" + at + "give a range that can be iterated once an epoch");
  const nn::Dense dense(2);
  const Pairs pairs = {{ones({3, 4}), ones({3, 2})}};
  const auto apart = [](const Tensor& wanted, const Tensor& given) { return wanted - given; };
  EXPECT_EQ(said([&] { nn::fit(dense, pairs, {.loss = apart}); }),
            "fit: the loss gives f32[3, 2], not one number" + at + "return its mean: td::mean(x)");
  EXPECT_EQ(said([&] {
              nn::fit(dense, pairs, {.loss = nn::losses::mse, .metrics = {{"apart", apart}}});
            }),
            "fit: the metric \"apart\" gives f32[3, 2], not one number" + at +
                "return its mean: td::mean(x)");
  EXPECT_EQ(error_of([] { Epoch().metric("accuracy"); }),
            "metric: \"accuracy\" was not measured\n  name it in .metrics; a ConfusionMatrix is "
            "asked for its result()");
  EXPECT_EQ(said([&] { nn::evaluate(dense, pairs, {.metrics = {{"apart", apart}}}); }),
            "evaluate: the metric \"apart\" gives f32[3, 2], not one number" + at +
                "return its mean: td::mean(x)");
  const Weighted weighted = {{ones({3, 4}), ones({3, 2}), ones({3})}};
  const auto near = [](const Tensor& wanted, const Tensor& given) { return mean(wanted - given); };
  EXPECT_EQ(said([&] { nn::fit(dense, weighted, {.loss = near}); }),
            "fit: a batch has weights, and the loss takes none" + at +
                "give one of td::nn::losses, or an object that has weighted(y_true, y_pred, "
                "weights, at)");
  const std::vector<std::tuple<Tensor, Tensor, std::vector<Tensor>>> two = {
      {ones({3, 4}), ones({3, 2}), {ones({3}), ones({3})}}};
  EXPECT_EQ(said([&] { nn::evaluate(dense, two, {.loss = nn::losses::mse}); }),
            "evaluate: a batch has 2 tensors of weights" + at + "give one, for all outputs");
  EXPECT_EQ(said([&] { nn::evaluate(dense, nn::Batches(), {}); }),
            "evaluate: there are no batches" + at + "give a dataset");
}

// ---- several inputs and outputs -----------------------------------------------------------------

// Two inputs, two outputs.
struct TwoHeads {
  std::pair<Tensor, Tensor> operator()(const Tensor& a, const Tensor& b) const {
    const Tensor h = body(concat({a, b}, -1));
    return {number(h), label(h)};
  }
  nn::Dense body{8, {.activation = "tanh"}}, number{1}, label{3};
  TIDEMARK_FIELDS(body, number, label)
};
// The same, as functions of lists.
struct TwoHeadsOfLists {
  std::vector<Tensor> operator()(const std::vector<Tensor>& x) const {
    const auto [number, label] = heads(x[0], x[1]);
    return {number, label};
  }
  TwoHeads heads;
};

struct TwoInputs {
  Tensor a, b;
};
using TwoBatches = std::vector<std::pair<TwoInputs, std::pair<Tensor, Tensor>>>;
TwoBatches two_batches() {
  TwoBatches batches;
  for (int i = 0; i < 3; ++i) {
    const Tensor a = Net::drawn({8, 2}, 1, 10 + i), b = Net::drawn({8, 3}, 1, 20 + i);
    batches.push_back({{a, b}, {sum(a, -1, keepdims), cast(argmax(b, -1), i32)}});
  }
  return batches;
}
nn::FitOptions two_losses(double weight) {
  return {.losses = {{"number", nn::losses::mse},
                     {"label", nn::losses::sparse_categorical_crossentropy, weight}},
          .optimizer = nn::SGD({.learning_rate = 0.1}),
          .epochs = 5,
          .metrics = {{"label accuracy", nn::Measure(nn::metrics::sparse_accuracy).of_output(1)},
                      {"mae", nn::losses::mae}},
          .progress = Progress::none};
}

TEST(Fit, TakesSeveralInputsAndOutputsWithALossForEach) {
  random::seed(1);
  const TwoHeads model;
  const TwoBatches batches = two_batches();
  (void)model(batches[0].first.a, batches[0].first.b);
  const TwoHeads by_hand = nn::clone(model), others = nn::clone(model);
  const History history = nn::fit(model, batches, two_losses(0.5));
  // The same by hand.
  const nn::SGD sgd({.learning_rate = 0.1});
  std::vector<double> numbers, labels;
  for (int epoch = 0; epoch < 5; ++epoch) {
    double number = 0, label = 0;
    for (const auto& [x, y] : batches) {
      GradientTape tape;
      const auto [n, l] = by_hand(x.a, x.b);
      const Tensor a = nn::losses::mse(y.first, n),
                   b = nn::losses::sparse_categorical_crossentropy(y.second, l);
      const Tensor loss = a + b * 0.5;
      sgd.minimize(tape, loss, by_hand);
      number += a.item<double>() / 3;
      label += b.item<double>() / 3;
    }
    EXPECT_NEAR(history.epochs[static_cast<size_t>(epoch)].metric("number_loss"), number, 1e-6);
    EXPECT_NEAR(history.epochs[static_cast<size_t>(epoch)].metric("label_loss"), label, 1e-6);
    EXPECT_NEAR(history.epochs[static_cast<size_t>(epoch)].loss, number + 0.5 * label, 1e-6);
  }
  EXPECT_TRUE(identical(model.label.kernel, by_hand.label.kernel));
  EXPECT_LT(history.epochs[4].loss, history.epochs[0].loss);
  EXPECT_GT(history.epochs[4].metric("label accuracy"), 0.3);
  nn::fit(TwoHeadsOfLists{others}, batches, two_losses(0.5));
  EXPECT_TRUE(identical(others.label.kernel, model.label.kernel));
}

TEST(Evaluate, MeasuresOneBatchAtATime) {
  random::seed(1);
  const TwoHeads model;
  const TwoBatches batches = two_batches();
  (void)model(batches[0].first.a, batches[0].first.b);
  const nn::Evaluation found = nn::evaluate(model, batches, two_losses(0.5));
  double loss = 0, right = 0;
  for (const auto& [x, y] : batches) {
    const auto [n, l] = model(x.a, x.b);
    loss += (nn::losses::mse(y.first, n) +
             0.5 * nn::losses::sparse_categorical_crossentropy(y.second, l))
                .item<double>() /
            3;
    right += nn::metrics::sparse_accuracy(y.second, l).item<double>() / 3;
  }
  EXPECT_NEAR(*found.loss, loss, 1e-6);
  EXPECT_NEAR(found.metric("label accuracy"), right, 1e-6);
  EXPECT_EQ(found.batches, 3);
  EXPECT_EQ(found.examples, 24);
  // Metrics alone, and a set that is made while it is walked: it is never whole in memory.
  const auto counted = nn::evaluate(nn::Dense(1, {.kernel_initializer = nn::initializers::ones}),
                                    data::range(64).map([](const Tensor& i) {
                                      const Tensor x = full({1024, 256}, 1.0) * cast(i, f32);
                                      return std::pair{x, x[{all, Slice{.begin = 0, .end = 1}}]};
                                    }),
                                    {.metrics = {{"mae", nn::losses::mae}}});
  EXPECT_FALSE(counted.loss.has_value());
  EXPECT_NEAR(counted.metric("mae"), 255 * 31.5, 1e-2);
}

TEST(Fit, CallsItsCallbacksInOrder) {
  std::vector<std::string> seen;
  const nn::Callback callback{
      .on_train_begin = [&] { seen.push_back("begin"); },
      .on_epoch_begin = [&](int64_t epoch) { seen.push_back(cat("epoch ", epoch)); },
      .on_batch = [&](nn::Batch& batch) { seen.push_back(cat("batch ", batch.number)); },
      .on_epoch =
          [&](Epoch& epoch) {
            seen.push_back(cat("end of ", epoch.number));
            epoch.stop = epoch.number == 4;
          },
      .on_train_end =
          [&](const History& history) { seen.push_back(cat(history.epochs.size(), " epochs")); }};
  const History history = nn::fit(nn::Dense(2), Pairs{{ones({3, 4}), ones({3, 2})}},
                                  {.loss = nn::losses::mse,
                                   .epochs = 9,
                                   .initial_epoch = 2,
                                   .callbacks = {callback},
                                   .progress = Progress::none});
  EXPECT_EQ(seen, (std::vector<std::string>{"begin", "epoch 3", "batch 1", "end of 3", "epoch 4",
                                            "batch 1", "end of 4", "2 epochs"}));
  EXPECT_EQ(history.stopped, "on_epoch asked for it");
}

TEST(Fit, SaysWhatIsWrongWithSeveral) {
  const auto said = [](const auto& f) {
    const std::string text = error_of(f), file = "fit_test.cc:";
    const size_t begin = text.find(file) + file.size();
    return text.substr(0, begin) + text.substr(text.find('\n', begin));
  };
  const std::string at = "\n  at fit_test.cc:\n  ";
  const TwoHeads model;
  const TwoBatches batches = two_batches();
  EXPECT_EQ(said([&] { nn::fit(model, batches, {.loss = nn::losses::mse}); }),
            "fit: the model has 2 outputs and one loss" + at +
                "give one for each: {.losses = {{\"a\", td::nn::losses::mse}, ...}}");
  EXPECT_EQ(said([&] { nn::fit(model, batches, {.losses = {{"a", nn::losses::mse}}}); }),
            "fit: the model has 2 outputs and 1 losses" + at +
                "give one for each output, in their order");
  EXPECT_EQ(
      said([&] {
        nn::fit(model, batches, {.loss = nn::losses::mse, .losses = {{"a", nn::losses::mse}}});
      }),
      "fit: there are .loss and .losses" + at + "give .loss for one output, .losses for several");
  const std::vector<std::pair<TwoInputs, Tensor>> fewer = {{batches[0].first, ones({8, 1})}};
  EXPECT_EQ(
      said([&] { nn::fit(model, fewer, two_losses(1)); }),
      "fit: the model has 2 outputs, a batch 1 targets" + at + "give a target for each output");
  EXPECT_EQ(error_of([&] { nn::fit(nn::Dense(2), fewer, {.loss = nn::losses::mse}); }),
            "fit: the model cannot be called with 2 inputs\n"
            "  its operator() takes that many tensors, or a const std::vector<td::Tensor>&");
  nn::FitOptions third = two_losses(1);
  third.metrics = {{"x", nn::Measure(nn::losses::mae).of_output(2)}};
  EXPECT_EQ(said([&] { nn::fit(model, batches, third); }),
            "fit: the metric \"x\" is of output 2, of 2" + at + "outputs are counted from 0");
  EXPECT_EQ(said([&] { nn::evaluate(model, TwoBatches(), two_losses(1)); }),
            "evaluate: there are no batches" + at + "give a range with at least one");
}

// ---- L-BFGS -------------------------------------------------------------------------------------

struct PointOf {
  Variable x;
  TIDEMARK_FIELDS(x)
};

TEST(LBFGS, SolvesLeastSquaresExactly) {
  const Tensor a = cast(Net::drawn({40, 6}, 1, 1), f64), b = cast(Net::drawn({40}, 1, 2), f64);
  const PointOf model{Variable(zeros({6}, f64))};
  const auto loss = [=] { return mean(square(matmul(a, model.x) - b)); };
  const nn::LBFGSResult result =
      nn::LBFGS({.tolerance_gradient = 1e-9, .tolerance_change = 0}).minimize(loss, model);
  EXPECT_TRUE(result.converged);
  EXPECT_EQ(result.stopped, "the gradient is within its tolerance");
  // The normal equations hold.
  EXPECT_LT(max(abs(matmul(transpose(a), matmul(a, model.x) - b))).item<double>(), 40 * 1e-9);
  EXPECT_LT(result.iterations, 30);
}

TEST(LBFGS, FollowsTheValleyOfRosenbrock) {
  for (const DType dtype : {f64, f32}) {
    for (const int64_t memory : {1, 3, 10}) {
      const PointOf model{Variable(constant({-1.2, 1.0, -1.2, 1.0, -1.2, 1.0}, dtype))};
      const auto loss = [=] {
        const Tensor x = model.x, next = x[Slice{.begin = 1}], now = x[Slice{.end = -1}];
        return sum(100.0 * square(next - square(now)) + square(1.0 - now));
      };
      const nn::LBFGSResult result =
          nn::LBFGS({.memory = memory, .max_iterations = 500, .tolerance_change = 1e-14})
              .minimize(loss, model);
      EXPECT_LT(max(abs(model.x - 1.0)).item<double>(), dtype == f64 ? 1e-5 : 2e-3);
      EXPECT_LT(result.evaluations, 3 * result.iterations + 10);
    }
  }
}

// Several Variables of several types, in place; and a loss that is not defined everywhere.
TEST(LBFGS, UpdatesAllVariablesInPlace) {
  struct Model {
    Variable a{full({2}, 3.0)}, b{full({2, 2}, 4.0, f64)}, fixed{ones({1}), {.trainable = false}};
    TIDEMARK_FIELDS(a, b, fixed)
  };
  const Model model;
  const float* const place = model.a.value().span<const float>().data();
  const auto loss = [=] {
    return sum(model.a - log(model.a)) + cast(sum(square(model.b - 2.0)), f32);
  };
  const nn::LBFGSResult result = nn::LBFGS().minimize(loss, model);
  EXPECT_TRUE(result.converged);
  EXPECT_LT(max(abs(model.a - 1.0)).item<double>(), 1e-3);
  EXPECT_LT(max(abs(model.b - 2.0)).item<double>(), 1e-3);
  EXPECT_EQ(model.fixed.value().item<double>(), 1);
  EXPECT_EQ(model.a.value().span<const float>().data(), place);
}

TEST(LBFGS, SaysWhatIsWrongAndWhyItEnded) {
  const PointOf model{Variable(ones({2}))};
  const auto rising = [=] { return sum(model.x) / 0.0; };
  EXPECT_EQ(nn::LBFGS().minimize(rising, model).stopped, "the loss or its gradient is not finite");
  const auto round = [=] { return sum(square(model.x)); };
  const nn::LBFGSResult one =
      nn::LBFGS({.max_iterations = 1, .tolerance_gradient = 0, .tolerance_change = 0})
          .minimize(round, model);
  EXPECT_EQ(one.stopped, "all iterations were made");
  EXPECT_FALSE(one.converged);
  const auto said = [](const auto& f) {
    const std::string text = error_of(f), file = "fit_test.cc:";
    const size_t begin = text.find(file) + file.size();
    return text.substr(0, begin) + text.substr(text.find('\n', begin));
  };
  const std::string at = "\n  at fit_test.cc:\n  ";
  EXPECT_EQ(said([&] { nn::LBFGS({.memory = 0}); }),
            "LBFGS: .memory is 0, .max_iterations 100, .max_evaluations 25" + at +
                "give at least 1, 0 and 1");
  EXPECT_EQ(said([&] { nn::LBFGS({.learning_rate = 0}); }),
            "LBFGS: .learning_rate is 0" + at + "give a number above 0");
  EXPECT_EQ(said([&] { nn::LBFGS().minimize([=] { return model.x * 2.0; }, model); }),
            "LBFGS: the loss is f32[2], not one number" + at + "return its mean: td::mean(x)");
  const PointOf fixed{Variable(ones({2}), {.trainable = false})};
  EXPECT_EQ(said([&] { nn::LBFGS().minimize(round, fixed); }),
            "LBFGS: the model has no trainable Variable" + at +
                "Variables are found in a model's fields: a class with private ones writes "
                "TIDEMARK_FIELDS(a_, b_), a closure is given as nn::Lambda(f, layers)");
}

TEST(FitProgress, FitsItsBarInTheTerminal) {
  const nn::BarState state{.epoch = 2,
                           .epochs = 10,
                           .batches = 75,
                           .of_batches = 300,
                           .examples = 4800,
                           .seconds = 24,
                           .loss = 0.43128,
                           .now = Bytes(1 << 20),
                           .peak = Bytes(3 << 20)};
  EXPECT_EQ(nn::bar_text(state, 110),
            "epoch 2/10 [=======>                      ] 75/300, 200/s, loss 0.431, 1:12 left, "
            "1.0 MiB, peak 3.0 MiB");
  EXPECT_LE(nn::bar_text(state, 80).size(), 80U);
  EXPECT_EQ(nn::bar_text(state, 20).size(), 20U);
}

}  // namespace
}  // namespace tidemark
