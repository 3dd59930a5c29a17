// What loops keep for their gradients: a plan's word on every other choice is what that choice
// takes, and bytes that are stated are kept to.
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "tests/unit/api/error_of.h"
#include "tests/unit/api/least_bytes.h"
#include "tests/unit/api/machine_code.h"
#include "tests/unit/api/slopes.h"
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
  EXPECT_EQ(
      error_of([&] { f.plan(td::spec({1024})); }),
      "gradient: save = bytes: this loop and its gradient take at least 16.1 KiB (16512 bytes) "
      "at once, and may take 1.0 KiB (1024 bytes)\n"
      "  at loop.cc:7\n"
      "  write td::Save::bytes(16512) or more");
}

// A state is more than is kept of all trips unasked. How many there are is known at the call only:
// with one state each trip would run again from the first.
TEST(LoopSave, KeepsSeveralStatesOfOpenTrips) {
  constexpr int64_t kFloats = int64_t{20} << 20;
  auto f = td::function(
      [](const td::Tensor& steps, const td::Tensor& x) {
        return td::grad([&](const td::Tensor& x) {
          return td::sum(td::fori_loop(
              0, steps.shape()[0],
              [](const td::Tensor&, const td::Tensor& c) { return td::sin(c); }, x));
        })(x);
      },
      {.input_signature = {td::spec({td::open}), td::spec({kFloats})}});
  const std::vector<std::string> choices = choices_of(f.plan(td::spec({100}), td::spec({kFloats})));
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices[0].substr(0, 10), "slots(32):");
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
