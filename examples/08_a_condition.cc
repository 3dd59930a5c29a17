// Lesson 8: a condition is charged the larger of its branches, not both, and the branch not taken
// costs nothing.
#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const int64_t edge = lesson::is_small(argc, argv) ? 100 : 1000;
  const td::Tensor x = td::random::uniform({edge, edge});
  // The larger one needs a product of matrices beside its result.
  const auto larger = [](const td::Tensor& each) {
    return td::matmul(td::softmax(td::matmul(each, each)), each);
  };
  const auto smaller = [](const td::Tensor& each) { return each + 1; };
  const auto chosen = td::function([&](const td::Tensor& each) {
    return td::cond(
        td::mean(each) > 0, [&] { return larger(each); }, [&] { return smaller(each); });
  });

  lesson::Table table("one of two branches");
  table.function("the larger branch alone", td::function(larger), x);
  table.function("the smaller branch alone", td::function(smaller), x);
  table.function("cond, the larger taken", chosen, x);
  table.function("cond, the smaller taken", chosen, x * -1);
}
