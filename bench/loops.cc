// loops [seconds per row]: prints pass or miss for each bar of loops and maps that are one kernel.
#include <cstdlib>
#include <vector>

#include "bench/bars.h"
#include "bench/interleave.h"
#include "tidemark/tidemark.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

// Nanoseconds of a trip: what more trips cost more, so that the call itself does not count.
template <class Make>
double trip_ns(Make make, double budget_s) {
  constexpr int64_t few = 1'000, many = 11'000;
  std::vector<Candidate> candidates = {{"few", make(few)}, {"many", make(many)}};
  interleave(candidates, budget_s, false);
  return (candidates[1].best() - candidates[0].best()) * 1e9 / (many - few);
}

Bar array_writes(double budget_s) {
  const auto make = [](int64_t trips) {
    const auto rows = td::function([=](const td::Tensor& x) {
      const auto body = [&](const td::Tensor& i, td::TensorArray array) {
        return std::move(array).write(i, x + td::cast(i, td::f32));
      };
      return td::fori_loop(0, trips, body, td::TensorArray(td::f32, {.size = trips})).stack();
    });
    const td::Tensor x = td::constant({1.0F, 2.0F});
    if (rows(x).to_vector<float>().back() != 1.0F + static_cast<float>(trips)) std::exit(1);
    return [=] { rows(x); };
  };
  return at_most("a trip that writes [2] floats to a TensorArray, ns", trip_ns(make, budget_s), 5);
}

Bar accumulator(double budget_s) {
  const auto make = [](int64_t trips) {
    const auto total = td::function([=](const td::Tensor& x) {
      const auto body = [&](const td::Tensor&, const td::Tensor& s) { return s + x; };
      return td::fori_loop(0, trips, body, td::constant(0.0F));
    });
    const td::Tensor x = td::constant(1.0F);
    if (total(x).item<float>() != static_cast<float>(trips)) std::exit(1);
    return [=] { total(x); };
  };
  return at_most("a trip of a scalar accumulator, ns", trip_ns(make, budget_s), 2);
}

// The map that repeats an element and sums is one multiplication a slice.
Bar map_of_sums(double budget_s) {
  const auto make = [](int64_t trips) {
    const auto sums = td::function([](const td::Tensor& xs) {
      return td::map_fn([](const td::Tensor& e) { return td::sum(td::repeat(e, 10'000)); }, xs);
    });
    const td::Tensor xs = td::ones({trips});
    if (sums(xs).to_vector<float>().back() != 10'000) std::exit(1);
    return [=] { sums(xs); };
  };
  return at_most("a slice of a map of sum(repeat(e, 10^4)), ns", trip_ns(make, budget_s), 1);
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  using namespace tidemark::bench;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  return print_all({array_writes(seconds), accumulator(seconds), map_of_sums(seconds)}) == 0 ? 0
                                                                                             : 1;
}
