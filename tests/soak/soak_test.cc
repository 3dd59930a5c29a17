// Functions called, made and dropped very often. After two passes over everything, the process
// holds at 2N rounds what it held at N: every account, every byte of the heap, code, mappings,
// threads and open files, to the byte; and its resident pages within 64 KiB.
//
// N is 10^4 calls, or 10^6 with TIDEMARK_TEST_COUNTS=full.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/soak/flat.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;
using td::testing::drawn;
using td::testing::expect_flat;
using td::testing::Footprint;
using td::testing::footprint;
using td::testing::full_counts;
using td::testing::repeat;

// The compiler keeps what it learns for 64 compiles: rounds that compile come in multiples of that.
constexpr int64_t kCompiles = 64;
int64_t many() { return full_counts() ? 1'000'000 : 10'000; }

TEST(Soak, Calls) {
  const auto f = td::function(
      [](const td::Tensor& x, const td::Tensor& y) { return td::sum(td::exp(x) * y, 0); });
  const td::Tensor x = drawn({30, 40});
  expect_flat(many(), [&] { f(x, 0.5); });
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(Soak, CallsOfUnfusedFunctions) {
  const auto f = td::function([](const td::Tensor& x) { return td::softmax(td::matmul(x, x)) - x; },
                              {.jit = false});
  const td::Tensor x = drawn({8, 8});
  expect_flat(many() / 5, [&] { f(x); });
}

struct Batch {
  td::Tensor image;
  std::vector<td::Tensor> labels;
};

TEST(Soak, CallsWithStructures) {
  const auto f = td::function([](const Batch& batch, td::Dim n) {
    return std::tuple{batch.image + batch.labels[0], td::zeros({n}) + td::sum(batch.labels[1])};
  });
  const Batch batch{drawn({5, 6}), {drawn({6}), drawn({3})}};
  expect_flat(many() / 5, [&] { f(batch, 7); });
}

TEST(Soak, CallsThatUseUpTheirArguments) {
  const auto f = td::function([](const td::Tensor& x) { return td::tanh(x) * 2; });
  expect_flat(many() / 5, [&] {
    td::Tensor x = td::zeros({100});
    x = f(std::move(x));
  });
}

TEST(Soak, VariablesWritten) {
  const td::Variable mean(td::zeros({64}), {.name = "mean"});
  const td::Variable count(td::zeros({}), {.name = "count"});
  const auto f = td::function([=](const td::Tensor& x) {
    count.assign_add(1);
    mean.assign_add((x - mean) / count);
    return td::sum(mean.value());
  });
  const td::Tensor x = drawn({64});
  expect_flat(many() / 2, [&] { f(x); });
}

// A snapshot that is alive makes each write copy first.
TEST(Soak, VariablesWrittenWhileSnapshotsLive) {
  const td::Variable v(td::zeros({1000}), {.name = "v"});
  const auto f = td::function([=](const td::Tensor& x) { v.assign_add(x); });
  td::Tensor snapshot;
  expect_flat(many() / 5, [&] {
    snapshot = v.value();
    f(1.0);
  });
}

TEST(Soak, ControlFlow) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& n) {
    const td::Tensor looped =
        td::fori_loop(0, n, [](const td::Tensor&, const td::Tensor& c) { return c * 0.5 + 1; }, x);
    const td::Tensor chosen =
        td::cond(td::sum(x) > 0, [&] { return td::matmul(x, looped); }, [&] { return x; });
    return td::map_fn([](const td::Tensor& row) { return td::softmax(row); }, chosen,
                      {.parallel_iterations = 2});
  });
  const td::Tensor x = drawn({8, 8});
  int64_t call = 0;
  expect_flat(many() / 10, [&] {
    ++call;
    f(call % 2 == 0 ? x : -x, static_cast<int>(call % 5));
  });
}

TEST(Soak, Draws) {
  const auto f = td::function([](td::Dim n) { return td::random::normal({n}); });
  expect_flat(many() / 5, [&] { f(100); });
}

// What is thrown in the middle of a call leaves nothing behind.
TEST(Soak, CallsThatFail) {
  const td::Variable v(td::zeros({200}), {.name = "v"});
  const auto f = td::function([=](const td::Tensor& x, const td::Tensor& index) {
    const td::Tensor y = td::exp(x) + v;
    td::check_numerics(y, "y");
    v.assign(y);
    return td::gather(y, index, 0);
  });
  const td::Tensor x = drawn({200}), bad = x / 0.0;
  const td::Tensor inside = td::constant({1, 2}), outside = td::constant({1, 200});
  int64_t failed = 0;
  expect_flat(many() / 10, [&] {
    for (const auto& [value, index] :
         {std::pair{bad, inside}, {x, outside}, {x * 0 - 50, inside}}) {
      try {
        f(value, index);
      } catch (const td::UserError&) {
        ++failed;
      }
    }
  });
  EXPECT_EQ(failed, 2 * (2 + 2 * (many() / 10)));
}

// The limit refuses the call before its first step.
TEST(Soak, CallsThatDoNotFit) {
  const auto f = td::function([](const td::Tensor& x) { return td::matmul(td::exp(x), x) + 1; });
  const td::Tensor x = drawn({100, 100});
  f(x);
  const td::Bytes limit = td::memory::limit();
  td::memory::release();
  td::memory::set_limit(td::memory::current() + td::Bytes(60'000));
  int64_t refused = 0;
  expect_flat(many() / 10, [&] {
    try {
      f(x);
    } catch (const td::OutOfMemory&) {
      ++refused;
    }
  });
  td::memory::set_limit(limit);
  EXPECT_EQ(refused, 2 + 2 * (many() / 10));
}

TEST(Soak, FunctionsMadeCalledAndDropped) {
  const td::Tensor x = drawn({30, 40}), w = drawn({40, 5});
  expect_flat((full_counts() ? 160 : 16) * kCompiles, [&] {
    const td::Variable total(td::zeros({5}), {.name = "total"});
    const auto f = td::function([=](const td::Tensor& a) {
      total.assign_add(td::sum(td::tanh(td::matmul(a, w)), 0));
      return td::fori_loop(
          0, 3, [](const td::Tensor&, const td::Tensor& c) { return c * 2; }, total.value());
    });
    f(x);
    f.plan(td::spec({10, 40}));
    f(x);
  });
}

// Machine code that no other function has: what one function compiled goes with it.
TEST(Soak, KernelsMadeAndDropped) {
  const td::Tensor x = drawn({1000});
  double number = 0;
  expect_flat((full_counts() ? 8 : 1) * kCompiles, [&] {
    const auto f = td::function([&](const td::Tensor& a) {
      td::Tensor y = a;
      for (int i = 0; i < 5; ++i) y = td::sin(y) * number++ + td::sqrt(td::abs(y));
      return y;
    });
    f(x);
  });
}

TEST(Soak, RandomLengths) {
  const td::Tensor w = drawn({24, 24}, 7);
  const auto f = td::function([w](const td::Tensor& x) {
    const td::Tensor h = td::tanh(td::matmul(x, w) + 0.5);
    return td::softmax(td::mean(h, 0)) + td::sum(x);
  });
  const td::Tensor longest = drawn({1002, 24});
  const auto call = [&](int64_t length) { f(longest[td::Slice{.begin = 0, .end = length}]); };
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t length = 2; length < 1002; ++length) call(length);
  uint64_t state = 1;
  expect_flat(full_counts() ? 100'000 : 20'000, [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    call(static_cast<int64_t>(2 + (state >> 33) % 1000));
  });
  EXPECT_LE(f.cache_info().traces, 2);
}

// All threads are alive at once in every round, so that what the C library keeps of ended ones is
// the same each time.
void call_from_threads(int threads, const std::function<void()>& call) {
  std::barrier all(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      all.arrive_and_wait();
      for (int i = 0; i < 10; ++i) call();
      all.arrive_and_wait();
    });
  }
  for (std::thread& thread : running) thread.join();
}

TEST(Soak, ThreadsCallOneFunction) {
  mallopt(M_ARENA_MAX, 1);  // Which heap a thread gets depends on who comes first.
  const td::Variable v(td::zeros({32}), {.name = "v"});
  const auto f = td::function([=](const td::Tensor& x) {
    v.assign_add(x);
    return td::sum(td::exp(x) * v.value());
  });
  const td::Tensor x = drawn({32});
  const auto round = [&] { call_from_threads(100, [&] { f(x); }); };
  repeat(2, round);
  const int64_t rounds = full_counts() ? 100 : 5;
  repeat(rounds, round);
  Footprint once = footprint();
  repeat(rounds, round);
  Footprint twice = footprint();
  // Stacks of ended threads are kept by the C library, as many as came together.
  once.mappings = twice.mappings = 0;
  EXPECT_EQ(twice, once);
}

// 100 epochs and another 100: what the first of them took is used again by all.
TEST(Soak, EpochsOfADataset) {
  const auto batches = td::data::from_tensor_slices(std::tuple{drawn({256, 100}), td::arange(256)})
                           .shuffle({.seed = 1})
                           .map([](const td::Tensor& x, const td::Tensor& y) {
                             return std::tuple{td::exp(x) / 2, y};
                           })
                           .batch(30);
  expect_flat(100, [&] {
    for (const auto& [x, y] : batches) EXPECT_EQ(x.shape()[0], y.shape()[0]);
  });
}

// How many threads work at the same moment differs from pass to pass, and the most that ever did
// leave records of their chunks: fewer blocks than there are rounds, so that none is left by each.
void expect_flat_on_threads(const std::function<void()>& round) {
  constexpr int64_t kRounds = 100;
  mallopt(M_ARENA_MAX, 1);  // Which heap a thread gets depends on who comes first.
  repeat(kRounds, round);
  const Footprint once = footprint();
  repeat(kRounds, round);
  const Footprint twice = footprint();
  EXPECT_EQ(twice.current, once.current);
  EXPECT_EQ(twice.threads, once.threads);
  EXPECT_EQ(twice.files, once.files);
  EXPECT_LT(twice.heap_blocks - once.heap_blocks, kRounds / 4);
}

TEST(Soak, EpochsOfADatasetOnThreads) {
  const auto batches = td::data::from_tensor_slices(drawn({256, 100}))
                           .map([](const td::Tensor& x) { return td::exp(x) / 2; }, {.parallel = 3})
                           .batch(30)
                           .prefetch(2);
  expect_flat_on_threads([&] {
    for (const td::Tensor& x : batches) EXPECT_EQ(x.rank(), 2);
  });
}

TEST(Soak, WalksThatAreLeft) {
  const auto endless = td::data::range(100)
                           .repeat()
                           .map([](const td::Tensor& x) { return x + 1; }, {.parallel = 2})
                           .prefetch(2);
  expect_flat_on_threads([&] { EXPECT_EQ(endless.begin()->item<int>(), 1); });
}

}  // namespace
