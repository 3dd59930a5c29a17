// Lesson 14: what is kept for gradients, and what takes bytes away from it.
#include <cstdio>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

namespace {

// Two layers, 784 -> 64 -> 128.
struct Layers {
  td::Variable w1, b1, w2, b2;
  td::Tensor operator()(const td::Tensor& x) const {
    return td::matmul(td::relu(td::matmul(x, w1) + b1), w2) + b2;
  }
};

void show_layers(int64_t rows) {
  const auto drawn = [](const td::Shape& shape, int64_t key) {
    return td::random::normal(shape, {.stddev = 0.05, .key = td::random::Key(key)});
  };
  const Layers model{td::Variable(drawn({784, 64}, 1)), td::Variable(td::zeros({64})),
                     td::Variable(drawn({64, 128}, 2)), td::Variable(td::zeros({128}))};
  const std::vector<td::Variable> all = {model.w1, model.b1, model.w2, model.b2};
  const td::Tensor x = drawn({rows, 784}, 3), y = drawn({rows, 128}, 4);
  const auto forward = td::function([=](const td::Tensor& x) { return model(x); });
  const auto step = td::function([=](const td::Tensor& x, const td::Tensor& y) {
    td::GradientTape tape;
    const td::Tensor loss = td::mean(td::square(model(x) - y));
    const std::vector<td::Gradient> gradients = tape.gradient(loss, all);
    for (size_t i = 0; i < all.size(); ++i) all[i].assign_sub(gradients[i].dense() * 0.1);
    return loss;
  });
  lesson::Table table("two dense layers, 784 -> 64 -> 128");
  table.function("forward", forward, x);
  table.function("loss, gradients and update: gradients one by one", step, x, y);
}

// How long the gradient by eight layers is, or by the last two of them.
void show_stop(int64_t wide) {
  std::vector<td::Tensor> weights;
  for (int64_t i = 0; i < 8; ++i)
    weights.push_back(
        td::random::normal({wide, wide}, {.stddev = 0.05, .key = td::random::Key(i)}));
  const auto gradients = [=](size_t fixed) {
    return td::function([=](const td::Tensor& x, const std::vector<td::Tensor>& all) {
      const auto loss = [=](const td::Tensor& x, const std::vector<td::Tensor>& all) {
        td::Tensor h = x;
        for (size_t i = 0; i < all.size(); ++i) {
          h = td::tanh(td::matmul(h, all[i]));
          if (i + 1 == fixed) h = td::stop_gradient(h);
        }
        return td::sum(td::square(h));
      };
      td::Tensor length = td::zeros({});
      for (const td::Tensor& gradient : td::grad<1>(loss)(x, all))
        length += td::sum(td::square(gradient));
      return length;
    });
  };
  const td::Tensor x = td::ones({wide, wide});
  std::printf("\n");
  lesson::Table table("eight layers: how long their gradient is");
  table.function("of all of them", gradients(0), x, weights);
  table.function("with stop_gradient behind the sixth", gradients(6), x, weights);
}

// log(1 + exp(x)): its rules keep the results of exp and of 1 + exp(x); its gradient needs x alone.
void show_custom(int64_t size) {
  const auto plain = [](const td::Tensor& x) { return td::log(1.0 + td::exp(x)); };
  const auto own = td::custom_gradient([](const td::Tensor& x) {
    return std::pair{td::log(1.0 + td::exp(x)),
                     [x](const td::Tensor& dy) { return dy * td::sigmoid(x); }};
  });
  const td::Tensor x = td::ones({size});
  const auto saved = [&](const auto& f) {
    td::GradientTape tape({.persistent = true});
    tape.watch(x);
    const td::Bytes before = td::memory::current();
    td::Tensor y = td::sum(f(x));
    const int64_t held = (td::memory::current() - before).count;
    tape.release();
    std::printf("%14s kept by the tape, %s when it is released\n", lesson::digits(held).c_str(),
                lesson::digits((td::memory::current() - before).count).c_str());
  };
  std::printf("\nlog(1 + exp(x)) on a persistent tape, in bytes beside x\n");
  std::printf("  %-36s", "by the rules of log, + and exp");
  saved(plain);
  std::printf("  %-36s", "by a gradient of its own");
  saved(own);
}

void show_rows(int64_t words) {
  constexpr int64_t wide = 64, picked = 256;
  const td::Variable table(td::zeros({words, wide}), {.name = "table"});
  const td::Tensor ids = td::random::integers(
      {picked}, {.low = 0, .high = words, .dtype = td::i32, .key = td::random::Key(1)});
  td::GradientTape tape;
  const td::Tensor loss = td::sum(td::square(td::gather(table, ids) - 1.0));
  const td::Gradient gradient = tape.gradient(loss, table);
  std::printf("\na table of %s x %lld, %lld rows looked up\n", lesson::digits(words).c_str(),
              static_cast<long long>(wide), static_cast<long long>(picked));
  std::printf("  %-36s%14s bytes\n", "the table",
              lesson::digits(td::Tensor(table).size_bytes().count).c_str());
  std::printf("  %-36s%14s bytes\n", "its gradient, which is rows",
              lesson::digits(gradient.rows().rows.size_bytes().count).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  show_layers(small ? 64 : 1024);
  show_stop(small ? 32 : 256);
  show_custom(small ? 1'000 : 1'000'000);
  show_rows(small ? 1'000 : 1'000'000);
  return 0;
}
