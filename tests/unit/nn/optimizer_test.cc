#include "tidemark/train/optimizers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using nn::Adam;
using nn::AdamW;
using nn::Optimizer;
using nn::SGD;
using Numbers = std::vector<double>;

// What a call that must fail says, without the number of the line.
template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "optimizer_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

Tensor f32s(const Numbers& numbers) {
  std::vector<float> floats(numbers.begin(), numbers.end());
  return constant(floats);
}

// The gradients of step `step`, as good as random.
Numbers gradient_of(int step, size_t count) {
  Numbers gradient;
  std::mt19937 random(static_cast<unsigned>(step) + 1);
  for (size_t i = 0; i < count; ++i)
    gradient.push_back(static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
  return gradient;
}

// One element of a parameter, and two numbers that a rule keeps of it.
struct Element {
  double p, m, v;
};

// What a formula in doubles makes of a parameter, one element after another.
struct Formula {
  double rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  double momentum = 0, sgd_decay = 0;
  bool nesterov = false, is_adam = true;
  // Of other kinds: the update of an element by the gradient, its number from 1 and the rate.
  std::function<void(Element&, double, int, double)> other = {};
  double first_m = 0;

  void step(Numbers& p, Numbers& m, Numbers& v, const Numbers& g, int count, double at) const {
    for (size_t i = 0; i < p.size(); ++i) {
      if (other) {
        Element element{p[i], m[i], v[i]};
        other(element, g[i], count, at);
        p[i] = element.p, m[i] = element.m, v[i] = element.v;
      } else if (is_adam) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        const double m_hat = m[i] / (1 - std::pow(beta1, count));
        const double v_hat = v[i] / (1 - std::pow(beta2, count));
        p[i] -= at * decay * p[i];
        p[i] -= at * m_hat / (std::sqrt(v_hat) + epsilon);
      } else {
        const double change = g[i] + sgd_decay * p[i];
        m[i] = momentum * m[i] + change;
        p[i] -= at * (nesterov ? change + momentum * m[i] : m[i]);
      }
    }
  }
  Numbers after(int steps, Numbers p, const std::function<double(int)>& rate_at) const {
    Numbers m(p.size(), first_m), v(p.size());
    for (int i = 0; i < steps; ++i) step(p, m, v, gradient_of(i, p.size()), i + 1, rate_at(i));
    return p;
  }
  Numbers after(int steps, Numbers p) const {
    return after(steps, std::move(p), [this](int) { return rate; });
  }
};

const Numbers kStart = {1, -2, 0.5, 3, -0.25, 0, 7, -1};
constexpr int kSteps = 8;

// The same steps by an optimizer, in eager code or in a function.
Numbers trained(const Optimizer& optimizer, bool compiled, int steps = kSteps) {
  const Variable p(f32s(kStart), {.name = "p"});
  const auto update = [&](const Tensor& g) { optimizer.apply_gradients({g}, {p}); };
  const auto step = function([=](const Tensor& g) { optimizer.apply_gradients({g}, {p}); });
  for (int i = 0; i < steps; ++i) {
    const Tensor g = f32s(gradient_of(i, kStart.size()));
    if (compiled)
      step(g);
    else
      update(g);
  }
  return p.value().to_vector<double>();
}

void expect_near(const Numbers& actual, const Numbers& expected, double relative = 2e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], relative * (1 + std::abs(expected[i]))) << "element " << i;
}

struct Case {
  std::string name;
  std::function<Optimizer()> make;
  Formula formula;
};

double squared(double x) { return x * x; }

// The rules of elements that are neither Adam's nor those of gradient descent.
void rmsprop(Element& e, double g, int, double rate) {
  e.m = 0.9 * e.m + 0.1 * g * g;
  e.v = 0.5 * e.v + g / (std::sqrt(e.m) + 1e-3);
  e.p -= rate * e.v;
}
void centered_rmsprop(Element& e, double g, int, double rate) {
  e.m = 0.75 * e.m + 0.25 * g * g;
  e.v = 0.75 * e.v + 0.25 * g;
  e.p -= rate * g / (std::sqrt(e.m - squared(e.v)) + 1e-3);
}
void adagrad(Element& e, double g, int, double rate) {
  const double decayed = g + 0.25 * e.p;
  e.m += squared(decayed);
  e.p -= rate * decayed / (std::sqrt(e.m) + 1e-10);
}
void adadelta(Element& e, double g, int, double rate) {
  e.m = 0.9 * e.m + 0.1 * g * g;
  const double change = std::sqrt(e.v + 1e-3) / std::sqrt(e.m + 1e-3) * g;
  e.v = 0.9 * e.v + 0.1 * squared(change);
  e.p -= rate * change;
}
void adamax(Element& e, double g, int count, double rate) {
  e.m = 0.9 * e.m + 0.1 * g;
  e.v = std::max(0.75 * e.v, std::abs(g) + 1e-8);
  e.p -= rate / (1 - std::pow(0.9, count)) * e.m / e.v;
}
void nadam(Element& e, double g, int count, double rate) {
  const auto momentum = [](int step) { return 0.9 * (1 - 0.5 * std::pow(0.96, step * 0.25)); };
  double product = 1;
  for (int i = 1; i <= count; ++i) product *= momentum(i);
  e.m = 0.9 * e.m + 0.1 * g;
  e.v = 0.999 * e.v + 0.001 * g * g;
  const double ahead = momentum(count + 1);
  const double direction =
      (1 - momentum(count)) * g / (1 - product) + ahead * e.m / (1 - product * ahead);
  e.p -= rate * direction / (std::sqrt(e.v / (1 - std::pow(0.999, count))) + 1e-8);
}
void lion(Element& e, double g, int, double rate) {
  const double ahead = 0.875 * e.m + 0.125 * g;
  e.p -= rate * ((ahead > 0 ? 1 : ahead < 0 ? -1 : 0) + 0.25 * e.p);
  e.m = 0.75 * e.m + 0.25 * g;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"rmsprop with momentum",
       [] {
         return nn::RMSprop(
             {.learning_rate = 0.05, .alpha = 0.9, .epsilon = 1e-3, .momentum = 0.5});
       },
       {.rate = 0.05, .other = rmsprop}},
      {"centered rmsprop",
       [] {
         return nn::RMSprop(
             {.learning_rate = 0.05, .alpha = 0.75, .epsilon = 1e-3, .centered = true});
       },
       {.rate = 0.05, .other = centered_rmsprop}},
      {"adagrad",
       [] { return nn::Adagrad({.learning_rate = 0.1, .initial = 0.5, .weight_decay = 0.25}); },
       {.rate = 0.1, .other = adagrad, .first_m = 0.5}},
      {"adadelta",
       [] { return nn::Adadelta({.learning_rate = 2, .epsilon = 1e-3}); },
       {.rate = 2, .other = adadelta}},
      {"adamax",
       [] { return nn::Adamax({.learning_rate = 0.05, .beta2 = 0.75}); },
       {.rate = 0.05, .other = adamax}},
      {"nadam",
       [] { return nn::NAdam({.learning_rate = 0.05, .momentum_decay = 0.25}); },
       {.rate = 0.05, .other = nadam}},
      {"lion",
       [] {
         return nn::Lion(
             {.learning_rate = 0.05, .beta1 = 0.875, .beta2 = 0.75, .weight_decay = 0.25});
       },
       {.rate = 0.05, .other = lion}},
      {"sgd", [] { return SGD({.learning_rate = 0.1}); }, {.rate = 0.1, .is_adam = false}},
      {"sgd with decay",
       [] { return SGD({.learning_rate = 0.1, .weight_decay = 0.2}); },
       {.rate = 0.1, .sgd_decay = 0.2, .is_adam = false}},
      {"sgd with momentum",
       [] { return SGD({.learning_rate = 0.1, .momentum = 0.9}); },
       {.rate = 0.1, .momentum = 0.9, .is_adam = false}},
      {"nesterov",
       [] { return SGD({.learning_rate = 0.1, .momentum = 0.8, .nesterov = true}); },
       {.rate = 0.1, .momentum = 0.8, .nesterov = true, .is_adam = false}},
      {"adam", [] { return Adam({.learning_rate = 0.05}); }, {.rate = 0.05}},
      {"adam of other numbers",
       [] { return Adam({.learning_rate = 0.05, .beta1 = 0.7, .beta2 = 0.95, .epsilon = 0.1}); },
       {.rate = 0.05, .beta1 = 0.7, .beta2 = 0.95, .epsilon = 0.1}},
      {"adamw",
       [] { return AdamW({.learning_rate = 0.05, .weight_decay = 0.3}); },
       {.rate = 0.05, .decay = 0.3}},
  };
  return all;
}

TEST(Optimizer, FollowsTheFormulaInEagerCodeAndInFunctions) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const Numbers expected = each.formula.after(kSteps, kStart);
    const Numbers eager = trained(each.make(), false), compiled = trained(each.make(), true);
    expect_near(eager, expected);
    EXPECT_EQ(eager, compiled);  // The same bits.
  }
}

// Its lengths are those of the whole parameter, so that rows cannot be updated alone.
Numbers lamb_after(int steps, Numbers p, double rate, double decay) {
  Numbers m(p.size()), v(p.size()), change(p.size());
  for (int count = 1; count <= steps; ++count) {
    const Numbers g = gradient_of(count - 1, p.size());
    double length = 0, step_length = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      change[i] = m[i] / (1 - std::pow(0.9, count)) /
                      (std::sqrt(v[i] / (1 - std::pow(0.999, count))) + 1e-6) +
                  decay * p[i];
      length += squared(p[i]), step_length += squared(change[i]);
    }
    for (size_t i = 0; i < p.size(); ++i)
      p[i] -= rate * std::sqrt(length / step_length) * change[i];
  }
  return p;
}

TEST(Optimizer, LambFitsTheStepToTheLengthOfTheParameter) {
  const auto make = [] { return nn::LAMB({.learning_rate = 0.05, .weight_decay = 0.25}); };
  const Numbers eager = trained(make(), false);
  expect_near(eager, lamb_after(kSteps, kStart, 0.05, 0.25), 1e-5);
  EXPECT_EQ(eager, trained(make(), true));
  // A parameter of zeros takes the step as it is.
  const Variable zero(zeros({3}));
  make().apply_gradients({ones({3})}, {zero});
  expect_near(zero.value().to_vector<double>(), {-0.05, -0.05, -0.05}, 1e-6);
}

TEST(Optimizer, LambMakesRowSparseGradientsDense) {
  const auto run = [](bool sparse) {
    const Variable table(reshape(f32s(kStart), {4, 2}));
    const nn::LAMB optimizer;
    GradientTape tape;
    const Tensor picked = sparse ? gather(table, constant({1, 3, 1}))
                                 : matmul(one_hot(constant({1, 3, 1}), 4), table);
    optimizer.minimize(tape, sum(square(picked)), std::vector{table});
    return table.value().to_vector<double>();
  };
  expect_near(run(true), run(false));
}

TEST(Optimizer, LeavesOutOfTheDecayWhoIsNotToDecay) {
  const auto thick = [](const Variable& v) { return v.shape().rank() > 1; };
  const AdamW optimizer({.learning_rate = 0.5, .weight_decay = 0.1, .decays = thick});
  const Variable bias(ones({4})), kernel(ones({4, 1}));
  optimizer.apply_gradients({zeros({4}), zeros({4, 1})}, {bias, kernel});
  EXPECT_TRUE(identical(bias.value(), ones({4})));
  EXPECT_NEAR(sum(kernel).item<double>() / 4, 1 - 0.5 * 0.1, 1e-6);
}

// ---- rates --------------------------------------------------------------------------------------

struct RateCase {
  std::string name;
  nn::Schedule schedule;
  std::function<double(int)> expected;
};

TEST(Schedules, HaveTheirClosedForms) {
  namespace schedules = nn::schedules;
  const double pi = 3.14159265358979323846;
  const auto cosine = [pi](double s) { return 0.1 + 0.4 * (1 + std::cos(pi * s / 4)); };
  const std::vector<RateCase> all = {
      {"constant", schedules::constant(0.3), [](int) { return 0.3; }},
      {"piecewise", schedules::piecewise({{0, 0.5}, {2, 0.25}, {5, 0.125}}),
       [](int i) { return i < 2   ? 0.5
                          : i < 5 ? 0.25
                                  : 0.125; }},
      {"exponential", schedules::exponential(0.8, {.factor = 0.5, .steps = 3}),
       [](int i) { return 0.8 * std::pow(0.5, i / 3.0); }},
      {"staircase", schedules::exponential(0.8, {.factor = 0.5, .steps = 3, .staircase = true}),
       [](int i) { return 0.8 * std::pow(0.5, i / 3); }},
      {"cosine", schedules::cosine(0.9, {.steps = 4, .least = 0.1}),
       [&](int i) { return i < 4 ? cosine(i) : 0.1; }},
      {"warm-up", schedules::warm_up(3, schedules::cosine(0.9, {.steps = 4, .least = 0.1})),
       [&](int i) { return i < 3   ? 0.9 * (i + 1) / 3
                           : i < 7 ? cosine(i - 3)
                                   : 0.1; }},
      {"a function of one's own", [](const Tensor& step) { return 1.0 / (step + 1.0); },
       [](int i) { return 1.0 / (i + 1); }},
  };
  for (const RateCase& each : all) {
    SCOPED_TRACE(each.name);
    const Variable p(f32s({0}));
    const SGD optimizer({.learning_rate = each.schedule});
    const auto step = function([=] { optimizer.apply_gradients({ones({1})}, {p}); });
    double sum = 0;
    for (int i = 0; i < 9; ++i) {
      step();
      sum += each.expected(i);
      EXPECT_NEAR(optimizer.learning_rate.value().item<double>(), each.expected(i), 1e-7);
      EXPECT_NEAR(p.value()[0].item<double>(), -sum, 1e-5);
    }
    EXPECT_EQ(step.cache_info().traces, 1);
  }
}

TEST(Schedules, SayWhatIsWrongWithTheirNumbers) {
  namespace schedules = nn::schedules;
  EXPECT_EQ(said([] { schedules::cosine(0.1, {.steps = 0}); }),
            "schedules::cosine: .steps is 0\n"
            "  at optimizer_test.cc:\n"
            "  give the number of updates, at least 1");
  EXPECT_EQ(said([] { schedules::piecewise({{1, 0.1}}); }),
            "schedules::piecewise: there is no rate for step 0\n"
            "  at optimizer_test.cc:\n"
            "  make the first pair {0, rate}");
  EXPECT_EQ(said([] { schedules::piecewise({{0, 0.1}, {5, 0.2}, {3, 0.1}}); }),
            "schedules::piecewise: step 3 comes after step 5\n"
            "  at optimizer_test.cc:\n"
            "  give the steps in increasing order");
}

TEST(Optimizer, HasARateThatMayBeAssignedWithoutATrace) {
  const Variable p(f32s({0}));
  const SGD optimizer({.learning_rate = 1});
  const auto step = function([=] { optimizer.apply_gradients({ones({1})}, {p}); });
  step();
  optimizer.learning_rate.assign(0.25f);
  step();
  EXPECT_EQ(p.value()[0].item<double>(), -1.25);
  EXPECT_EQ(step.cache_info().traces, 1);
  EXPECT_EQ(optimizer.iterations.value().item<int>(), 2);
}

// ---- gradients ----------------------------------------------------------------------------------

TEST(Optimizer, ClipsEachGradientOrAllTogether) {
  const auto run = [](const Optimizer& optimizer, bool compiled) {
    const Variable a(zeros({2})), b(zeros({1}));
    const std::vector<Gradient> gradients = {constant({3.0f, 4.0f}), constant({12.0f})};
    const auto step = function([=] { optimizer.apply_gradients(gradients, {a, b}); });
    if (compiled)
      step();
    else
      optimizer.apply_gradients(gradients, {a, b});
    Numbers all = a.value().to_vector<double>();
    all.push_back(b.value()[0].item<double>());
    return all;
  };
  for (const bool compiled : {false, true}) {
    // Lengths 5 and 12; 13 together.
    expect_near(run(SGD({.learning_rate = 1, .clip_norm = 6}), compiled), {-3, -4, -6});
    expect_near(run(SGD({.learning_rate = 1, .clip_global_norm = 6.5}), compiled), {-1.5, -2, -6});
    expect_near(run(SGD({.learning_rate = 1, .clip_global_norm = 14}), compiled), {-3, -4, -12});
    // All together first: 2.5 and 6 are left, of which only the second is too long.
    expect_near(run(SGD({.learning_rate = 1, .clip_norm = 3, .clip_global_norm = 6.5}), compiled),
                {-1.5, -2, -3});
  }
}

struct Line {
  Variable w{constant({1.0f, -2.0f}), {.name = "w"}};
  Tensor operator()(const Tensor& x) const { return matmul(x, w); }
};

// Numbers of few bits, so that sums are exact in any order.
TEST(Optimizer, MakesOneUpdateOfSeveralCallsAsOneLargeBatchDoes) {
  const Tensor x =
      constant({{1, 2}, {3, -1}, {0, 2}, {-4, 1}, {2, 2}, {1, -3}, {4, 0}, {1, 1}}, f32);
  const Tensor y = constant({1, 0, 2, -1, 3, 1, 0, 2}, f32);
  const auto run = [&](int parts, const auto& make) {
    const Line model;
    const Optimizer optimizer = make(parts);
    const auto step = function([=](const Tensor& x, const Tensor& y) {
      GradientTape tape;
      const Tensor loss = mean(square(model(x) - y));
      optimizer.minimize(tape, loss, model);
      return loss;
    });
    const Plan plan = step.plan(x, y);
    EXPECT_EQ(plan.of(ByteClass::shadow).count, 0) << plan.explain();
    for (int epoch = 0; epoch < 3; ++epoch) {
      const std::vector<Tensor> xs = split(x, parts), ys = split(y, parts);
      for (int i = 0; i < parts; ++i) step(xs[i], ys[i]);
    }
    EXPECT_EQ(optimizer.iterations.value().item<int>(), 3);
    return model.w.value().to_vector<double>();
  };
  const auto sgd = [](int parts) { return SGD({.learning_rate = 0.125, .accumulate = parts}); };
  const auto adam = [](int parts) {
    return Adam({.learning_rate = 0.125, .clip_global_norm = 0.5, .accumulate = parts});
  };
  EXPECT_EQ(run(1, sgd), run(4, sgd));
  expect_near(run(1, adam), run(4, adam), 1e-6);
}

// ---- minimize -----------------------------------------------------------------------------------

TEST(Minimize, TrainsTheModelAndWarnsOfWhatIsNotTheModels) {
  const Line model;
  const Variable stranger(1.0f, {.name = "temperature"});
  const SGD optimizer({.learning_rate = 0.125});
  std::vector<std::string> warnings;
  on_warning([&](std::string_view text, Source) { warnings.emplace_back(text); });
  for (int i = 0; i < 2; ++i) {
    GradientTape tape;
    const Tensor loss = sum(model(constant({{1.0f, 1.0f}}))) * stranger;
    optimizer.minimize(tape, loss, model);
  }
  on_warning(nullptr);
  EXPECT_EQ(model.w.value().to_vector<double>(), (Numbers{0.75, -2.25}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            cat("minimize: Variable \"temperature\", declared at ", stranger.source().text(),
                ", was read but does not belong to the model: it is not trained\n"
                "  make it a field of the model, or name it: "
                "td::nn::Lambda(f, variable)"));
}

TEST(Minimize, LeavesVariablesThatTheLossDoesNotReadAsTheyAre) {
  struct Two {
    Line used;
    Variable unused{constant({5.0f}), {.name = "unused"}};
  } const model;
  const Adam optimizer;
  GradientTape tape;
  optimizer.minimize(tape, sum(model.used(constant({{1.0f, 1.0f}}))), model);
  EXPECT_EQ(model.unused.value()[0].item<float>(), 5.0F);
  std::vector<std::string> names;
  for (const auto& [name, variable] : nn::named_variables(optimizer)) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"learning_rate", "iterations", "m/used/w", "v/used/w"}));
  EXPECT_EQ(nn::variables(optimizer)[2].name(), "adam/m/used/w");
}

TEST(Minimize, SaysWhatIsWrong) {
  const SGD optimizer;
  const Line model;
  const std::string at = "\n  at optimizer_test.cc:\n  ";
  const auto without_variables = [&] {
    GradientTape tape;
    optimizer.minimize(tape, Tensor(1.0f), std::pair<int, int>());
  };
  EXPECT_EQ(said(without_variables),
            "minimize: the model has no trainable Variable" + at +
                "Variables are found in a model's fields: a class with private ones writes "
                "TIDEMARK_FIELDS(a_, b_), a closure is given as nn::Lambda(f, layers)");
  const auto tape_too_late = [&] {
    const Tensor y = model(constant({{1.0f, 1.0f}}));
    GradientTape tape;
    optimizer.minimize(tape, sum(y), model);
  };
  EXPECT_EQ(
      said(tape_too_late),
      "minimize: the loss depends on none of the model's 1 trainable Variables" + at +
          "create the tape before calling the model, and compute the loss from the model's output");
  EXPECT_EQ(
      said([&] { optimizer.apply_gradients({}, {model.w}); }),
      "apply_gradients: 0 gradients for 1 Variables" + at + "give one for each, in the same order");
  EXPECT_EQ(said([&] { optimizer.apply_gradients({zeros({3})}, {model.w}); }),
            "apply_gradients: Variable \"w\" is [2], its gradient [3]" + at +
                "give the gradients in the order of the Variables");
  const Variable whole(constant(1), {.name = "n"});
  EXPECT_EQ(said([&] { optimizer.apply_gradients({Tensor(whole)}, {whole}); }),
            "apply_gradients: Variable \"n\" is i32, only floats can be trained" + at +
                "declare it {.trainable = false}");
  EXPECT_EQ(said([&] { SGD({.accumulate = 0}); }),
            "optimizer: .accumulate is 0" + at +
                "give the number of calls that make one update, at least 1");
  EXPECT_EQ(said([&] { SGD({.clip_norm = -1}); }),
            "optimizer: gradients cannot be clipped to a norm of -1" + at + "give a norm above 0");
  EXPECT_EQ(said([&] { Adam({.beta1 = 1}); }),
            "Adam: .beta1 is 1" + at + "give a number from 0 to below 1");
  EXPECT_EQ(said([&] { nn::Lion({.beta2 = -0.5}); }),
            "Lion: .beta2 is -0.5" + at + "give a number between 0 and 1");
  EXPECT_EQ(said([&] { nn::Adagrad({.initial = -1}); }),
            "Adagrad: .initial is -1" + at + "give 0 or more");
  EXPECT_EQ(said([&] { SGD({.nesterov = true}); }),
            "SGD: .nesterov without momentum" + at + "give .momentum, 0.9 for example");
}

// ---- state --------------------------------------------------------------------------------------

TEST(OptimizerState, IsMadeInWhicheverTraceFirstWantsItAndFoundByOthers) {
  const Line model;
  const Adam optimizer;
  const auto step = function([=](const Tensor& x, Static<bool> train) {
    GradientTape tape;
    const Tensor loss = sum(model(x));
    if (*train) optimizer.minimize(tape, loss, model);
    return loss;
  });
  step(ones({3, 2}), false);  // A first trace that makes no state.
  EXPECT_EQ(nn::variables(optimizer).size(), 2U);
  step(ones({3, 2}), true);
  step(ones({4, 2}), true);
  step(ones({5, 2}), true);
  EXPECT_EQ(nn::variables(optimizer).size(), 4U);
  EXPECT_EQ(optimizer.iterations.value().item<int>(), 3);
  // Every step had the same direction: m is 1 - 0.9^3 of the gradient it would settle at.
  const Numbers m = nn::variables(optimizer)[2].value().to_vector<double>();
  EXPECT_NEAR(m[0], ((0.9 * 3 + 4) * 0.9 + 5) * 0.1, 1e-5);
}

// State that parameters share is saved with theirs: NAdam's product of momenta.
TEST(OptimizerState, ContinuesFromACheckpointAsIfItHadNeverStopped) {
  const std::string file = testing::TempDir() + "optimizer_state.safetensors";
  for (const Case& each : cases()) {
    const Variable p(f32s(kStart), {.name = "p"});
    const Optimizer first = each.make();
    const auto gradient = [](int i) { return f32s(gradient_of(i, kStart.size())); };
    for (int i = 0; i < 3; ++i) first.apply_gradients({gradient(i)}, {p});
    io::Checkpoint({{"p", p}, {"optimizer", first}}).save(file);
    const Variable q(f32s(kStart), {.name = "p"});
    const Optimizer second = each.make();
    second.build(std::map<std::string, Variable>{{"p", q}});
    io::Checkpoint({{"p", q}, {"optimizer", second}}).load(file);
    for (int i = 3; i < 6; ++i) {
      first.apply_gradients({gradient(i)}, {p});
      second.apply_gradients({gradient(i)}, {q});
    }
    EXPECT_TRUE(identical(p.value(), q.value())) << each.name;
  }
}

TEST(OptimizerState, BelongsToAllCopiesOfTheHandle) {
  const Variable p(zeros({2}), {.name = "p"});
  const Adam optimizer;
  const Optimizer copy = optimizer;
  optimizer.apply_gradients({ones({2})}, {p});
  copy.apply_gradients({ones({2})}, {p});
  EXPECT_EQ(optimizer.iterations.value().item<int>(), 2);
  EXPECT_EQ(nn::variables(copy).size(), 4U);
}

TEST(OptimizerState, TakesNoBytesWhenAModelIsOnlyPlanned) {
  const Line model;
  const Adam optimizer;
  optimizer.build(model);
  const Bytes before = memory::current();
  const auto step = function([=](const Tensor& x) {
    GradientTape tape;
    optimizer.minimize(tape, sum(model(x)), model);
  });
  step.plan(spec({8, 2}));
  EXPECT_EQ(memory::current(), before);
}

TEST(OptimizerState, IsOfFloatsWhereParametersAreHalves) {
  const Variable p(cast(ones({2}), bf16), {.name = "p"});
  const Adam optimizer({.learning_rate = 0.5});
  optimizer.apply_gradients({cast(ones({2}), bf16)}, {p});
  EXPECT_EQ(nn::variables(optimizer)[2].dtype(), f32);
  EXPECT_EQ(p.dtype(), bf16);
  EXPECT_EQ(p.value()[0].item<double>(), 0.5);
}

// ---- bytes --------------------------------------------------------------------------------------

struct Deep {
  explicit Deep(int layers, int64_t wide) {
    for (int i = 0; i < layers; ++i)
      kernels.emplace_back(random::normal({wide, wide}, {.stddev = 0.1, .key = random::Key(i)}),
                           VariableOptions{.name = cat("kernel", i)});
  }
  Tensor operator()(const Tensor& x) const {
    Tensor h = x;
    for (const Variable& kernel : kernels) h = relu(matmul(h, kernel));
    return h;
  }
  std::vector<Variable> kernels;
  TIDEMARK_FIELDS(kernels)
};

auto step_of(const Deep& model, const Optimizer& optimizer) {
  return function([=](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = mean(square(model(x)));
    optimizer.minimize(tape, loss, model);
    return loss;
  });
}

TEST(OptimizerBytes, AStepHoldsOneGradientAndTheActivations) {
  const MachineCode machine;
  constexpr int64_t wide = 128, rows = 16;
  constexpr int64_t kernel = wide * wide * 4, activation = rows * wide * 4;
  for (const auto& make : {std::function<Optimizer()>([] { return SGD({.momentum = 0.9}); }),
                           std::function<Optimizer()>([] { return Adam(); }),
                           std::function<Optimizer()>([] { return AdamW({.clip_norm = 1}); })}) {
    std::vector<int64_t> temporaries, saved;
    for (const int layers : {4, 8, 16}) {
      const Deep model(layers, wide);
      const Optimizer optimizer = make();
      const auto step = step_of(model, optimizer);
      const Plan plan = step.plan(spec({rows, wide}));
      EXPECT_EQ(plan.of(ByteClass::shadow).count, 0) << plan.explain();
      const int64_t slots = static_cast<int64_t>(nn::variables(optimizer).size()) - 2;
      EXPECT_NEAR(static_cast<double>(plan.of(ByteClass::variables).count),
                  static_cast<double>(kernel * (layers + slots)), 256);
      temporaries.push_back(plan.of(ByteClass::temporaries).count);
      saved.push_back(plan.of(ByteClass::saved).count);
      // Two gradients of activations are alive where one is made of the other.
      EXPECT_LE(temporaries.back() + saved.back(), kernel + (layers + 1) * activation + 512)
          << plan.explain();
      const auto [loss, profile] = step.profile(ones({rows, wide}));
      EXPECT_EQ(profile.touched, profile.planned);
      EXPECT_EQ(profile.planned, plan.peak());
    }
    EXPECT_EQ(saved[1] - saved[0], 4 * activation);
    EXPECT_EQ(saved[2] - saved[1], 8 * activation);
    EXPECT_EQ(temporaries[1], temporaries[0]);
    EXPECT_EQ(temporaries[2], temporaries[0]);
  }
}

// Labels are looked at by an op that may fail, which runs before anything is written.
TEST(OptimizerBytes, ALossThatMayFailTakesNoShadow) {
  const Deep model(3, 32);
  const Adam optimizer;
  const auto step = function([=](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = nn::losses::sparse_categorical_crossentropy(y, model(x));
    optimizer.minimize(tape, loss, model);
    return loss;
  });
  const Plan plan = step.plan(spec({200, 32}), spec({200}, i32));
  EXPECT_EQ(plan.of(ByteClass::shadow).count, 0) << plan.explain();
  std::vector<Tensor> before;
  for (const Variable& each : nn::variables(model)) before.push_back(each.value() + 0);
  EXPECT_THROW(step(ones({200, 32}), full({200}, 77)), UserError);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(identical(model.kernels[i].value(), before[i]));
  EXPECT_EQ(optimizer.iterations.value().item<int>(), 0);
}

// What a write depends on may fail after it: that one alone has bytes of its own until then.
TEST(OptimizerBytes, OnlyWritesThatSomethingFallibleReadsTakeShadow) {
  const Variable seen(zeros({1000}), {.name = "seen", .trainable = false});
  const Deep model(2, 32);
  const SGD optimizer;
  const auto step = function([=](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    seen.assign_add(1.0);
    const Tensor h = model(x) + seen.value()[0];
    const Tensor loss = nn::losses::sparse_categorical_crossentropy(y, h);
    optimizer.minimize(tape, loss, model);
    return loss;
  });
  const Plan plan = step.plan(spec({200, 32}), spec({200}, i32));
  EXPECT_EQ(plan.of(ByteClass::shadow).count, 4032) << plan.explain();
}

TEST(OptimizerBytes, AnEagerUpdateTakesNoneBesideItsState) {
  constexpr int64_t size = 1 << 18;
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const MachineCode machine;
    const Optimizer optimizer = each.make();
    const Variable p(ones({size}), {.name = "p"});
    const Gradient gradient = Tensor(full({size}, 0.5f));
    optimizer.apply_gradients({gradient}, {p});
    const Bytes before = memory::current();
    memory::reset_peak();
    for (int i = 0; i < 3; ++i) optimizer.apply_gradients({gradient}, {p});
    EXPECT_EQ(memory::current(), before);
    EXPECT_LE((memory::peak() - before).count, 4096);
  }
}

TEST(OptimizerBytes, AnUpdateIsOneKernel) {
  for (const Case& each : cases()) {
    std::vector<size_t> steps;
    for (const size_t count : {2U, 3U}) {
      const Optimizer optimizer = each.make();
      std::vector<Variable> parameters;
      std::vector<Tensor> gradients;
      for (size_t i = 0; i < count; ++i) {
        const auto size = 1000 + static_cast<int64_t>(i);
        parameters.emplace_back(ones({size}));
        gradients.push_back(ones({size}));
      }
      const auto step = function([=](const std::vector<Tensor>& given) {
        optimizer.apply_gradients({given.begin(), given.end()}, parameters);
      });
      steps.push_back(step.plan(gradients).timeline().size());
    }
    // That of the numbers, and one for each parameter.
    EXPECT_EQ(steps, (std::vector<size_t>{3, 4})) << each.name;
  }
}

// The lengths are known only after a pass over the parameter; the step is computed again, not kept.
TEST(OptimizerBytes, LambKeepsNoStepOfTheParametersSize) {
  const MachineCode machine;
  const Variable p(ones({1 << 18}), {.name = "p"});
  const nn::LAMB optimizer({.weight_decay = 0.1});
  const auto step =
      function([=](const Tensor& gradient) { optimizer.apply_gradients({gradient}, {p}); });
  const auto profile = step.profile(ones({1 << 18}));
  EXPECT_LE(profile.planned.count, 4096);
  EXPECT_EQ(profile.touched, profile.planned);
}

// ---- rows ---------------------------------------------------------------------------------------

struct Table {
  Variable table;
  Tensor operator()(const Tensor& ids) const { return gather(table, ids); }
};

// Rows that are looked up, two of them twice.
const std::vector<std::vector<int32_t>> kLookups = {{3, 1, 3, 0}, {1, 1, 4, 1}, {3, 2, 0, 2}};

// What the formula makes of each row when it is looked up, and then only.
Numbers lazily(const Formula& formula, Numbers table, int64_t wide) {
  Numbers m(table.size(), formula.first_m), v(table.size());
  int count = 0;
  for (const std::vector<int32_t>& ids : kLookups) {
    ++count;
    Numbers gradient(table.size());
    const auto row = [&](Numbers& all, int32_t id) { return all.begin() + id * wide; };
    // The loss is the sum of squares of what was looked up, less 1.
    for (const int32_t id : ids)
      for (int64_t k = 0; k < wide; ++k) row(gradient, id)[k] += 2 * (row(table, id)[k] - 1);
    for (const int32_t id : std::vector<int32_t>{0, 1, 2, 3, 4, 5}) {
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) continue;
      const auto part = [&](Numbers& all) { return Numbers(row(all, id), row(all, id) + wide); };
      Numbers p = part(table), pm = part(m), pv = part(v);
      formula.step(p, pm, pv, part(gradient), count, formula.rate);
      std::copy(p.begin(), p.end(), row(table, id));
      std::copy(pm.begin(), pm.end(), row(m, id));
      std::copy(pv.begin(), pv.end(), row(v, id));
    }
  }
  return table;
}

TEST(RowGradients, ChangeTheRowsThatWereLookedUpAndTheirStateAlone) {
  constexpr int64_t wide = 3;
  Numbers start;
  for (int i = 0; i < 6 * wide; ++i) start.push_back(0.25 * (i % 7) - 0.5);
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const Numbers expected = lazily(each.formula, start, wide);
    for (const bool compiled : {false, true}) {
      const Table model{Variable(reshape(f32s(start), {6, wide}), {.name = "table"})};
      const Optimizer optimizer = each.make();
      const auto update = [=](const Tensor& ids) {
        GradientTape tape;
        const Tensor loss = sum(square(model(ids) - 1.0));
        optimizer.minimize(tape, loss, model);
        return loss;
      };
      const auto step = function(update);
      for (const std::vector<int32_t>& ids : kLookups) {
        // In two dimensions, as words of sentences are.
        const Tensor given = reshape(constant(ids), {2, 2});
        compiled ? step(given) : update(given);
      }
      expect_near(model.table.value().to_vector<double>(), expected);
    }
  }
}

TEST(RowGradients, AreClippedByTheLengthOfTheirSums) {
  const Tensor ids = constant({1, 2, 1}), factors = constant({{1.0f}, {4.0f}, {2.0f}});
  for (const bool together : {false, true}) {
    const Table model{Variable(zeros({4, 1}), {.name = "table"})};
    const Optimizer optimizer = together ? SGD({.learning_rate = 1, .clip_global_norm = 2.5})
                                         : SGD({.learning_rate = 1, .clip_norm = 2.5});
    GradientTape tape;
    optimizer.minimize(tape, sum(model(ids) * factors), model);
    // Their sums are 3 and 4, and 5 long.
    expect_near(model.table.value().to_vector<double>(), {0, -1.5, -2, 0});
  }
}

TEST(RowGradients, MayBeAnyNumberOfRowsInOneTrace) {
  const Table model{Variable(zeros({9, 2}), {.name = "table"})};
  const SGD optimizer({.learning_rate = 1});
  const auto step = function([=](const Tensor& ids) {
    GradientTape tape;
    optimizer.minimize(tape, sum(model(ids)), model);
  });
  for (int32_t count = 2; count < 9; ++count)
    step(constant(std::vector<int32_t>(static_cast<size_t>(count), count)));
  EXPECT_EQ(step.cache_info().traces, 2);
  for (int64_t row = 2; row < 9; ++row)
    EXPECT_EQ(sum(model.table[row]).item<double>(), -2.0 * static_cast<double>(row));
}

TEST(RowGradients, TakeNoBytesOfTheTablesSize) {
  const MachineCode machine;
  constexpr int64_t rows = 100'000, wide = 64, looked_up = 256;
  const Table model{Variable({rows, wide}, [](const Shape& shape, DType) { return zeros(shape); },
                             {.name = "table"})};
  const Adam optimizer;
  const auto step = function([=](const Tensor& ids) {
    GradientTape tape;
    const Tensor loss = sum(square(model(ids) - 1.0));
    optimizer.minimize(tape, loss, model);
    return loss;
  });
  const Plan plan = step.plan(spec({looked_up}, i32));
  EXPECT_EQ(plan.of(ByteClass::shadow).count, 0) << plan.explain();
  // A number for each row of the table, and a few times the rows that were looked up.
  EXPECT_LE(plan.peak().count, rows * 4 + 6 * looked_up * wide * 4) << plan.explain();
  const Tensor ids = random::integers({looked_up}, {.low = 0, .high = 50, .dtype = i32});
  const auto [loss, profile] = step.profile(ids);
  EXPECT_EQ(profile.planned, plan.peak());
  const Bytes before = memory::current();
  memory::reset_peak();
  GradientTape tape;
  optimizer.minimize(tape, sum(square(model(ids) - 1.0)), model);
  EXPECT_LE((memory::peak() - before).count, rows * 4 + 8 * looked_up * wide * 4);
}

TEST(RowGradients, LeaveAllAsItWasWhereAnIndexIsOutOfRange) {
  const Table model{Variable(ones({4, 2}), {.name = "table"})};
  const Adam optimizer;
  const auto step = function([=](const Tensor& ids) {
    GradientTape tape;
    optimizer.minimize(tape, sum(square(model(ids))), model);
  });
  step(constant({0, 1}));
  std::vector<Tensor> before;
  for (const Variable& each : nn::variables(std::pair{model, optimizer}))
    before.push_back(each.value() + 0);
  EXPECT_THROW(step(constant({2, 9})), UserError);
  size_t i = 0;
  for (const Variable& each : nn::variables(std::pair{model, optimizer}))
    EXPECT_TRUE(identical(each.value(), before[i++])) << each.name();
}

TEST(RowGradients, AreAccumulatedLikeOneLargeBatch) {
  const auto run = [](int parts, const auto& make) {
    const Table model{Variable(ones({6, 2}) * 0.5, {.name = "table"})};
    const Optimizer optimizer = make(parts);
    const auto step = function([=](const Tensor& ids) {
      GradientTape tape;
      const Tensor loss = mean(square(model(ids) - 1.0));
      optimizer.minimize(tape, loss, model);
      return loss;
    });
    for (const std::vector<int32_t>& ids : kLookups)
      for (const Tensor& part : split(constant(ids), parts)) step(part);
    return model.table.value().to_vector<double>();
  };
  const auto adam = [](int parts) { return Adam({.learning_rate = 0.1, .accumulate = parts}); };
  expect_near(run(2, adam), run(1, adam), 1e-5);
}

}  // namespace
}  // namespace tidemark
