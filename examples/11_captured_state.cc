// Lesson 11: plain C++ state is frozen when a function is traced. What changed since is found, with
// its line and both values.
#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  const td::Tensor x = td::ones({2});
  int counter = 0;
  const auto f = td::function([&counter](const td::Tensor& each) {
    ++counter;
    return each * counter;
  });
  std::cout << "call 1: " << f(x) << "\ncall 2: " << f(x) << " (the body ran once)\n\n";
  const std::string found = f.check_captures();
  std::cout << "check_captures():\n" << found << '\n';

  // By itself, on calls 2, 4, 8, ...
  td::on_warning([](std::string_view text, td::Source at) {
    std::cout << "warning at " << at.text() << ":\n" << text << "\n\n";
  });
  float rate = 0.5F;
  const auto step = td::function([&rate](const td::Tensor& each) { return each * rate; },
                                 {.name = "step", .check_captures = true});
  step(x);
  rate = 0.25F;
  step(x);

  const td::Variable kept(0.5F, {.name = "rate"});
  const auto right = td::function([kept](const td::Tensor& each) { return each * kept; });
  right(x);
  kept.assign(0.25F);
  std::cout << "with a Variable: " << right(x) << '\n';
  return found.empty() ? 1 : 0;
}
