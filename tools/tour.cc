// `tidemark tour`: what Tidemark is, shown by a few short programs with their real output.
#include <cstdio>
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

// A row of a table: what was planned beside what was seen.
template <class F, class... A>
void planned_and_measured(const char* what, const F& f, const A&... arguments) {
  const td::Plan plan = f.plan(arguments...);
  const auto measured = f.profile(arguments...);
  std::printf("  %-58s %12lld %12lld\n", what, static_cast<long long>(plan.peak().count),
              static_cast<long long>(measured.second.touched.count));
}

void functions() {
  heading("Functions: the peak is known before they run");
  const auto chain = td::function(
      [](const td::Tensor& x) {
        const td::Tensor squared = x * x;
        const td::Tensor doubled = squared * 2;
        return doubled + 1;
      },
      {.name = "chain"});
  std::cout << chain.plan(td::spec({1000, 1000})) << '\n';
  std::printf("  %-58s %12s %12s\n", "bytes", "planned", "touched");
  const td::Tensor x = td::random::normal({1000, 1000});
  planned_and_measured("three statements", chain, x);
  planned_and_measured("one expression",
                       td::function([](const td::Tensor& each) { return each * each * 2 + 1; }), x);
  planned_and_measured("a condition: the larger branch, not the sum",
                       td::function([](const td::Tensor& each) {
                         return td::cond(
                             td::sum(each) > 0, [&] { return td::transpose(td::exp(each)) * each; },
                             [&] { return each + 1; });
                       }),
                       td::abs(x));
  const td::Tensor numbers = td::arange(1000);
  const auto repeated = [](const td::Tensor& e) { return td::sum(td::repeat(e, 10000)); };
  planned_and_measured("sum(repeat(e, 10000)) over 1,000 numbers, one at a time",
                       td::function([&](const td::Tensor& each) {
                         return td::map_fn(repeated, each, {.chunk = 1});
                       }),
                       numbers);
  const auto waves = [](const td::Tensor& e) {
    return td::sum(td::sin(td::repeat(e, 1000000) * td::arange(1000000)));
  };
  planned_and_measured(
      "sum(sin(repeat(e, 10^6) * arange)) over 10 numbers",
      td::function([&](const td::Tensor& each) { return td::map_fn(waves, each); }),
      td::arange(10) * 1e-6);
  const td::Tensor a = td::random::normal({100, 100}, {.stddev = 0.1});
  planned_and_measured("the 100th power of a 100 x 100 matrix, while_loop",
                       td::function([](const td::Tensor& m) {
                         return std::get<1>(td::while_loop(
                             [](const td::Tensor& i, const td::Tensor&) { return i < 99; },
                             [&](const td::Tensor& i, const td::Tensor& r) {
                               return std::tuple{i + 1, td::matmul(r, m)};
                             },
                             std::tuple{0, m}));
                       }),
                       a);
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
    std::cout << "usage: tidemark tour\n\nShows a first tensor, bytes by source line, functions "
                 "whose peak is known, and what running out of memory looks like.\n";
    return 0;
  }
  if (!arguments.empty()) {
    std::cerr << "tidemark tour: takes no argument, got '" << arguments[0] << "'\n";
    return 2;
  }
  td::random::seed(1);
  first_tensor();
  bytes_by_line();
  functions();
  out_of_memory();
  return 0;
}

}  // namespace tidemark::tools
