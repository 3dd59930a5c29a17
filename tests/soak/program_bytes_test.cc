// What a function's cache says it holds, against the heap: the counters of programs are right, so
// that a bound in bytes is one.
#include <gtest/gtest.h>

#include <functional>

#include "tests/soak/counted_heap.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/emit/llvm/jit.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;
using td::testing::live_heap_bytes;

using Body = std::function<td::Tensor(const td::Tensor&)>;

struct Held {
  int64_t heap = 0, said = 0;
};

// Of a second function that does what a first one does, so that kernels are there already, and made
// on the same line, so that the account of that line is.
Held held_by(const Body& body, const td::Shape& shape) {
  const td::Tensor x = td::random::normal(shape, {.key = td::random::Key(1)});
  const auto made = [&] { return td::function<td::Tensor(td::Tensor)>(body); };
  const auto first = made(), second = made();
  first(x);
  const int64_t before = live_heap_bytes();
  second(x);
  return {live_heap_bytes() - before, second.cache_info().bytes.count};
}

struct Case {
  const char* name;
  td::Shape shape;
  Body body;
  friend void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }
};

td::Tensor chain(td::Tensor x, int length) {
  for (int i = 0; i < length; ++i) x = td::matmul(td::tanh(x) * 0.5, x) + td::sum(x, 0);
  return x;
}

class ProgramBytes : public testing::TestWithParam<Case> {};

TEST_P(ProgramBytes, AreWhatTheHeapHolds) {
  const Held held = held_by(GetParam().body, GetParam().shape);
  const double ratio = static_cast<double>(held.said) / static_cast<double>(held.heap);
  EXPECT_GT(ratio, 0.95) << held.said << " said, " << held.heap << " held";
  EXPECT_LT(ratio, 1.05) << held.said << " said, " << held.heap << " held";
}

INSTANTIATE_TEST_SUITE_P(
    All, ProgramBytes,
    testing::Values(Case{"one_op", {30}, [](const td::Tensor& x) { return x + 1; }},
                    Case{"chain", {8, 8}, [](const td::Tensor& x) { return chain(x, 5); }},
                    Case{"long_chain", {8, 8}, [](const td::Tensor& x) { return chain(x, 100); }},
                    Case{"control_flow",
                         {8, 8},
                         [](const td::Tensor& x) {
                           const td::Tensor looped = td::fori_loop(
                               0, 3,
                               [](const td::Tensor&, const td::Tensor& c) { return chain(c, 3); },
                               x);
                           return td::map_fn([](const td::Tensor& row) { return td::softmax(row); },
                                             looped);
                         }}),
    [](const auto& each) { return std::string(each.param.name); });

// The bytes of a tensor of the outside are its own.
TEST(ProgramBytes, DoNotGrowWithWhatIsCaptured) {
  const auto with = [](int64_t rows) {
    const td::Tensor large = td::zeros({rows, 1024});
    return held_by([large](const td::Tensor& x) { return td::sum(large, 0) + x; }, {1024});
  };
  const Held small = with(4096), large = with(65536);  // 16 and 256 MiB, both cut for threads.
  EXPECT_LT(large.heap - small.heap, 1024);
  EXPECT_LT(large.said - small.said, 1024);
}

TEST(ProgramBytes, BoundTheCache) {
  constexpr int64_t limit = 100'000;
  const auto f =
      td::function([](const td::Tensor& x, td::Static<int> n) { return chain(x, 2) * int{n}; },
                   {.cache_limit = td::Bytes(limit)});
  td::on_warning([](std::string_view, td::Source) {});
  const td::Tensor x = td::random::normal({8, 8}, {.key = td::random::Key(1)});
  for (int i = 0; i < 10; ++i) f(x, i);
  const int64_t before = live_heap_bytes();
  for (int i = 10; i < 200; ++i) f(x, i);
  td::on_warning({});
  EXPECT_GT(f.cache_info().evictions, 100);
  EXPECT_LE(f.cache_info().bytes.count, limit);
  EXPECT_LE(live_heap_bytes() - before, limit);
}

TEST(CodeBytes, AreThePagesOfCode) {
  const int64_t before = td::compile::code_bytes();
  const td::Tensor x = td::random::normal({100}, {.key = td::random::Key(1)});
  {
    const auto f = td::function(
        [](const td::Tensor& a) { return td::exp(a) * 3 + td::cumsum(td::sin(a) * a, 0); });
    f(x);
    EXPECT_GT(td::compile::code_bytes(), before);
    EXPECT_EQ(td::compile::code_bytes(), td::code_bytes_held());
    EXPECT_EQ(td::compile::code_bytes() % 4096, 0);
  }
  EXPECT_EQ(td::compile::code_bytes(), before);
}

}  // namespace
