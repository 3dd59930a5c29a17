// Tables that never exist: what is around them runs part by part, with the bits of eager code.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/unit/machine_code.h"
#include "tests/unit/small_counts.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;
using Tensors = std::vector<Tensor>;
using Body = std::function<Tensors(const Tensors&)>;

namespace {

Tensor normal(const td::Shape& shape, uint64_t key, double scale = 1.0) {
  return td::random::normal(shape, {.key = td::random::Key(key)}) * scale;
}

// Whole numbers below `count`.
Tensor labels(const td::Shape& shape, int64_t count) {
  const Tensor uniform = td::random::uniform(shape, {.key = td::random::Key(77)});
  return td::cast(uniform * static_cast<double>(count), td::i32);
}

void expect_identical(const Tensors& got, const Tensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(td::identical(got[i], expected[i])) << "result " << i;
}

// What the bodies of a map have is listed besides, one by one.
int64_t largest_buffer(const td::Plan& plan) {
  int64_t largest = 0;
  for (const td::PlanBuffer& buffer : plan.buffers())
    if (buffer.name != "map bodies") largest = std::max(largest, buffer.bytes.count);
  return largest;
}

class Threads {
 public:
  explicit Threads(int count) { td::set_num_threads(count); }
  ~Threads() { td::set_num_threads(before_); }

 private:
  int before_ = td::num_threads();
};

// The same bits on every number of threads as in eager code, with and without kernels that join
// ops; all that was planned is touched; and nothing planned is larger than `most` bytes.
void expect_no_table(const Body& body, const Tensors& args, int64_t most) {
  const Tensors expected = body(args);
  const td::MachineCode machine;  // The scratch of interpreters is more than they touch.
  const auto whole = td::function([&](const Tensors& x) { return body(x); }, {.jit = false});
  expect_identical(whole(args), expected);
  for (const int count : {1, 2, 3}) {
    SCOPED_TRACE(td::cat(count, " threads"));
    const Threads threads(count);
    const auto f = td::function([&](const Tensors& x) { return body(x); });
    const td::Plan plan = f.plan(args);
    EXPECT_LE(largest_buffer(plan), most) << plan.explain();
    EXPECT_LT(plan.peak(), whole.plan(args).peak());
    expect_identical(f(args), expected);
    const auto [results, profile] = f.profile(args);
    expect_identical(results, expected);
    EXPECT_EQ(profile.touched, plan.peak());
  }
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return td::matmul(td::softmax(td::matmul(q, k, {.transpose_b = true}) / 8.0), v);
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const int64_t t = q.shape()[-2];
  const Tensor mask = td::tril(td::ones({t, t})) > 0;
  const Tensor scores = td::matmul(q, k, {.transpose_b = true}) / 8.0;
  return td::matmul(td::softmax(td::where(mask, scores, -1e30)), v);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& at) {
  return -td::mean(td::take_along_axis(td::log_softmax(logits), td::expand_dims(at, -1), -1));
}

// The gradients of f by all arguments.
template <class F>
Body gradients(const F& f) {
  return [f](const Tensors& x) { return td::grad(f)(x); };
}

Tensors three(const td::Shape& shape) {
  return {normal(shape, 1), normal(shape, 2), normal(shape, 3)};
}

// A table of 1 MiB and the rows beside it that a product packs, which differ by instruction set.
constexpr int64_t kPart = 5 << 18;

TEST(Split, AttentionHoldsTheScoresOfFewHeads) {
  const auto forward = [](const Tensors& x) { return Tensors{attention(x[0], x[1], x[2])}; };
  expect_no_table(forward, three({4, 4, 256, 64}), kPart);
  const auto loss = [](const Tensors& x) {
    return td::sum(td::square(causal_attention(x[0], x[1], x[2])));
  };
  expect_no_table(gradients(loss), three({4, 4, 256, 64}), kPart);
}

TEST(Split, AttentionOverLongRowsGoesByRows) {
  const auto forward = [](const Tensors& x) { return Tensors{attention(x[0], x[1], x[2])}; };
  expect_no_table(forward, three({1, 1, 1000, 64}), kPart);
  expect_no_table(forward, {normal({997, 32}, 1), normal({601, 32}, 2), normal({601, 32}, 3)},
                  kPart);
  const auto loss = [](const Tensors& x) {
    return td::sum(td::square(attention(x[0], x[1], x[2])));
  };
  expect_no_table(gradients(loss), three({1, 2, 1024, 64}), kPart);
  expect_no_table(gradients(loss), three({900, 64}), kPart);
}

TEST(Split, ViewsAreWalkedWhereTheyLie) {
  // Heads side by side in one array, as a layer makes them.
  const auto heads = [](const Tensors& x) {
    Tensors parts;
    for (const Tensor& part : td::split(x[0], 3, -1))
      parts.push_back(td::transpose(td::reshape(part, {2, 256, 4, 64}), {0, 2, 1, 3}));
    return Tensors{attention(parts[0], parts[1], parts[2])};
  };
  const Tensors args = {normal({2, 256, 768}, 1)};
  expect_no_table(heads, args, kPart);
  const auto f = td::function([&](const Tensors& x) { return heads(x); });
  for (const td::PlanStep& step : f.plan(args).timeline()) EXPECT_NE(step.name, "copy");
}

TEST(Split, AGradientMakesItsTableAgain) {
  // Between the two lies a product that has no part in the table.
  const auto loss = [](const Tensors& x) {
    const Tensor mixed = causal_attention(x[0], x[1], x[2]);
    return td::sum(td::square(td::matmul(mixed, x[3])));
  };
  Tensors args = three({4, 4, 256, 64});
  args.push_back(normal({64, 64}, 4));
  expect_no_table(gradients(loss), args, kPart);
  const auto f = td::function([&](const Tensors& x) { return td::grad(loss)(x); });
  for (const td::PlanBuffer& buffer : f.plan(args).buffers())
    if (buffer.byte_class == td::ByteClass::saved) {
      EXPECT_LE(buffer.bytes.count, kPart);
    }
}

TEST(Split, LogitsGoByBlocksOfTokens) {
  for (const int64_t tokens : {777, 512, 769, 1280}) {
    if (td::small_counts() && tokens != 777) continue;
    SCOPED_TRACE(tokens);
    const Tensor at = labels({tokens}, 2000);
    const auto loss = [at](const Tensors& x) { return cross_entropy(td::matmul(x[0], x[1]), at); };
    expect_no_table(gradients(loss), {normal({tokens, 64}, 1), normal({64, 2000}, 2, 0.1)},
                    256 * 2000 * 4);
    const auto with_bias = [at](const Tensors& x) {
      return cross_entropy(td::matmul(x[0], x[1]) + x[2], at);
    };
    expect_no_table(gradients(with_bias),
                    {normal({tokens, 64}, 1), normal({64, 2000}, 2, 0.1), normal({2000}, 3)},
                    256 * 2000 * 4);
  }
}

TEST(Split, LogitsOfABatchOfSentences) {
  // Whole sentences where they fill blocks of 256, else tokens of several.
  for (const td::Shape& shape :
       {td::Shape{4, 256, 64}, td::Shape{8, 128, 64}, td::Shape{8, 100, 64},
        td::Shape{3, 1, 300, 64}, td::Shape{1, 5, 101, 64}, td::Shape{2, 2, 2, 77, 64}}) {
    if (td::small_counts() && shape.rank() == 3) continue;
    td::Shape tokens = shape;
    tokens.erase(shape.rank() - 1);
    const Tensor at = labels(tokens, 1500);
    const auto loss = [at](const Tensors& x) {
      return cross_entropy(td::matmul(x[0], x[1]) + x[2], at);
    };
    expect_no_table(gradients(loss),
                    {normal(shape, 1), normal({64, 1500}, 2, 0.1), normal({1500}, 3)},
                    256 * 1500 * 4);
  }
}

TEST(Split, TheNextWordIsToBeFound) {
  // The logits of the last place are not used: the loss cuts them off, and its gradient pads.
  const Tensor ids = labels({4, 256}, 1000);
  const auto loss = [ids](const Tensors& x) {
    const Tensor seen = td::log_softmax(td::matmul(x[0], x[1]))[{td::all, td::Slice{.end = 255}}];
    const Tensor next = td::expand_dims(ids[{td::all, td::Slice{.begin = 1}}], -1);
    return -td::mean(td::take_along_axis(seen, next, -1));
  };
  expect_no_table(gradients(loss), {normal({4, 256, 64}, 1), normal({64, 1000}, 2, 0.1)},
                  256 * 1000 * 4);
}

TEST(Split, AStepOfAModelThatUpdatesItsVariables) {
  const Tensor x = normal({1024, 64}, 1), at = labels({1024}, 2000);
  const td::Variable w(normal({64, 2000}, 2, 0.1)), b(td::zeros({2000}));
  const auto step = [&](const Tensor& x, const Tensor& at) {
    td::GradientTape tape;
    const Tensor loss = cross_entropy(td::matmul(x, w) + b, at);
    const std::vector<td::Gradient> by = tape.gradient(loss, std::vector<td::Variable>{w, b});
    w.assign_sub(by[0].dense() * 0.1);
    b.assign_sub(by[1].dense() * 0.1);
    return loss;
  };
  const Tensor w_before = w + 0.0, b_before = b + 0.0;
  const Tensor expected = step(x, at);
  const Tensor w_after = w + 0.0, b_after = b + 0.0;
  w.assign(w_before);
  b.assign(b_before);
  const auto f = td::function(step);
  EXPECT_LE(largest_buffer(f.plan(x, at)), 256 * 2000 * 4) << f.plan(x, at).explain();
  EXPECT_TRUE(td::identical(f(x, at), expected));
  EXPECT_TRUE(td::identical(w, w_after));
  EXPECT_TRUE(td::identical(b, b_after));
}

struct Reader {
  td::nn::MultiHeadAttention attend{4, 64, {.causal = true}};
  td::nn::Dense words{2000};
  TIDEMARK_FIELDS(attend, words)
  Tensor operator()(const Tensor& x) const { return words(x + attend(x)); }
};

TEST(Split, LayersAndTheirLossAndTheirOptimizer) {
  const Tensor x = normal({4, 256, 256}, 1), at = labels({4, 256}, 2000);
  const auto after_steps = [&](bool jit, int64_t* largest) {
    td::random::seed(5);
    const Reader model;
    const td::nn::SGD optimizer({.learning_rate = 0.1, .momentum = 0.9});
    const auto step = td::function(
        [&](const Tensor& x, const Tensor& at) {
          td::GradientTape tape;
          const Tensor loss = td::nn::losses::sparse_categorical_crossentropy(at, model(x));
          optimizer.minimize(tape, loss, model);
          return loss;
        },
        {.jit = jit});
    Tensors results;
    for (int i = 0; i < 2; ++i) results.push_back(step(x, at));
    for (const td::Variable& each : td::nn::variables(model)) results.push_back(each + 0.0);
    *largest = largest_buffer(step.plan(x, at));
    return results;
  };
  const Threads threads(2);  // Each has a workspace of its own, which is in one buffer with all.
  int64_t whole = 0, parts = 0;
  const Tensors expected = after_steps(false, &whole);
  expect_identical(after_steps(true, &parts), expected);
  EXPECT_GE(whole, 1024 * 2000 * 4);
  EXPECT_LE(parts, 256 * 2000 * 4);
}

TEST(Split, OneTraceForSizesWithAndWithoutTables) {
  const auto body = [](const Tensor& x) { return attention(x, td::tanh(x), x * 0.5); };
  const auto f = td::function(body, {.input_signature = {td::spec({td::open, 32})}});
  for (const int64_t rows : {40, 1000, 600, 41, 1001}) {
    const Tensor x = normal({rows, 32}, 1);
    EXPECT_TRUE(td::identical(f(x), body(x))) << rows;
  }
  EXPECT_LE(largest_buffer(f.plan(td::spec({1000, 32}))), kPart);
}

TEST(Split, WhatFailsInAPartChangesNothing) {
  const Tensor x = normal({1024, 64}, 1);
  const td::Variable w(normal({64, 2000}, 2, 0.1));
  const auto step = td::function([&](const Tensor& at) {
    td::GradientTape tape;
    const Tensor loss = cross_entropy(td::matmul(x, w), at);
    w.assign_sub(tape.gradient(loss, w).dense() * 0.1);
    return loss;
  });
  const Tensor before = w + 0.0;
  const Tensor wrong =
      td::where(td::arange(1024) == 700, td::cast(2000, td::i32), labels({1024}, 2000));
  EXPECT_THROW(step(wrong), td::UserError);
  EXPECT_TRUE(td::identical(w, before));
  step(labels({1024}, 2000));
  EXPECT_FALSE(td::identical(w, before));
}

TEST(Split, KeepsTheSignsOfZeros) {
  const Tensor zeros = td::where(normal({1024, 8}, 1) > 0, 0.0, -0.0);
  const auto loss = [](const Tensors& x) {
    return td::sum(td::sum(td::matmul(x[0], x[1]) * x[2], 1) * -0.0);
  };
  expect_no_table(gradients(loss), {zeros, normal({8, 700}, 2), normal({700}, 3)}, kPart);
}

TEST(Split, InsideARecompute) {
  const auto block = td::recompute(
      [](const Tensor& x, const Tensor& w) { return td::matmul(attention(x, td::tanh(x), x), w); });
  const auto loss = [block](const Tensors& x) {
    return td::sum(td::square(block(block(x[0], x[1]), x[1])));
  };
  expect_no_table(gradients(loss), {normal({4, 4, 256, 64}, 1), normal({64, 64}, 2, 0.1)}, kPart);
}

TEST(Split, LeavesAloneWhatGainsNothing) {
  const auto text = [](const Body& body, const Tensors& args) {
    const auto f = td::function([&](const Tensors& x) { return body(x); });
    f(args);
    return f.text("split");
  };
  const auto is_whole = [&](const Body& body, const Tensors& args) {
    const std::string program = text(body, args);
    EXPECT_EQ(program.find("map("), std::string::npos) << program;
    EXPECT_EQ(program.find("loop("), std::string::npos) << program;
  };
  const auto forward = [](const Tensors& x) { return Tensors{attention(x[0], x[1], x[2])}; };
  is_whole(forward, three({2, 2, 64, 16}));
  // The table is a result.
  is_whole([](const Tensors& x) { return Tensors{td::softmax(td::matmul(x[0], x[1]))}; },
           {normal({1024, 32}, 1), normal({32, 1024}, 2)});
  // Draws depend on where they stand in the whole.
  is_whole(
      [](const Tensors& x) {
        const Tensor scores = td::matmul(x[0], x[1]);
        const Tensor noise = td::random::normal(scores.shape(), {.key = td::random::Key(3)});
        return Tensors{td::sum(scores * noise, 1)};
      },
      {normal({1024, 32}, 1), normal({32, 1024}, 2)});
  // What it needs depends on all of it.
  is_whole(
      [](const Tensors& x) {
        const Tensor scores = td::matmul(x[0], x[1]);
        return Tensors{td::sum(scores / td::max(scores), 1)};
      },
      {normal({1024, 32}, 1), normal({32, 1024}, 2)});
}

TEST(Split, SumsOverWhatRepeatsStillMultiply) {
  const auto repeated = [](const Tensors& x) {
    const Tensor table = td::exp(td::matmul(x[0], x[1]));
    const Tensor rows = td::broadcast_to(td::expand_dims(x[2], 1), {1024, 700});
    return Tensors{td::sum(table, 1) * td::sum(rows, 1)};
  };
  expect_no_table(repeated, {normal({1024, 16}, 1), normal({16, 700}, 2, 0.1), normal({1024}, 3)},
                  2 * kPart);
  // The gradient by the bias sums over rows that are all alike.
  const auto loss = [](const Tensors& x) {
    return td::sum(td::square(td::sum(td::matmul(x[0], x[1]) * x[3] + x[2], 0)));
  };
  expect_no_table(
      gradients(loss),
      {normal({736, 20}, 1), normal({20, 635}, 2), normal({635}, 3), normal({736, 1}, 4)}, kPart);
}

// ---- at random ----------------------------------------------------------------------------------

// A table, and ops by chance on it and on smaller values beside it, down to something small.
class Chance {
 public:
  explicit Chance(uint32_t seed) : random_(seed) {}

  Tensors arguments() {
    const int64_t inner = 1 + below(24), batch = below(3) == 0 ? 2 + below(3) : 0;
    rows_ = 256 * (1 + below(3)) + (below(2) == 0 ? below(300) : 0);
    columns_ = std::max<int64_t>(300 + below(500), 270'000 / (rows_ * std::max<int64_t>(1, batch)));
    const auto shaped = [&](td::Shape shape) {
      if (batch > 0) shape.insert(0, batch);
      return shape;
    };
    shared_ = batch > 0 && below(2) == 0;
    return {normal(shaped({rows_, inner}), 1),
            normal(shared_ ? td::Shape{inner, columns_} : shaped({inner, columns_}), 2, 0.2),
            normal({columns_}, 3), normal({rows_, 1}, 4)};
  }

  Tensor apply(const Tensors& x) {
    Tensor y = td::matmul(x[0], x[1]);
    const uint32_t ops = 2 + below(5);
    for (uint32_t i = 0; i < ops; ++i) y = next(y, x);
    return end(y, x);
  }

 private:
  uint32_t below(uint32_t count) { return random_() % count; }

  Tensor next(const Tensor& y, const Tensors& x) {
    switch (below(12)) {
      case 0:
        return td::tanh(y);
      case 1:
        return y + x[2];
      case 2:
        return y * x[3];
      case 3:
        return td::softmax(y);
      case 4:
        return td::log_softmax(y, -2);
      case 5:
        return y - td::max(y, -1, td::keepdims);
      case 6:
        return y * td::sum(y, -1, td::keepdims) * 0.01;
      case 7:
        return td::where(y > 0, y, y * 0.5);
      case 8:
        return td::cumsum(y, -1) * 0.1;
      case 9:
        return y - td::sum(y, -2, td::keepdims) * 0.01;
      case 10:
        return td::pad(y[{td::ellipsis, td::Slice{.begin = 3}}], pads(y));
      default:
        return turned(td::sin(turned(y)));
    }
  }
  static td::Padding2 pads(const Tensor& y) {
    td::Padding2 pads(static_cast<size_t>(y.shape().rank()));
    pads.back() = {1, 2};
    return pads;
  }
  static Tensor turned(const Tensor& y) {
    return y.shape().rank() == 2 ? td::transpose(y, {1, 0}) : td::transpose(y, {0, 2, 1});
  }
  Tensor end(const Tensor& y, const Tensors& x) {
    switch (below(5)) {
      case 0:
        return td::sum(td::square(y), -1);
      case 1:
        return td::matmul(y, td::expand_dims(x[2], 1));
      case 2:
        return td::matmul(turned(y), x[3] * td::ones({1, 8}));
      case 3:
        return td::sum(y, -2);
      default:
        return td::mean(y, -1) * td::max(y, -1);
    }
  }

  std::mt19937 random_;
  int64_t rows_ = 0, columns_ = 0;
  bool shared_ = false;
};

// More of them, and others: TIDEMARK_FUZZ=1000 TIDEMARK_FUZZ_SEED=7000.
TEST(Split, ProgramsMadeByChanceGiveTheBitsOfEagerCode) {
  const auto number = [](const char* name, uint32_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
  };
  const uint32_t first = number("TIDEMARK_FUZZ_SEED", 0), count = number("TIDEMARK_FUZZ", 24);
  uint32_t split = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const Tensors args = Chance(seed).arguments();
    const auto body = [seed](const Tensors& x) {
      Chance chance(seed);
      chance.arguments();
      return Tensors{chance.apply(x)};
    };
    const auto by_all = [&](const Tensors& x) {
      return td::grad([&](const Tensors& y) { return td::sum(td::square(body(y)[0])); })(x);
    };
    const auto forward = td::function([&](const Tensors& x) { return body(x); });
    const auto backward = td::function([&](const Tensors& x) { return by_all(x); });
    expect_identical(forward(args), body(args));
    expect_identical(backward(args), by_all(args));
    const std::string text = forward.text("split") + backward.text("split");
    split += text.find("map(") != std::string::npos || text.find("loop(") != std::string::npos;
  }
  EXPECT_GE(split, count / 3);
}

}  // namespace
