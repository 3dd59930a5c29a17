// One trace for all sizes: dimensions that open, Dims, guards, sizes read as numbers, signatures.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using td::error_of;

td::Tensor drawn(const td::Shape& shape, uint64_t seed = 1) {
  return td::random::normal(shape, {.key = td::random::Key(seed)});
}

TEST(OpenSizes, ServeEveryLengthWithTwoTraces) {
  const td::Tensor w = drawn({24, 24}, 7);
  const auto f = [w](const td::Tensor& x) {
    const td::Tensor h = td::tanh(td::matmul(x, w) + 0.5);
    const td::Tensor attention = td::softmax(td::matmul(h, x, {.transpose_b = true}));
    return td::mean(td::matmul(attention, h), 0) + td::sum(x);
  };
  const auto compiled = td::function(f);
  uint64_t state = 1;
  td::Bytes held;
  for (int call = 0; call < 2000; ++call) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto length = static_cast<int64_t>(2 + (state >> 33) % 100);
    {
      const td::Tensor x = drawn({length, 24}, static_cast<uint64_t>(call));
      const td::Tensor result = compiled(x);
      if (call % 20 == 0) {
        EXPECT_TRUE(td::identical(result, f(x))) << "length " << length;
      }
    }
    if (call == 1000) held = td::memory::current();
  }
  EXPECT_EQ(td::memory::current(), held);
  EXPECT_LE(compiled.cache_info().traces, 2);
  EXPECT_EQ(compiled.cache_info().entries[0].signature, "f32[?, 24]");
}

// Each on [n, 6], all of which must stay open.
struct Case {
  const char* name;
  std::function<td::Tensor(const td::Tensor&)> f;
  friend void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }
};

class OpenOps : public testing::TestWithParam<Case> {};

TEST_P(OpenOps, GiveTheBitsOfEagerCodeAtEverySize) {
  const auto& f = GetParam().f;
  const auto compiled = td::function<td::Tensor(td::Tensor)>(f);
  for (const int64_t size : {4, 8, 12, 5, 2, 97, 33}) {
    if (size % 4 != 0 && GetParam().name == std::string_view("split")) continue;
    const td::Tensor x = drawn({size, 6}, static_cast<uint64_t>(size));
    EXPECT_TRUE(td::identical(compiled(x), f(x))) << size;
  }
  EXPECT_EQ(compiled.cache_info().traces, 2) << compiled.cache_info();
  EXPECT_EQ(compiled.cache_info().entries[0].signature, "f32[?, 6]");
}

INSTANTIATE_TEST_SUITE_P(
    All, OpenOps,
    testing::Values(
        Case{"pointwise", [](const td::Tensor& x) { return td::exp(x) * x + 1; }},
        Case{"broadcast", [](const td::Tensor& x) { return x - td::sum(x, 0, td::keepdims); }},
        Case{"reduce", [](const td::Tensor& x) { return td::max(x, 0) + td::sum(x); }},
        Case{"argmax", [](const td::Tensor& x) { return td::argmax(x, 0); }},
        Case{"mean", [](const td::Tensor& x) { return td::mean(x, 0) / td::mean(x); }},
        Case{"mean of integers",
             [](const td::Tensor& x) { return td::mean(td::cast(x * 10, td::i32), 0); }},
        Case{"var", [](const td::Tensor& x) { return td::var(x, 0); }},
        Case{"logsumexp", [](const td::Tensor& x) { return td::logsumexp(x, 0); }},
        Case{"softmax", [](const td::Tensor& x) { return td::softmax(x, 0); }},
        Case{"matmul", [](const td::Tensor& x) { return td::matmul(x, x, {.transpose_a = true}); }},
        Case{"gram", [](const td::Tensor& x) { return td::matmul(x, x, {.transpose_b = true}); }},
        Case{"flatten", [](const td::Tensor& x) { return td::reshape(x, {-1}); }},
        Case{"reshape", [](const td::Tensor& x) { return td::reshape(x, {-1, 3}) * 2; }},
        Case{"reshape by size",
             [](const td::Tensor& x) { return td::reshape(x, {x.shape()[0] * 2, 3}); }},
        Case{"split axes",
             [](const td::Tensor& x) {
               return td::transpose(td::reshape(x, {x.shape()[0], 2, 3}), {1, 0, 2});
             }},
        Case{"transpose", [](const td::Tensor& x) { return td::transpose(x) + 1; }},
        Case{"expand", [](const td::Tensor& x) { return td::expand_dims(x, 1) * x; }},
        Case{"slice", [](const td::Tensor& x) { return x[{td::Slice{.begin = 1}, td::all}] * 2; }},
        Case{"slice from the end",
             [](const td::Tensor& x) { return x[{td::Slice{.end = -1}, 2}] * 2; }},
        Case{"last", [](const td::Tensor& x) { return x[-1] + x[0]; }},
        Case{"every other", [](const td::Tensor& x) { return x[td::Slice{.step = 2}] + 0; }},
        Case{"backwards", [](const td::Tensor& x) { return x[td::Slice{.step = -1}] + 0; }},
        Case{"backwards in steps",
             [](const td::Tensor& x) {
               return x[td::Slice{.begin = -1, .end = 0, .step = -2}] + 0;
             }},
        Case{"backwards between",
             [](const td::Tensor& x) { return x[td::Slice{.begin = 1, .step = -1}] + 0; }},
        Case{"conv2d",
             [](const td::Tensor& x) {
               const td::Tensor image = td::reshape(x, {1, -1, 3, 2});
               return td::conv2d(image, drawn({3, 2, 2, 4}, 3), {.padding = td::Padding::same});
             }},
        Case{"conv2d in strides",
             [](const td::Tensor& x) {
               const td::Tensor image = td::reshape(x, {1, -1, 3, 2});
               return td::conv2d(image, drawn({2, 2, 2, 4}, 3),
                                 {.strides = {2, 2}, .padding = td::Padding::same});
             }},
        Case{"conv2d inside",
             [](const td::Tensor& x) {
               const td::Tensor image = td::reshape(x, {1, -1, 3, 2});
               return td::conv2d(image, drawn({2, 2, 2, 4}, 3), {.strides = {2, 1}});
             }},
        Case{"max_pool",
             [](const td::Tensor& x) {
               return td::max_pool(td::reshape(x, {1, -1, 3, 2}), {.size = {2, 2}});
             }},
        Case{"avg_pool",
             [](const td::Tensor& x) {
               return td::avg_pool(td::reshape(x, {1, -1, 3, 2}),
                                   {.size = {3, 2}, .padding = td::Padding::same});
             }},
        Case{"conv1d",
             [](const td::Tensor& x) {
               return td::conv1d(td::expand_dims(x, 0), drawn({2, 6, 4}, 3), {.padding = {{1, 2}}});
             }},
        Case{"conv3d",
             [](const td::Tensor& x) {
               return td::conv3d(td::reshape(x, {1, -1, 1, 3, 2}), drawn({2, 1, 2, 2, 4}, 3),
                                 {.padding = td::Padding::same});
             }},
        Case{"conv_transpose1d",
             [](const td::Tensor& x) {
               return td::conv_transpose1d(td::expand_dims(x, 0), drawn({3, 4, 6}, 3),
                                           {.strides = 2, .padding = td::Padding::same});
             }},
        Case{"conv_transpose1d with sizes",
             [](const td::Tensor& x) {
               return td::conv_transpose1d(
                   td::expand_dims(x, 0), drawn({3, 4, 6}, 3),
                   {.strides = 2, .sizes = td::Shape{x.shape()[0] * 2 + 2}});
             }},
        Case{"max_pool1d",
             [](const td::Tensor& x) {
               return td::max_pool1d(td::expand_dims(x, 0), {.size = 2, .padding = {{1, 0}}});
             }},
        Case{"resize",
             [](const td::Tensor& x) {
               return td::resize(td::expand_dims(x, 0), {x.shape()[0] * 2},
                                 {.method = td::Resizing::bicubic});
             }},
        Case{"resize to a size",
             [](const td::Tensor& x) { return td::resize(td::expand_dims(x, 0), {200}); }},
        Case{"resize of integers",
             [](const td::Tensor& x) {
               return td::resize(td::cast(td::expand_dims(x, 0) * 10, td::i32), {x.shape()[0] * 3},
                                 {.method = td::Resizing::nearest});
             }},
        Case{"pad with a mirror",
             [](const td::Tensor& x) {
               return td::pad(x, {{1, 1}, {2, 0}}, td::PadMode::reflect);
             }},
        Case{"pad with edges",
             [](const td::Tensor& x) { return td::pad(x, {{3, 2}, {0, 0}}, td::PadMode::edge); }},
        Case{"extract_patches",
             [](const td::Tensor& x) { return td::extract_patches(td::expand_dims(x, 0), {2}); }},
        Case{"pixel_shuffle",
             [](const td::Tensor& x) {
               return td::pixel_shuffle(td::reshape(td::tile(x, {1, 2}), {1, -1, 1, 12}), 2);
             }},
        Case{"flip", [](const td::Tensor& x) { return td::flip(x, 0) + 0; }},
        Case{"split",
             [](const td::Tensor& x) {
               const auto parts = td::split(x, 4, 0);
               return parts[0] + parts[3];
             }},
        Case{"concat", [](const td::Tensor& x) { return td::concat({x, x * 2}, 0); }},
        Case{"stack", [](const td::Tensor& x) { return td::stack({x, x * 2}, 1); }},
        Case{"pad", [](const td::Tensor& x) { return td::pad(x, {{1, 2}, {0, 0}}); }},
        Case{"repeat", [](const td::Tensor& x) { return td::repeat(x, 3, 0); }},
        Case{"tile", [](const td::Tensor& x) { return td::tile(x, {2, 1}); }},
        Case{"gather", [](const td::Tensor& x) { return td::gather(x, td::argmax(x, 0), 0); }},
        Case{"gather rows",
             [](const td::Tensor& x) { return td::gather(td::transpose(x), td::argmax(x, 1), 0); }},
        Case{"cumsum", [](const td::Tensor& x) { return td::cumsum(x, 0); }},
        Case{"arange",
             [](const td::Tensor& x) { return x * td::expand_dims(td::arange(x.shape()[0]), 1); }},
        Case{"zeros", [](const td::Tensor& x) { return td::zeros({x.shape()[0], 3}) + 1; }},
        Case{"zeros_like", [](const td::Tensor& x) { return td::zeros_like(x) + x; }},
        Case{"tril",
             [](const td::Tensor& x) { return td::tril(td::matmul(x, x, {.transpose_b = true})); }},
        Case{"attention",
             [](const td::Tensor& x) { return td::attention(x, x, x, {.causal = true}); }},
        Case{"layer norm", [](const td::Tensor& x) { return td::layer_norm(x); }},
        Case{"a size as a number", [](const td::Tensor& x) { return x * x.shape()[0]; }},
        Case{"random",
             [](const td::Tensor&
                    x) { return td::random::normal(x.shape(), {.key = td::random::Key(3)}) + x; }},
        Case{"where", [](const td::Tensor& x) { return td::where(x > 0, x, 0); }}),
    [](const auto& info) {
      std::string name = info.param.name;
      for (char& c : name)
        if (c == ' ') c = '_';
      return name;
    });

// Loops and maps over an open axis: the number of trips is a size as any other.
INSTANTIATE_TEST_SUITE_P(
    Trips, OpenOps,
    testing::Values(
        Case{"map",
             [](const td::Tensor& x) {
               return td::map_fn([](const td::Tensor& e) { return td::exp(e) * td::sum(e); }, x);
             }},
        Case{"map in chunks",
             [](const td::Tensor& x) {
               return td::map_fn([](const td::Tensor& e) { return td::cumsum(e, 0); }, x,
                                 {.chunk = 3});
             }},
        Case{"vectorized map",
             [](const td::Tensor& x) {
               return td::vectorized_map([](const td::Tensor& e) { return td::cumsum(e, 0); }, x);
             }},
        Case{"scan",
             [](const td::Tensor& x) {
               const auto [last, all] = td::scan(
                   [](const td::Tensor& sum, const td::Tensor& e) {
                     return std::pair{sum * 0.5 + e, sum + td::mean(e)};
                   },
                   td::zeros({6}), x);
               return all + last;
             }},
        Case{"scan backwards",
             [](const td::Tensor& x) {
               return td::scan([](const td::Tensor& sum,
                                  const td::Tensor& e) { return std::pair{sum + e, sum}; },
                               td::zeros({6}), x, {.reverse = true})
                   .second;
             }},
        Case{"trips",
             [](const td::Tensor& x) {
               return td::fori_loop(
                   0, x.shape()[0],
                   [&](const td::Tensor& i, const td::Tensor& sum) {
                     return sum * 0.5 + td::gather(x, i, 0);
                   },
                   td::zeros({6}));
             }},
        Case{"trips between sizes",
             [](const td::Tensor& x) {
               return td::fori_loop(
                   x.shape()[0], x.shape()[0] * 2,
                   [&](const td::Tensor& i, const td::Tensor& sum) { return sum * 0.5 + i; },
                   td::cast(td::sum(x), td::f32));
             }},
        Case{"an array of that many",
             [](const td::Tensor& x) {
               const auto [array, sum] = td::fori_loop(
                   0, x.shape()[0],
                   [&](const td::Tensor& i, td::TensorArray array, const td::Tensor& sum) {
                     const td::Tensor next = sum + td::gather(x, i, 0);
                     return std::tuple{std::move(array).write(i, next), next};
                   },
                   std::tuple{td::TensorArray(td::f32, {.size = x.shape()[0]}), td::zeros({6})});
               return array.stack() + sum;
             }},
        Case{"a loop in a map",
             [](const td::Tensor& x) {
               return td::map_fn(
                   [&](const td::Tensor& e) {
                     return td::fori_loop(
                         0, x.shape()[0],
                         [&](const td::Tensor& i, const td::Tensor& sum) { return sum * 0.5 + i; },
                         td::sum(e));
                   },
                   x);
             }}),
    [](const auto& info) {
      std::string name = info.param.name;
      for (char& c : name)
        if (c == ' ') c = '_';
      return name;
    });

TEST(OpenSizes, OfADimArgumentChangeWithoutTracing) {
  const auto f = td::function([](const td::Tensor& x, td::Dim n) {
    return td::zeros({n, 3}) + x * n + td::expand_dims(td::arange(n), 1);
  });
  const td::Tensor x = td::constant({1, 2, 3}, td::f32);
  for (const int64_t n : {3, 1, 50, 0, 7}) {
    const td::Tensor expected = td::zeros({n, 3}) + x * n + td::expand_dims(td::arange(n), 1);
    EXPECT_TRUE(td::identical(f(x, n), expected)) << n;
  }
  EXPECT_EQ(f.cache_info().traces, 1);
  EXPECT_EQ(f.cache_info().entries[0].signature, "f32[3], size ?");
}

TEST(OpenSizes, TraceAgainWhereAGuardFails) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& y) { return x + y; });
  const td::Tensor row = drawn({1, 4});
  for (const int64_t n : {5, 6, 7}) {
    const td::Tensor x = drawn({n, 4});
    EXPECT_TRUE(td::identical(f(x, x), x + x));
  }
  EXPECT_EQ(f.cache_info().traces, 2);
  const td::Tensor x = drawn({7, 4});
  EXPECT_TRUE(td::identical(f(x, row), x + row));
  EXPECT_EQ(f.cache_info().traces, 3);
  EXPECT_EQ(f.cache_info().entries[0].reason,
            "the last trace serves only sizes with argument 1, dimension 0 = argument 0, "
            "dimension 0");
  // A row meets every length from now on.
  EXPECT_TRUE(td::identical(f(drawn({9, 4}), row), drawn({9, 4}) + row));
  EXPECT_EQ(f.cache_info().traces, 3);
}

TEST(OpenSizes, DoNotOpenWhatIsOne) {
  const auto f = td::function([](const td::Tensor& x) { return x + td::ones({4, 3}); });
  EXPECT_EQ(f(drawn({1, 3})).shape(), (td::Shape{4, 3}));
  EXPECT_EQ(f(drawn({4, 3})).shape(), (td::Shape{4, 3}));
  EXPECT_EQ(f.cache_info().entries[0].signature, "f32[4, 3]");
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(OpenSizes, StayClosedWhereTheyAreReadAsNumbers) {
  unsigned line = 0;
  const auto f = td::function([&line](const td::Tensor& x) {
    td::Tensor total = td::zeros({2});
    line = __LINE__ + 1;
    for (int64_t i = 0; i < x.shape()[0]; ++i) total = total + x[i];
    return total;
  });
  for (const int64_t n : {3, 4, 5, 4, 3}) {
    const td::Tensor x = drawn({n, 2});
    td::Tensor total = td::zeros({2});
    for (int64_t i = 0; i < n; ++i) total = total + x[i];
    EXPECT_TRUE(td::identical(f(x), total)) << n;
  }
  const td::CacheInfo info = f.cache_info();
  EXPECT_EQ(info.traces, 3);
  const std::string why = " is read as a number at open_sizes_test.cc:" + std::to_string(line) +
                          ", so each size has a trace of its own";
  std::set<std::string> reasons;
  for (const td::CacheEntry& entry : info.entries) reasons.insert(entry.reason);
  EXPECT_EQ(reasons,
            (std::set<std::string>{
                "first call", "argument 0, dimension 0: 3 became 4; argument 0, dimension 0" + why,
                "argument 0, dimension 0: 4 became 5; it" + why}));
}

TEST(OpenSizes, OpenAtOnceByASignature) {
  const auto f = td::function([](const td::Tensor& x) { return td::mean(x, 0); },
                              {.name = "f", .input_signature = {td::spec({td::open, 784})}});
  for (const int64_t n : {64, 1, 10, 0 + 128}) {
    const td::Tensor x = drawn({n, 784});
    EXPECT_TRUE(td::identical(f(x), td::mean(x, 0)));
  }
  EXPECT_EQ(f.cache_info().traces, 1);
  const std::string at = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string error = error_of([&] { f(drawn({3, 5})); });
  EXPECT_EQ(error, "function \"f\": argument 0 is f32[3, 5], its signature has f32[?, 784]" + at +
                       "\n  cast or reshape it, or make the size open in the signature: td::open");
  const auto two = td::function([](const td::Tensor& x, const td::Tensor& y) { return x + y; },
                                {.name = "two", .input_signature = {td::spec({td::open})}});
  const std::string there = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string other = error_of([&] { two(drawn({3}), drawn({3})); });
  EXPECT_EQ(other, "function \"two\": it was given 2 tensors, its signature has 1" + there +
                       "\n  input_signature has one td::spec for each tensor, in order");
}

TEST(OpenSizes, ArePlannedAtAnySizeWithoutTracing) {
  const td::MachineCode machine;
  const auto f =
      td::function([](const td::Tensor& x) { return td::exp(x) + td::transpose(td::transpose(x)); },
                   {.input_signature = {td::spec({td::open, 16})}});
  const td::Plan open = f.plan(td::spec({td::open, 16}));
  EXPECT_EQ(open.peak(), f.plan(td::spec({64, 16})).peak());
  EXPECT_EQ(open.explain().substr(0, open.explain().find(" needs")),
            "the function, for argument 0, dimension 0 = 64");
  for (const int64_t n : {16, 1000, 3}) {
    const td::Tensor x = drawn({n, 16});
    const auto [result, profile] = f.profile(x);
    EXPECT_EQ(f.plan(td::spec({n, 16})).peak(), profile.touched);
  }
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(OpenSizes, OfADimThatIsReadHaveATraceEach) {
  const auto f = td::function([](const td::Tensor& x, td::Dim n) {
    td::Tensor y = x;
    for (int64_t i = 0; i < n; ++i) y = y * 2;
    return y;
  });
  const td::Tensor x = td::ones({2});
  EXPECT_EQ(f(x, 3).to_vector<float>()[0], 8);
  EXPECT_EQ(f.cache_info().entries[0].reason,
            "first call; argument 1 is read as a number, so each size has a trace of its own");
  EXPECT_EQ(f(x, 5).to_vector<float>()[0], 32);
  EXPECT_EQ(f.cache_info().entries[0].reason,
            "argument 1: 3 became 5; it is read as a number, so each size has a trace of its own");
  EXPECT_EQ(f(x, 3).to_vector<float>()[0], 8);
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(OpenSizes, AreClosedByOpsThatNeedThem) {
  const auto f = td::function([](const td::Tensor& x) { return td::unstack(x).back() + 0; });
  const unsigned line = __LINE__ - 1;
  for (const int64_t n : {2, 3, 4}) EXPECT_TRUE(td::identical(f(drawn({n, 2})), drawn({n, 2})[-1]));
  EXPECT_EQ(f.cache_info().traces, 3);
  EXPECT_EQ(f.cache_info().entries[0].reason,
            "argument 0, dimension 0: 3 became 4; it is read as a number at open_sizes_test.cc:" +
                std::to_string(line) + ", so each size has a trace of its own");
}

TEST(OpenSizes, GoThroughFunctionsInFunctions) {
  const auto inner =
      td::function([](const td::Tensor& x, td::Dim n) { return td::reshape(x, {n, 2, -1}) * n; });
  const auto outer =
      td::function([inner](const td::Tensor& x) { return inner(x, x.shape()[0]) + 1; });
  for (const int64_t n : {3, 4, 9}) {
    const td::Tensor x = drawn({n, 6});
    EXPECT_TRUE(td::identical(outer(x), td::reshape(x, {n, 2, 3}) * n + 1));
  }
  EXPECT_EQ(outer.cache_info().traces, 2);
  EXPECT_EQ(inner.cache_info().traces, 0);
}

TEST(OpenSizes, UseTheBytesOfArgumentsMovedIn) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2; });
  for (const int64_t n : {4, 5, 6, 7}) {
    td::Tensor x = drawn({n, 3});
    const td::Tensor expected = td::exp(x) * 2;
    const td::MemoryScope scope("call");
    const td::Tensor y = f(std::move(x));
    EXPECT_EQ(scope.peak(), td::Bytes(0)) << n;
    EXPECT_TRUE(td::identical(y, expected));
  }
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(OpenSizes, WriteVariables) {
  const td::MachineCode machine;
  const td::Variable seen(td::zeros({3}));
  const auto f = td::function([seen](const td::Tensor& x) { seen.assign_add(td::sum(x, 0)); });
  td::Tensor total = td::zeros({3});
  for (const int64_t n : {4, 5, 6, 7}) {
    const td::Tensor x = drawn({n, 3});
    total = total + td::sum(x, 0);
    f(x);
  }
  EXPECT_TRUE(td::identical(seen.value(), total));
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(OpenSizes, AreClosedByAVariableOfThatSize) {
  std::optional<td::Variable> sums;
  const auto f = td::function([&sums](const td::Tensor& x, td::Dim n) {
    if (!sums) sums.emplace(td::full({n}, td::mean(td::ones({n * 2})) * n));
    return *sums + x;
  });
  const td::Tensor x = td::ones({4});
  EXPECT_EQ(f(x, 4).to_vector<float>(), (std::vector<float>{5, 5, 5, 5}));
  EXPECT_EQ(f.cache_info().entries[0].reason.substr(0, 46),
            "first call; argument 1 is read as a number at ");
}

TEST(OpenSizes, RunInThePlanOfTheirOwnSize) {
  const td::MachineCode machine;
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) + 1; },
                              {.input_signature = {td::spec({td::open})}});
  alignas(64) static std::byte arena[4096];
  for (const int64_t n : {100, 200}) {
    const td::Plan plan = f.plan(td::spec({n}));
    const td::Tensor x = drawn({n});
    EXPECT_TRUE(td::identical(f.run_in(plan, arena, x), td::exp(x) + 1));
  }
  const td::Plan plan = f.plan(td::spec({100}));
  const td::Tensor other = drawn({50});
  const std::string at = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string error = error_of([&] { f.run_in(plan, arena, other); });
  EXPECT_EQ(error,
            "run_in: the plan was made for other arguments, or for another number of threads" + at +
                "\n  plan with the types of these arguments: fn.plan(arguments...)");
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(OpenSizes, AreErrorsInTheSizesOfTheCall) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& y) { return x + y; });
  for (const int64_t n : {3, 4, 5}) f(drawn({n, 2}), drawn({n, 2}));
  EXPECT_EQ(error_of([&] { f(drawn({6, 2}), drawn({7, 2})); }).substr(0, 71),
            "add: shapes [6?, 2] and [7?, 2] do not broadcast (6? and 7? at axis -2)");
}

// Differences of sizes are numbers, and may be below 0; nothing has such a size.
TEST(OpenSizes, MayDifferByANumberBelowZero) {
  const auto scaled = [](const td::Tensor& x) { return x * (x.shape()[0] - 5); };
  const auto picked = [](const td::Tensor& x) { return x[{x.shape()[0] - 5}]; };
  const auto counted = [](const td::Tensor& x) {
    const auto next = [&](const td::Tensor&, const td::Tensor& sum) { return sum + td::mean(x); };
    return td::fori_loop(0, x.shape()[0] - 5, next, td::constant(0.0F));
  };
  const auto f = td::function(scaled), g = td::function(picked), h = td::function(counted);
  for (const int64_t n : {8, 7, 3, 4, 6}) {
    const td::Tensor x = drawn({n});
    EXPECT_TRUE(td::identical(f(x), x * static_cast<float>(n - 5))) << n;
    EXPECT_TRUE(td::identical(g(x), x[{n - 5}])) << n;
    EXPECT_TRUE(td::identical(scaled(x), f(x)) && td::identical(picked(x), g(x))) << n;
    EXPECT_TRUE(td::identical(counted(x), h(x))) << n;
  }
  EXPECT_EQ(f.cache_info().traces, 2);
}

TEST(OpenSizes, GiveARangeOfNothingBelowZero) {
  const auto f = td::function(
      [](const td::Tensor& x) { return td::sum(td::arange(0, x.shape()[0] - 5, 1, td::f32)); },
      {.input_signature = {td::spec({td::open})}});
  for (const int64_t n : {3, 9, 5})
    EXPECT_EQ(f(drawn({n})).item<float>(), n == 9 ? 0.0F + 1 + 2 + 3 : 0.0F) << n;
}

TEST(OpenSizes, BelowZeroAreErrors) {
  const auto f = td::function([](const td::Tensor& x) { return td::ones({x.shape()[0] - 5}); });
  const std::string at = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ - 1);
  for (const int64_t n : {8, 7, 5}) EXPECT_EQ(f(drawn({n})).size(), n - 5);
  const td::Tensor small = drawn({3});
  EXPECT_EQ(error_of([&] { f(small); }),
            "broadcast_to: a size is -2 in this call: (argument 0, dimension 0) - 5" + at +
                "\n  sizes go from 0 up: td::larger(size, 0) bounds one");
  const auto bounded =
      td::function([](const td::Tensor& x) { return td::ones({td::larger(x.shape()[0] - 5, 0)}); });
  for (const int64_t n : {8, 7, 3}) EXPECT_EQ(bounded(drawn({n})).size(), n == 3 ? 0 : n - 5);
  const auto padded =
      td::function([](const td::Tensor& x) { return td::pad(x, {{0, 10 - x.shape()[0]}}); });
  for (const int64_t n : {8, 7, 10}) EXPECT_EQ(padded(drawn({n})).size(), 10);
  EXPECT_EQ(error_of([&] { padded(drawn({12})); }).substr(0, 31),
            "pad: a size is -2 in this call:");
}

TEST(OpenSizes, ServeThreadsAtOnce) {
  const auto f = [](const td::Tensor& x) { return td::softmax(td::exp(x) + td::mean(x)); };
  const auto compiled = td::function(f);
  for (const int64_t n : {2, 3}) compiled(drawn({n, 5}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t n = 2; n < 60; ++n) {
        const td::Tensor x = drawn({n, 5}, static_cast<uint64_t>(t));
        if (!td::identical(compiled(x), f(x))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(compiled.cache_info().traces, 2);
}

TEST(OpenSizes, KeepProgramsInABoundedCache) {
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2 + td::sum(x); },
                              {.cache_limit = td::Bytes(64 << 10)});
  for (int64_t n = 2; n < 300; ++n) f(drawn({n}));
  EXPECT_EQ(f.cache_info().traces, 2);
  EXPECT_LE(f.cache_info().bytes, td::Bytes(64 << 10));
  EXPECT_TRUE(td::identical(f(td::ones({5})), td::exp(td::ones({5})) * 2 + td::sum(td::ones({5}))));
}

// One plan tells every size, to the byte, without a trace.
TEST(OpenSizes, GiveThePlanOfAnySize) {
  const td::MachineCode machine;
  const td::Tensor w = drawn({16, 16}, 3);
  const auto f = td::function([w](const td::Tensor& x, td::Dim n) {
    const td::Tensor h = td::cumsum(td::tanh(td::matmul(x, w)), 0);
    return td::sum(td::softmax(h), 0) +
           td::sum(td::map_fn([](const td::Tensor& e) { return td::cumsum(e, 0); },
                              td::zeros({n, 16}) + 1),
                   0);
  });
  const td::Plan plan = f.plan(td::spec({td::open, 16}), 8);
  EXPECT_EQ(plan.open_sizes(), (std::vector<std::string>{"argument 0, dimension 0", "argument 1"}));
  for (const auto& [rows, n] : {std::pair{16, 8}, {1000, 3}, {3, 100}, {64, 1}}) {
    const td::Plan there = plan.at({rows, n});
    const auto [result, profile] = f.profile(drawn({rows, 16}), n);
    EXPECT_EQ(there.peak(), profile.planned) << rows << " and " << n;
    EXPECT_EQ(there.peak(), profile.touched) << rows << " and " << n;
    EXPECT_EQ(there.explain().substr(0, there.explain().find(" needs")),
              "the function, for argument 0, dimension 0 = " + std::to_string(rows) +
                  ", argument 1 = " + std::to_string(n));
  }
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(OpenSizes, OfAPlanOutliveTheFunction) {
  const td::MachineCode machine;
  td::Plan plan;
  {
    const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2; });
    plan = f.plan(td::spec({td::open}));
  }
  EXPECT_EQ(plan.at({1000}).peak(), td::Bytes(4032));
  EXPECT_EQ(plan.at({1000}).at({16}).peak(), td::Bytes(64));
}

TEST(OpenSizes, OfAPlanThatCannotBeAreErrors) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& y) { return x + y; });
  const td::Plan plan = f.plan(td::spec({td::open}), td::spec({td::open}));
  const std::string at = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string few = error_of([&] { plan.at({3}); });
  EXPECT_EQ(few, "at: 1 sizes for a plan with 2 open" + at +
                     "\n  give one for each, in order: argument 0, dimension 0; argument 1, "
                     "dimension 0");
  const std::string there = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string other = error_of([&] { plan.at({3, 4}); });
  EXPECT_EQ(other,
            "at: this trace serves only sizes with argument 1, dimension 0 = argument 0, "
            "dimension 0" +
                there + "\n  plan for a spec with these sizes: fn.plan(td::spec({64, 784}))");
  const std::string here = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string negative = error_of([&] { plan.at({3, -1}); });
  EXPECT_EQ(negative,
            "at: argument 1, dimension 0 cannot be -1" + here + "\n  a size is a number from 0 up");
  const auto closed = td::function([](const td::Tensor& x) { return x + 1; });
  const td::Plan known = closed.plan(td::spec({3}));
  EXPECT_EQ(known.at({}).peak(), known.peak());
  const std::string none = "\n  at open_sizes_test.cc:" + std::to_string(__LINE__ + 1);
  const std::string many = error_of([&] { known.at({3}); });
  EXPECT_EQ(many, "at: 1 sizes for a plan with 0 open" + none +
                      "\n  give one for each, in order: none is open");
}

TEST(OpenSizes, StayOpenInGradientsOfConvolutions) {
  const td::Tensor kernel = drawn({3, 2, 2, 4}, 3);
  const auto slopes = [&](const td::Tensor& x) {
    td::GradientTape tape;
    tape.watch(x);
    tape.watch(kernel);
    const td::ConvOptions options{.strides = {2, 1}, .padding = td::Padding::same};
    const td::Tensor y = td::sum(td::square(td::conv2d(x, kernel, options)));
    return tape.gradient(y, std::vector<td::Tensor>{x, kernel});
  };
  const auto open = td::function([&](const td::Tensor& x) { return slopes(x); },
                                 {.input_signature = {td::spec({td::open, 6, 5, 2})}});
  for (const int64_t n : {2, 3, 7, 5}) {
    const td::Tensor x = drawn({n, 6, 5, 2});
    const auto given = open(x), wanted = slopes(x);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(td::identical(given[i], wanted[i])) << n;
  }
  EXPECT_EQ(open.cache_info().traces, 1);
}

// Gradients of loops whose trips are open walk them backwards.
TEST(OpenSizes, HaveGradients) {
  const auto loss = [](const td::Tensor& x) {
    const td::Tensor last =
        td::scan([](const td::Tensor& sum,
                    const td::Tensor& e) { return std::pair{td::tanh(sum * 0.5 + e), sum * 2}; },
                 td::zeros({3}), x)
            .first;
    const td::Tensor each = td::map_fn([](const td::Tensor& e) { return td::sum(e * e); }, x);
    return td::sum(last) + td::sum(each);
  };
  const auto gradient = [loss](const td::Tensor& x) {
    td::GradientTape tape;
    tape.watch(x);
    return tape.gradient(loss(x), x);
  };
  const auto compiled = td::function(gradient);
  for (const int64_t n : {4, 7, 2, 30}) {
    const td::Tensor x = drawn({n, 3}, static_cast<uint64_t>(n));
    EXPECT_TRUE(td::identical(compiled(x), gradient(x))) << n;
  }
  EXPECT_EQ(compiled.cache_info().traces, 2) << compiled.cache_info();
}

}  // namespace
