// Question 4: a batch stores state that nobody needs. What is kept for backward, and why?
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string_view>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

namespace {

// Dense 784 -> 64 -> 128. Layers made inside the function are made once, and are its own.
void show_layers(int64_t rows, const char* report) {
  const td::Tensor x = td::random::normal({rows, 784}), y = td::random::normal({rows, 128});
  const auto forward = td::function([](const td::Tensor& x) {
    const td::nn::Dense hidden(64, {.activation = td::relu}), out(128);
    return out(hidden(x));
  });
  const td::nn::Sequential model{td::nn::Dense(64, {.activation = td::relu, .name = "hidden"}),
                                 td::nn::Dense(128, {.name = "out"})};
  const td::nn::SGD optimizer({.learning_rate = 0.1});
  const auto step = td::function(
      [=](const td::Tensor& x, const td::Tensor& y) {
        td::GradientTape tape;
        const td::Tensor loss = td::nn::losses::mse(y, model(x));
        optimizer.minimize(tape, loss, model);
        return loss;
      },
      {.name = "step"});
  lesson::Table table("two dense layers, 784 -> 64 -> 128");
  table.function("forward alone, layers made inside the function", forward, x);
  table.function("loss, gradients and update, one gradient at a time", step, x, y);
  std::cout << '\n' << step.plan(x, y).explain() << '\n';
  if (report != nullptr) td::report::write_html(report, step.plan(x, y), step.profile(x, y).second);
}

// A step of training on a deep network, and the Variables that it moves.
struct DeepStep {
  td::Function<td::Tensor(const td::Tensor&, const td::Tensor&)> call;
  std::vector<td::Variable> weights;
};

DeepStep deep_step(int64_t wide, std::optional<td::Budget> budget) {
  std::vector<td::Variable> weights;
  for (int64_t i = 0; i < 16; ++i)
    weights.push_back(
        td::Variable(td::random::normal({wide, wide}, {.stddev = 0.1, .key = td::random::Key(i)})));
  const td::nn::SGD optimizer({.learning_rate = 0.1});
  const auto step = td::function(
      [=](const td::Tensor& x, const td::Tensor& y) {
        td::GradientTape tape;
        td::Tensor h = x;
        for (const td::Variable& w : weights) h = td::tanh(td::matmul(h, w));
        const td::Tensor loss = td::nn::losses::mse(y, h);
        optimizer.minimize(tape, loss, weights);
        return loss;
      },
      {.name = "deep step", .budget = budget});
  return {step, weights};
}

// The compiler makes a step fit the bytes that it is given: it holds fewer values between the
// forward and the backward pass, and computes the others again. The bits stay.
bool show_budget(int64_t rows, int64_t wide) {
  const td::Tensor x = td::random::normal({rows, wide}), y = td::random::normal({rows, wide});
  const DeepStep usual = deep_step(wide, {});
  const td::Plan plan = usual.call.plan(x, y);
  // With many threads, scratch may not leave half.
  const DeepStep half = deep_step(wide, std::max(plan.floor(), td::Bytes(plan.peak().count / 2)));
  const DeepStep floor = deep_step(wide, plan.floor());
  bool is_same = td::identical(usual.call(x, y), half.call(x, y));
  for (size_t i = 0; i < usual.weights.size(); ++i)
    is_same = is_same && td::identical(usual.weights[i].value(), half.weights[i].value());

  lesson::Table table("a step of training, 16 layers");
  table.function("without a budget", usual.call, x, y);
  table.function("within half of that", half.call, x, y);
  table.function("within the least that it can be made to need", floor.call, x, y);
  const td::Plan halved = half.call.plan(x, y);
  int64_t times = 0, bytes = 0;
  for (const td::PlanDecision& each : halved.decisions()) {
    times += each.times;
    bytes += each.bytes.count;
  }
  std::printf("within half of it, %lld steps run again: %s are not held, for %.1f %% more work\n\n",
              static_cast<long long>(times), td::cat(td::Bytes(bytes)).c_str(),
              100 * halved.more_work());
  return is_same;
}

// A persistent tape says what it holds, and gives it back.
void show_tape(int64_t size) {
  const td::Tensor x = td::ones({size});
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = td::exp(td::tanh(td::sin(x)));
  const td::Tensor z = td::sum(y * y);
  const td::Bytes held = tape.saved_bytes();
  tape.gradient(z, x);
  tape.gradient(y, x);
  tape.release();
  std::printf("a persistent tape over four ops of %s: holds %s; %s when it is released\n\n",
              td::cat(x.size_bytes()).c_str(), td::cat(held).c_str(),
              td::cat(tape.saved_bytes()).c_str());
}

// log(1 + exp(x)): its rules keep the results of exp and of 1 + exp(x); its gradient needs x alone.
void show_custom(int64_t size) {
  const auto plain = [](const td::Tensor& x) { return td::log(1.0 + td::exp(x)); };
  const auto own = td::custom_gradient([](const td::Tensor& x) {
    return std::pair{td::log(1.0 + td::exp(x)),
                     [x](const td::Tensor& dy) { return dy * td::sigmoid(x); }};
  });
  const td::Tensor x = td::random::normal({size, 64});
  const auto saved = [&](const char* what, const td::nn::Sequential& model) {
    model(x);  // Built by its first input.
    td::GradientTape tape;
    const td::Tensor loss = td::mean(td::square(model(x)));
    std::printf("  %-56s %14s\n", what, lesson::digits(tape.saved_bytes().count).c_str());
  };
  std::printf("%-58s %14s\n", "Dense, softplus, Dense: what a tape keeps", "bytes");
  saved("softplus by the rules of log, + and exp", {td::nn::Dense(64), plain, td::nn::Dense(64)});
  saved("softplus with a gradient of its own, as a layer",
        {td::nn::Dense(64), own, td::nn::Dense(64)});
  std::printf("\n");
}

// A recommender: of a table of a million rows a step looks at a few, and its gradient is those.
void show_rows(int64_t words) {
  constexpr int64_t wide = 64, picked = 256;
  const td::nn::Embedding embed(words, wide);
  const td::nn::Dense rate(1);
  const td::nn::SGD optimizer({.learning_rate = 0.1});
  const td::Tensor ids = td::random::integers(
      {picked}, {.low = 0, .high = words, .dtype = td::i32, .key = td::random::Key(1)});
  const td::Tensor wanted = td::ones({picked, 1});
  const auto step = td::function([=](const td::Tensor& ids, const td::Tensor& wanted) {
    td::GradientTape tape;
    const td::Tensor loss = td::nn::losses::mse(wanted, rate(embed(ids)));
    optimizer.minimize(tape, loss, std::tuple{embed, rate});
    return loss;
  });
  step(ids, wanted);
  std::printf("a table of %s x %lld is %s; ", lesson::digits(words).c_str(),
              static_cast<long long>(wide), td::cat(td::Tensor(embed.table).size_bytes()).c_str());
  std::printf("a step that looks up %lld rows:\n", static_cast<long long>(picked));
  lesson::Table table("a recommender");
  table.function("loss, gradient by rows, update of those rows", step, ids, wanted);
}

}  // namespace

// --report FILE: also writes a page that shows the step's memory.
int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const char* report = nullptr;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string_view(argv[i]) == "--report") report = argv[i + 1];
  show_layers(small ? 64 : 1024, report);
  const bool is_same = show_budget(small ? 64 : 1024, small ? 32 : 256);
  show_tape(small ? 1000 : 1'000'000);
  show_custom(small ? 64 : 4096);
  show_rows(small ? 1000 : 1'000'000);
  return is_same ? 0 : 1;
}
