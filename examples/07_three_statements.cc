// Lesson 7: three statements are one expression: the same plan, one kernel, nothing in between.
#include <iostream>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const int64_t edge = lesson::is_small(argc, argv) ? 100 : 1000;
  const td::Tensor x = td::random::normal({edge, edge});
  const auto three = td::function([](const td::Tensor& each) {
    const td::Tensor squared = each * each;
    const td::Tensor doubled = squared * 2;
    return doubled + 1;
  });
  const auto one = td::function([](const td::Tensor& each) { return each * each * 2 + 1; });

  lesson::Table table("x*x*2 + 1 of a square matrix");
  table.function("three statements", three, x);
  table.function("one expression", one, x);
  table.eager("eager, each statement by itself", [&] {
    const td::Tensor squared = x * x;
    const td::Tensor doubled = squared * 2;
    return doubled + 1;
  });
  const auto steps = [&](const auto& f) { return f.plan(x).timeline(); };
  std::cout << "steps: " << steps(three).size() << " and " << steps(one).size() << " ("
            << steps(three)[0].name << ")\n";
  return steps(three).size() == 1 && steps(one).size() == 1 ? 0 : 1;
}
