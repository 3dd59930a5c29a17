// Whatever a plan or an error says of bytes is followed, and compared to the byte.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;
using td::ByteClass;
using td::Tensor;

namespace {

// By how much memory grew at most while this ran.
template <class F>
td::Bytes grown_by(F run) {
  const td::Bytes before = td::memory::current();
  td::memory::reset_peak();
  run();
  return td::memory::peak() - before;
}

// ---- recompute ----------------------------------------------------------------------------------

struct Block {
  td::nn::LayerNorm norm;
  td::nn::Dense up{256, {.activation = td::gelu}}, down{64};
  Tensor operator()(const Tensor& x) const { return x + down(up(norm(x))); }
};

// Which of the blocks are run again: at two lines of their own.
struct Marked {
  bool first = true, second = true;
  std::vector<Block> blocks = std::vector<Block>(4);
  Tensor operator()(const Tensor& x) const {
    Tensor h = x;
    for (size_t i = 0; i < 2; ++i) h = first ? td::recompute(blocks[i])(h) : blocks[i](h);
    for (size_t i = 2; i < 4; ++i) h = second ? td::recompute(blocks[i])(h) : blocks[i](h);
    return h;
  }
};

auto step_of(const Marked& model, td::FunctionOptions options = {}) {
  return td::function(
      [model, optimizer = td::nn::SGD()](const Tensor& x) {
        td::GradientTape tape;
        const Tensor loss = td::mean(td::square(model(x)));
        optimizer.minimize(tape, loss, model.blocks);
        return loss;
      },
      std::move(options));
}

TEST(Claims, WhatRecomputeSavesIsPlannedWithoutIt) {
  const td::MachineCode machine;
  const auto peak = [](bool first, bool second) {
    return step_of({first, second}).plan(td::spec({128, 64})).peak();
  };
  const td::Plan plan = step_of({true, true}).plan(td::spec({128, 64}));
  const std::vector<td::PlanRecompute> marks = plan.recomputes();
  ASSERT_EQ(marks.size(), 2U);
  for (const td::PlanRecompute& mark : marks) {
    EXPECT_EQ(mark.times, 2);
    EXPECT_EQ(mark.peak, plan.peak());
  }
  EXPECT_LT(marks[0].line, marks[1].line);
  EXPECT_EQ(marks[0].without, peak(false, true));
  EXPECT_EQ(marks[1].without, peak(true, false));
  EXPECT_NE(plan.explain().find(td::cat(marks[0].line, ", 2 times, saves ", marks[0].saves(),
                                        ": the peak without it is ", marks[0].without)),
            std::string::npos)
      << plan;
}

TEST(Claims, WhatRecomputeSavesHoldsForOtherSizes) {
  const td::MachineCode machine;
  const td::Plan plan = step_of({true, false}).plan(td::spec({td::open, 64}));
  const td::Plan there = plan.at({96});
  ASSERT_EQ(there.recomputes().size(), 1U);
  const td::Plan plain = step_of({false, false}).plan(td::spec({td::open, 64})).at({96});
  EXPECT_EQ(there.recomputes()[0].without, plain.peak());
}

// ---- the first call -----------------------------------------------------------------------------

TEST(Claims, TheFirstCallMakesTheVariablesThatItsPlanNames) {
  const td::MachineCode machine;
  struct Model {
    td::nn::Dense a{64, {.activation = td::relu}}, b{64};
  } model;
  const auto step = td::function([model, optimizer = td::nn::Adam()](const Tensor& x) {
    td::GradientTape tape;
    const Tensor loss = td::mean(td::square(model.b(model.a(x))));
    optimizer.minimize(tape, loss, model);
    return loss;
  });
  const Tensor x = td::ones({512, 64});
  const td::Plan first = step.plan(x);
  // Each parameter and its two slots.
  const int64_t made = 3 * 2 * (64 * 64 + 64) * 4;
  EXPECT_EQ((first.first_call() - first.peak()).count, made);
  EXPECT_NE(first.explain().find(td::cat(" (", td::Bytes(made),
                                         " made by the first call and kept, not counted; the rest "
                                         "is there already)")),
            std::string::npos)
      << first;
  EXPECT_EQ(grown_by([&] { step(x); }), first.first_call());
  const td::Plan later = step.plan(x);
  EXPECT_EQ(later.first_call(), later.peak());
  EXPECT_EQ(later.peak(), first.peak());
  EXPECT_EQ(grown_by([&] { step(x); }), later.peak());
  EXPECT_EQ(later.explain().find("made by the first call"), std::string::npos);
}

// ---- budgets ------------------------------------------------------------------------------------

TEST(Claims, TheLeastBudgetAndTheSmallerSizeOfAnErrorFit) {
  const td::MachineCode machine;
  const td::Bytes whole = step_of({true, false}).plan(td::spec({512, 64})).peak();
  const td::Bytes budget = whole.count / 3;
  const auto step = step_of({true, false}, {.name = "step", .budget = budget});
  td::Bytes floor = 0;
  std::string text;
  try {
    step.plan(td::spec({td::open, 64})).at({512});
  } catch (const td::OverBudget& error) {
    floor = error.floor();
    text = error.what();
  }
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found,
                                std::regex("\\.budget = (\\d+)(_B|_KiB|_MiB) fits; argument 0, "
                                           "dimension 0 = (\\d+) fits in ([^;]*)")))
      << text;
  const int64_t unit = found[2] == "_B" ? 1 : found[2] == "_KiB" ? 1024 : 1024 * 1024;
  EXPECT_EQ(std::stoll(found[1]) * unit, floor.count);
  EXPECT_LT(floor, whole) << "values can be computed again";
  const auto planned_under = [&](td::Bytes most) {
    return step_of({true, false}).plan(td::spec({512, 64}), {.budget = most}).peak();
  };
  EXPECT_EQ(planned_under(floor), floor);
  EXPECT_THROW(planned_under(floor - 1), td::OverBudget);
  const td::Plan smaller = step.plan(td::spec({td::open, 64}, td::f32)).at({std::stoll(found[3])});
  EXPECT_EQ(td::cat(smaller.peak()), found[4].str());
  const Tensor x = td::ones({std::stoll(found[3]), 64});
  step(x);
  EXPECT_EQ(grown_by([&] { step(x); }), smaller.peak());
}

TEST(Claims, TheBudgetThatAnErrorNamesFitsACallWithSnapshots) {
  const td::MachineCode machine;
  const td::Variable v(td::zeros({1000}), {.name = "v"});
  const auto under = [&](td::Bytes budget) {
    return td::function(
        [v](const Tensor& x) {
          v.assign_add(x);
          return td::sum(x);
        },
        {.budget = budget});
  };
  const Tensor x = td::ones({1000});
  const Tensor held = v.value();
  td::Bytes needed = 0;
  std::string text;
  try {
    under(1_KiB)(x);
  } catch (const td::OverBudget& error) {
    needed = error.floor();
    text = error.what();
  }
  EXPECT_NE(text.find(td::cat(".budget = ", needed.count, "_B fits")), std::string::npos) << text;
  EXPECT_THROW(under(needed - 1)(x), td::OverBudget);
  EXPECT_EQ(grown_by([&] { under(needed)(x); }), needed);
}

// ---- donation -----------------------------------------------------------------------------------

TEST(Claims, ThePlanOfADonatedArgumentIsWhatACallAdds) {
  const td::MachineCode machine;
  const auto f = td::function([](Tensor x) { return td::tanh(x) * 2.0F; });
  const td::Plan kept = f.plan(td::spec({1000})), given = f.plan(td::spec({1000}).donated());
  EXPECT_EQ((kept.peak() - given.peak()).count, 4032);  // 4,000 bytes, granted as 63 lines.
  Tensor x = td::ones({1000}), y = td::ones({1000});
  Tensor result;
  EXPECT_EQ(grown_by([&] { result = f(x); }), kept.peak());
  EXPECT_EQ(grown_by([&] { result = f(std::move(y)); }), given.peak());
}

// ---- what is kept for gradients, and what is not ------------------------------------------------

TEST(Claims, SavedIsWhatTheGradientReads) {
  const td::MachineCode machine;
  for (const auto& activation : {td::nn::Activation(td::relu), td::nn::Activation(td::gelu)}) {
    std::vector<td::nn::Dense> layers;
    for (int i = 0; i < 4; ++i)
      layers.emplace_back(64, td::nn::DenseOptions{.activation = activation});
    const auto step = td::function([layers, optimizer = td::nn::SGD()](const Tensor& x) {
      td::GradientTape tape;
      Tensor h = x;
      for (const td::nn::Dense& layer : layers) h = layer(h);
      const Tensor loss = td::sum(td::square(h));
      optimizer.minimize(tape, loss, layers);
      return loss;
    });
    const td::Plan plan = step.plan(td::spec({256, 64}));
    // A buffer that waits for the gradient of what made it has its class, whoever else reads it.
    const auto steps = static_cast<int64_t>(plan.timeline().size());
    for (const td::PlanBuffer& buffer : plan.buffers()) {
      if (buffer.bytes.count < 256 * 64 * 4 || buffer.end - buffer.begin < steps / 3) continue;
      EXPECT_EQ(buffer.byte_class, ByteClass::saved) << buffer.name << ": " << buffer.reason;
    }
  }
}

TEST(Claims, RowsThatAnOptimizerLooksUpAreTemporariesAtTheCallersLine) {
  const td::MachineCode machine;
  const td::Variable table(td::zeros({2000, 64}), {.name = "table"});
  const auto step = td::function([table, optimizer = td::nn::Adam()](const Tensor& ids) {
    td::GradientTape tape;
    const Tensor loss = td::sum(td::square(td::tanh(td::gather(table, ids))));
    optimizer.minimize(tape, loss, table);
    return loss;
  });
  const td::Plan plan = step.plan(td::spec({512}, td::i32));
  EXPECT_EQ(plan.of(ByteClass::saved).count, 0) << plan;
  for (const td::PlanBuffer& buffer : plan.buffers()) {
    EXPECT_NE(buffer.byte_class, ByteClass::saved) << buffer.reason;
    EXPECT_EQ(buffer.line.rfind("claims_test.cc:", 0), 0U) << buffer.line << ": " << buffer.reason;
  }
  for (const td::PlanStep& each : plan.timeline())
    EXPECT_EQ(each.line.rfind("claims_test.cc:", 0), 0U) << each.line << ": " << each.name;
}

// ---- shadows ------------------------------------------------------------------------------------

constexpr int64_t kSlots = 1024;

struct Rings {
  td::Variable a{td::zeros({kSlots, 4}), {.name = "a", .trainable = false}};
  td::Variable b{td::zeros({kSlots, 4}), {.name = "b", .trainable = false}};
};

template <class F>
void expect_no_shadow(F f) {
  const td::Plan plan = td::function(f).plan(td::spec({}, td::i32), td::spec({4}));
  EXPECT_EQ(plan.of(ByteClass::shadow).count, 0) << plan;
}

TEST(Claims, IndicesAreCheckedBeforeTheFirstWriteAndNothingIsCopied) {
  const Rings r;
  expect_no_shadow([r](const Tensor& i, const Tensor& x) {
    r.a.scatter_update(i, x);
    r.b.scatter_update(i, x);
  });
  expect_no_shadow([r](const Tensor& i, const Tensor& x) {
    r.a.scatter_update(i, x);
    r.b.scatter_update(i + 1, x);
  });
  expect_no_shadow([r](const Tensor& i, const Tensor& x) {
    const Tensor j = i % kSlots;
    r.a.scatter_update(j, x);
    td::assert_that(td::sum(x) < 100.0F, "x is small");
    r.b.scatter_update(j, x);
  });
  expect_no_shadow([r](const Tensor& i, const Tensor& x) {
    r.a.scatter_update(td::clip(i, 0, kSlots - 1), x);
    r.b.scatter_update(td::maximum(td::minimum(i, kSlots - 1), 0), x);
    return td::gather(r.a, i % kSlots);
  });
  expect_no_shadow([r](const Tensor& i, const Tensor& x) {
    r.a.scatter_update(i, x);
    return td::gather(r.a, i + 1);  // Of the new value, by an index that is known before.
  });
}

TEST(Claims, AnIndexOutOfRangeChangesNothingAndIsNamedByTheOpThatUsesIt) {
  const Rings r;
  const auto f = td::function([r](const Tensor& i, const Tensor& j, const Tensor& x) {
    r.a.scatter_update(i, x);
    r.b.scatter_update(j, x);  // Line of the error.
  });
  const Tensor x = td::ones({4});
  const auto index = [](int64_t at) { return td::constant(at, td::i32); };
  f(index(3), index(-1), x);
  EXPECT_EQ(td::sum(r.a).item<float>() + td::sum(r.b).item<float>(), 8);
  const std::string eager = td::error_of([&] { r.b.scatter_update(index(kSlots), x); });
  const std::string late = td::error_of([&] { f(index(5), index(kSlots), x); });
  EXPECT_EQ(late.substr(0, late.find('\n')), eager.substr(0, eager.find('\n')));
  EXPECT_NE(late.find("put: index 1024 is out of range for axis 0 of f32[1024, 4]"),
            std::string::npos)
      << late;
  EXPECT_NE(late.find("indices go from -1024 to 1023"), std::string::npos) << late;
  EXPECT_EQ(td::sum(r.a).item<float>() + td::sum(r.b).item<float>(), 8) << "nothing was written";
}

}  // namespace
