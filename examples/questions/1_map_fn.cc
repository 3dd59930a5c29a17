// Question 1: a map over 1,000 elements piles up intermediates. Must it?
//
// Each number is repeated 10,000 times and summed. What is never written down costs nothing; how
// many bodies are alive at once is yours to say, and the plan says what that costs.
#include <cstdio>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const td::Tensor numbers = td::arange(small ? 50 : 1000) * 1e-3f;
  const int64_t count = small ? 1000 : 10'000;

  const auto compare = [&](const char* title, const auto& body, const auto& at_once) {
    lesson::Table table(title);
    table.eager("naive: all elements at once, eager", at_once);
    table.eager("Dataset.map, one element after another", [&] {
      std::vector<td::Tensor> sums;
      for (const td::Tensor& sum : td::data::from_tensor_slices(numbers).map(body))
        sums.push_back(sum);
      return td::stack(sums);
    });
    table.eager("map_fn, eager", [&] { return td::map_fn(body, numbers); });
    const auto mapped = [&](int64_t alive, bool jit) {
      return td::function(
          [&body, alive](const td::Tensor& x) {
            return td::map_fn(body, x, {.parallel_iterations = alive});
          },
          {.jit = jit});
    };
    table.function("map_fn in a function, each op by itself, 1 body alive", mapped(1, false),
                   numbers);
    table.function("  10 alive", mapped(10, false), numbers);
    table.function("  all alive", mapped(1000, false), numbers);
    table.function("map_fn in a function, jitted, 1 body alive", mapped(1, true), numbers);
    table.function("  10 alive", mapped(10, true), numbers);
    table.function("  all alive", mapped(1000, true), numbers);
  };

  const td::Tensor column = td::expand_dims(numbers, 1);
  // A sum over an axis that repeats one element is that element times the count: a rule of the op,
  // the same in eager and compiled code.
  compare(
      "sum(repeat(e, n)) of each",
      [count](const td::Tensor& e) { return td::sum(td::repeat(e, count)); },
      [&] { return td::sum(td::repeat(column, count, 1), 1); });
  std::printf("\n");
  // No shortcut is known for this one: the products and sines are real.
  compare(
      "sum(sin(repeat(e, n) * arange(n))) of each",
      [count](const td::Tensor& e) {
        return td::sum(td::sin(td::repeat(e, count) * td::arange(count)));
      },
      [&] { return td::sum(td::sin(td::repeat(column, count, 1) * td::arange(count)), 1); });
}
