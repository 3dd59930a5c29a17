#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;
using td::literals::operator""_MiB;

int main() {
  // clang-format off
  td::Variable w(td::zeros({784, 10}));
  auto step = td::function([&](const td::Tensor& x) {
    td::GradientTape tape;
    td::Tensor loss = td::mean(td::square(td::matmul(x, w) - 1));
    w.assign_sub(0.01 * tape.gradient(loss, w).dense());
    return loss;
  }, {.budget = 1_MiB});  // A call that would need more is made to fit, or refused with what would.
  std::cout << step.plan(td::spec({256, 784})).peak() << '\n';  // Known before anything runs: 40.7 KiB.
  // clang-format on
  std::cout << step(td::ones({256, 784})) << '\n';
}
