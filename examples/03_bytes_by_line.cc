// Lesson 3: every byte has a line of the program that asked for it.
#include <iostream>

#include <tidemark/tidemark.h>

namespace td = tidemark;

int main() {
  td::MemoryScope scope("eager program");
  td::Tensor images = td::random::normal({256, 784});
  td::Tensor weights = td::random::normal({784, 1024}, {.stddev = 0.03});
  td::Tensor hidden = td::relu(td::matmul(images, weights));
  td::Tensor first_rows = hidden[td::Slice{.end = 16}];
  td::Tensor loss = td::mean(td::square(hidden));
  std::cout << "images [256, 784] times weights [784, 1024], relu, mean of squares = " << loss
            << "\n\n"
            << td::memory::live() << '\n';
  std::cout << "now " << scope.current() << ", at the peak " << scope.peak() << '\n';
  hidden = {};
  std::cout << "after `hidden = {}`: " << scope.current()
            << " (16 of its rows are still viewed, so its bytes stay)\n";
  first_rows = {};
  std::cout << "after `first_rows = {}` too: " << scope.current() << '\n';
}
