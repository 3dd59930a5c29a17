// Calls of functions: what they reserve, views and numbers as arguments, and the mode of layers.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace td::literals;

namespace {

using td::error_of;

class Limited {
 public:
  explicit Limited(td::Bytes bytes) : before_(td::memory::limit()) { td::memory::set_limit(bytes); }
  ~Limited() { td::memory::set_limit(before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  td::Bytes before_;
};

// ---- one reservation ----------------------------------------------------------------------------

TEST(Reservation, ACallFitsItsPlanToTheByte) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) {
    const td::Tensor a = td::exp(x);
    return std::pair{td::transpose(a) * x, td::sum(a, 0)};
  });
  const td::Tensor x = td::random::normal({64, 64}, {.key = td::random::Key(1)});
  const td::Bytes planned = f.plan(x).peak();
  const auto expected = f(x);
  const td::Bytes in_use = td::memory::current();
  {
    const Limited limited(in_use + planned);
    EXPECT_TRUE(td::identical(f(x).first, expected.first));
  }
  const Limited limited(in_use + planned - 1);
  const std::string error = error_of<td::OutOfMemory>([&] { f(x); });
  EXPECT_EQ(error.find("out of memory: a call of a function needs 32.5 KiB, "), 0U) << error;
  EXPECT_EQ(td::memory::current(), in_use);
  EXPECT_THROW(f(x), td::OutOfMemory);
}

// Each call has two results, which stand until all have ended. Were they reserved one by one, calls
// could take one each and all be refused the other.
TEST(Reservation, OfSeveralCallsAsManyRunAsFit) {
  const td::MachineCode machine;  // Without scratch a call holds its results alone.
  constexpr int calls = 8;
  const auto f = td::function([](const td::Tensor& x) { return std::pair{x + 1, x * 2}; });
  const td::Tensor x = td::ones({1000});
  const td::Bytes planned = f.plan(x).peak();
  f(x);
  for (int round = 0; round < 20; ++round) {
    td::memory::release();
    const td::Bytes in_use = td::memory::current();
    const Limited limited(in_use + calls * planned.count - 1);
    td::memory::reset_peak();
    std::atomic<int> waiting{calls}, refused{0};
    std::vector<std::pair<td::Tensor, td::Tensor>> results(calls);
    std::vector<std::thread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        for (--waiting; waiting > 0;) std::this_thread::yield();
        try {
          result = f(x);
        } catch (const td::OutOfMemory&) {
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(td::memory::peak(), in_use + (calls - 1) * planned.count);
  }
}

TEST(Reservation, CountsTheCopyOfAVariableThatSomebodyHolds) {
  td::Variable v(td::ones({1000}), {.name = "v"});
  const auto step = td::function([v](const td::Tensor& x) {
    v.assign_add(x);
    return x * 2;
  });
  const td::Tensor x = td::ones({1000});
  step(x);
  const td::Tensor snapshot = v.value();
  const td::Bytes planned = step.plan(x).peak(), in_use = td::memory::current();
  {
    const Limited limited(in_use + planned + 4031);
    EXPECT_THROW(step(x), td::OutOfMemory);
  }
  EXPECT_EQ(v.value().to_vector<float>()[7], 2);
  const Limited limited(in_use + planned + 4032);
  step(x);
  EXPECT_EQ(v.value().to_vector<float>()[7], 3);
  EXPECT_EQ(snapshot.to_vector<float>()[7], 2);
}

// ---- views as arguments -------------------------------------------------------------------------

// The first row.
td::Tensor row_of(const td::Tensor& x) { return x[td::Slice{0, 1}]; }

std::vector<td::Tensor> views_of(const td::Tensor& x) {
  return {td::transpose(x), x[{td::Slice{3, 20}, td::Slice{1, 19, 2}}], td::flip(x, 0),
          td::broadcast_to(row_of(x), {24, 24}), td::transpose(x)[td::Slice{2, 21}]};
}

TEST(ViewArgument, GivesTheBitsOfEagerCodeInThePlannedBytes) {
  const td::MachineCode machine;
  const auto f = [](const td::Tensor& x) {
    return std::tuple{td::exp(x) * 2, td::sum(x, 0), td::sum(x), td::matmul(x, td::transpose(x)),
                      td::softmax(x, -1)};
  };
  const auto compiled = td::function(f);
  const td::Tensor x = td::random::normal({24, 24}, {.key = td::random::Key(3)});
  for (const td::Tensor& view : views_of(x)) {
    const td::Plan plan = compiled.plan(view);
    const auto expected = f(view);
    const td::MemoryScope scope("call");
    const auto got = compiled(view);
    EXPECT_EQ(scope.peak(), plan.peak());
    std::apply(
        [&](const auto&... wanted) {
          std::apply([&](const auto&... is) { EXPECT_TRUE((td::identical(wanted, is) && ...)); },
                     got);
        },
        expected);
    EXPECT_EQ(compiled.profile(view).second.touched, plan.peak());
  }
}

TEST(ViewArgument, IsReadWhereItLies) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x); });
  const td::Tensor x = td::random::normal({300, 200});
  EXPECT_EQ(f.plan(td::transpose(x)).peak(), f.plan(x).peak());
  EXPECT_TRUE(td::identical(f(td::transpose(x)), td::exp(td::transpose(x))));
  EXPECT_EQ(f.cache_info().traces, 2);  // For its shape; how it lies is no matter of the trace.
  f(td::transpose(td::ones({200, 300})));
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(ViewArgument, GoesIntoBranchesAndLoops) {
  const auto f = [](const td::Tensor& x, const td::Tensor& up) {
    const td::Tensor chosen =
        td::cond(up, [&] { return td::sum(x, 0); }, [&] { return td::sum(x * 2, 0); });
    return td::fori_loop(
        0, 3, [&](const td::Tensor&, const td::Tensor& sum) { return sum + td::sum(x, 0); },
        chosen);
  };
  const auto compiled = td::function(f);
  const td::Tensor x = td::random::normal({24, 24}, {.key = td::random::Key(4)});
  for (const td::Tensor& view : views_of(x)) {
    for (const bool up : {true, false})
      EXPECT_TRUE(td::identical(compiled(view, td::constant(up)), f(view, td::constant(up))));
  }
}

TEST(ViewArgument, ComesBackAsItWasGiven) {
  const auto f = td::function([](const td::Tensor& x) { return std::pair{x, x + 1}; });
  const td::Tensor x = td::random::normal({5, 7});
  for (const td::Tensor& view : {td::transpose(x), td::broadcast_to(row_of(x), {3, 7})})
    EXPECT_TRUE(td::identical(f(view).first, view));
}

TEST(ViewArgument, CannotRunInAPlanForADenseOne) {
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x); });
  const td::Tensor x = td::random::normal({20, 20});
  const td::Plan plan = f.plan(x);
  std::vector<std::byte> memory(static_cast<size_t>(plan.arena().count) + 64);
  const auto past = reinterpret_cast<uintptr_t>(memory.data()) % 64;
  const std::span arena(memory.data() + (64 - past) % 64, static_cast<size_t>(plan.arena().count));
  const td::Tensor view = td::transpose(x);
  EXPECT_TRUE(td::identical(f.run_in(plan, arena, x), td::exp(x)));
  const std::string error = error_of([&] { f.run_in(plan, arena, view); });
  EXPECT_EQ(error.find("run_in: the plan was made for other arguments, or for another number of "
                       "threads\n"),
            0U)
      << error;
  EXPECT_NE(error.find("plan with the types of these arguments: fn.plan(arguments...)"),
            std::string::npos);
}

// Each stride needs a program of its own, and the cache is bounded.
TEST(ViewArgument, OfEverNewStridesDoesNotGrow) {
  const auto f = td::function(
      [](const td::Tensor& x) {
        const td::Tensor turned = td::transpose(td::matmul(x, x));
        return td::matmul(turned, x) + td::transpose(td::matmul(x, turned));
      },
      {.cache_limit = 64_KiB});
  int64_t width = 9;
  const auto heap_after = [&](int calls) {
    for (int i = 0; i < calls; ++i) f(td::ones({8, width++})[{td::all, td::Slice{0, 8}}]);
    return static_cast<int64_t>(mallinfo2().uordblks);
  };
  heap_after(100);
  const int64_t before = heap_after(100);
  EXPECT_LT(heap_after(200) - before, 32 << 10);
  EXPECT_EQ(f.cache_info().traces, 1);
  EXPECT_LT(f.cache_info().bytes, 64_KiB);
}

// A sum over an axis that repeats one element multiplies, rounded once.
TEST(RepeatedArgument, IsSummedAsInEagerCode) {
  const auto f = [](const td::Tensor& x) { return std::pair{td::sum(x), td::sum(x * 1.0)}; };
  const auto compiled = td::function(f);
  const td::Tensor row = td::random::normal({1, 7}, {.key = td::random::Key(5)});
  const td::Tensor repeated = td::broadcast_to(row, {100003, 7});
  const td::Tensor dense = repeated * 1.0;
  const auto expected = f(repeated);
  EXPECT_TRUE(td::identical(compiled(repeated).first, expected.first));
  EXPECT_TRUE(td::identical(compiled(repeated).second, expected.second));
  EXPECT_TRUE(td::identical(compiled(dense).first, f(dense).first));
  EXPECT_FALSE(td::identical(f(dense).first, expected.first));  // Else this shows nothing.
  const td::CacheInfo info = compiled.cache_info();
  ASSERT_EQ(info.entries.size(), 2U);
  EXPECT_EQ(info.entries[0].reason,
            "argument 0: f32[100003, 7] repeated along dimension 0 became f32[100003, 7]");
  EXPECT_EQ(info.entries[1].signature, "f32[100003, 7] repeated along dimension 0");
}

TEST(RepeatedArgument, MayHaveOpenSizes) {
  const auto f = [](const td::Tensor& x) { return td::sum(x, 0) + td::sum(x); };
  const auto compiled = td::function(f, {.input_signature = {td::spec({td::open, 7})}});
  const td::Tensor row = td::random::normal({1, 7}, {.key = td::random::Key(6)});
  for (const int64_t rows : {100003, 50001, 77, 100003}) {
    const td::Tensor x = td::broadcast_to(row, {rows, 7});
    EXPECT_TRUE(td::identical(compiled(x), f(x))) << rows;
  }
  EXPECT_EQ(compiled.cache_info().traces, 1);
}

TEST(CapturedView, IsReadWhereItLiesAndSummedAsInEagerCode) {
  const td::Tensor x = td::random::normal({100003, 2}, {.key = td::random::Key(7)});
  const td::Tensor turned = td::transpose(x);
  const td::Tensor repeated = td::broadcast_to(row_of(x), {100003, 2});
  const auto f = [&](const td::Tensor& y) {
    return td::sum(turned) + td::sum(repeated) + td::sum(td::exp(turned)) + y;
  };
  const td::Tensor expected = f(td::constant(1.0f));
  const auto compiled = td::function(f);
  const td::Bytes before = td::memory::current();
  compiled.plan(td::spec({}));
  EXPECT_EQ(td::memory::current(), before);
  EXPECT_TRUE(td::identical(compiled(td::constant(1.0f)), expected));
}

// ---- donation -----------------------------------------------------------------------------------

TEST(Donation, OneResultTakesTheBytesWhereTwoCould) {
  const auto f = [](const td::Tensor& x, const td::Tensor& y) {
    const td::Tensor share = td::softmax(y, 0);
    const td::Tensor most = td::max(x, 1);
    return std::tuple{most, most + share, share};
  };
  const td::Tensor x = td::random::normal({8, 6}, {.key = td::random::Key(1)});
  const td::Tensor y = td::random::normal({8}, {.key = td::random::Key(2)});
  const auto [most, both, share] = f(x, y);
  const auto [given_most, given_both, given_share] =
      td::function([&](const td::Tensor& a, const td::Tensor& b) { return f(a, b); })(x, y + 0);
  EXPECT_TRUE(td::identical(given_most, most));
  EXPECT_TRUE(td::identical(given_both, both));
  EXPECT_TRUE(td::identical(given_share, share));
}

TEST(Donation, OfASpecIsPlanned) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x); });
  EXPECT_EQ(f.plan(td::spec({1000})).peak(), td::Bytes(4032));
  EXPECT_EQ(f.plan(td::spec({1000}).donated()).peak(), td::Bytes(0));
}

// ---- numbers ------------------------------------------------------------------------------------

TEST(NumberArgument, ThatDoesNotFitIsRefusedAsInEagerCode) {
  const td::Tensor bytes = td::constant({1, 2}, td::u8);
  const auto add = [](const td::Tensor& x, const td::Tensor& n) { return x + n; };
  const std::string wanted = error_of([&] { add(bytes, 300); });
  EXPECT_EQ(wanted.find("add: 300 does not fit u8\n  at call_test.cc:"), 0U) << wanted;
  const auto f = td::function(add);
  EXPECT_EQ(f(bytes, 250).to_vector<uint8_t>()[1], 252);
  EXPECT_EQ(error_of([&] { f(bytes, 300); }), wanted);
  EXPECT_EQ(error_of([&] { f(bytes, -1); }),
            std::string(wanted).replace(wanted.find("300"), 3, "-1"));
  EXPECT_EQ(f(bytes, 0).to_vector<uint8_t>()[0], 1);
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(NumberArgument, ThatIsAnOpenSizeIsRefusedWhereItDoesNotFit) {
  const auto add = [](const td::Tensor& x) { return x + x.shape()[0]; };
  const td::Tensor small = td::zeros({200}, td::u8), large = td::zeros({300}, td::u8);
  const std::string wanted = error_of([&] { add(large); });
  EXPECT_EQ(wanted.find("add: 300 does not fit u8\n  at call_test.cc:"), 0U) << wanted;
  const auto f = td::function(add, {.input_signature = {td::spec({td::open}, td::u8)}});
  EXPECT_EQ(f(small).to_vector<uint8_t>()[0], 200);
  EXPECT_EQ(error_of([&] { f(large); }), wanted);
  EXPECT_EQ(f(small).to_vector<uint8_t>()[199], 200);
}

// ---- the mode of layers -------------------------------------------------------------------------

TEST(Mode, IsPartOfTheKey) {
  int traces = 0;
  const auto f = td::function([&](const td::Tensor& x) {
    ++traces;
    return td::nn::is_training() ? x * 2 : x;
  });
  const td::Tensor x = td::ones({3});
  EXPECT_FALSE(td::nn::is_training());
  EXPECT_EQ(f(x).to_vector<float>()[0], 1);
  {
    const td::nn::Training on;
    EXPECT_EQ(f(x).to_vector<float>()[0], 2);
    {
      const td::nn::Training off(false);
      EXPECT_EQ(f(x).to_vector<float>()[0], 1);
    }
    EXPECT_TRUE(td::nn::is_training());
    EXPECT_EQ(f(x).to_vector<float>()[0], 2);
  }
  EXPECT_EQ(traces, 2);
  EXPECT_EQ(f.cache_info().entries[0].reason, "evaluation became training");
  EXPECT_EQ(f.check_captures(), "");  // Each trace is compared in its own mode.
}

TEST(Mode, BelongsToTheThread) {
  const td::nn::Training on;
  bool other = true;
  std::thread([&] { other = td::nn::is_training(); }).join();
  EXPECT_FALSE(other);
}

// ---- many kernels -------------------------------------------------------------------------------

TEST(Kernels, OfOneProgramAreCompiledTogether) {
  const td::MachineCode machine;
  const auto f = [](const td::Tensor& x) {
    td::Tensor y = x;
    for (int i = 0; i < 40; ++i) {
      y = td::matmul(y, x) * 0.1;
      for (int bits = i; bits > 0; bits /= 2) y = bits % 2 == 0 ? td::maximum(y, x) : y * x + 0.5;
    }
    return y;
  };
  const td::Tensor x = td::random::normal({8, 8}, {.key = td::random::Key(8)});
  EXPECT_TRUE(td::identical(td::function(f)(x), f(x)));
}

}  // namespace
