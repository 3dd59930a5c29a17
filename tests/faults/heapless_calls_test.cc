// A call like the last one takes no heap at all: from entering the call until its results are
// handed out, nobody calls malloc, on any thread.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/soak/counted_heap.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark::testing {
namespace {

Tensor drawn(const Shape& shape, uint64_t key = 1) {
  return random::normal(shape, {.key = random::Key(key)});
}

// Results of the warm calls are let go of, as a loop over steps does.
template <class Call>
int64_t heap_of_a_further_call(Call call) {
  for (int i = 0; i < 3; ++i) call();
  const int64_t before = heap_allocations();
  [[maybe_unused]] const auto result = call();
  return heap_allocations() - before;
}

// A transformer's parts: embedding, attention, layer norm, a row of blocks.
struct Block {
  nn::LayerNorm before, between;
  nn::MultiHeadAttention attention;
  nn::Dense up, down;
  Block(int64_t wide, int64_t heads)
      : attention(heads, wide / heads, {.causal = true}),
        up(4 * wide, {.activation = gelu}),
        down(wide) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(before(x));
    return h + down(dropout(up(between(h)), {.rate = 0.1}));
  }
  TIDEMARK_FIELDS(before, between, attention, up, down)
};
struct Gpt {
  nn::Embedding letters{64, 16}, places{16, 16};
  std::vector<Block> blocks;
  nn::LayerNorm last;
  Gpt() {
    for (int i = 0; i < 3; ++i) blocks.emplace_back(16, 2);
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor h = letters(ids) + places(arange(ids.shape()[1]));
    for (const Block& block : blocks) h = block(h);
    return matmul(last(h), letters.table, {.transpose_b = true});
  }
  TIDEMARK_FIELDS(letters, places, blocks, last)
};

auto step_of(const Gpt& model, const nn::Optimizer& optimizer, std::optional<Budget> budget = {}) {
  return function(
      [model, optimizer](const Tensor& ids, const Tensor& labels) {
        const nn::Training training(true);
        GradientTape tape;
        const Tensor loss = mean(nn::losses::sparse_categorical_crossentropy(labels, model(ids)));
        optimizer.minimize(tape, loss, model);
        return loss;
      },
      {.budget = budget});
}

TEST(CallHeap, OfOneOp) {
  const auto f = function([](const Tensor& x) { return x * 2; });
  const Tensor x = drawn({64, 64});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0);
}

TEST(CallHeap, OfAScalarAndANumber) {
  const auto f = function([](const Tensor& x, const Tensor& rate) { return x * rate + 1; });
  const Tensor x = drawn({});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x, 0.5); }), 0);
}

TEST(CallHeap, OfMatmul) {
  for (const int64_t n : {8, 64, 256}) {
    const auto f = function([](const Tensor& a, const Tensor& b) { return matmul(a, b); });
    const Tensor a = drawn({n, n});
    EXPECT_EQ(heap_of_a_further_call([&] { return f(a, a); }), 0) << n;
  }
}

TEST(CallHeap, OfTheOpsFamilies) {
  const Tensor x = drawn({48, 64}), image = drawn({2, 16, 16, 8}), kernel = drawn({3, 3, 8, 8});
  const Tensor ids = random::integers({40}, {.low = 0, .high = 48, .key = random::Key(3)});
  const auto f =
      function([](const Tensor& x, const Tensor& image, const Tensor& kernel, const Tensor& ids) {
        const Tensor rows = gather(x, ids);
        const Tensor sorted = cumsum(softmax(x), 1) + transpose(transpose(x));
        const Tensor wide = concat({x, sorted, x * 2, sorted * 3, x + 1, sorted - 1, x, x}, 1);
        const Tensor summed = scatter_add(x, ids, rows);
        const Tensor conv = max_pool(conv2d(image, kernel, {.padding = Padding::same}));
        return std::tuple{sum(wide, 0), argmax(summed, 1),        layer_norm(x),
                          mean(conv),   pad(x, {{1, 2}, {0, 3}}), prod(x, 1),
                          exp(x),       update(x, {0, all}, 7)};
      });
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x, image, kernel, ids); }), 0);
}

TEST(CallHeap, OfAnInferenceWithManyVariables) {
  const Gpt model;
  const auto f = function([model](const Tensor& ids) { return model(ids); });
  const Tensor ids = zeros({2, 16}, i32);
  EXPECT_EQ(heap_of_a_further_call([&] { return f(ids); }), 0);
}

TEST(CallHeap, OfATrainingStepWithSgd) {
  const auto step = step_of(Gpt(), nn::SGD({.learning_rate = 0.1, .momentum = 0.9}));
  const Tensor ids = zeros({2, 16}, i32);
  EXPECT_EQ(heap_of_a_further_call([&] { return step(ids, ids); }), 0);
}

TEST(CallHeap, OfATrainingStepWithAdam) {
  const auto step = step_of(Gpt(), nn::Adam());
  const Tensor ids = zeros({2, 16}, i32);
  EXPECT_EQ(heap_of_a_further_call([&] { return step(ids, ids); }), 0);
}

TEST(CallHeap, OfATrainingStepWithinABudget) {
  const Tensor ids = zeros({2, 16}, i32);
  const Gpt model;
  const nn::SGD optimizer({.learning_rate = 0.1});
  const Plan plan = step_of(model, optimizer).plan(ids, ids);
  ASSERT_LT(plan.floor(), plan.peak());
  const auto step = step_of(model, optimizer, plan.floor());
  EXPECT_EQ(heap_of_a_further_call([&] { return step(ids, ids); }), 0);
}

TEST(CallHeap, OfAStepWhoseVariablesAreHeldAsSnapshots) {
  const Gpt model;
  const auto step = step_of(model, nn::SGD());
  const Tensor ids = zeros({2, 16}, i32);
  for (int i = 0; i < 3; ++i) step(ids, ids);
  int64_t taken = 0;
  for (int i = 0; i < 3; ++i) {
    const Tensor snapshot = model.letters.table.value();
    const int64_t before = heap_allocations();
    step(ids, ids);
    taken = heap_allocations() - before;
  }
  EXPECT_EQ(taken, 0);
}

TEST(CallHeap, OfLoops) {
  const auto f = function([](const Tensor& x) {
    const Tensor tested = while_loop([](const Tensor& c) { return sum(c) < 1000; },
                                     [](const Tensor& c) { return c * 2 + 1; }, x);
    return tested +
           fori_loop(
               0, 20,
               [](const Tensor& i, const Tensor& c) { return tanh(matmul(c, c)) + cast(i, f32); },
               x);
  });
  const Tensor x = drawn({8, 8});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0);
}

TEST(CallHeap, OfTheGradientOfALoop) {
  for (const Save& save : {Save::all(), Save::slots(3), Save::every(4)}) {
    const auto f = function([save](const Tensor& x) {
      return grad([save](const Tensor& x) {
        const auto body = [](const Tensor&, const Tensor& c) { return tanh(matmul(c, c)) + c; };
        return sum(fori_loop(0, 20, body, x, {.save = save}));
      })(x);
    });
    const Tensor x = drawn({8, 8}) * 0.1;
    EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0);
  }
}

TEST(CallHeap, OfScansAndMaps) {
  for (const int64_t parallel : {1, 2, 4}) {
    const auto f = function([parallel](const Tensor& x) {
      const auto row = [](const Tensor& r) {
        const Tensor square = reshape(r, {8, 8});
        return softmax(matmul(square, square));
      };
      return map_fn(row, x, {.parallel_iterations = parallel});
    });
    const Tensor x = drawn({32, 64});
    EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0) << parallel;
  }
}

TEST(CallHeap, OfCond) {
  const auto f = function([](const Tensor& x) {
    return cond(sum(x) > 100, [&] { return exp(x); }, [&] { return matmul(x, x); });
  });
  const Tensor x = drawn({8, 8});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0);
}

TEST(CallHeap, OfDraws) {
  const auto f = function([](const Tensor& x) {
    return dropout(x, {.rate = 0.3}) + random::normal({16, 16}) + random::uniform({16, 16});
  });
  const Tensor x = drawn({16, 16});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0);
}

TEST(CallHeap, OfAnOpenSizeThatIsKnown) {
  const auto f = function([](const Tensor& x) { return softmax(matmul(x, transpose(x))) * 2; });
  for (const int64_t rows : {3, 5, 9, 17}) f(drawn({rows, 8}));
  const Tensor x = drawn({9, 8});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(x); }), 0);
}

TEST(CallHeap, OfManyArgumentsAndResults) {
  using List = std::array<Tensor, 40>;
  const auto f = function([](const List& given) {
    List made;
    for (size_t i = 0; i < given.size(); ++i) made[i] = given[i] * 2 + given[0];
    return made;
  });
  List list;
  for (Tensor& each : list) each = drawn({100});
  EXPECT_EQ(heap_of_a_further_call([&] { return f(list); }), 0);
}

TEST(CallHeap, OfADonatedArgument) {
  const auto f = function([](const Tensor& x) { return x * 2 + 1; });
  Tensor x = drawn({100});
  EXPECT_EQ(heap_of_a_further_call([&] {
              x = f(std::move(x));
              return 0;
            }),
            0);
}

// Threads that call at the same time take new blocks of the pool now and then, as many as there are
// calls at once, and the pool's records of these are on the heap. So they are counted one after the
// other, after all have called at once.
TEST(CallHeap, OfSeveralThreads) {
  const Gpt model;
  const auto infer = function([model](const Tensor& ids) { return model(ids); });
  const auto step = step_of(model, nn::Adam());
  const Tensor ids = zeros({2, 16}, i32);
  step(ids, ids);
  constexpr int kThreads = 4;
  std::latch warm(kThreads);
  std::mutex turn;
  std::atomic<int64_t> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto call = [&] { infer(ids), step(ids, ids); };
      for (int k = 0; k < 20; ++k) call();
      warm.arrive_and_wait();
      const std::lock_guard guard(turn);
      call();
      const int64_t before = heap_allocations();
      call();
      taken += heap_allocations() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 0);
}

}  // namespace
}  // namespace tidemark::testing
