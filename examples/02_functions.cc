#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  td::Variable weight(td::random::normal({784, 64}, {.key = td::random::Key(1)}),
                      {.name = "weight"});
  auto step = td::function(
      [weight](const td::Tensor& x, const td::Tensor& rate) {
        const td::Tensor h = td::tanh(td::matmul(x, weight));
        weight.assign_sub(rate * td::matmul(x, h, {.transpose_a = true}));
        return td::mean(h * h);
      },
      {.name = "step"});

  // What it needs is known before it runs: nothing is allocated for this line.
  const td::Plan plan = step.plan(td::spec({256, 784}), 0.1);
  std::cout << "planned: " << plan.peak().count << " bytes\n";

  const td::Tensor x = td::random::normal({256, 784}, {.key = td::random::Key(2)});
  const td::Tensor rate = 0.01;
  step(x, 0.1);
  td::memory::reset_peak();
  const td::Bytes before = td::memory::current();
  const td::Tensor loss = step(x, rate);  // A number is a run-time value: no second trace.
  std::cout << "used:    " << (td::memory::peak() - before).count << " bytes\n"
            << "traces:  " << step.cache_info().traces << '\n';
}
