// plan_time: the time of planning, in ms of this thread: tracing, passes and layout. No kernel is
// made.
//
//   a training step of a 12-layer transformer, planned for the first time       at most 15
//   the same at another batch size                                              at most 1
//   3,000 elementwise ops in a row, which fuse, with and without their tracing  at most 100
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/cpu_clock.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
namespace bench = tidemark::bench;

namespace {

using td::Tensor;

template <class Do>
double ms_of(Do run) {
  return td::bench::cpu_ms_of(CLOCK_THREAD_CPUTIME_ID, run);
}

constexpr int kRuns = 7;

// The least of several: each makes its own function.
template <class Measure>
double least(Measure measure) {
  double best = 1e300;
  for (int i = 0; i < kRuns; ++i) best = std::min(best, measure());
  return best;
}

struct Block {
  td::Variable qkv, out, up, down, scale1, scale2;
};

struct Transformer {
  static constexpr int64_t kLayers = 12, kWidth = 256, kHeads = 4, kWords = 1024, kLength = 64;

  Transformer() {
    const auto weights = [](int64_t rows, int64_t columns) {
      return td::Variable(td::zeros({rows, columns}));
    };
    for (int64_t i = 0; i < kLayers; ++i) {
      blocks.push_back({weights(kWidth, 3 * kWidth), weights(kWidth, kWidth),
                        weights(kWidth, 4 * kWidth), weights(4 * kWidth, kWidth),
                        td::Variable(td::ones({kWidth})), td::Variable(td::ones({kWidth}))});
      const Block& b = blocks.back();
      all.insert(all.end(), {b.qkv, b.out, b.up, b.down, b.scale1, b.scale2});
    }
    all.push_back(table);
  }

  static Tensor norm(const Tensor& x, const Tensor& scale) {
    return x * td::rsqrt(td::mean(x * x, -1, td::keepdims) + 1e-6) * scale;
  }
  static Tensor heads(const Tensor& x) {
    return td::transpose(td::reshape(x, {x.shape()[0], kLength, kHeads, kWidth / kHeads}),
                         {0, 2, 1, 3});
  }
  static Tensor attend(const Tensor& x, const Block& b) {
    const std::vector<Tensor> parts = td::split(td::matmul(norm(x, b.scale1), b.qkv), 3, -1);
    const Tensor scores = td::matmul(heads(parts[0]), heads(parts[1]), {.transpose_b = true}) / 8.0;
    const Tensor mask = td::tril(td::ones({kLength, kLength})) > 0;
    const Tensor mixed = td::matmul(td::softmax(td::where(mask, scores, -1e30)), heads(parts[2]));
    const Tensor joined =
        td::reshape(td::transpose(mixed, {0, 2, 1, 3}), {x.shape()[0], kLength, kWidth});
    return td::matmul(joined, b.out);
  }
  Tensor step(const Tensor& ids) const {
    td::GradientTape tape;
    Tensor x = td::gather(table, ids);
    for (const Block& b : blocks) {
      x = x + attend(x, b);
      x = x + td::matmul(td::gelu(td::matmul(norm(x, b.scale2), b.up)), b.down);
    }
    const Tensor logits = td::matmul(x, table, {.transpose_b = true});
    const Tensor loss = -td::mean(td::log_softmax(logits));
    const auto gradients = tape.gradient(loss, all);
    for (size_t i = 0; i < all.size(); ++i) all[i].assign_sub(0.01 * gradients[i].dense());
    return loss;
  }

  td::Variable table{td::zeros({kWords, kWidth})};
  std::vector<Block> blocks;
  std::vector<td::Variable> all;
};

}  // namespace

int main() {
  const Transformer model;
  const auto ids = [](int64_t batch) { return td::spec({batch, Transformer::kLength}, td::i32); };
  const int64_t kernels = td::compile::kernels_made();
  const auto step = [&](const Tensor& x) { return model.step(x); };
  bench::print(bench::at_most("ms: a training step of a 12-layer transformer", least([&] {
                                const auto f = td::function(step);
                                return ms_of([&] { f.plan(ids(8)); });
                              }),
                              15));
  const auto open = td::function(
      step, {.input_signature = {td::spec({td::open, Transformer::kLength}, td::i32)}});
  const td::Plan plan = open.plan(ids(8));
  int64_t batch = 8;
  bench::print(bench::at_most("ms: the same at another batch size",
                              least([&] { return ms_of([&] { plan.at({++batch}); }); }), 1));
  bench::print(bench::at_most("ms: 3,000 ops in a row", least([&] {
                                const auto f = td::function([](Tensor x) {
                                  for (int i = 0; i < 1500; ++i) x = td::sin(x) * 1.5;
                                  return x;
                                });
                                return ms_of([&] { f.plan(td::spec({64})); });
                              }),
                              100));
  bench::print(bench::at_most("kernels made by plans",
                              static_cast<double>(td::compile::kernels_made() - kernels), 0));
  return 0;
}
