// Question 3: loops keep every iteration for the gradient. Must they?
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;
using namespace td::literals;

namespace {

// The 100th power of a matrix. A loop's plan does not grow with its trips; a tensor may be host
// memory that is yours, and so may the result.
bool show_power(int64_t edge) {
  constexpr int power = 100;
  const td::Tensor a = td::random::normal({edge, edge}, {.stddev = 0.1, .key = td::random::Key(1)});
  const auto plain = [](const td::Tensor& m) {
    td::Tensor r = m;
    for (int i = 1; i < power; ++i) r = td::matmul(r, m);
    return r;
  };
  const auto looped = td::function([=](const td::Tensor& m) {
    const auto [i, r] =
        td::while_loop([=](const td::Tensor& i, const td::Tensor&) { return i < power; },
                       [&](const td::Tensor& i, const td::Tensor& r) {
                         return std::tuple{i + 1, td::matmul(r, m)};
                       },
                       std::tuple{1, m}, {.shape_invariants = {{}, {edge, edge}}});
    return r;
  });
  lesson::Table table("the 100th power of a square matrix");
  table.eager("a plain loop, eager", [&] { return plain(a); });
  table.function("a plain loop in a function: 99 steps", td::function(plain), a);
  table.function("while_loop with shape invariants: one step, again", looped, a);

  std::vector<float> host = a.to_vector<float>();
  const td::Tensor borrowed = td::borrow(std::span<const float>(host), {edge, edge});
  const td::Plan plan = looped.plan(borrowed);
  const auto bytes = static_cast<size_t>(plan.arena().count);
  const std::unique_ptr<std::byte, decltype(&std::free)> arena(
      static_cast<std::byte*>(std::aligned_alloc(64, bytes)), std::free);
  lesson::Table::name("while_loop on borrowed memory, in memory of ours");
  int64_t measured = 0;
  td::Tensor result;
  const double time = lesson::best_milliseconds([&] {
    const td::MemoryScope scope("borrowed");
    result = looped.run_in(plan, {arena.get(), bytes}, borrowed);
    measured = scope.peak().count;
  });
  lesson::Table::numbers(0, measured, time);
  return td::identical(result, plain(a));
}

// The gradient of a loop needs the state that each trip started from. What is kept of them is a
// choice, and the answer is the same bits for every choice.
bool show_gradient(int64_t trips, int64_t edge, bool small) {
  const td::Tensor x = td::random::normal({edge, edge}, {.key = td::random::Key(1)});
  const td::Tensor a = td::random::normal({edge, edge}, {.stddev = 0.1, .key = td::random::Key(2)});
  const auto gradient = [&](td::Save save, const td::FunctionOptions& options = {}) {
    return td::function(
        [=](const td::Tensor& a) {
          return td::grad([&](const td::Tensor& a) {
            const auto trip = [&](const td::Tensor&, const td::Tensor& c) {
              return td::tanh(td::matmul(c, a));
            };
            return td::sum(td::fori_loop(0, trips, trip, x, {.save = save}));
          })(a);
        },
        options);
  };
  const auto all = gradient(td::Save::all());
  const auto slots = gradient(td::Save::slots(small ? 15 : 100));
  const auto bytes = gradient(td::Save::bytes(small ? 64_KiB : 16_MiB));
  const auto budget = gradient(td::Save::automatic(), {.budget = small ? 32_KiB : 1_MiB});
  lesson::Table table(td::cat("the gradient of ", trips, " x c = tanh(c.a)").c_str());
  table.function("naive: all states kept", all, a);
  table.function("as many states as the root of the trips", slots, a);
  table.function(small ? "within 64 KiB" : "within 16 MiB", bytes, a);
  table.function(
      small ? "the function within a budget of 32 KiB" : "the function within a budget of 1 MiB",
      budget, a);
  const td::Tensor want = all(a);
  return td::identical(want, slots(a)) && td::identical(want, bytes(a)) &&
         td::identical(want, budget(a));
}

// What is behind a stop_gradient is not kept, and the plan says so.
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
  lesson::Table table("how long the gradient by eight layers is");
  table.function("of all of them", gradients(0), x, weights);
  table.function("with stop_gradient behind the sixth", gradients(6), x, weights);
}

// A Variable is updated where it lies.
void show_variable(int64_t size) {
  const td::Tensor x = td::ones({size});
  const td::Variable mean(td::zeros({size}), {.name = "mean"});
  lesson::Table table("a running mean");
  table.function("naive: a new tensor in each call",
                 td::function([](const td::Tensor& mean, const td::Tensor& x) {
                   return mean + 0.01 * (x - mean);
                 }),
                 td::zeros({size}), x);
  lesson::Table::name("a Variable, in place");
  const auto update =
      td::function([mean](const td::Tensor& x) { mean.assign_add(0.01 * (x - mean.value())); });
  const int64_t planned = update.plan(x).peak().count;
  const int64_t touched = update.profile(x).touched.count;
  lesson::Table::numbers(planned, touched, lesson::best_milliseconds([&] { update(x); }));
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const bool is_right = show_power(small ? 20 : 100);
  const bool is_same = small ? show_gradient(200, 16, small) : show_gradient(10'000, 64, small);
  show_stop(small ? 32 : 256);
  show_variable(small ? 1000 : 1'000'000);
  return is_right && is_same ? 0 : 1;
}
