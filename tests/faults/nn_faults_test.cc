// Allocations that fail in models: building, using, summarising, copying and training them.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "tests/faults/injector.h"
#include "tidemark/compile/cpu/kernels.h"

namespace td = tidemark;

namespace tidemark::testing {
namespace {

template <class Model>
std::string variables_of(const Model& model) {
  std::string all;
  for (const auto& [name, variable] : td::nn::named_variables(model)) {
    all += cat(name, " ", variable.has_shape() ? cat(variable.shape()) : "no shape", " ");
    std::string value = cat(variable);
    all += value.ends_with("declared") || !variable.has_shape() ? value : bits(variable.value());
  }
  return all;
}

class NnFaults : public ::testing::Test {
 protected:
  // What LLVM allocates is not what is tried here.
  NnFaults() : emitter_(compile::emitter()) { compile::set_emitter(compile::Emitter::tile); }
  ~NnFaults() override {
    compile::set_emitter(emitter_);
    std::cout << text(counts_) << '\n';
  }

  void renew() {
    td::random::seed(3);
    model_.emplace(
        td::nn::Sequential{td::nn::Dense(4, {.activation = td::tanh}), td::nn::Dense(2)});
  }
  void renew_built() {
    renew();
    (void)(*model_)(x_);
  }

  std::optional<td::nn::Sequential> model_;
  td::Tensor x_ = td::random::normal({6, 3}, {.key = td::random::Key(1)});
  td::Tensor y_ = td::random::normal({6, 2}, {.key = td::random::Key(2)});
  FaultCounts counts_;
  compile::Emitter emitter_;
};

// Declared, with a value, and with one that somebody holds.
enum class Kind : uint8_t { declared, valued, held };

// All of it is made and goes inside the operation; where that is refused the Variable is as it was.
TEST_F(NnFaults, Variables) {
  using Assign = std::function<void(const td::Variable&)>;
  const std::map<std::string, Assign> assignments = {
      {"value", [](const td::Variable& v) { (void)v.value(); }},
      {"assign", [](const td::Variable& v) { v.assign(td::ones({4, 5})); }},
      {"assign of a view",
       [](const td::Variable& v) { v.assign(td::transpose(td::ones({5, 4}))); }},
      {"assign_add", [](const td::Variable& v) { v.assign_add(1); }},
      {"assign_sub", [](const td::Variable& v) { v.assign_sub(td::ones({5})); }},
      {"assign_slice", [](const td::Variable& v) { v.assign_slice(2, 7); }},
      {"scatter_update",
       [](const td::Variable& v) { v.scatter_update(td::constant({1, 1}), td::ones({2, 5})); }},
      {"clone", [](const td::Variable& v) { (void)v.clone().value(); }},
  };
  for (const auto& [name, assign] : assignments) {
    for (const Kind kind : {Kind::declared, Kind::valued, Kind::held}) {
      std::string changed;
      const auto act = [&] {
        td::random::seed(3);
        const td::Variable v(td::Shape{4, 5}, [](const td::Shape& shape, td::DType) {
          return td::random::normal(shape);
        });
        if (kind != Kind::declared) (void)v.value();
        const td::Tensor held = kind == Kind::held ? v.value() : td::Tensor();
        const std::string before = cat(v) + generator_state();
        try {
          assign(v);
        } catch (...) {
          if (cat(v) + generator_state() != before) changed = cat(before, " became ", v);
          throw;
        }
        return bits(v.value()) + generator_state();
      };
      counts_ += expect_survives({.name = name, .act = act});
      EXPECT_EQ(changed, "") << name << " of kind " << static_cast<int>(kind);
    }
  }
}

TEST_F(NnFaults, Generator) {
  const std::map<std::string, std::function<td::Tensor()>> draws = {
      {"normal", [] { return td::random::normal({5}); }},
      {"uniform", [] { return td::random::uniform({5}); }},
      {"integers", [] { return td::random::integers({5}, {.high = 9}); }},
      {"bernoulli", [] { return td::random::bernoulli({5}); }},
      {"bernoulli of a tensor",
       [] { return td::random::bernoulli(td::full({5}, 0.5F), td::Shape{5}); }},
      {"permutation", [] { return td::random::permutation(5); }},
      {"dropout", [] { return td::dropout(td::ones({5})); }},
      {"seed",
       [] {
         td::random::seed(8);
         return td::Tensor();
       }},
      {"set_state",
       [] {
         td::random::set_state(td::constant(std::vector<int64_t>{1, 2, 3}));
         return td::Tensor();
       }},
  };
  for (const auto& [name, draw] : draws) {
    std::string changed;
    const auto act = [&] {
      td::random::seed(5);
      const std::string before = generator_state();
      td::Tensor drawn;
      try {
        drawn = draw();
      } catch (...) {
        if (generator_state() != before) changed = name;
        throw;
      }
      return (drawn.has_value() ? bits(drawn) : "") + generator_state();
    };
    counts_ += expect_survives({.name = name, .act = act});
    EXPECT_EQ(changed, "");
  }
}

TEST_F(NnFaults, UsingAModel) {
  const auto summary = [&] {
    renew();
    std::string text = cat(td::nn::summary(*model_, td::spec({6, 3})));
    return text + generator_state();
  };
  counts_ += expect_survives({.name = "summary", .act = summary});
  const auto build = [&] {
    renew();
    td::nn::build(*model_, td::spec({6, 3}));
    return generator_state();
  };
  counts_ += expect_survives({.name = "build", .act = build});
  renew_built();
  const auto state = [&] { return variables_of(*model_) + generator_state(); };
  counts_ += expect_survives({.name = "predict",
                              .act = [&] { return bits(td::nn::predict(*model_, x_)); },
                              .state = state});
  const auto in_bf16 = [&] {
    const td::Autocast on(td::bf16);
    return bits((*model_)(x_));
  };
  counts_ += expect_survives({.name = "Autocast", .act = in_bf16, .state = state});
  const std::vector<std::pair<td::Tensor, td::Tensor>> batches = {{x_, y_}};
  const auto evaluate = [&] {
    return cat(*td::nn::evaluate(*model_, batches, {.loss = td::nn::losses::mse}).loss);
  };
  counts_ += expect_survives({.name = "evaluate", .act = evaluate, .state = state});
  counts_ += expect_survives({.name = "clone",
                              .act = [&] { return variables_of(td::nn::clone(*model_)); },
                              .state = state});
}

// A step is done or it is not; the error comes between two of them.
TEST_F(NnFaults, FitStopsBetweenSteps) {
  const std::vector<std::pair<td::Tensor, td::Tensor>> batches(3, {x_, y_});
  const auto options = [&](const td::nn::Optimizer& optimizer) {
    return td::nn::FitOptions{
        .loss = td::nn::losses::mse, .optimizer = optimizer, .progress = td::nn::Progress::none};
  };
  std::set<std::string> whole;
  std::optional<td::nn::Adam> optimizer;
  const auto prepare = [&] {
    renew_built();
    optimizer.emplace();
    optimizer->build(*model_);
    for (const auto& [name, variable] : td::nn::named_variables(*optimizer)) (void)variable.value();
  };
  const auto state = [&] { return variables_of(*model_) + variables_of(*optimizer); };
  prepare();
  whole.insert(state());
  const auto step = td::function([&](const td::Tensor& x, const td::Tensor& y) {
    td::GradientTape tape;
    optimizer->minimize(tape, td::nn::losses::mse(y, (*model_)(x)), *model_);
  });
  for (const auto& [x, y] : batches) {
    step(x, y);
    whole.insert(state());
  }
  ASSERT_EQ(whole.size(), 4U);
  int64_t half_done = 0;
  const auto act = [&] {
    try {
      td::nn::fit(*model_, batches, options(*optimizer));
      return state();
    } catch (...) {
      if (!whole.contains(state())) ++half_done;
      prepare();
      throw;
    }
  };
  counts_ += expect_survives({.name = "fit", .prepare = prepare, .act = act});
  EXPECT_EQ(half_done, 0);
}

// In eager code, too, all parameters, slots and counts are updated or none is.
TEST_F(NnFaults, EagerUpdates) {
  const auto rate = td::nn::schedules::exponential(0.1, {.factor = 0.5, .steps = 2});
  const std::map<std::string, std::function<td::nn::Optimizer()>> optimizers = {
      {"SGD", [&] { return td::nn::SGD({.learning_rate = rate, .momentum = 0.9}); }},
      {"Adam", [] { return td::nn::Adam(); }},
      {"Adam, clipped", [] { return td::nn::Adam({.clip_global_norm = 0.1}); }},
      {"Adam, accumulated", [] { return td::nn::Adam({.accumulate = 2}); }},
      {"SGD, scaled", [] { return td::nn::LossScaleOptimizer(td::nn::SGD()); }},
  };
  const td::Tensor ids = td::constant({0, 2, 2});
  std::optional<td::nn::Embedding> table;
  std::optional<td::nn::Optimizer> optimizer;
  const auto update = [&](const td::nn::Optimizer& by) {
    td::GradientTape tape;
    const td::Tensor loss = td::nn::losses::mse(y_, (*model_)(x_)) + td::sum((*table)(ids));
    by.minimize(tape, loss, std::tie(*model_, *table));
    return std::string();
  };
  const auto prepare = [&] {
    renew_built();
    table.emplace(5, 3);
    (void)(*table)(ids);
  };
  const auto model_state = [&] { return variables_of(*model_) + variables_of(*table); };
  for (const auto& [name, make] : optimizers) {
    counts_ += expect_survives({.name = name + ", first update",
                                .prepare = prepare,
                                .act = [&] { return update(make()); },
                                .state = model_state});
    counts_ += expect_survives({.name = name + ", later update",
                                .prepare =
                                    [&] {
                                      prepare();
                                      optimizer.emplace(make());
                                      for (int i = 0; i < 3; ++i) update(*optimizer);
                                    },
                                .act = [&] { return update(*optimizer); },
                                .state = [&] { return model_state() + variables_of(*optimizer); }});
    optimizer.reset();
  }
}

}  // namespace
}  // namespace tidemark::testing
