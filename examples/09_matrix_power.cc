// Lesson 9: the 100th power of a 100 x 100 matrix. A loop's plan does not grow with its trips; a
// tensor may be host memory that is yours, and so may the result.
#include <cstdlib>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const int64_t edge = lesson::is_small(argc, argv) ? 20 : 100;
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

  lesson::Table table("r = r.a, 100 times");
  table.eager("a plain loop, eager", [&] { return plain(a); });
  table.function("a plain loop in a function: 99 steps", td::function(plain), a);
  table.function("while_loop with shape invariants: one step, again", looped, a);

  // Host memory: nothing is copied in, and the result and all temporaries lie in bytes of ours.
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
  return td::identical(result, plain(a)) ? 0 : 1;
}
