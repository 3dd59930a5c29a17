// Lesson 4: a map that repeats each number 10,000 times and sums. What is never written down costs
// nothing; how many bodies are alive at once is yours to say, and the plan says what it costs.
#include <cstdio>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const td::Tensor numbers = td::arange(small ? 50 : 1000) * 1e-3f;
  const int64_t count = small ? 1000 : 10'000;

  const auto repeated = [count](const td::Tensor& e) { return td::sum(td::repeat(e, count)); };
  // No shortcut is known for this one.
  const auto waves = [count](const td::Tensor& e) {
    return td::sum(td::sin(td::repeat(e, count) * td::arange(count)));
  };
  const auto compare = [&](const char* title, const auto& body) {
    lesson::Table table(title);
    table.eager("naive eager: a loop in C++, then a stack", [&] {
      std::vector<td::Tensor> sums;
      for (int64_t i = 0; i < numbers.shape()[0]; ++i) sums.push_back(body(numbers[i]));
      return td::stack(sums);
    });
    table.eager("map_fn, eager", [&] { return td::map_fn(body, numbers); });
    const auto mapped = [&](td::MapOptions alive, bool jit) {
      return td::function(
          [&body, alive](const td::Tensor& x) { return td::map_fn(body, x, alive); }, {.jit = jit});
    };
    table.function("map_fn in a function, unfused, 1 body alive", mapped({}, false), numbers);
    table.function("  10 alive", mapped({.parallel_iterations = 10}, false), numbers);
    table.function("  all alive", mapped({.parallel_iterations = 1000}, false), numbers);
    table.function("map_fn in a function, jitted, 1 body alive", mapped({}, true), numbers);
    table.function("  10 alive", mapped({.parallel_iterations = 10}, true), numbers);
    table.function("  all alive", mapped({.parallel_iterations = 1000}, true), numbers);
  };
  compare("sum(repeat(e, n)) of each", repeated);
  std::printf("\n");
  compare("sum(sin(repeat(e, n) * arange(n))) of each", waves);
}
