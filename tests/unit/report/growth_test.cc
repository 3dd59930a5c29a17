// What a StepMonitor says of programs that grow, one of each kind, and of programs that do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;
using td::Growth;
using td::GrowthRow;
using td::Tensor;

namespace {

std::string here(unsigned line) { return "growth_test.cc:" + std::to_string(line); }

// The growing row of a kind, made on a line.
const GrowthRow* find(const td::WatchReport& report, const std::string& kind,
                      const std::string& line) {
  for (const GrowthRow& row : report.rows)
    if (row.kind == kind && (line.empty() || row.line == line)) return &row;
  return nullptr;
}

std::string text_of(const td::WatchReport& report) {
  std::ostringstream out;
  out << report;
  return out.str();
}

// ---- growing ------------------------------------------------------------------------------------

TEST(Growth, OfTensorsIsFoundInTheExampleOfTheDocuments) {
  std::vector<td::Tensor> kept;
  const unsigned line = __LINE__ + 1;
  const auto body = [&] { kept.push_back(td::ones({100, 100})); };
  const td::WatchReport report = td::memory::watch(50, body);
  EXPECT_EQ(report.verdict(), Growth::growing);
  const GrowthRow* const row = find(report, "tensors", here(line));
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->what, "temporaries f32[100, 100]");
  EXPECT_EQ(row->count, 50);
  EXPECT_EQ(row->bytes.count, 50 * 40'000);
  EXPECT_EQ(row->count_per_step, 1);
  EXPECT_EQ(row->bytes_per_step, 40'000);
  EXPECT_EQ(row->holders, "50 handles");
  EXPECT_NE(text_of(report).find("  tensors: growing, +39.1 KiB a step (+1): 50 x temporaries "
                                 "f32[100, 100], 1.9 MiB, made at " +
                                 here(line) + ", held by 50 handles\n"),
            std::string::npos)
      << report;
  EXPECT_NE(find(report, "outside Tidemark", ""), nullptr);
}

TEST(Growth, OfFourBytesInAThousandStepsIsFound) {
  std::vector<Tensor> kept;
  int64_t step = 0;
  const unsigned line = __LINE__ + 2;
  const td::WatchReport report = td::memory::watch(1 << 14, [&] {
    if (++step % 1000 == 0) kept.push_back(td::zeros({1}));
  });
  const GrowthRow* const row = find(report, "tensors", here(line));
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->what, "temporaries f32[1]");
  EXPECT_EQ(row->count, 16);
  EXPECT_EQ(row->bytes.count, 16 * 64);
  EXPECT_NEAR(row->bytes_per_step, 0.064, 0.01);
  EXPECT_EQ(row->holders, "16 handles");
}

TEST(Growth, NamesLinesApartAndTellsWhatElseHoldsThem) {
  std::vector<Tensor> kept, views;
  const unsigned line = __LINE__ + 2;
  const td::WatchReport report = td::memory::watch(64, [&] {
    kept.push_back(td::zeros({8, 8}, td::i64));
    views.push_back(kept.back()[0]);
    const Tensor gone = td::zeros({1000});
  });
  const GrowthRow* const row = find(report, "tensors", here(line));
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->what, "temporaries i64[8, 8]");
  EXPECT_EQ(row->holders, "64 handles, 64 views");
  EXPECT_EQ(find(report, "tensors", here(line + 2)), nullptr) << report;
  EXPECT_NE(find(report, "views", here(line + 1)), nullptr) << report;
}

TEST(Growth, OfTracesIsFoundWhereFunctionsAreKept) {
  std::vector<td::Function<Tensor(const Tensor&)>> kept;
  const Tensor x = td::ones({16});
  const unsigned line = __LINE__ + 2;
  const td::WatchReport report = td::memory::watch(64, [&] {
    kept.push_back(td::function([](const Tensor& x) { return td::exp(x); }, {.name = "f"}));
    kept.back()(x);
  });
  const GrowthRow* const row = find(report, "traces", here(line));
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->growth, Growth::growing);
  EXPECT_EQ(row->what, "function \"f\"");
  EXPECT_EQ(row->count, 64);
  EXPECT_EQ(row->count_per_step, 1);
  EXPECT_EQ(row->holders, "64 functions");
  EXPECT_EQ(row->bytes.count, 64 * kept[0].cache_info().bytes.count);
  EXPECT_EQ(report.verdict(), Growth::growing);
}

TEST(Growth, OfOneFunctionsTracesFillsItsCacheAndNamesTheReason) {
  const auto f = td::function(
      [](const Tensor& x, td::Static<int> n) { return x * static_cast<float>(n); }, {.name = "f"});
  const unsigned line = __LINE__ - 2;
  const Tensor x = td::ones({16});
  int n = 0;
  const td::WatchReport report = td::memory::watch(64, [&] { f(x, n++); });
  const GrowthRow* const row = find(report, "traces", here(line));
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->growth, Growth::filling);
  EXPECT_EQ(row->filled, td::cat(f.cache_info().bytes, " of 256.0 MiB"));
  EXPECT_EQ(row->count, 64);
  const auto traced =
      std::find_if(report.traces.begin(), report.traces.end(),
                   [&](const td::TraceRow& each) { return each.line == here(line); });
  ASSERT_NE(traced, report.traces.end());
  EXPECT_EQ(traced->traced, 64);
  EXPECT_EQ(traced->reason, "argument 1: 62 became 63");
}

TEST(Growth, OfCodeIsFoundWithTheFunctionsItIsMadeFor) {
  const td::MachineCode machine;
  std::vector<td::Function<Tensor(Tensor)>> kept;
  const Tensor x = td::ones({16});
  int count = 0;
  const unsigned line = __LINE__ + 3;
  const td::WatchReport report = td::memory::watch(32, [&] {
    const int ops = ++count;
    kept.push_back(td::function([ops](Tensor x) {
      for (int bit = 0; bit < 7; ++bit) x = (ops >> bit & 1) != 0 ? td::exp(x) : td::sin(x);
      return x;
    }));
    kept.back()(x);
  });
  const GrowthRow* const row = find(report, "code", "");
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->growth, Growth::growing) << report;
  EXPECT_EQ(row->line, here(line)) << report;
  EXPECT_EQ(row->bytes, td::memory::code());
  EXPECT_GE(row->bytes_per_step, 4096) << "a page of code a step";
  EXPECT_NE(row->what.find(" in 32 traces) for functions made here"), std::string::npos) << report;
}

TEST(Growth, OfATapeThatNobodyReleasesIsFound) {
  const td::Variable v(td::ones({256}), {.name = "v"});
  const unsigned line = __LINE__ + 1;
  td::GradientTape tape({.persistent = true});
  const td::WatchReport report = td::memory::watch(64, [&] { td::sum(td::exp(v)); });
  const GrowthRow* const row = find(report, "tape", here(line));
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->growth, Growth::growing);
  EXPECT_EQ(row->count, 128);
  EXPECT_EQ(row->count_per_step, 2);
  EXPECT_EQ(row->bytes, tape.saved_bytes());
  EXPECT_EQ(row->holders, "1 tape");
  EXPECT_NE(find(report, "tensors", here(line + 1)), nullptr) << "what it saves grows, too";
}

TEST(Growth, OfThePoolsCacheIsFillingUpToTheLimit) {
  // Blocks are let go in the end of each step, and the next step asks for more than there is.
  int64_t size = 0;
  const auto body = [&] {
    size += 1 << 20;
    const Tensor x = td::zeros({size}, td::u8);
  };
  body(), body();  // Kernels are compiled.
  td::memory::release();
  const td::WatchReport report = td::memory::watch(64, body);
  const GrowthRow* const row = find(report, "cache", "");
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->growth, Growth::filling) << report;
  EXPECT_EQ(row->bytes, td::memory::cached());
  EXPECT_EQ(row->filled,
            td::cat(td::memory::cached(), " of ", td::memory::limit() - td::memory::current()));
  EXPECT_EQ(report.verdict(), Growth::filling) << report;
  td::memory::release();
}

TEST(Growth, OfABufferThatDeclaresItsSizeIsFilling) {
  std::deque<Tensor> buffer;
  td::memory::DeclaredCap cap("shuffle buffer", 100);
  const auto body = [&] {
    buffer.push_back(td::zeros({64}));
    cap.add(buffer.back());
    if (buffer.size() <= 100) return;
    cap.remove(buffer.front());
    buffer.pop_front();
  };
  const td::WatchReport half = td::memory::watch(64, body);
  EXPECT_EQ(half.verdict(), Growth::filling) << half;
  EXPECT_NE(text_of(half).find("  buffer: filling (64 of 100): 64 x shuffle buffer, 16.0 KiB\n"),
            std::string::npos)
      << half;
  EXPECT_EQ(td::memory::watch(64, body).verdict(), Growth::flat);
}

TEST(Growth, ReportsWhatFunctionsCapture) {
  const Tensor table = td::ones({1000});
  const auto f = td::function([table](const Tensor& x) { return x * table; }, {.name = "scale"});
  const std::string line = here(__LINE__ - 1);
  const td::WatchReport report = td::memory::watch(40, [&] { f(table); });
  const auto row = std::find_if(report.traces.begin(), report.traces.end(),
                                [&](const td::TraceRow& each) { return each.line == line; });
  ASSERT_NE(row, report.traces.end());
  EXPECT_EQ(row->captured, 1);
  EXPECT_EQ(row->captured_bytes.count, 4032);
  EXPECT_NE(text_of(report).find("  function \"scale\" (" + line +
                                 "): traced 1 time, the last because: first call: keeps 1 tensor "
                                 "that it captured, 3.9 KiB\n"),
            std::string::npos)
      << report;
}

TEST(Growth, OfTheUsersOwnMemoryIsARowApart) {
  std::vector<std::vector<char>> kept;
  const td::WatchReport report = td::memory::watch(300, [&] { kept.emplace_back(256 << 10, 'x'); });
  EXPECT_EQ(find(report, "outside Tidemark", "")->growth, Growth::growing) << report;
  EXPECT_EQ(report.verdict(), Growth::flat) << report;
}

TEST(Growth, CannotBeToldOfAFewSteps) {
  std::vector<Tensor> kept;
  const td::WatchReport report = td::memory::watch(31, [&] { kept.push_back(td::ones({100})); });
  EXPECT_EQ(report.verdict(), Growth::cannot_tell);
  EXPECT_EQ(text_of(report).substr(0, 26), "31 steps: cannot tell yet\n");
}

// ---- what was held ------------------------------------------------------------------------------

TEST(WatchHistory, HasEveryStepOfAShortLoop) {
  std::vector<td::Tensor> kept;
  const int64_t before = td::memory::current().count;
  const td::WatchReport report =
      td::memory::watch(20, [&] { kept.push_back(td::ones({100, 100})); });
  ASSERT_EQ(report.history.size(), 20U);
  for (int64_t i = 0; i < 20; ++i) {
    const td::WatchPoint& point = report.history[static_cast<size_t>(i)];
    EXPECT_EQ(point.step, i + 1);
    EXPECT_EQ(point.in_use.count, before + (i + 1) * 40'000);
  }
}

TEST(WatchHistory, OfALongLoopIsBoundedAndEvenlyApart) {
  td::StepMonitor monitor;
  for (int64_t step = 1; step <= 5000; ++step) {
    monitor.step();
    if (step % 100 == 0) {
      ASSERT_LE(monitor.report().history.size(), 512U) << step;
    }
  }
  const std::vector<td::WatchPoint> history = monitor.report().history;
  EXPECT_GE(history.size(), 256U);
  EXPECT_EQ(history.back().step, 5000);
  for (size_t i = 1; i + 1 < history.size(); ++i)
    EXPECT_EQ(history[i].step - history[i - 1].step, history[1].step - history[0].step);
}

// ---- flat ---------------------------------------------------------------------------------------

constexpr int64_t kSteps = 600;

void expect_flat(const std::function<void()>& body) {
  const td::WatchReport report = td::memory::watch(kSteps, body);
  EXPECT_EQ(report.verdict(), Growth::flat) << report;
}

TEST(Flat, IsEagerArithmetic) {
  Tensor x = td::ones({100});
  expect_flat([&] { x = td::tanh(x * 2 + 1); });
}

TEST(Flat, IsAFunctionCalledAgainAndAgain) {
  const auto f = td::function([](const Tensor& x) { return td::softmax(x * x); });
  Tensor x = td::ones({10, 100});
  expect_flat([&] { x = f(x); });
}

TEST(Flat, IsAFunctionOfManySizes) {
  const auto f = td::function([](const Tensor& x) { return td::sum(td::exp(x)); });
  int64_t n = 0;
  expect_flat([&] { f(td::zeros({2 + n++ % 13})); });
}

TEST(Flat, IsAnOptimizerWhoseSlotsComeWithTheFirstStep) {
  const td::Variable w(td::ones({100}), {.name = "w"});
  std::unique_ptr<td::Variable> momentum;
  expect_flat([&] {
    td::GradientTape tape;
    const Tensor loss = td::sum(td::square(w));
    const Tensor gradient = tape.gradient(loss, w);
    if (momentum == nullptr) momentum = std::make_unique<td::Variable>(td::zeros_like(gradient));
    momentum->assign(*momentum * 0.9F + gradient);
    w.assign_sub(*momentum * 1e-3F);
  });
}

TEST(Flat, IsATrainingStepInAFunction) {
  const td::Variable w(td::ones({100}), {.name = "w"});
  const auto step = td::function([w](const Tensor& x) {
    td::GradientTape tape;
    const Tensor loss = td::mean(td::square(w * x - 1));
    w.assign_sub(tape.gradient(loss, w) * 0.1F);
    return loss;
  });
  const Tensor x = td::ones({100});
  expect_flat([&] { step(x); });
}

TEST(Flat, IsAPersistentTapeThatIsReset) {
  const td::Variable v(td::ones({64}), {.name = "v"});
  td::GradientTape tape({.persistent = true});
  expect_flat([&] {
    tape.gradient(td::sum(td::exp(v)), v);
    tape.reset();
  });
}

TEST(Flat, IsASawTooth) {
  std::vector<Tensor> kept;
  expect_flat([&] {
    kept.push_back(td::ones({50}));
    if (kept.size() == 37) kept.clear();
  });
}

TEST(Flat, IsABufferOfTheLastOnes) {
  std::deque<Tensor> last;
  expect_flat([&] {
    last.push_back(td::ones({50}));
    if (last.size() > 100) last.pop_front();
  });
}

TEST(Flat, AreViewsAndSlices) {
  const Tensor x = td::ones({64, 64});
  Tensor kept;
  int64_t i = 0;
  expect_flat([&] { kept = x[i++ % 64]; });
}

TEST(Flat, IsALoopInAFunction) {
  const auto f = td::function([](const Tensor& n) {
    return td::fori_loop(
        0, n, [](const Tensor&, const Tensor& x) { return x * 0.5F + 1; }, td::ones({32}));
  });
  int i = 0;
  expect_flat([&] { f(1 + i++ % 7); });
}

TEST(Flat, AreDrawsAndCallsOfTwoKinds) {
  const auto f = td::function([](const Tensor& x) { return td::sum(x * x); });
  int i = 0;
  expect_flat([&] { f(td::cast(td::random::normal({64}), i++ % 2 == 0 ? td::f32 : td::f64)); });
}

}  // namespace
