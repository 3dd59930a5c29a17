// `tidemark tour`: what Tidemark is, shown by a few short programs with their real output.
#include <iostream>

#include "tidemark/tidemark.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

namespace td = tidemark;

void heading(const char* text) { std::cout << "\n== " << text << "\n\n"; }

void first_tensor() {
  heading("A first tensor");
  const td::Tensor x = td::constant({{1, 2, 3}, {4, 5, 6}}, td::f32);
  const td::Tensor y = (x - td::mean(x, 0)) / (td::std(x, 0, td::keepdims) + 1e-6);
  std::cout << "x = td::constant({{1, 2, 3}, {4, 5, 6}}, td::f32)\n" << x << "\n\n";
  std::cout << "(x - td::mean(x, 0)) / (td::std(x, 0, td::keepdims) + 1e-6)\n" << y << "\n\n";
  std::cout << "td::matmul(x, x, {.transpose_b = true})\n"
            << td::matmul(x, x, {.transpose_b = true}) << '\n';
}

// Every byte has a line of the program that asked for it.
void bytes_by_line() {
  heading("Every byte has a line");
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

void out_of_memory() {
  heading("Running out of memory is an answer, not a death");
  const td::Bytes limit = td::memory::limit();
  td::Tensor kept = td::zeros({1024, 1024});
  td::memory::release();
  td::memory::set_limit(td::memory::current() + td::Bytes(8 << 20));
  try {
    td::Tensor large = td::zeros({4096, 4096});
    std::cout << "there was room for " << large.size_bytes() << '\n';
  } catch (const td::OutOfMemory& error) {
    std::cout << error.what() << '\n';
  }
  td::memory::set_limit(limit);
  std::cout << "\nNothing was lost: the sum of the kept tensor is " << td::sum(kept)
            << ", and the next call works.\n";
}

}  // namespace

int tour_command(Arguments arguments) {
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    std::cout << "usage: tidemark tour\n\nShows a first tensor, bytes by source line, and what "
                 "running out of memory looks like.\n";
    return 0;
  }
  if (!arguments.empty()) {
    std::cerr << "tidemark tour: takes no argument, got '" << arguments[0] << "'\n";
    return 2;
  }
  td::random::seed(1);
  first_tensor();
  bytes_by_line();
  out_of_memory();
  return 0;
}

}  // namespace tidemark::tools
