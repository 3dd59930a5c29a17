// Lesson 1: a tensor, what is computed with it, and what it costs.
#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  td::Tensor x = td::constant({{1, 2, 3}, {4, 5, 6}}, td::f32);
  td::Tensor y = td::softmax(x * 0.5) + td::mean(x, 1, td::keepdims);
  std::cout << y << '\n';
  std::cout << td::matmul(x, y, {.transpose_b = true}) << '\n';

  td::Tensor big = td::random::normal({1000, 1000}, {.key = td::random::Key(1)});
  std::cout << "in use: " << td::memory::current() << '\n';
  big = td::square(std::move(big));  // Nobody else holds its bytes, so they are used again.
  std::cout << "peak:   " << td::memory::peak() << '\n';
  big = {};
  std::cout << "after:  " << td::memory::current() << '\n';
}
