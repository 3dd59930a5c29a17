// Functions: traced once, planned, run in one arena, the same bits as eager code.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using td::error_of;

TEST(Function, GivesTheBitsOfEagerCode) {
  const auto f = [](const td::Tensor& x, const td::Tensor& y) {
    const td::Tensor a = td::matmul(x, y) + 1.5;
    return td::softmax(td::tanh(a) * a, -1) / td::sum(a, 0, td::keepdims);
  };
  const auto compiled = td::function(f, {.name = "f"});
  const td::Tensor x = td::random::normal({37, 65}, {.key = td::random::Key(1)});
  const td::Tensor y = td::random::normal({65, 29}, {.key = td::random::Key(2)});
  const td::Tensor expected = f(x, y);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(td::identical(compiled(x, y), expected));
  EXPECT_EQ(compiled.cache_info().traces, 1);
}

TEST(Function, RunsInThePlannedBytes) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) {
    const td::Tensor a = td::exp(x);
    const td::Tensor b = td::sin(a) + a;
    return td::transpose(b) * a;
  });
  const td::Tensor x = td::random::normal({100, 100});
  const td::Plan plan = f.plan(x);
  const auto [result, profile] = f.profile(x);
  EXPECT_EQ(profile.touched, plan.peak());
  EXPECT_EQ(profile.planned, plan.peak());
  const td::MemoryScope scope("call");
  const td::Tensor again = f(x);
  EXPECT_EQ(scope.peak(), plan.peak());
  EXPECT_EQ(scope.current(), again.size_bytes());
}

// What a step overwrites on the way to a result is made in the result's own bytes.
TEST(Function, WorksInTheBytesOfItsResults) {
  const td::MachineCode machine;
  const td::Tensor x = td::random::normal({64, 32}, {.key = td::random::Key(1)});
  const auto drawn = [](const td::Tensor& each) {
    return td::random::normal(each.shape(), {.key = td::random::Key(2)}) * 2 + each;
  };
  const auto summed = [](const td::Tensor& each) { return td::tanh(td::cumsum(each, 0)) * each; };
  const auto chosen = [](const td::Tensor& each) {
    return td::cond(
        td::sum(each) > 1e9, [&] { return td::exp(td::cumsum(each, 0)); },
        [&] { return td::cumsum(td::cumsum(each, 1), 0) + 1; });
  };
  EXPECT_EQ(td::function(drawn).plan(x).peak(), td::Bytes(64 * 32 * 4 + 64));  // And the key.
  EXPECT_EQ(td::function(summed).plan(x).peak(), td::Bytes(64 * 32 * 4));
  EXPECT_EQ(td::function(chosen).profile(x).second.touched, td::function(chosen).plan(x).peak());
  EXPECT_TRUE(td::identical(td::function(drawn)(x), drawn(x)));
  EXPECT_TRUE(td::identical(td::function(summed)(x), summed(x)));
  EXPECT_TRUE(td::identical(td::function(chosen)(x), chosen(x)));
}

TEST(Function, ReadsVariablesAndWritesThemInPlace) {
  td::Variable v(td::zeros({1000}), {.name = "v"});
  const auto step = td::function([v](const td::Tensor& x) {
    v.assign_add(x);
    return td::sum(v);
  });
  const td::Tensor x = td::ones({1000});
  EXPECT_EQ(step(x).item<float>(), 1000);
  EXPECT_EQ(step(x).item<float>(), 2000);
  EXPECT_EQ(v.value().to_vector<float>()[999], 2);
  EXPECT_EQ(step.plan(x).of(td::ByteClass::shadow), td::Bytes(0));
}

TEST(Function, TakesNumbersAsRunTimeValues) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& rate) { return x * rate; });
  const td::Tensor x = td::constant({1, 2, 3}, td::f32);
  EXPECT_TRUE(td::identical(f(x, 0.1), x * 0.1));
  EXPECT_TRUE(td::identical(f(x, 0.7), x * 0.7));
  EXPECT_EQ(f.cache_info().traces, 1);
  EXPECT_TRUE(td::identical(f(x, 2), x * 2));
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(Function, UsesTheBytesOfArgumentsMovedIn) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2; });
  td::Tensor x = td::ones({1000});
  const td::Tensor expected = td::exp(x) * 2;
  const td::MemoryScope scope("call");
  const td::Tensor y = f(std::move(x));
  EXPECT_EQ(scope.peak(), td::Bytes(0));
  EXPECT_TRUE(td::identical(y, expected));
}

TEST(Function, MakesWhatAResultIsComputedFromWhereTheResultGoes) {
  const td::MachineCode machine;
  // Few rows: no instruction set packs panels of w for them, which would take scratch.
  const td::Tensor x = td::random::normal({16, 48}), w = td::random::normal({48, 48});
  const int64_t bytes = 16 * 48 * 4;
  const auto layer = td::function([=](const td::Tensor& a) { return td::relu(td::matmul(a, w)); });
  EXPECT_EQ(layer.plan(x).peak().count, bytes);
  EXPECT_TRUE(td::identical(layer(x), td::relu(td::matmul(x, w))));
  // Both products end in the one kernel that makes both results.
  const auto both = [=](const td::Tensor& a) {
    const td::Tensor first = td::matmul(a, w);
    return std::pair{td::tanh(td::matmul(first, w)) + first, td::relu(first)};
  };
  const auto f = td::function(both);
  EXPECT_EQ(f.plan(x).peak().count, 2 * bytes);
  EXPECT_TRUE(td::identical(f(x).first, both(x).first));
  EXPECT_TRUE(td::identical(f(x).second, both(x).second));
  EXPECT_EQ(f.profile(x).second.touched, f.plan(x).peak());
  // The bytes of an argument given away are better still.
  const auto g = td::function([=](const td::Tensor& a) { return td::matmul(a, w) + a; });
  const td::Plan given = g.plan(td::spec({16, 48}).donated());
  EXPECT_EQ(given.of(td::ByteClass::outputs).count, 0);
  EXPECT_EQ(given.peak().count, bytes);
}

TEST(Function, SaysThatATracedTensorHasNoValue) {
  const auto f = td::function(
      [](const td::Tensor& x) {
        const td::Tensor y = x * 2;
        return y.item<float>() > 0 ? y : x;
      },
      {.name = "f"});
  const std::string error = error_of([&] { f(td::ones({})); });
  EXPECT_EQ(error.find("the value of a traced tensor was read: f32[], made at "
                       "function_test.cc:"),
            0)
      << error;
  EXPECT_NE(error.find("inside function \"f\", has none until the function runs"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("td::cond"), std::string::npos) << error;
}

TEST(Function, SaysThatATracedTensorWasTakenOut) {
  std::vector<td::Tensor> kept;
  const auto f = td::function(
      [&](const td::Tensor& x) {
        kept.push_back(x + 1);
        return x;
      },
      {.name = "f"});
  f(td::ones({3}));
  ASSERT_EQ(kept.size(), 1U);
  const std::string error = error_of([&] { kept[0] + 1; });
  EXPECT_EQ(error.find("a tensor made inside function \"f\" (function_test.cc:"), 0) << error;
  const auto g = td::function([&](const td::Tensor& x) { return x + kept[0]; });
  const std::string leaked = error_of([&] { g(td::ones({3})); });
  EXPECT_EQ(leaked.find("a tensor made inside function \"f\" (function_test.cc:"), 0) << leaked;
  EXPECT_NE(leaked.find("td::TensorArray"), std::string::npos) << leaked;
}

TEST(Function, CapturesTensorsByTheirBytes) {
  td::Tensor big = td::ones({1 << 20});
  const auto f = td::function([&](const td::Tensor& x) { return x + big; });
  const td::Tensor x = td::ones({1 << 20});
  const td::Bytes before = td::memory::current();
  EXPECT_EQ(f(x).to_vector<float>()[7], 2);
  EXPECT_EQ(td::memory::current(), before);
  EXPECT_LT(f.cache_info().bytes, td::Bytes(8 << 10));
  big = td::zeros({1 << 20});
  EXPECT_EQ(f(x).to_vector<float>()[7], 2);  // The tensor of that moment.
}

TEST(Function, FindsCapturedStateThatChanged) {
  int counter = 1;
  const auto f = td::function([&](const td::Tensor& x) { return x * counter; }, {.name = "f"});
  const td::Tensor x = td::ones({3});
  f(x);
  EXPECT_EQ(f.check_captures(), "");
  counter = 5;
  const std::string changed = f.check_captures();
  EXPECT_NE(changed.find("function_test.cc:"), std::string::npos) << changed;
  EXPECT_NE(changed.find(": 1 was frozen into the program, and is 5 now\n"), std::string::npos)
      << changed;
  EXPECT_NE(f.report().find("number 1 frozen at function_test.cc:"), std::string::npos)
      << f.report();
}

TEST(Function, FindsCapturedTensorsThatWereAssignedAnew) {
  td::Tensor c = td::ones({2}), big = td::zeros({3, 4});
  const auto f = td::function(
      [&](const td::Tensor& x) {
        const td::Tensor own = td::constant({1, 2}, td::f32);  // Another tensor in each trace.
        return x * own + c + td::sum(big);
      },
      {.name = "f"});
  const td::Tensor x = td::zeros({2});
  f(x);
  EXPECT_EQ(f.check_captures(), "");
  c = td::ones({2});  // The same elements.
  EXPECT_EQ(f.check_captures(), "");
  c = td::full({2}, 10.0f);
  std::string changed = f.check_captures();
  EXPECT_EQ(changed.find("the captured Tensor f32[2] [1. 1.] of function_test.cc:"), 0U) << changed;
  EXPECT_NE(changed.find(" was frozen into the program, and is f32[2] [10. 10.] of "
                         "function_test.cc:"),
            std::string::npos)
      << changed;
  c = td::ones({2});
  big = td::zeros({5, 4});
  changed = f.check_captures();
  EXPECT_EQ(changed.find("the captured Tensor f32[3, 4] of function_test.cc:"), 0U) << changed;
}

TEST(Function, WarnsOfCapturedTensorsByItself) {
  std::vector<std::string> warnings;
  td::on_warning([&](std::string_view text, td::Source) { warnings.emplace_back(text); });
  td::Tensor c = td::ones({2});
  const auto f = td::function([&](const td::Tensor& x) { return x + c; },
                              {.name = "f", .check_captures = true});
  f(td::zeros({2}));
  c = td::full({2}, 10.0f);
  f(td::zeros({2}));
  td::on_warning({});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].find("function \"f\" has captured state that changed:\n"), 0U)
      << warnings[0];
}

TEST(Function, WarnsOfCapturedStateByItself) {
  std::vector<std::string> warnings;
  td::on_warning([&](std::string_view text, td::Source) { warnings.emplace_back(text); });
  int counter = 0;
  const auto f = td::function([&](const td::Tensor& x) { return x * counter; },
                              {.name = "f", .check_captures = true});
  const td::Tensor x = td::ones({3});
  for (int i = 0; i < 8; ++i) {
    ++counter;
    f(x);
  }
  td::on_warning({});
  EXPECT_EQ(warnings.size(), 3U);  // Calls 2, 4 and 8.
}

TEST(Function, TellsWhyItTracedAgain) {
  std::vector<std::string> warnings;
  td::on_warning([&](std::string_view text, td::Source) { warnings.emplace_back(text); });
  const auto f = td::function([](const td::Tensor& x, td::Static<int> n) { return x * int{n}; },
                              {.name = "f"});
  for (int i = 0; i < 8; ++i) f(td::ones({3}), i);
  td::on_warning({});
  const td::CacheInfo info = f.cache_info();
  EXPECT_EQ(info.traces, 8);
  EXPECT_EQ(info.entries.back().reason, "first call");
  EXPECT_EQ(info.entries.front().reason, "argument 1: 6 became 7");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].find("function \"f\" was traced 6 times in a row; the last time because "
                             "of: argument 1: 4 became 5"),
            0U)
      << warnings[0];
}

TEST(Function, KeepsItsCacheBounded) {
  const auto f = td::function([](const td::Tensor& x, td::Static<int> n) { return x * int{n}; },
                              {.cache_limit = td::Bytes(20000)});
  td::on_warning([](std::string_view, td::Source) {});
  for (int i = 0; i < 50; ++i) f(td::ones({3}), i);
  td::on_warning({});
  const td::CacheInfo info = f.cache_info();
  EXPECT_GT(info.evictions, 0);
  EXPECT_LE(info.bytes, td::Bytes(30000));
  f.clear_cache();
  EXPECT_EQ(f.cache_info().entries.size(), 0U);
}

// How many bytes a trace takes is not of interest here.
std::string without_held_bytes(const std::string& warning) {
  return std::regex_replace(warning, std::regex(" in [0-9.]+ (B|KiB|MiB) of"), " in N of");
}

TEST(Function, WarnsOnceWhereItsCacheIsTooSmall) {
  std::vector<std::string> warnings;
  td::on_warning([&](std::string_view text, td::Source) { warnings.emplace_back(text); });
  const unsigned line = __LINE__ + 1;
  const auto f = td::function([](const td::Tensor& x, td::Static<int> n) { return x * int{n}; },
                              {.name = "f", .cache_limit = td::Bytes(1)});
  for (int i = 0; i < 4; ++i) f(td::ones({3}), 1);
  EXPECT_EQ(f.cache_info().entries.size(), 1U);  // One trace stays, however small the limit.
  for (int i = 0; i < 4; ++i) f(td::ones({3}), i % 2);
  td::on_warning({});
  ASSERT_EQ(warnings.size(), 1U) << warnings.back();
  EXPECT_EQ(without_held_bytes(warnings[0]),
            td::cat("function \"f\" (function_test.cc:", line,
                    ") compiles a program again that its cache has dropped: the cache holds 1 "
                    "trace and 0 programs in N of its limit of 1 B, has dropped 2 traces and 2 "
                    "programs, and made 1 of them again\n  give it a larger limit, such as "
                    "{.cache_limit = 1_MiB}; cache_info() lists what it holds"));
  EXPECT_EQ(f.cache_info().remade, 3);
}

// Programs that fit the limit are all kept, though they take more than half of it.
TEST(Function, KeepsTheProgramsOfAllSizesThatFit) {
  const auto bytes_of = [](int64_t limit) {
    const auto f =
        td::function([](const td::Tensor& x) { return td::sum(x * 2); },
                     {.input_signature = {td::spec({td::open})}, .cache_limit = td::Bytes(limit)});
    for (int round = 0; round < 2; ++round)
      for (int64_t n = 2; n < 10; ++n) f(td::ones({n}));
    EXPECT_EQ(f.cache_info().remade, 0);
    EXPECT_EQ(f.cache_info().evictions, 0);
    return f.cache_info().bytes.count;
  };
  const int64_t needed = bytes_of(int64_t{1} << 30);
  EXPECT_EQ(bytes_of(needed + needed / 4), needed);  // A program takes more until it is emitted.
}

TEST(Function, WarnsOnceWhereProgramsOfSizesDoNotFit) {
  std::vector<std::string> warnings;
  td::on_warning([&](std::string_view text, td::Source) { warnings.emplace_back(text); });
  const unsigned line = __LINE__ + 1;
  const auto f = td::function(
      [](const td::Tensor& x) { return td::sum(x * 2); },
      {.name = "f", .input_signature = {td::spec({td::open})}, .cache_limit = td::Bytes(1)});
  for (const int64_t n : {3, 4, 5}) f(td::ones({n}));
  EXPECT_TRUE(warnings.empty());  // Nothing was made twice so far.
  EXPECT_EQ(f.cache_info().remade, 0);
  for (const int64_t n : {3, 4, 5}) f(td::ones({n}));
  td::on_warning({});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(without_held_bytes(warnings[0]),
            td::cat("function \"f\" (function_test.cc:", line,
                    ") compiles a program again that its cache has dropped: the cache holds 1 "
                    "trace and 1 program in N of its limit of 1 B, has dropped 0 traces and 3 "
                    "programs, and made 1 of them again\n  give it a larger limit, such as "
                    "{.cache_limit = 1_MiB}; cache_info() lists what it holds"));
  EXPECT_EQ(f.cache_info().remade, 3);
  EXPECT_EQ(f.cache_info().evictions, 5);
  std::ostringstream text;
  text << f.cache_info();
  EXPECT_NE(
      text.str().find(", 5 dropped, 3 made again after that: give it a larger .cache_limit\n"),
      std::string::npos)
      << text.str();
}

TEST(Function, PrintsAndChecksInOrder) {
  std::string printed;
  td::set_print_sink([&](std::string_view line) { printed += line; });
  td::Variable v(td::zeros({}), {.name = "v"});
  const auto f = td::function([&](const td::Tensor& x) {
    td::print("x", x);
    v.assign_add(x);
    td::print("v", v);
    td::check_numerics(td::log(x), "log of x");
    return v.value();
  });
  EXPECT_EQ(f(1.0).item<float>(), 1);
  EXPECT_EQ(printed, "x 1.0\nv 1.0\n");
  EXPECT_NE(error_of([&] { f(-1.0); }).find("log of x"), std::string::npos);
  EXPECT_EQ(v.value().item<float>(), 1);  // A failed call changes nothing.
  EXPECT_EQ(f(2.0).item<float>(), 3);
  td::set_print_sink({});
}

TEST(Function, CallsOtherFunctions) {
  const auto inner = td::function([](const td::Tensor& x) { return std::pair{x + 1, x * 2}; });
  const auto outer = td::function([&](const td::Tensor& x) {
    auto [a, b] = inner(x);
    return a * b;
  });
  EXPECT_EQ(outer(td::constant(3.0)).item<float>(), 24);
  EXPECT_EQ(inner.cache_info().traces, 0);  // Written out in the outer one.
}

TEST(Function, RecursionWithoutEndIsAnError) {
  std::function<td::Tensor(const td::Tensor&)> again;
  const auto f = td::function([&](const td::Tensor& x) { return again(x) + 1; }, {.name = "f"});
  again = [&](const td::Tensor& x) { return f(x); };
  EXPECT_EQ(error_of([&] {
              f(td::ones({}));
            }).find("function \"f\" calls itself while it is traced, in an endless recursion"),
            0U);
}

TEST(Function, MakesVariablesInItsFirstTrace) {
  const td::MachineCode machine;
  std::optional<td::Variable> total;
  const auto f = td::function([&](const td::Tensor& x) {
    if (!total) total = td::Variable(td::zeros({100, 100}), {.name = "total"});
    total->assign_add(x);
    return td::sum(*total);
  });
  const td::Bytes before = td::memory::current();
  f.plan(td::spec({100, 100}));
  EXPECT_EQ(td::memory::current(), before);  // Its bytes are taken at the first run.
  EXPECT_EQ(f(td::ones({100, 100})).item<float>(), 10000);
  EXPECT_EQ(f(td::ones({100, 100})).item<float>(), 20000);
  const auto bad = td::function([&](const td::Tensor& x) {
    td::Variable v(td::zeros({}), {.name = "v"});
    return x + v;
  });
  bad(td::ones({2}));
  const std::string error = error_of([&] { bad(td::ones({3, 1})); });
  EXPECT_EQ(error.find("Variable \"v\" was made in a function that is traced again (argument 0: "
                       "f32[2] became f32[3, 1]): each trace would make another"),
            0U)
      << error;
}

TEST(Function, RunsInMemoryOfTheCaller) {
  const auto f = td::function([](const td::Tensor& x) { return td::transpose(td::exp(x)) * x; });
  const td::Tensor x = td::random::normal({50, 50});
  const td::Tensor expected = td::transpose(td::exp(x)) * x;
  const td::Plan plan = f.plan(x);
  std::vector<std::byte> memory(static_cast<size_t>(plan.arena().count) + 64);
  auto* begin =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  const td::Bytes before = td::memory::current();
  const td::Tensor y = f.run_in(plan, std::span(begin, static_cast<size_t>(plan.arena().count)), x);
  EXPECT_EQ(td::memory::current(), before);
  EXPECT_TRUE(td::identical(y, expected));
  EXPECT_NE(
      error_of([&] { f.run_in(plan, std::span(begin, 64), x); }).find("run_in: the plan needs"),
      std::string::npos);
}

TEST(Function, MayBeCalledFromManyThreads) {
  const auto f = td::function([](const td::Tensor& x) { return td::exp(td::sin(x)) * x; });
  td::Variable v(td::zeros({}), {.name = "v"});
  const auto count = td::function([v](const td::Tensor& x) {
    v.assign_add(x);
    return v.value();
  });
  const td::Tensor x = td::random::normal({1000});
  const td::Tensor expected = td::exp(td::sin(x)) * x;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        if (!td::identical(f(x), expected)) ++wrong;
        count(1.0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(v.value().item<float>(), 400);
}

TEST(Function, IsFlatOverCalls) {
  const auto f = td::function([](const td::Tensor& x) { return td::sum(td::exp(x), 0); });
  const td::Tensor x = td::random::normal({30, 40});
  for (int i = 0; i < 10; ++i) f(x);
  const td::Bytes before = td::memory::current();
  for (int i = 0; i < 1000; ++i) f(x);
  EXPECT_EQ(td::memory::current(), before);
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(Function, DrawsAnewAtEachCall) {
  td::random::seed(7);
  const std::vector<td::Tensor> eager = {td::random::normal({5}), td::random::normal({5}),
                                         td::random::normal({5}), td::random::normal({5})};
  td::random::seed(7);
  const auto f =
      td::function([] { return std::pair{td::random::normal({5}), td::random::normal({5})}; });
  for (size_t i = 0; i < 2; ++i) {
    const auto [a, b] = f();
    EXPECT_TRUE(td::identical(a, eager[2 * i]));
    EXPECT_TRUE(td::identical(b, eager[2 * i + 1]));
  }
  EXPECT_EQ(f.cache_info().traces, 1);
  // Functions and eager code take turns on one generator.
  const td::Tensor next = td::random::normal({5});
  td::random::seed(7);
  for (int i = 0; i < 4; ++i) td::random::normal({5});
  EXPECT_TRUE(td::identical(next, td::random::normal({5})));
}

TEST(Function, MakesKeysOfRunTimeNumbers) {
  const auto f = td::function([](const td::Tensor& step) {
    return td::random::uniform({4}, {.key = td::random::Key(3).fold_in(step)});
  });
  for (int step = 0; step < 3; ++step) {
    const td::Tensor expected = td::random::uniform({4}, {.key = td::random::Key(3).fold_in(step)});
    EXPECT_TRUE(td::identical(f(step), expected));
  }
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(Function, GivesBackWhatItWasGiven) {
  const auto f = td::function([](const td::Tensor& a, const td::Tensor& b, const td::Tensor& c) {
    return std::tuple{a, b, c, td::transpose(a)};
  });
  const td::Tensor a = td::random::normal({3, 4});
  const auto [x, flag, number, turned] = f(a, true, 2.5);
  EXPECT_TRUE(td::identical(x, a));
  EXPECT_TRUE(flag.item<bool>());
  EXPECT_EQ(number.item<double>(), 2.5);
  EXPECT_EQ(number.dtype(), td::f32);
  EXPECT_TRUE(td::identical(turned, td::transpose(a)));
  EXPECT_FALSE(std::get<1>(f(a, false, 1.0)).item<bool>());
}

// A sum over a view that repeats one element multiplies; a tensor full of one number is added up.
TEST(Function, SumsTensorsOfOneNumberAsEagerCodeDoes) {
  const auto f = [](const td::Tensor& x) {
    return std::tuple{td::sum(td::full({100003}, 0.1)), td::sum(td::full({100003}, x)),
                      td::sum(td::repeat(x, 100003)),
                      td::sum(td::full({3, 50001}, x) * 1 + td::zeros({50001}), 1)};
  };
  const td::Tensor x = td::constant(0.3);
  const auto expected = f(x);
  const auto got = td::function(f)(x);
  EXPECT_TRUE(td::identical(std::get<0>(got), std::get<0>(expected)));
  EXPECT_TRUE(td::identical(std::get<1>(got), std::get<1>(expected)));
  EXPECT_TRUE(td::identical(std::get<2>(got), std::get<2>(expected)));
  EXPECT_TRUE(td::identical(std::get<3>(got), std::get<3>(expected)));
}

}  // namespace
