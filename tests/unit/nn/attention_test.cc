#include "tidemark/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using nn::KVCache;
using nn::MultiHeadAttention;
using Options = nn::MultiHeadAttentionOptions;

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "attention_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

const std::vector<std::pair<const char*, Options>>& kinds() {
  static const std::vector<std::pair<const char*, Options>> all = {
      {"plain", {.causal = true, .dtype = f64}},
      {"grouped", {.causal = true, .key_heads = 2, .dtype = f64}},
      {"one head of keys", {.causal = true, .key_heads = 1, .dtype = f64}},
      {"rotary", {.causal = true, .rotary = 100, .dtype = f64}},
      {"alibi", {.causal = true, .alibi = true, .dtype = f64}},
      {"all", {.causal = true, .key_heads = 2, .rotary = 100, .alibi = true, .dtype = f64}}};
  return all;
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_LE(max(abs(got - want)).item<double>(), tolerance);
}

TEST(Attention, OfEveryKindHasTheGradientsOfDifferences) {
  for (const auto& [name, options] : kinds()) {
    SCOPED_TRACE(name);
    const MultiHeadAttention layer(4, 2, options);
    layer(drawn_f64({2, 3, 5}, 1));
    expect_gradients(layer, drawn_f64({2, 3, 5}, 1));
  }
}

// Keys that are shared are keys that are equal.
TEST(Attention, GroupsOfHeadsAreHeadsWithEqualKeys) {
  const Tensor x = drawn_f64({2, 5, 6}, 2);
  const MultiHeadAttention grouped(4, 2, {.key_heads = 2, .dtype = f64});
  const MultiHeadAttention whole(4, 2, {.dtype = f64});
  grouped(x);
  whole(x);
  const auto repeated = [](const Tensor& kernel) {
    const Tensor apart = reshape(kernel, {-1, 2, 1, 2});
    return reshape(broadcast_to(apart, {apart.shape()[0], 2, 2, 2}), {-1, 8});
  };
  whole.query.kernel.assign(grouped.query.kernel);
  whole.output.kernel.assign(grouped.output.kernel);
  whole.key.kernel.assign(repeated(grouped.key.kernel));
  whole.value.kernel.assign(repeated(grouped.value.kernel));
  expect_close(grouped(x), whole(x), 1e-12);
  const Tensor by_head = drawn_f64({2, 4, 5, 5}, 9) > -0.5;
  expect_close(grouped(x, x, by_head), whole(x, x, by_head), 1e-12);
  const Tensor by_key = drawn_f64({2, 1, 1, 5}, 9) > -0.5;
  expect_close(grouped(x, x, by_key), whole(x, x, by_key), 1e-12);
}

TEST(Attention, RotationTurnsPairsByTheirPosition) {
  const Tensor turned = nn::rotary(constant({{1.0, 2.0, 3.0, 4.0}}, f64), 3, 100);
  const auto pair = [](double a, double b, double angle) {
    return std::pair{a * std::cos(angle) - b * std::sin(angle),
                     b * std::cos(angle) + a * std::sin(angle)};
  };
  const auto [a, c] = pair(1, 3, 3.0);
  const auto [b, d] = pair(2, 4, 3.0 / 10);
  expect_near(turned, {a, b, c, d}, 1e-12);
  // Scores depend on distances alone.
  const Tensor q = drawn_f64({1, 6}, 1), k = drawn_f64({1, 6}, 2);
  expect_close(matmul(nn::rotary(q, 7), nn::rotary(k, 4), {.transpose_b = true}),
               matmul(nn::rotary(q, 3), nn::rotary(k, 0), {.transpose_b = true}), 1e-12);
}

TEST(Attention, DropsWeightsInTrainingAlone) {
  const MultiHeadAttention layer(1, 2, {.weight_dropout = 0.5, .dtype = f64});
  const Tensor x = drawn_f64({1, 64, 2}, 3);
  const Tensor usual = layer(x);
  EXPECT_TRUE(identical(layer(x), usual));
  const nn::Training on;
  random::seed(5);
  Tensor total = zeros_like(usual);
  constexpr int kDraws = 200;
  for (int i = 0; i < kDraws; ++i) total = total + layer(x);
  EXPECT_GT(max(abs(layer(x) - usual)).item<double>(), 1e-3);
  expect_close(total / kDraws, usual, 0.1);  // The mean stays.
}

// ---- the cache ----------------------------------------------------------------------------------

TEST(KVCache, TokenByTokenIsTheSameAsAllAtOnce) {
  const Tensor x = drawn_f64({2, 7, 5}, 1);
  for (const auto& [name, options] : kinds()) {
    SCOPED_TRACE(name);
    const MultiHeadAttention layer(4, 2, options);
    const Tensor whole = layer(x);
    for (const bool compiled : {false, true}) {
      const KVCache cache(10, {.dtype = f64});
      const auto step = function([&](const Tensor& tokens) { return layer(tokens, cache); });
      std::vector<Tensor> parts;
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 3}, {3, 4}, {4, 5}, {5, 7}}) {
        const Tensor tokens = x[{all, Slice{.begin = begin, .end = end}}];
        parts.push_back(compiled ? step(tokens) : layer(tokens, cache));
      }
      expect_close(concat(parts, 1), whole, 1e-12);
      EXPECT_EQ(cache.length.value().item<int>(), 7);
      if (compiled) {
        EXPECT_LE(step.cache_info().traces, 3);  // Three tokens, one token, and any number.
      }
      // What was said after the first three is forgotten.
      cache.reset(3);
      expect_close(layer(x[{all, Slice{.begin = 3}}], cache), whole[{all, Slice{.begin = 3}}],
                   1e-12);
    }
  }
}

// A program of a token: the cache is written where it lies, for any length.
TEST(KVCache, IsWrittenInPlace) {
  const MachineCode machine;
  constexpr int64_t capacity = 256, heads = 4, size = 16, rows = 2;
  constexpr int64_t bytes = capacity * rows * heads * size * 4;
  const MultiHeadAttention layer(heads, size, {.causal = true, .rotary = 10'000});
  const KVCache cache(capacity);
  const auto step = function([=](const Tensor& token) { return layer(token, cache); });
  const Tensor token = ones({rows, 1, 32});
  step(token);
  const Plan plan = step.plan(token);
  EXPECT_EQ(plan.of(ByteClass::shadow).count, 0) << plan.explain();
  EXPECT_LE(plan.peak().count, bytes / 4) << plan.explain();
  const Bytes before = memory::current();
  for (int i = 0; i < 20; ++i) step(token);
  EXPECT_EQ(memory::current(), before);
  EXPECT_EQ(step.cache_info().traces, 1);
  const auto [y, profile] = step.profile(token);
  EXPECT_EQ(profile.planned, plan.peak());
}

TEST(KVCache, IsSavedWithTheModel) {
  const std::string file = testing::TempDir() + "kv_cache.safetensors";
  const MultiHeadAttention layer(2, 4, {.causal = true});
  const Tensor x = ones({1, 3, 6});
  const KVCache cache(8), other(8);
  layer(x, cache);
  layer(x, other);
  other.reset();
  io::Checkpoint({{"cache", cache}}).save(file);
  io::Checkpoint({{"cache", other}}).load(file);
  EXPECT_TRUE(identical(layer(x, cache), layer(x, other)));
  EXPECT_EQ(names_of(nn::named_variables(cache)),
            (std::vector<std::string>{"keys", "values", "length"}));
}

TEST(KVCache, LeavesAllAsItWasWhereThereIsNoRoom) {
  const MultiHeadAttention layer(2, 4, {.causal = true});
  const KVCache cache(4);
  layer(ones({1, 3, 6}), cache);
  const Tensor before = cache.keys.value() + 0;
  EXPECT_THROW(layer(ones({1, 2, 6}), cache), UserError);
  EXPECT_EQ(cache.length.value().item<int>(), 3);
  EXPECT_TRUE(identical(cache.keys.value(), before));
}

TEST(KVCache, ForgetsNoMoreThanItHolds) {
  const MultiHeadAttention layer(2, 4, {.causal = true});
  const KVCache cache(4);
  layer(ones({1, 3, 6}), cache);
  const auto length_after = [&](int kept) {
    cache.reset(kept);
    return cache.length.value().item<int>();
  };
  EXPECT_EQ(length_after(9), 3);
  EXPECT_EQ(length_after(2), 2);
  EXPECT_EQ(length_after(-1), 0);
}

TEST(Attention, SaysWhatItCannotDo) {
  const std::string at = "\n  at attention_test.cc:\n  ";
  EXPECT_EQ(said([] { MultiHeadAttention(4, 2, {.key_heads = 3}); }),
            "nn::MultiHeadAttention: 4 heads cannot share 3 heads of keys" + at +
                "the number of heads must be a multiple of .key_heads");
  EXPECT_EQ(said([] { MultiHeadAttention(4, 3, {.rotary = 10'000}); }),
            "nn::MultiHeadAttention: cannot rotate keys of 3" + at +
                "give keys an even size for .rotary");
  EXPECT_EQ(said([] { MultiHeadAttention(1, 2)(ones({1, 2, 2}), KVCache(4)); }),
            "nn::MultiHeadAttention: a cache of earlier tokens needs causal attention" + at +
                "make the layer with {.causal = true}");
  EXPECT_EQ(said([] { KVCache(0); }), "nn::KVCache: cannot hold 0 tokens" + at +
                                          "give the largest number of tokens it will hold");
  EXPECT_EQ(said([] { nn::rotary(ones({2, 3})); }),
            "nn::rotary: f32[2, 3] has no pairs of elements" + at +
                "give it [..., tokens, size] with an even size");
}

}  // namespace
}  // namespace tidemark
