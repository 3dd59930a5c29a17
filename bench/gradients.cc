// gradients [seconds per row]: what gradients of whole models need and take. For each: the bytes
// its plan has beside the results (what is saved, temporaries, workspace), held to a limit, and the
// time of a call.
//
// The limits are 0.7 of what JAX 0.10 takes for temporaries, or 1.05 of the least there can be
// where that is more.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/interleave.h"
#include "tidemark/tidemark.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

constexpr double kMiB = 1 << 20;

td::Tensor drawn(const td::Shape& shape, double scale, int64_t key) {
  return td::random::normal(shape, {.stddev = scale, .key = td::random::Key(key)});
}

// A function that is called with nothing.
struct Model {
  std::string name;
  double limit_mib = 0;
  std::function<td::Plan()> plan;
  std::function<void()> call;
};

Bar measured(const Model& model, double budget_s) {
  const td::Plan plan = model.plan();
  model.call();
  std::vector<Candidate> ours = {{"call", model.call}};
  interleave(ours, budget_s, false);
  const double outputs = static_cast<double>(plan.of(td::ByteClass::outputs).count);
  Bar bar = at_most(model.name + ", MiB beside its results",
                    (static_cast<double>(plan.peak().count) - outputs) / kMiB, model.limit_mib);
  char note[64];
  std::snprintf(note, sizeof(note), "%.1f ms a call", ours[0].best() * 1e3);
  bar.note = note;
  return bar;
}

// ---- models -------------------------------------------------------------------------------------

void descend(td::GradientTape& tape, const td::Tensor& loss, const std::vector<td::Variable>& all) {
  const std::vector<td::Gradient> gradients = tape.gradient(loss, all);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].assign_sub(td::multiply(gradients[i].dense(), 1e-3));
}

Model mlp_step() {
  const std::vector<int64_t> sizes = {784, 1024, 1024, 1024, 10};
  std::vector<td::Variable> p;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    p.emplace_back(drawn({sizes[i], sizes[i + 1]}, 0.02, static_cast<int64_t>(i)));
    p.emplace_back(td::zeros({sizes[i + 1]}));
  }
  const auto step = td::function([p](const td::Tensor& x, const td::Tensor& y) {
    td::GradientTape tape;
    td::Tensor h = x;
    for (size_t i = 0; i < 6; i += 2) h = td::relu(td::matmul(h, p[i]) + p[i + 1]);
    const td::Tensor loss = td::mean(td::square(td::matmul(h, p[6]) + p[7] - y));
    descend(tape, loss, p);
    return loss;
  });
  const td::Tensor x = drawn({1024, 784}, 1, 10), y = drawn({1024, 10}, 1, 11);
  return {"mlp_step", 22, [=] { return step.plan(x, y); }, [=] { step(x, y); }};
}

Model softmax_ce() {
  const td::Tensor labels = td::zeros({2048}, td::i32);
  const auto gradient = td::function([labels](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& x) {
      const td::Tensor at = td::expand_dims(labels, 1);
      return -td::mean(td::take_along_axis(td::log_softmax(x), at, 1));
    })(x);
  });
  const td::Tensor x = drawn({2048, 32768}, 1, 1);
  return {"softmax_ce", 12.8, [=] { return gradient.plan(x); }, [=] { gradient(x); }};
}

Model conv_step() {
  const auto gradient = td::function([](const td::Tensor& x, const std::vector<td::Tensor>& ws) {
    return td::grad<1>([](const td::Tensor& x, const std::vector<td::Tensor>& ws) {
      td::Tensor h = x;
      for (const td::Tensor& w : ws)
        h = td::relu(h + td::conv2d(h, w, {.padding = td::Padding::same}));
      return td::mean(h * h);
    })(x, ws);
  });
  const td::Tensor x = drawn({16, 56, 56, 64}, 1, 1);
  std::vector<td::Tensor> ws;
  for (int64_t i = 0; i < 4; ++i) ws.push_back(drawn({3, 3, 64, 64}, 0.05, 2 + i));
  return {"conv_step", 77, [=] { return gradient.plan(x, ws); }, [=] { gradient(x, ws); }};
}

Model gpt_step() {
  constexpr int64_t layers = 4, d = 256, heads = 4, t = 256, batch = 4, words = 8192;
  struct Block {
    td::Variable qkv, o, up, down, g1, g2;
  };
  const td::Variable table(drawn({words, d}, 0.02, 1));
  std::vector<Block> blocks;
  std::vector<td::Variable> all = {table};
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t key = 10 * (i + 1);
    blocks.push_back({td::Variable(drawn({d, 3 * d}, 0.02, key)),
                      td::Variable(drawn({d, d}, 0.02, key + 1)),
                      td::Variable(drawn({d, 4 * d}, 0.02, key + 2)),
                      td::Variable(drawn({4 * d, d}, 0.02, key + 3)), td::Variable(td::ones({d})),
                      td::Variable(td::ones({d}))});
    const Block& b = blocks.back();
    all.insert(all.end(), {b.qkv, b.o, b.up, b.down, b.g1, b.g2});
  }
  const auto norm = [](const td::Tensor& x, const td::Tensor& g) {
    return x * td::rsqrt(td::mean(x * x, -1, td::keepdims) + 1e-6) * g;
  };
  const auto step = td::function([=](const td::Tensor& ids) {
    td::GradientTape tape;
    const td::Tensor mask = td::tril(td::ones({t, t})) > 0;
    td::Tensor x = td::gather(table, ids);
    for (const Block& b : blocks) {
      std::vector<td::Tensor> parts;
      for (const td::Tensor& u : td::split(td::matmul(norm(x, b.g1), b.qkv), 3, -1))
        parts.push_back(td::transpose(td::reshape(u, {batch, t, heads, d / heads}), {0, 2, 1, 3}));
      const td::Tensor scores =
          td::matmul(parts[0], parts[1], {.transpose_b = true}) / 8.0;  // The root of d / heads.
      const td::Tensor mixed = td::matmul(td::softmax(td::where(mask, scores, -1e30)), parts[2]);
      x = x + td::matmul(td::reshape(td::transpose(mixed, {0, 2, 1, 3}), {batch, t, d}), b.o);
      x = x + td::matmul(td::gelu(td::matmul(norm(x, b.g2), b.up)), b.down);
    }
    const td::Tensor logits = td::matmul(x, table, {.transpose_b = true});
    const td::Tensor seen = td::log_softmax(logits)[{td::all, td::Slice{.end = t - 1}}];
    const td::Tensor next = td::expand_dims(ids[{td::all, td::Slice{.begin = 1}}], -1);
    const td::Tensor loss = -td::mean(td::take_along_axis(seen, next, -1));
    descend(tape, loss, all);
    return loss;
  });
  const td::Tensor ids = td::random::integers(
      {batch, t}, {.low = 0, .high = words, .dtype = td::i32, .key = td::random::Key(3)});
  return {"gpt_step", 203, [=] { return step.plan(ids); }, [=] { step(ids); }};
}

Model loop_gradient(const char* name, int64_t trips, td::Save save, double limit_mib) {
  const td::Tensor x = drawn({128, 128}, 1, 1), a = drawn({128, 128}, 0.08, 2);
  const auto gradient = td::function([=](const td::Tensor& a) {
    return td::grad([&](const td::Tensor& a) {
      return td::sum(td::fori_loop(
          0, trips,
          [&](const td::Tensor&, const td::Tensor& c) { return td::tanh(td::matmul(c, a)); }, x,
          {.save = save}));
    })(a);
  });
  return {name, limit_mib, [=] { return gradient.plan(a); }, [=] { gradient(a); }};
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  using namespace tidemark::bench;
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1;
  if (budget_s <= 0) {
    std::fprintf(stderr, "usage: gradients [seconds per row, 1 by default]\n");
    return 2;
  }
  int missed = 0;
  const auto row = [&](const Model& model) {
    const Bar bar = measured(model, budget_s);
    print(bar);
    missed += bar.pass() ? 0 : 1;
  };
  row(mlp_step());
  row(softmax_ce());
  row(conv_step());
  row(gpt_step());
  row(loop_gradient("1,000 x tanh(c.a), all kept", 1'000, tidemark::Save::all(), 1.02 * 62.5));
  std::printf("%d missed\n", missed);
  return missed == 0 ? 0 : 1;
}
