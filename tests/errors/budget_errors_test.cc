// What a function above its budget says.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/errors/expect_error.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;
using td::Tensor;

namespace {

// What `call` says, where "#" stands for the line of the function's body.
void expect_over_budget(const std::function<void()>& call, std::string text, unsigned body,
                        td::Source at = td::Source::here()) {
  const std::string line = td::cat("budget_errors_test.cc:", body);
  for (size_t mark = text.find('#'); mark != std::string::npos; mark = text.find('#'))
    text.replace(mark, 1, line);
  expect_error(call, text, at);
}

class Threads {
 public:
  explicit Threads(int count) { td::set_num_threads(count); }
  ~Threads() { td::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  const int before_ = td::num_threads();
};

std::string remedies_in(const std::function<void()>& call) {
  try {
    call();
  } catch (const td::OverBudget& error) {
    const std::string text = error.what();
    return text.substr(text.rfind("\n  ") + 3);
  }
  return "fits";
}

TEST(BudgetErrors, NameThePeakItsStepAndTheLargest) {
  const td::MachineCode machine;
  const unsigned body = __LINE__ + 2;
  const auto step =
      td::function([](const Tensor& x) { return td::cumsum(td::exp(x), 0); }, {.name = "step"});
  expect_over_budget(
      [&] { step.plan(td::spec({256, 256}), {.budget = 1_KiB}); },
      "step: needs at least 512.0 KiB, the budget is 1.0 KiB\n"
      "  at @\n"
      "  at the least, the most is in use at step 0 (exp, #): outputs 256.0 KiB, temporaries 256.0 "
      "KiB\n"
      "  largest: f32[256, 256] 256.0 KiB, made by this step (#)\n"
      "           f32[256, 256] 256.0 KiB, outputs: result (#)\n"
      "  .budget = 512_KiB fits",
      body);
}

// Values are made again until one step holds them all.
TEST(BudgetErrors, NameWhatStandsAtTheLeast) {
  const td::MachineCode machine;
  const Threads one(1);
  const unsigned body = __LINE__ + 4;
  const auto step = td::function(
      [](const Tensor& x) {
        Tensor all = td::zeros({256});
        for (int i = 0; i < 4; ++i) all = all + td::cumsum(td::sort(x * i, 0), 0)[0] * td::sum(x);
        return all;
      },
      {.name = "step"});
  expect_over_budget(
      [&] { step.plan(td::spec({256, 256}), {.budget = 1_KiB}); },
      "step: needs at least 517.1 KiB (1.3 MiB without a budget), the budget is 1.0 KiB\n"
      "  at @\n"
      "  at the least, the most is in use at step 1 (sort, #): outputs 1.0 KiB, temporaries 512.1 "
      "KiB, workspace 4.0 KiB\n"
      "  largest: f32[256, 256] 256.0 KiB, made by sum + multiply, read by this step (#)\n"
      "           f32[256, 256] 256.0 KiB, made by this step (#)\n"
      "           u8[4096] 4.0 KiB, workspace of this step (#)\n"
      "           f32[256] 1.0 KiB, outputs: result (#)\n"
      "           f32[] 64 B, made by sum + multiply, kept for step 18 (multiply) (#)\n"
      "  .budget = 529472_B fits",
      body);
  EXPECT_EQ(step.plan(td::spec({256, 256}), {.budget = 529472_B}).peak(), 529472_B);
}

TEST(BudgetErrors, TellApartFiguresThatPrintAlike) {
  const td::MachineCode machine;
  const unsigned body = __LINE__ + 1;
  const auto f = td::function([](const Tensor& x) { return td::exp(x); });
  expect_over_budget([&] { f.plan(td::spec({256, 256}), {.budget = 256_KiB - 1}); },
                     "the function: needs at least 262144 bytes, the budget is 262143 bytes\n"
                     "  at @\n"
                     "  at the least, the most is in use at step 0 (exp, #): outputs 256.0 KiB\n"
                     "  largest: f32[256, 256] 256.0 KiB, outputs: result (#)\n"
                     "  .budget = 256_KiB fits; bf16 in place of f32 fits in 128.0 KiB",
                     body);
}

TEST(BudgetErrors, NameASmallerSizeThatFits) {
  const td::MachineCode machine;
  const unsigned body = __LINE__ + 2;
  const auto step = td::function(
      [](const Tensor& x, const Tensor& y) { return td::exp(x) * td::reshape(y, {-1, 1}); },
      {.name = "step",
       .budget = 64_KiB,
       .input_signature = {td::spec({td::open, 256}), td::spec({td::open})}});
  const Tensor x = td::zeros({1000, 256}), y = td::zeros({1000});
  expect_over_budget(
      [&] { step(x, y); },
      "step, for argument 0, dimension 0 = 1000, argument 1, dimension 0 = 1000: needs "
      "at least 1000.0 KiB, the budget is 64.0 KiB\n"
      "  at @\n"
      "  at the least, the most is in use at step 0 (exp + multiply, #): outputs "
      "1000.0 KiB\n"
      "  largest: f32[1000, 256] 1000.0 KiB, outputs: result "
      "(#)\n"
      "  .budget = 1000_KiB fits; argument 0, dimension 0 = 62, argument 1, dimension 0 = "
      "62 fits in 62.0 KiB",
      body);
  step(td::zeros({62, 256}), td::zeros({62}));
}

// Each thread has a workspace of its own: a little in a long program, where steps keep their
// threads.
TEST(BudgetErrors, NameOneThreadIfThatFits) {
  const td::MachineCode machine;
  const Threads two(2);
  const auto f = td::function([](Tensor x) {
    for (int i = 0; i < 60; ++i) x = td::sort(x, 0);
    return x;
  });
  const auto call = [&] { f.plan(td::spec({256, 256}), {.budget = 775_KiB}); };
  EXPECT_EQ(remedies_in(call),
            ".budget = 776_KiB fits; one thread fits in 772.0 KiB: td::set_num_threads(1); bf16 "
            "in place of f32 fits in 392.0 KiB");
  const Threads one(1);
  EXPECT_EQ(remedies_in(call), "fits");
}

// A loop keeps the states that its user wrote.
TEST(BudgetErrors, NameFewerSlotsOfALoopIfTheyFit) {
  const td::MachineCode machine;
  const Threads one(1);
  const auto make = [](td::Save save) {
    return td::function([save](const Tensor& x) {
      td::GradientTape tape;
      tape.watch(x);
      const auto trip = [](const Tensor&, const Tensor& c) { return td::sin(td::matmul(c, c)); };
      return tape.gradient(td::sum(td::fori_loop(0, 64, trip, x, {.save = save})), x);
    });
  };
  const td::Bytes budget = 24_KiB;
  const std::string remedies =
      remedies_in([&] { make(td::Save::all()).plan(td::spec({16, 16}), {.budget = budget}); });
  const size_t begin = remedies.find(".save = td::Save::slots(");
  ASSERT_NE(begin, std::string::npos) << remedies;
  const int64_t slots = std::stoll(remedies.substr(begin + 24));
  EXPECT_LE(make(td::Save::slots(slots)).plan(td::spec({16, 16}), {.budget = budget}).peak(),
            budget);
}

// The gradient of two loops. They may fail, so that they run once, and a budget leaves what they
// keep.
class TwoLayers {
 public:
  enum class Encoder { plain, recomputed, printing };
  explicit TwoLayers(Encoder encoder) : encoder_(encoder) {}

  Tensor operator()(const Tensor& x, const Tensor& rows) const {
    td::GradientTape tape;
    tape.watch(x);
    const auto encode = [&](const Tensor& from) { return layer("encoder", from, rows); };
    const Tensor h = encoder_ == Encoder::recomputed ? td::recompute(encode)(x) : encode(x);
    return tape.gradient(td::sum(layer("decoder", h, rows)), x);
  }

 private:
  Tensor layer(const char* name, const Tensor& x, const Tensor& rows) const {
    const td::NameScope scope(name);
    if (encoder_ == Encoder::printing) td::print("a layer");
    const auto trip = [&](const Tensor& i, const Tensor& c) {
      return c + 0.01 * td::sin(td::matmul(c, c) + td::gather(rows, i));
    };
    return td::fori_loop(0, 64, trip, x, {.save = td::Save::all()});
  }

  Encoder encoder_;
};

TEST(BudgetErrors, NameALayerToRecomputeIfThatFits) {
  const td::MachineCode machine;
  const Threads one(1);
  const auto plain = td::function(TwoLayers(TwoLayers::Encoder::plain));
  const Tensor x = td::random::normal({16, 16}, {.key = td::random::Key(1)}),
               rows = td::random::normal({64, 16}, {.key = td::random::Key(2)});
  const td::Bytes budget(plain.plan(x, rows).floor().count * 3 / 4);
  const std::string remedies = remedies_in([&] { plain.plan(x, rows, {.budget = budget}); });
  const auto applied = td::function(TwoLayers(TwoLayers::Encoder::recomputed), {.budget = budget});
  const td::Bytes peak = applied.plan(x, rows).peak();
  EXPECT_NE(remedies.find(td::cat("; td::recompute around layer \"encoder\" fits in ", peak)),
            std::string::npos)
      << remedies << " but " << peak;
  const std::vector<float> gradient = plain(x, rows).to_vector<float>();
  EXPECT_EQ(applied(x, rows).to_vector<float>(), gradient);
  EXPECT_NE(gradient[0], 0);
}

TEST(BudgetErrors, NameNoLayerThatHasAnEffect) {
  const td::MachineCode machine;
  const Threads one(1);
  const auto f = td::function(TwoLayers(TwoLayers::Encoder::printing));
  const auto x = td::spec({16, 16}), rows = td::spec({64, 16});
  const td::Bytes budget(f.plan(x, rows).floor().count * 3 / 4);
  const std::string remedies = remedies_in([&] { f.plan(x, rows, {.budget = budget}); });
  EXPECT_EQ(remedies.find("td::recompute"), std::string::npos) << remedies;
}

// The remedy is of the same function on bf16: gradients and loops included.
TEST(BudgetErrors, NameBf16IfThatFits) {
  const td::MachineCode machine;
  const Threads one(1);
  const auto f = td::function([](const Tensor& x, const Tensor& w) {
    td::GradientTape tape;
    tape.watch(w);
    const auto trip = [&](const Tensor&, const Tensor& c) { return td::tanh(td::matmul(c, w)); };
    const Tensor y = td::fori_loop(0, 8, trip, x);
    return tape.gradient(td::mean(td::square(y)), w);
  });
  const td::Bytes floor = f.plan(td::spec({64, 64}), td::spec({64, 64})).floor();
  const std::string remedies =
      remedies_in([&] { f.plan(td::spec({64, 64}), td::spec({64, 64}), {.budget = floor - 1}); });
  ASSERT_NE(remedies.find("; bf16 in place of f32 fits in "), std::string::npos) << remedies;
  const td::Plan narrow =
      f.plan(td::spec({64, 64}, td::bf16), td::spec({64, 64}, td::bf16), {.budget = floor - 1});
  EXPECT_LT(narrow.peak(), floor);
  EXPECT_NE(remedies.find(td::cat("bf16 in place of f32 fits in ", narrow.peak())),
            std::string::npos)
      << remedies << " but " << narrow.peak();
}

}  // namespace
