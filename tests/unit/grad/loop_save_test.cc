// What loops keep for their gradients: a plan's word on every other choice is what that choice
// takes, and bytes that are stated are kept to.
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/least_bytes.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/slopes.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace tidemark::literals;

namespace {

using td::error_of;

// The gradient of a loop, and nothing else.
struct Loop {
  const char* name;
  std::function<td::Plan(td::Save)> plan;
};

td::Tensor pull(const td::Tensor& p) {
  const td::Tensor d = td::expand_dims(p, 0) - td::expand_dims(p, 1);
  const td::Tensor r2 = td::sum(d * d, -1) + 0.01;
  return td::sum(d * td::expand_dims(td::rsqrt(r2) / r2, -1), 1);
}

// What a trip makes is far more than its state.
td::Plan bodies(td::Save save, td::DType dtype) {
  auto f = td::function([=](const td::Tensor& p0, const td::Tensor& v0) {
    return td::grad([&](const td::Tensor& v0) {
      return td::sum(std::get<0>(
          td::fori_loop(0, 50,
                        [](const td::Tensor&, const td::Tensor& p, const td::Tensor& v) {
                          const td::Tensor half = v + 0.005 * pull(p);
                          const td::Tensor q = p + 0.01 * half;
                          return std::tuple{q, half + 0.005 * pull(q)};
                        },
                        std::tuple{p0, v0}, {.save = save})));
    })(v0);
  });
  return f.plan(td::spec({16, 3}, dtype), td::spec({16, 3}, dtype));
}

td::Plan chain(td::Save save) {
  auto f = td::function([=](const td::Tensor& c, const td::Tensor& a) {
    return td::grad([&](const td::Tensor& a) {
      return td::sum(td::fori_loop(
          0, 300,
          [&](const td::Tensor&, const td::Tensor& c) { return td::tanh(td::matmul(c, a)); }, c,
          {.save = save}));
    })(a);
  });
  return f.plan(td::spec({16, 16}), td::spec({16, 16}));
}

td::Plan bounded_while(td::Save save) {
  auto f = td::function([=](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) {
      return td::sum(td::while_loop([](const td::Tensor& c) { return td::sum(c) < 1e6; },
                                    [](const td::Tensor& c) { return c * td::exp(td::sin(c)) + 1; },
                                    x, {.max_iterations = 100, .save = save}));
    })(x);
  });
  return f.plan(td::spec({64}, td::f64));
}

// The gradient of what it stacks is given, too.
td::Plan scanned(td::Save save) {
  auto f = td::function([=](const td::Tensor& w, const td::Tensor& h, const td::Tensor& xs,
                            const td::Tensor& slopes) {
    td::GradientTape tape;
    tape.watch(w);
    const td::Tensor sums = td::scan(
                                [&](const td::Tensor& h, const td::Tensor& x) {
                                  const td::Tensor next = td::sin(td::matmul(h, w) + x) * h;
                                  return std::pair{next, td::sum(next)};
                                },
                                h, xs, {.save = save})
                                .second;
    return tape.gradient(sums, w, {.output_gradients = {slopes}});
  });
  return f.plan(td::spec({16, 16}, td::f64), td::spec({8, 16}, td::f64),
                td::spec({40, 8, 16}, td::f64), td::spec({40}, td::f64));
}

td::Plan nested(td::Save save) {
  auto f = td::function([=](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) {
      return td::sum(td::fori_loop(0, 30,
                                   [&](const td::Tensor&, const td::Tensor& c) {
                                     return td::fori_loop(
                                         0, 9,
                                         [](const td::Tensor&, const td::Tensor& d) {
                                           return td::sin(d) * td::cos(d);
                                         },
                                         c, {.save = td::Save::slots(3)});
                                   },
                                   x, {.save = save}));
    })(x);
  });
  return f.plan(td::spec({32, 8}));
}

std::vector<Loop> loops() {
  return {{"bodies, f64", [](td::Save save) { return bodies(save, td::f64); }},
          {"bodies, f32", [](td::Save save) { return bodies(save, td::f32); }},
          {"chain", chain},
          {"while_loop with a bound", bounded_while},
          {"scan", scanned},
          {"a loop in a loop", nested}};
}

td::Plan lstm(td::Save save) {
  const td::nn::LSTM layer(16, {.save = save});
  auto f = td::function([&](const td::Tensor& x) {
    td::GradientTape tape;
    const td::Tensor loss = td::sum(td::square(layer(x)));
    const auto found = tape.gradient(loss, td::nn::trainable_variables(layer));
    return std::vector<td::Tensor>(found.begin(), found.end());
  });
  return f.plan(td::spec({4, 48, 8}));
}

// "slots(32): 2.0 MiB, 1406 trips run again": what is kept, then the other choices.
std::vector<std::string> choices_of(const td::Plan& plan) {
  const std::string text = plan.explain();
  const std::regex line(
      "the loop at \\S+ keeps, of [^,]+, ([^(\\n]*(?:\\(\\d+\\))?[^(\\n]*)"
      "(?: \\(or (.*)\\))?\\n");
  std::smatch found;
  if (!std::regex_search(text, found, line)) return {};
  std::vector<std::string> choices = {std::regex_replace(found[1].str(), std::regex(" $"), "")};
  const std::string others = found[2];
  for (size_t begin = 0; begin < others.size();) {
    const size_t end = std::min(others.find("; ", begin), others.size());
    choices.push_back(others.substr(begin, end - begin));
    begin = end + 2;
  }
  return choices;
}

td::Save save_of(const std::string& choice) {
  if (choice.starts_with("all")) return td::Save::all();
  const int64_t amount = std::stoll(choice.substr(choice.find('(') + 1));
  return choice.starts_with("slots") ? td::Save::slots(amount) : td::Save::every(amount);
}

TEST(LoopSave, EveryChoiceOfAPlanTakesWhatThePlanSays) {
  const td::MachineCode machine;
  std::vector<Loop> all = loops();
  all.push_back({"LSTM", lstm});
  for (const Loop& loop : all) {
    for (const td::Save save : {td::Save::slots(5), td::Save::all(), td::Save::bytes(64_KiB)}) {
      const std::vector<std::string> choices = choices_of(loop.plan(save));
      EXPECT_GE(choices.size(), 3u) << loop.name;
      for (const std::string& choice : choices) {
        const std::vector<std::string> followed = choices_of(loop.plan(save_of(choice)));
        ASSERT_FALSE(followed.empty()) << loop.name << ": " << choice;
        EXPECT_EQ(followed[0], choice) << loop.name;
      }
    }
  }
}

TEST(LoopSave, BytesAreKeptToWithTheFewestTripsRunAgain) {
  const td::MachineCode machine;
  for (const Loop& loop : loops()) {
    const int64_t least = td::least_bytes([&](td::Save save) { loop.plan(save); });
    EXPECT_EQ(error_of([&] { loop.plan(td::Save::bytes(least)); }), "no error") << loop.name;
    EXPECT_NE(error_of([&] { loop.plan(td::Save::bytes(least - 1)); }), "no error") << loop.name;
    const td::Bytes all = loop.plan(td::Save::all()).peak();
    for (const int64_t bytes : {least, least * 2, all.count - 1, all.count}) {
      if (bytes < least) continue;
      const td::Plan plan = loop.plan(td::Save::bytes(bytes));
      EXPECT_LE(plan.peak().count, bytes) << loop.name << '\n' << plan;
      const std::string chosen = choices_of(plan)[0];
      if (chosen.starts_with("all")) continue;
      EXPECT_GT(all.count, bytes) << loop.name << ": all would fit";
      const int64_t slots = std::stoll(chosen.substr(chosen.find('(') + 1));
      if (chosen.find(", 0 trips run again") != std::string::npos) continue;
      const td::Plan more = loop.plan(td::Save::slots(slots + 1));
      EXPECT_GT(more.peak().count, bytes)
          << loop.name << ": " << chosen << ", but slots(" << slots + 1 << ") would fit";
    }
  }
}

TEST(LoopSave, RefusesFewerBytesThanTheFewestCheckpointsTake) {
  const td::MachineCode machine;
  auto f = td::function([](const td::Tensor& x) {
    return td::grad([](const td::Tensor& x) {
      return td::sum(td::fori_loop(
          0, 100, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c); }, x,
          {.save = td::Save::bytes(1_KiB)}, td::Source::here("loop.cc", 7)));
    })(x);
  });
  EXPECT_EQ(error_of([&] { f.plan(td::spec({1024})); }),
            "gradient: save = bytes: this loop and its gradient take at least 16.1 KiB (16512 "
            "bytes), but may take 1.0 KiB (1024 bytes)\n"
            "  at loop.cc:7\n"
            "  write td::Save::bytes(16512) or more");
}

// The gradient of a loop with as many trips as `steps` has elements.
auto open_trips(td::Save save, int64_t floats) {
  return td::function(
      [save](const td::Tensor& steps, const td::Tensor& x) {
        return td::grad([&](const td::Tensor& x) {
          return td::sum(td::fori_loop(
              0, steps.shape()[0],
              [](const td::Tensor&, const td::Tensor& c) { return td::sin(c) * 1.01f; }, x,
              {.save = save}));
        })(x);
      },
      {.input_signature = {td::spec({td::open}), td::spec({floats})}});
}

// A state is more than is kept of all trips unasked. How many there are is known when the call is:
// with one state each trip would run again from the first.
TEST(LoopSave, KeepsSeveralStatesOfOpenTrips) {
  constexpr int64_t kFloats = int64_t{20} << 20;
  const auto f = open_trips(td::Save::automatic(), kFloats);
  const std::vector<std::string> choices = choices_of(f.plan(td::spec({100}), td::spec({kFloats})));
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices[0].substr(0, 10), "slots(10):");
}

// 64 MiB are counted over all trips of the call, whichever sizes the function was traced with. What
// the rules of the body's two ops read of a trip is 128 KiB.
TEST(LoopSave, AutomaticCountsAllTripsOfTheCall) {
  const td::MachineCode machine;
  constexpr int64_t kFloats = 16'384;
  const auto of = [](td::Save save, int64_t trips, int64_t traced_with) {
    return open_trips(save, kFloats)
        .plan(td::spec({traced_with}), td::spec({kFloats}))
        .at({trips})
        .peak();
  };
  for (const int64_t traced_with : {16, 1600}) {
    EXPECT_EQ(of(td::Save::automatic(), 450, traced_with), of(td::Save::all(), 450, 16));
    EXPECT_EQ(of(td::Save::automatic(), 1600, traced_with), of(td::Save::slots(40), 1600, 16));
    EXPECT_EQ(of(td::Save::automatic(), 2500, traced_with), of(td::Save::slots(50), 2500, 16));
  }
  EXPECT_LT(of(td::Save::automatic(), 1600, 16), 4_MiB);
}

TEST(LoopSave, AutomaticGivesTheSameBitsAtEverySize) {
  const td::MachineCode machine;
  constexpr int64_t kFloats = 16'384;
  const auto automatic = open_trips(td::Save::automatic(), kFloats);
  const auto all = open_trips(td::Save::all(), kFloats);
  const td::Tensor x = td::linspace(-1, 1, kFloats);
  for (const int64_t trips : {10, 1100, 3, 1200}) {
    const td::Tensor steps = td::zeros({trips});
    EXPECT_TRUE(td::all(automatic(steps, x) == all(steps, x)).item<bool>()) << trips;
  }
  EXPECT_EQ(automatic.cache_info().traces, 1) << "the user's function runs once";
}

// Other choices of loops and blocks are planned by making the gradients again.
TEST(LoopSave, APlanRunsTheUsersFunctionOnce) {
  int64_t runs = 0;
  auto f = td::function([&](const td::Tensor& x) {
    ++runs;
    const auto block = td::recompute(
        [](const td::Tensor& y) { return td::sin(td::exp(td::cos(y)) * td::tanh(y)); });
    return td::grad([&](const td::Tensor& x) {
      return td::sum(td::fori_loop(
          0, 30, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c); }, block(x)));
    })(x);
  });
  const td::Plan plan = f.plan(td::spec({1024}));
  EXPECT_EQ(plan.recomputes().size(), 1u);
  EXPECT_EQ(choices_of(plan).size(), 3u) << plan.explain();
  EXPECT_EQ(runs, 1);
}

// ---- budgets ------------------------------------------------------------------------------------

using Tensors = std::vector<td::Tensor>;

// Functions of an f64[24, 8] with loops that choose what they keep. `rows` is looked up.
std::vector<std::pair<const char*, std::function<Tensors(const td::Tensor&)>>> choosing_functions(
    const td::Variable& rows) {
  const auto step = [](const td::Tensor&, const td::Tensor& c) { return td::sin(c) * td::cos(c); };
  const auto loop = [=](const td::Tensor& x) { return td::sum(td::fori_loop(0, 90, step, x)); };
  const auto nested = [=](const td::Tensor& x) {
    return td::sum(td::fori_loop(
        0, 20,
        [=](const td::Tensor&, const td::Tensor& c) { return td::fori_loop(0, 15, step, c); }, x));
  };
  const auto branches = [=](const td::Tensor& x) {
    return td::sum(td::fori_loop(
        0, 60,
        [=](const td::Tensor& i, const td::Tensor& c) {
          return td::cond(i % 3 == 0, [&] { return td::tanh(c); }, [&] { return step(i, c); });
        },
        x));
  };
  const auto bounded = [](const td::Tensor& x) {
    return td::sum(td::while_loop([](const td::Tensor& c) { return td::sum(c) > -1e3; },
                                  [](const td::Tensor& c) { return td::sin(c) * c; }, x,
                                  {.max_iterations = 70}));
  };
  return {
      {"a loop", [=](const td::Tensor& x) { return Tensors{td::grad(loop)(x)}; }},
      {"a loop in a loop", [=](const td::Tensor& x) { return Tensors{td::grad(nested)(x)}; }},
      {"branches in a loop", [=](const td::Tensor& x) { return Tensors{td::grad(branches)(x)}; }},
      {"a bounded while_loop", [=](const td::Tensor& x) { return Tensors{td::grad(bounded)(x)}; }},
      {"second order",
       [=](const td::Tensor& x) {
         return Tensors{
             td::grad([=](const td::Tensor& y) { return td::sum(td::grad(loop)(y)); })(x)};
       }},
      {"two gradients of one loop",
       [=](const td::Tensor& x) {
         td::GradientTape tape({.persistent = true});
         tape.watch(x);
         const td::Tensor y = td::fori_loop(0, 90, step, x);
         const td::Tensor first = tape.gradient(td::sum(y), x);
         return Tensors{first, tape.gradient(td::sum(y * y), x)};
       }},
      {"a gradient read in a branch",
       [=](const td::Tensor& x) {
         // The gradient by x is a view.
         const td::Tensor g =
             td::grad([=](const td::Tensor& y) { return loop(td::transpose(y)); })(x);
         return Tensors{td::cond(td::sum(g) > 0, [&] { return g * 2; }, [&] { return g * 3; })};
       }},
      {"a gradient inside a loop",
       [=](const td::Tensor& x) {
         return Tensors{td::fori_loop(
             0, 3, [=](const td::Tensor&, const td::Tensor& c) { return c - td::grad(loop)(c); },
             x)};
       }},
      {"rows",
       [=](const td::Tensor& x) {
         td::GradientTape tape;
         const td::Tensor last = td::fori_loop(
             0, 40,
             [&](const td::Tensor& i, const td::Tensor& c) {
               return td::sin(c * td::gather(rows, i % 5));
             },
             x);
         const td::Gradient found = tape.gradient(td::sum(last), rows);
         EXPECT_TRUE(found.is_rows());
         return Tensors{found.rows().indices, found.rows().rows};
       }},
      {"recompute", [=](const td::Tensor& x) {
         const auto again = td::recompute(loop);
         return Tensors{td::grad([=](const td::Tensor& y) { return again(y); })(x)};
       }}};
}

TEST(LoopSave, ABudgetHasLoopsKeepLess) {
  const td::MachineCode machine;
  const td::Variable rows(td::reshape(td::linspace(0.5, 1.5, 40, td::f64), {5, 8}));
  const td::Tensor x = td::reshape(td::linspace(-1, 2, 24 * 8, td::f64), {24, 8});
  for (const auto& [name, f] : choosing_functions(rows)) {
    const auto usual = td::function(f);
    const td::Bytes peak = usual.plan(x).peak();
    const auto tight = td::function(f, {.budget = peak - 1});
    EXPECT_LT(tight.plan(x).peak(), peak) << name;
    const Tensors want = usual(x), got = tight(x);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(td::all(got[i] == want[i]).item<bool>()) << name << ", result " << i;
  }
}

// What does not fit either way is refused with the least that fits.
TEST(LoopSave, ABudgetNamesTheLeastThatLoopsCanKeep) {
  const td::MachineCode machine;
  const auto f = [](td::Save save) {
    return [save](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        return td::sum(
            td::fori_loop(0, 100, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c); },
                          x, {.save = save}));
      })(x);
    };
  };
  // The usual choice for 100 trips; a budget lets the loop keep fewer states.
  const td::Bytes usual = td::function(f(td::Save::slots(10))).plan(td::spec({256})).peak();
  const td::Bytes least = td::function(f(td::Save::automatic())).plan(td::spec({256})).floor();
  EXPECT_LT(least, usual);
  const auto fits = td::function(f(td::Save::automatic()), {.budget = least});
  EXPECT_EQ(fits.plan(td::spec({256})).peak(), least);
  const auto refused = td::function(f(td::Save::automatic()), {.budget = least - 1});
  try {
    refused.plan(td::spec({256}));
    ADD_FAILURE() << "it fits";
  } catch (const td::OverBudget& error) {
    EXPECT_EQ(error.floor(), least);
  }
}

// The bytes are those of the call at hand: each size has a program of its own.
TEST(LoopSave, BytesServeEverySize) {
  const td::MachineCode machine;
  const auto loss = [](const td::Tensor& x) {
    return td::sum(td::while_loop([](const td::Tensor& c) { return td::sum(c) < 100; },
                                  [](const td::Tensor& c) { return c * c + 1; }, x,
                                  {.save = td::Save::bytes(4_KiB)}));
  };
  auto f = td::function([=](const td::Tensor& x) { return td::grad(loss)(x); });
  auto open = td::function([=](const td::Tensor& x) { return td::grad(loss)(x); },
                           {.input_signature = {td::spec({td::open}, td::f64)}});
  for (const int64_t size : {2, 3, 5, 3}) {
    const td::Tensor x = td::ones({size}, td::f64);
    const td::Values want = td::differences(loss, x);
    td::expect_slopes(f(x), want, td::cat(size), 1e-5);
    td::expect_slopes(open(x), want, td::cat(size, ", open"), 1e-5);
  }
}

}  // namespace
