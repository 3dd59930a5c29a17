// A model inside a program of yours: its peak is known when the program starts, and it runs in
// memory that the program owns.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <vector>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  const auto model = td::function([](const td::Tensor& x) { return td::sum(x * x + 1, 1); });

  std::vector<float> host = {1, 2, 3, 4, 5, 6};
  const td::Tensor input = td::borrow(std::span<const float>(host), {2, 3});  // No copy.
  const td::Plan plan = model.plan(input);
  const auto bytes = static_cast<size_t>(plan.arena().count);
  const std::unique_ptr<std::byte, decltype(&std::free)> arena(
      static_cast<std::byte*>(std::aligned_alloc(64, bytes)), std::free);

  std::cout << "needs " << plan.arena() << '\n'
            << "gives " << model.run_in(plan, {arena.get(), bytes}, input) << '\n';
}
