// Under a budget, a training step may compute a part of the batch at a time, with its gradients
// added up in place: the bits are those of the whole batch.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

using Tensors = std::vector<Tensor>;
using Loss = std::function<Tensor(const Tensors& weights, const Tensor& x)>;

Tensor drawn(const td::Shape& shape, uint64_t key) {
  return td::random::normal(shape, {.stddev = 0.3, .key = td::random::Key(key)});
}

struct Case {
  std::string name;
  td::Shape x;
  std::vector<td::Shape> weights;
  Loss loss;
  std::string says = "computes ";  // A decision at some budget begins like this.
};

// The loss and its gradients.
auto gradients_of(const Case& of, td::FunctionOptions options = {}) {
  return td::function(
      [loss = of.loss](const Tensors& weights, const Tensor& x) {
        auto [value, gradients] =
            td::value_and_grad([&](const Tensors& w) { return loss(w, x); })(weights);
        gradients.push_back(value);
        return gradients;
      },
      std::move(options));
}

Tensor layers(const Tensors& weights, Tensor x) {
  for (size_t i = 0; i < weights.size(); i += 2)
    x = td::tanh(td::matmul(x, weights[i]) + weights[i + 1]);
  return x;
}

Tensor attention(const Tensor& x, const Tensor& w) {
  const Tensor h = td::matmul(x, w);
  const Tensor scores = td::softmax(td::matmul(h, h, {.transpose_b = true}));
  return x + td::matmul(scores, h);
}

Tensor images(const Tensors& weights, Tensor x) {
  const td::ConvOptions same{.padding = td::Padding::same};
  for (size_t i = 0; i + 1 < weights.size(); ++i) x = x + td::relu(td::conv2d(x, weights[i], same));
  return td::conv2d(x, weights.back(), {.strides = {2, 2}});
}

std::vector<td::Shape> of_layers(int count, int64_t wide) {
  std::vector<td::Shape> shapes;
  for (int i = 0; i < count; ++i) {
    shapes.push_back({wide, wide});
    shapes.push_back({wide});
  }
  return shapes;
}

std::vector<Case> cases() {
  const auto mean_square = [](const Tensor& x) { return td::mean(td::square(x)); };
  return {
      {"layers",
       {1024, 16},
       of_layers(16, 16),
       [=](const Tensors& w, const Tensor& x) { return mean_square(layers(w, x)); },
       "computes 4 parts of the batch"},
      {"tokens",
       {4, 256, 16},
       {{16, 16}, {16, 16}, {16, 16}},
       [=](const Tensors& w, const Tensor& x) {
         Tensor h = x;
         for (const Tensor& each : w) h = attention(h, each);
         return mean_square(h);
       },
       "computes 4 parts of the batch"},
      {"images",
       {4, 18, 17, 8},
       {{3, 3, 8, 8}, {3, 3, 8, 8}, {3, 3, 8, 8}, {2, 2, 8, 4}},
       [=](const Tensors& w, const Tensor& x) { return mean_square(images(w, x)); },
       "computes 4 parts of the batch"},
      // What is the same for all elements is computed in each part, however it was computed.
      {"uniform",
       {1024, 16},
       of_layers(16, 16),
       [=](const Tensors& w, const Tensor& x) {
         Tensor same = td::broadcast_to(td::stop_gradient(td::mean(w[0])), x.shape());
         for (int i = 0; i < 40; ++i) same = td::tanh(same + same * same);
         return mean_square(layers(w, x) + same);
       },
       "computes 4 parts of the batch"},
      // The mean over the batch needs all of it: what follows is not computed in parts.
      {"normalized",
       {512, 16},
       of_layers(4, 16),
       [=](const Tensors& w, const Tensor& x) {
         const Tensor h = layers({w.begin(), w.begin() + 4}, x);
         const Tensor centred = h - td::mean(h, 0, td::keepdims);
         return mean_square(layers({w.begin() + 4, w.end()}, centred));
       }},
      // Of these rows no part has whole blocks of 256.
      {"indivisible",
       {600, 16},
       of_layers(4, 16),
       [=](const Tensors& w, const Tensor& x) { return mean_square(layers(w, x)); }},
  };
}

class MicroBatches : public testing::TestWithParam<Case> {};

TEST_P(MicroBatches, KeepTheBitsWithinEveryBudget) {
  const td::MachineCode machine;
  const Case& given = GetParam();
  Tensors weights;
  for (const td::Shape& shape : given.weights) weights.push_back(drawn(shape, weights.size() + 1));
  const Tensor x = drawn(given.x, 99);
  const int before = td::num_threads();
  for (const int threads : {1, 2}) {
    td::set_num_threads(threads);
    bool is_said = false;
    const auto usual = gradients_of(given);
    const Tensors expected = usual(weights, x);
    const td::Plan plan = usual.plan(weights, x);
    constexpr int kBudgets = 4;
    for (int i = 1; i <= kBudgets; ++i) {
      const int64_t peak = plan.peak().count;
      const td::Bytes budget(peak - (peak - plan.floor().count) * i / kBudgets);
      const auto within = gradients_of(given, {.budget = budget});
      const auto [results, profile] = within.profile(weights, x);
      EXPECT_LE(profile.planned, budget);
      EXPECT_LE(profile.touched, budget);
      for (size_t k = 0; k < expected.size(); ++k)
        EXPECT_TRUE(td::identical(results[k], expected[k])) << "result " << k << " in " << budget;
      for (const td::PlanDecision& decision : within.plan(weights, x).decisions())
        is_said = is_said || decision.what.starts_with(given.says);
    }
    EXPECT_TRUE(is_said) << given.says << " on " << threads << " threads";
  }
  td::set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Models, MicroBatches, testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.name; });

// Where weights are small against activations, half the peak needs no work again.
TEST(MicroBatchPlan, NeedsNoMoreWorkWhereWeightsAreSmall) {
  Case of = cases()[0];
  of.x = {1024, 128};
  Tensors weights;
  for (const td::Shape& shape : of_layers(16, 128)) weights.push_back(td::spec(shape));
  const td::Plan plan = gradients_of(of).plan(weights, td::spec(of.x));
  const td::Plan half = plan.within(td::Bytes(plan.peak().count / 2));
  EXPECT_LE(half.flop(), plan.flop() * 1.01);
}

// The gradient of a mean begins with the same number for all elements: it is not stored for all of
// the batch.
TEST(MicroBatchPlan, WhatIsTheSameForAllElementsIsNotStored) {
  Case of = cases()[0];
  of.x = {1024, 128};
  Tensors weights;
  for (const td::Shape& shape : of_layers(16, 128)) weights.push_back(td::spec(shape));
  const td::Plan plan = gradients_of(of).plan(weights, td::spec(of.x));
  const int64_t results = 16 * (128 * 128 + 128) * 4, part = 256 * 128 * 4;
  // All results, the activations of one part, the last ones of all four, and four more.
  const td::Plan within = plan.within(td::Bytes(results + 16 * part + 4 * part + 4 * part));
  EXPECT_LE(within.flop(), plan.flop() * 1.01) << within.explain();
}

// A gradient by a kernel is added up where the result lies, though the sum has other axes in front:
// it does not exist twice.
TEST(MicroBatchPlan, GradientsByKernelsExistOnce) {
  Case of = cases()[2];
  of.x = {4, 16, 16, 32};
  of.weights.assign(8, {3, 3, 32, 32});
  of.loss = [](const Tensors& w, const Tensor& x) {
    Tensor h = x;
    for (const Tensor& each : w) h = td::relu(td::conv2d(h, each, {.padding = td::Padding::same}));
    return td::mean(td::square(h));
  };
  Tensors weights;
  for (const td::Shape& shape : of.weights) weights.push_back(td::spec(shape));
  const td::Plan plan = gradients_of(of).plan(weights, td::spec(of.x));
  const int64_t kernel = 3 * 3 * 32 * 32 * 4, results = 8 * kernel, image = 16 * 16 * 32 * 4;
  // All results, the activations of one image, the last ones of all four, and a few more.
  const td::Plan within = plan.within(td::Bytes(results + 2 * kernel + 16 * image));
  EXPECT_LT(within.more_work(), 0.1) << within.explain();
}

}  // namespace
