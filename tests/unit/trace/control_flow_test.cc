// Branches, loops and maps: the same bits in eager code and in functions, in the bytes planned.
#include "tidemark/api/control_flow.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }

// ---- cond ---------------------------------------------------------------------------------------

TEST(Cond, RunsOneBranch) {
  int first = 0, second = 0;
  const Tensor x = td::constant({1, 2}, td::f32);
  const auto choose = [&](const Tensor& p) {
    return td::cond(p > 0, [&] { return ++first, x * 2; }, [&] { return ++second, x - 1; });
  };
  EXPECT_EQ(floats(choose(1)), (std::vector<float>{2, 4}));
  EXPECT_EQ(floats(choose(-1)), (std::vector<float>{0, 1}));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(Cond, InAFunctionChoosesWhenItRuns) {
  const auto f = td::function([](const Tensor& p, const Tensor& x, const Tensor& y) {
    const Tensor twice = x * 2;
    return td::cond(
        p > 0, [&] { return std::pair{twice + y, x}; },
        [&] { return std::pair{y, td::exp(twice)}; });
  });
  const Tensor x = td::random::normal({50}), y = td::random::normal({50});
  for (int i = 0; i < 2; ++i) {
    const auto [a, b] = f(1, x, y);
    EXPECT_TRUE(td::identical(a, x * 2 + y));
    EXPECT_TRUE(td::identical(b, x));
    const auto [c, d] = f(-1, x, y);
    EXPECT_TRUE(td::identical(c, y));
    EXPECT_TRUE(td::identical(d, td::exp(x * 2)));
  }
  EXPECT_EQ(f.cache_info().traces, 1);
}

// ---- branches whose results are chosen afterwards -----------------------------------------------

// A branch that sets a value only where p > 0; `also` is what the other side gives besides.
auto set_in_one_branch(const Tensor& also) {
  return td::function([also](const Tensor& p, const Tensor& x) {
    td::detail::Tensors first, second;
    const td::Source at = td::Source::here();
    const td::detail::BranchParts parts{.name = "if",
                                        .if_true = [&] { first = {x * 2, x + 1}; },
                                        .if_false = [&] { second = {Tensor(), also}; },
                                        .results = [&] { return std::pair{first, second}; },
                                        .path = [](size_t i) { return i == 0 ? "`y`" : "`z`"; }};
    const td::detail::Tensors both = td::detail::trace_branch(p > 0, parts, at);
    return std::pair{both[0], both[1]};
  });
}

TEST(Branch, WhatOneSideDoesNotSetIsZeroThere) {
  const auto f = set_in_one_branch(td::constant({7, 8}, td::f32));
  const Tensor x = td::constant({1, 2}, td::f32);
  EXPECT_EQ(floats(f(1, x).first), (std::vector<float>{2, 4}));
  EXPECT_EQ(floats(f(-1, x).first), (std::vector<float>{0, 0}));
  EXPECT_EQ(floats(f(-1, x).second), (std::vector<float>{7, 8}));
}

TEST(Branch, NamesTheResultWhoseTypesDiffer) {
  const auto f = set_in_one_branch(td::constant({7, 8, 9}, td::f32));
  try {
    f(1, td::constant({1, 2}, td::f32));
    FAIL() << "f32[2] and f32[3] are one result";
  } catch (const td::UserError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("if: `z` is f32[2] in the first branch and f32[3] in the second"),
              std::string::npos)
        << error.what();
  }
}

TEST(Cond, TakesThingsFromOutsideInAnyOrder) {
  const Tensor a = td::random::normal({7}), b = td::random::normal({7});
  const auto f = td::function([&](const Tensor& p, const Tensor& x) {
    return td::cond(
        p, [&] { return a - x * b; },
        [&] { return td::cond(x[0] > 0, [&] { return b * 2; }, [&] { return x + b - a; }); });
  });
  const Tensor x = td::ones({7});
  EXPECT_TRUE(td::identical(f(true, x), a - x * b));
  EXPECT_TRUE(td::identical(f(false, x), b * 2));
  EXPECT_TRUE(td::identical(f(false, -x), -x + b - a));
}

TEST(Cond, ChargesTheLargerBranch) {
  const td::MachineCode machine;
  const auto of = [](bool with_first, bool with_second) {
    const auto f = td::function([=](const Tensor& p, const Tensor& x) {
      const auto large = [&](int64_t n) { return td::sum(td::sin(td::tile(x, {n}))); };
      return td::cond(
          p, [&] { return with_first ? large(10) : td::sum(x); },
          [&] { return with_second ? large(3) : td::sum(x); });
    });
    const Tensor x = td::ones({1000});
    const td::Plan plan = f.plan(true, x);
    EXPECT_EQ(f.profile(with_first, x).second.touched, plan.peak());
    return plan.peak().count;
  };
  EXPECT_EQ(of(true, true), of(true, false));
  EXPECT_LT(of(false, true), of(true, false));
}

TEST(Cond, AssignsVariablesInTheBranchTaken) {
  const td::Variable v(td::zeros({4})), w(td::ones({4}));
  const auto f = td::function([=](const Tensor& p, const Tensor& x) {
    v.assign_add(x);
    td::cond(p, [&] { v.assign_add(x * 10); }, [&] { w.assign(v * 2); });
    return v + w;
  });
  const Tensor x = td::ones({4});
  EXPECT_EQ(floats(f(true, x))[0], 12);
  EXPECT_EQ(floats(v)[3], 11);
  EXPECT_EQ(floats(w)[3], 1);
  EXPECT_EQ(floats(f(false, x))[0], 36);
  EXPECT_EQ(floats(v)[3], 12);
  EXPECT_EQ(floats(w)[3], 24);
}

TEST(Cond, GivesAPlainNumberTheDtypeOfTheOtherBranch) {
  const auto f = td::function([](const Tensor& p, const Tensor& x) {
    return td::cond(p, [&] { return Tensor(2); }, [&] { return x; });
  });
  const Tensor x = td::full({}, 1.5, td::f16);
  EXPECT_TRUE(td::identical(f(true, x), td::full({}, 2, td::f16)));
  EXPECT_TRUE(td::identical(f(false, x), x));
}

TEST(Cond, KeepsPrintsInOrder) {
  const auto f = td::function([](const Tensor& p) {
    td::print("before");
    td::cond(p, [&] { td::print("yes"); }, [&] { td::print("no"); });
    td::print("after");
  });
  testing::internal::CaptureStdout();
  f(true);
  f(false);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "before\nyes\nafter\nbefore\nno\nafter\n");
}

TEST(SwitchCase, TakesTheBranchOfThatNumberOrTheLast) {
  const auto choose = [](const Tensor& i, const Tensor& x) {
    return td::switch_case(i, [&] { return x; }, [&] { return x * 10; }, [&] { return x * 100; });
  };
  const auto f = td::function([&](const Tensor& i, const Tensor& x) { return choose(i, x); });
  const Tensor x = td::full({}, 3, td::i32);
  const int expected[] = {300, 3, 30, 300, 300};
  for (int i = -1; i < 4; ++i) {
    EXPECT_EQ(choose(i, x).item<int>(), expected[i + 1]);
    EXPECT_EQ(f(td::constant(i), x).item<int>(), expected[i + 1]);
  }
}

// ---- while_loop ---------------------------------------------------------------------------------

Tensor power(const Tensor& a, const Tensor& n) {
  const auto [i, result] = td::while_loop(
      [&](const Tensor& i, const Tensor&) { return i < n; },
      [&](const Tensor& i, const Tensor& r) { return std::tuple{i + 1, td::matmul(r, a)}; },
      std::tuple{1, a}, {.shape_invariants = {{}, a.shape()}});
  return result;
}

TEST(WhileLoop, GivesTheBitsOfAPlainLoop) {
  const Tensor a = td::random::normal({20, 20}) / 5;
  const auto f = td::function([](const Tensor& a, const Tensor& n) { return power(a, n); });
  Tensor expected = a;
  for (int n = 1; n < 12; ++n) {
    EXPECT_TRUE(td::identical(power(a, n), expected));
    EXPECT_TRUE(td::identical(f(a, td::constant(n)), expected)) << n;
    expected = td::matmul(expected, a);
  }
  EXPECT_EQ(f.cache_info().traces, 1);
}

TEST(WhileLoop, CarriesStructsAndSwapsCarries) {
  struct State {
    Tensor a, b, n;
  };
  const auto fibonacci = [](const Tensor& count) {
    return td::while_loop([&](const State& s) { return s.n < count; },
                          [](const State& s) { return State{s.b, s.a + s.b, s.n + 1}; },
                          State{td::constant(0), td::constant(1), td::constant(0)});
  };
  const auto f = td::function([&](const Tensor& count) {
    const State s = fibonacci(count);
    return std::pair{s.a, s.b};
  });
  const int expected[] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
  for (int n = 0; n < 8; ++n) {
    EXPECT_EQ(fibonacci(n).a.item<int>(), expected[n]);
    const auto [a, b] = f(td::constant(n));
    EXPECT_EQ(a.item<int>(), expected[n]);
    EXPECT_EQ(b.item<int>(), expected[n + 1]);
  }
}

TEST(WhileLoop, StopsAfterMaxIterations) {
  const auto count = [](const Tensor& limit) {
    return td::while_loop([&](const Tensor& i) { return i < limit; },
                          [](const Tensor& i) { return i + 1; }, 0, {.max_iterations = 7});
  };
  const auto f = td::function([&](const Tensor& limit) { return count(limit); });
  for (const int limit : {0, 3, 7, 100}) {
    EXPECT_EQ(count(limit).item<int>(), std::min(limit, 7));
    EXPECT_EQ(f(limit).item<int>(), std::min(limit, 7));
  }
}

TEST(WhileLoop, GivesAPlainNumberTheDtypeOfTheBody) {
  const auto total = [](const Tensor& x) {
    return std::get<1>(
        td::while_loop([](const Tensor& i, const Tensor&) { return i < 5; },
                       [&](const Tensor& i, const Tensor& t) { return std::tuple{i + 1, t + x}; },
                       std::tuple{0, 0.0}));
  };
  const auto f = td::function([&](const Tensor& x) { return total(x); });
  for (const td::DType dtype : {td::f16, td::f32, td::f64}) {
    const Tensor x = td::full({}, 0.3, dtype);
    EXPECT_EQ(f(x).dtype(), dtype);
    EXPECT_TRUE(td::identical(f(x), total(x)));
  }
}

TEST(WhileLoop, CarriesVariablesItAssigns) {
  const td::Variable v(td::zeros({3})), reads(td::ones({3}));
  const auto f = td::function([=](const Tensor& n) {
    return td::while_loop([&](const Tensor& i) { return (i < n) & (v.value()[0] < 100); },
                          [&](const Tensor& i) {
                            v.assign_add(reads * 10);
                            return i + 1;
                          },
                          0);
  });
  EXPECT_EQ(f(4).item<int>(), 4);
  EXPECT_EQ(floats(v), (std::vector<float>{40, 40, 40}));
  EXPECT_EQ(f(1000).item<int>(), 6);
  EXPECT_EQ(floats(v), (std::vector<float>{100, 100, 100}));
}

TEST(WhileLoop, LeavesVariablesAsTheyWereWhenATripFails) {
  const td::Variable v(td::zeros({3}));
  const Tensor table = td::ones({5});
  const auto f = td::function([=](const Tensor& n) {
    return td::while_loop([&](const Tensor& i) { return i < n; },
                          [&](const Tensor& i) {
                            v.assign_add(td::gather(table, i));
                            return i + 1;
                          },
                          0);
  });
  EXPECT_THROW(f(9), td::UserError);
  EXPECT_EQ(floats(v), (std::vector<float>{0, 0, 0}));
  f(5);
  EXPECT_EQ(floats(v), (std::vector<float>{5, 5, 5}));
}

TEST(WhileLoop, NestsWithBranchesInside) {
  const auto collatz = [](const Tensor& start) {
    return std::get<1>(td::while_loop([](const Tensor& n, const Tensor&) { return n != 1; },
                                      [](const Tensor& n, const Tensor& steps) {
                                        const Tensor next = td::cond(
                                            n % 2 == 0, [&] { return td::cast(n / 2, td::i32); },
                                            [&] { return 3 * n + 1; });
                                        return std::tuple{next, steps + 1};
                                      },
                                      std::tuple{start, 0}));
  };
  const auto all = td::function([&](const Tensor& most) {
    return td::while_loop(
        [&](const Tensor& n, const Tensor&) { return n <= most; },
        [&](const Tensor& n, const Tensor& sum) { return std::tuple{n + 1, sum + collatz(n)}; },
        std::tuple{1, 0});
  });
  int expected = 0;
  for (int n = 1; n <= 10; ++n) expected += collatz(td::constant(n)).item<int>();
  EXPECT_EQ(expected, 67);
  EXPECT_EQ(std::get<1>(all(10)).item<int>(), expected);
}

TEST(WhileLoop, HasAPlanThatDoesNotDependOnTheTrips) {
  const auto f = td::function([](const Tensor& a, const Tensor& n) { return power(a, n); });
  const Tensor a = td::ones({64, 64}) / 64;
  const td::Plan plan = f.plan(a, td::constant(3));
  for (const int n : {1, 2, 3, 50}) {
    const auto [result, profile] = f.profile(a, td::constant(n));
    EXPECT_EQ(profile.planned, plan.peak());
  }
  EXPECT_EQ(f.profile(a, td::constant(50)).second.touched, plan.peak());
}

// ---- fori_loop ----------------------------------------------------------------------------------

Tensor weighted(const Tensor& lower, const Tensor& upper, const Tensor& x) {
  return td::fori_loop(
      lower, upper, [&](const Tensor& i, const Tensor& sum) { return sum * 0.5 + x * i; },
      td::zeros_like(x));
}

TEST(ForiLoop, TakesNumbersAndTensorsAsBounds) {
  const Tensor x = td::random::normal({9});
  const auto of_tensors = td::function(weighted);
  const int bounds[][2] = {{0, 0}, {0, 5}, {-3, 4}, {5, 2}};
  for (const auto& [lower, upper] : bounds) {
    Tensor expected = td::zeros({9});
    for (int i = lower; i < upper; ++i) expected = expected * 0.5 + x * i;
    const auto of_numbers = td::function([lower = lower, upper = upper](const Tensor& x) {
      return td::fori_loop(
          lower, upper, [&](const Tensor& i, const Tensor& sum) { return sum * 0.5 + x * i; },
          td::zeros_like(x));
    });
    EXPECT_TRUE(td::identical(weighted(lower, upper, x), expected));
    EXPECT_TRUE(td::identical(of_numbers(x), expected));
    EXPECT_TRUE(td::identical(of_tensors(lower, upper, x), expected));
    EXPECT_TRUE(td::identical(of_tensors(td::constant(lower), td::constant(upper), x), expected));
  }
}

TEST(ForiLoop, NumbersTripsInTheDtypeOfTheBounds) {
  const auto last = [](const Tensor& lower, const Tensor& upper) {
    return td::fori_loop(
        lower, upper, [](const Tensor& i, const Tensor&) { return i; }, td::cast(lower, td::i64));
  };
  const Tensor a = td::full({}, 3, td::i64), b = td::full({}, 7, td::i64);
  EXPECT_EQ(last(a, b).item<int>(), 6);
  EXPECT_EQ(td::function(last)(a, b).item<int>(), 6);
  const auto number = [](const Tensor& n) {
    return td::fori_loop(0, n, [](const Tensor& i, const Tensor&) { return i; }, -1);
  };
  EXPECT_EQ(number(5).dtype(), td::i32);
  EXPECT_EQ(td::function(number)(5).dtype(), td::i32);
  EXPECT_EQ(td::function(number)(0).item<int>(), -1);
}

TEST(ForiLoop, KeepsACarryInItsPlace) {
  const td::MachineCode machine;
  const auto f = td::function([](const Tensor& x) {
    return td::fori_loop(0, 10, [](const Tensor&, const Tensor& y) { return td::sin(y); }, x);
  });
  const Tensor x = td::random::normal({1000});
  Tensor expected = x;
  for (int i = 0; i < 10; ++i) expected = td::sin(expected);
  EXPECT_TRUE(td::identical(f(x), expected));
  const td::Plan plan = f.plan(x);
  EXPECT_EQ(f.profile(x).second.touched, plan.peak());
  // The result, and the trip's number.
  EXPECT_EQ(plan.peak().count, td::granted_bytes(4000) + 64);
}

// ---- scan ---------------------------------------------------------------------------------------

struct Cell {
  Tensor h, c;
};
struct Input {
  Tensor x, gate;
};

auto run_cells(const Tensor& x, const Tensor& gate, bool reverse) {
  return td::scan(
      [](const Cell& cell, const Input& in) {
        const Cell next{td::tanh(cell.c + in.x), cell.c * in.gate + cell.h};
        return std::pair{next, std::tuple{next.h * 2, next.c - in.x}};
      },
      Cell{td::zeros({4}), td::ones({4})}, Input{x, gate}, {.reverse = reverse});
}

TEST(Scan, GivesTheBitsOfAPlainLoop) {
  const Tensor x = td::random::normal({6, 4}), gate = td::random::normal({6});
  for (const bool reverse : {false, true}) {
    Cell cell{td::zeros({4}), td::ones({4})};
    std::vector<Tensor> hs(6), cs(6);
    for (int64_t t = 0; t < 6; ++t) {
      const auto i = static_cast<size_t>(reverse ? 5 - t : t);
      cell = {td::tanh(cell.c + x[i]), cell.c * gate[i] + cell.h};
      hs[i] = cell.h * 2;
      cs[i] = cell.c - x[i];
    }
    const auto f = td::function([=](const Tensor& x, const Tensor& gate) {
      const auto [last, all] = run_cells(x, gate, reverse);
      return std::tuple{last.h, last.c, std::get<0>(all), std::get<1>(all)};
    });
    const auto [last, all] = run_cells(x, gate, reverse);
    const auto [h, c, all_h, all_c] = f(x, gate);
    EXPECT_TRUE(td::identical(last.h, cell.h) && td::identical(h, cell.h));
    EXPECT_TRUE(td::identical(last.c, cell.c) && td::identical(c, cell.c));
    EXPECT_TRUE(td::identical(std::get<0>(all), td::stack(hs)));
    EXPECT_TRUE(td::identical(all_h, td::stack(hs)));
    EXPECT_TRUE(td::identical(std::get<1>(all), td::stack(cs)));
    EXPECT_TRUE(td::identical(all_c, td::stack(cs)));
    EXPECT_EQ(f.profile(x, gate).second.touched, f.plan(x, gate).peak());
  }
}

TEST(Scan, OfNothingGivesTheFirstCarryAndAnEmptyStack) {
  const auto total = [](const Tensor& xs) {
    return td::scan(
        [](const Tensor& c, const Tensor& x) { return std::pair{c + td::sum(x), x * 2}; }, 5.0f,
        xs);
  };
  const auto f = td::function([&](const Tensor& xs) { return total(xs); });
  for (const auto& [carry, ys] : {total(td::zeros({0, 3})), f(td::zeros({0, 3}))}) {
    EXPECT_EQ(carry.item<float>(), 5);
    EXPECT_EQ(ys.shape(), (td::Shape{0, 3}));
  }
}

TEST(Scan, WalksViewsAndWhatTheTraceMade) {
  const auto rows = [](const Tensor& x) {
    return td::scan(
        [](const Tensor& c, const std::pair<Tensor, Tensor>& both) {
          return std::pair{c + both.first, c * both.second};
        },
        td::zeros({5}), std::pair{td::transpose(x), td::transpose(x * 2)});
  };
  const auto f = td::function([&](const Tensor& x) { return rows(x); });
  const Tensor x = td::random::normal({5, 3});
  EXPECT_TRUE(td::identical(f(x).first, rows(x).first));
  EXPECT_TRUE(td::identical(f(x).second, rows(x).second));
}

TEST(Scan, AssignsVariablesOnceATrip) {
  const td::Variable seen(td::full({}, 0, td::i32));
  const auto f = td::function([=](const Tensor& xs) {
    return td::scan(
        [&](const Tensor& c, const Tensor& x) {
          seen.assign_add(1);
          return std::pair{c + x, c * seen.value()};
        },
        td::full({}, 0, td::i32), xs);
  });
  const Tensor xs = td::constant({1, 2, 3, 4});
  EXPECT_EQ(f(xs).second.to_vector<int>(), (std::vector<int>{0, 2, 9, 24}));
  EXPECT_EQ(seen.value().item<int>(), 4);
}

// ---- map_fn -------------------------------------------------------------------------------------

Tensor sines(const Tensor& e, int64_t n) { return td::sum(td::sin(td::tile(e, {n}) + 1)); }

TEST(MapFn, GivesTheSameBitsForEverySetting) {
  const Tensor xs = td::random::normal({11, 40});
  std::vector<Tensor> each;
  for (int i = 0; i < 11; ++i) each.push_back(sines(xs[i], 100));
  const Tensor expected = td::stack(each);
  const int before = td::num_threads();
  for (const int threads : {1, 2}) {
    td::set_num_threads(threads);
    for (const int64_t chunk : {1, 2, 3, 10, 11, 50}) {
      const auto body = [](const Tensor& x) { return sines(x, 100); };
      const auto chunked =
          td::function([&](const Tensor& xs) { return td::map_fn(body, xs, {.chunk = chunk}); });
      const auto parallel = td::function(
          [&](const Tensor& xs) { return td::map_fn(body, xs, {.parallel_iterations = chunk}); });
      EXPECT_TRUE(td::identical(chunked(xs), expected));
      EXPECT_TRUE(td::identical(parallel(xs), expected));
      EXPECT_TRUE(td::identical(td::map_fn(body, xs, {.chunk = chunk}), expected));
      EXPECT_TRUE(td::identical(td::vectorized_map(body, xs, {.chunk = chunk}), expected));
    }
  }
  td::set_num_threads(before);
}

TEST(MapFn, NeedsTheOutputAndOneBodyForEachThatIsAlive) {
  const td::MachineCode machine;
  const Tensor xs = td::random::normal({12, 40});
  const int before = td::num_threads();
  for (const int threads : {1, 2}) {
    td::set_num_threads(threads);
    const auto alone = td::function([](const Tensor& x) { return sines(x, 100); });
    const int64_t body = alone.plan(xs[0]).peak().count - 64;
    ASSERT_GE(body, 16000);
    for (const int64_t alive : {1, 2, 5, 12}) {
      const auto f = td::function([=](const Tensor& xs) {
        return td::map_fn([](const Tensor& x) { return sines(x, 100); }, xs, {.chunk = alive});
      });
      const td::Plan plan = f.plan(xs);
      EXPECT_EQ(plan.peak().count, 64 + alive * body) << alive << " alive, " << threads;
      EXPECT_EQ(plan.at_peak()[0].type, td::cat("u8[", alive * body, "]"));
      EXPECT_EQ(f.profile(xs).second.touched, plan.peak());
    }
  }
  td::set_num_threads(before);
}

TEST(MapFn, TakesAndGivesStructures) {
  const auto both = [](const Tensor& a, const Tensor& b) {
    return td::map_fn([](const Tensor& x, const Tensor& y) { return Cell{x + y, td::sum(x)}; },
                      std::tuple{a, b});
  };
  const auto f = td::function([&](const Tensor& a, const Tensor& b) {
    const Cell cell = both(a, b);
    return std::pair{cell.h, cell.c};
  });
  const Tensor a = td::random::normal({3, 2}), b = td::random::normal({3});
  EXPECT_TRUE(td::identical(both(a, b).h, a + td::reshape(b, {3, 1})));
  EXPECT_TRUE(td::identical(f(a, b).first, a + td::reshape(b, {3, 1})));
  EXPECT_TRUE(td::identical(both(a, b).c, f(a, b).second));
}

TEST(MapFn, OfNothingGivesNothing) {
  const auto f = td::function([](const Tensor& xs) {
    return td::map_fn([](const Tensor& x) { return td::sum(x) > 0; }, xs);
  });
  const Tensor xs = td::zeros({0, 7});
  const Tensor eager = td::map_fn([](const Tensor& x) { return td::sum(x) > 0; }, xs);
  for (const Tensor& y : {eager, f(xs)}) {
    EXPECT_EQ(y.shape(), (td::Shape{0}));
    EXPECT_EQ(y.dtype(), td::boolean);
  }
}

TEST(MapFn, TakesAnOpForItsBody) {
  const Tensor xs = td::random::normal({3, 5});
  EXPECT_TRUE(td::identical(td::map_fn(td::exp, xs), td::exp(xs)));
}

TEST(MapFn, RunsBodiesWithEffectsInOrder) {
  const td::Variable count(td::full({}, 0, td::i32));
  const auto f = td::function([=](const Tensor& xs) {
    return td::map_fn(
        [&](const Tensor& x) {
          count.assign_add(1);
          td::print("x", x);
          return x * count.value();
        },
        xs, {.chunk = 3});
  });
  testing::internal::CaptureStdout();
  EXPECT_EQ(f(td::constant({5, 6, 7})).to_vector<int>(), (std::vector<int>{5, 12, 21}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "x 5\nx 6\nx 7\n");
  EXPECT_EQ(count.value().item<int>(), 3);
}

TEST(MapFn, TellsOfAnIndexOutOfRangeInAnyBody) {
  const Tensor table = td::ones({3});
  const auto f = td::function([=](const Tensor& ids) {
    return td::map_fn([&](const Tensor& i) { return td::gather(table, i); }, ids, {.chunk = 4});
  });
  EXPECT_EQ(floats(f(td::constant({0, 1, 2, 0, 1}))).size(), 5U);
  EXPECT_THROW(f(td::constant({0, 1, 2, 0, 9})), td::UserError);
}

TEST(ControlFlow, NestsInAllWays) {
  const auto body = [](const Tensor& x) {
    const Tensor walked = td::fori_loop(
        0, 4,
        [&](const Tensor& i, const Tensor& y) {
          Tensor inner = td::map_fn([&](const Tensor& e) { return e * x[0] + i; }, y, {.chunk = 2});
          return td::cond(i % 2 == 0, [&] { return inner; }, [&] { return td::tanh(inner) - y; });
        },
        x);
    return td::scan([](const Tensor& c, const Tensor& e) { return std::pair{c * 0.5 + e, c}; },
                    walked[0], walked);
  };
  const auto all = [&](const Tensor& xs) { return td::map_fn(body, xs, {.chunk = 3}); };
  const auto f = td::function([&](const Tensor& xs) { return all(xs); });
  const Tensor xs = td::random::normal({5, 6});
  EXPECT_TRUE(td::identical(f(xs).first, all(xs).first));
  EXPECT_TRUE(td::identical(f(xs).second, all(xs).second));
  EXPECT_EQ(f.profile(xs).second.touched, f.plan(xs).peak());
}

// ---- random programs ----------------------------------------------------------------------------

// Draws a program of nested control flow over vectors of 6 floats. It draws the same each time it
// is run, so that eager code and a trace run the same program; a body draws from a seed of its own.
class RandomProgram {
 public:
  explicit RandomProgram(std::vector<td::Variable> variables) : variables_(std::move(variables)) {}

  Tensor run(unsigned seed, int depth, std::vector<Tensor> known) const {
    std::mt19937 draw(seed);
    const auto pick = [&] { return known[draw() % known.size()]; };
    for (int step = 0; step < 4; ++step) {
      const unsigned inner = draw();
      const auto body = [&, inner](std::vector<Tensor> more) {
        std::vector<Tensor> inside = known;
        inside.insert(inside.end(), more.begin(), more.end());
        return run(inner, depth - 1, inside);
      };
      const unsigned kind = draw() % (depth > 0 ? 11 : 5);
      const Tensor a = pick(), b = pick();
      const td::Variable& v = variables_[draw() % variables_.size()];
      switch (kind) {
        case 0:
          known.push_back(td::tanh(a) - b);
          break;
        case 1:
          known.push_back(a * 0.5 + td::sum(b) * 0.1);
          break;
        case 2:
          known.push_back(td::flip(a));
          break;
        case 3:
          v.assign(td::sin(a + v));
          break;
        case 4:
          known.push_back(v * 0.9);
          break;
        case 5:
        case 6:
          known.push_back(td::cond(
              td::sum(a) > 0, [&] { return body({b}); },
              [&] { return run(inner + 1, depth - 1, known); }));
          break;
        case 7: {
          const auto [x, y] = td::fori_loop(
              0, static_cast<int>(draw() % 4),
              [&](const Tensor& i, const Tensor& x, const Tensor& y) {
                return std::tuple{body({y, x + i}), x};
              },
              std::tuple{a, b});
          known.push_back(x - y);
          break;
        }
        case 8: {
          const auto [n, x] = td::while_loop(
              [&](const Tensor& n, const Tensor& x) { return (n < 4) & (td::sum(x) < 2); },
              [&](const Tensor& n, const Tensor& x) { return std::tuple{n + 1, body({x}) + 0.2}; },
              std::tuple{0, a});
          known.push_back(x + n);
          break;
        }
        case 9: {
          const auto [x, ys] = td::scan(
              [&](const Tensor& x, const Tensor& e) {
                const Tensor next = body({x * e});
                return std::pair{next, td::sum(next) + e};
              },
              a, b, {.reverse = draw() % 2 == 0});
          known.push_back(x);
          known.push_back(td::tanh(ys));
          break;
        }
        default:
          known.push_back(td::map_fn([&](const Tensor& e) { return td::max(body({a * e})); }, b,
                                     {.chunk = 1 + static_cast<int>(draw() % 7)}));
      }
    }
    return known.back() + known[known.size() / 2];
  }

 private:
  std::vector<td::Variable> variables_;
};

TEST(ControlFlow, GivesTheBitsOfEagerCodeForRandomPrograms) {
  const Tensor x = td::random::normal({6}, {.key = td::random::Key(1)});
  const Tensor y = td::random::normal({6}, {.key = td::random::Key(2)});
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::vector<td::Variable> mine = {td::Variable(x * 0.5), td::Variable(y - 1)};
    const std::vector<td::Variable> other = {mine[0].clone(), mine[1].clone()};
    const Tensor expected = RandomProgram(mine).run(seed, 3, {x, y});
    const auto f = td::function([=](const Tensor& x, const Tensor& y) {
      return RandomProgram(other).run(seed, 3, {x, y});
    });
    const auto [result, profile] = f.profile(x, y);
    ASSERT_TRUE(td::identical(result, expected)) << "seed " << seed;
    for (size_t i = 0; i < mine.size(); ++i)
      ASSERT_TRUE(td::identical(mine[i].value(), other[i].value())) << "seed " << seed;
    ASSERT_LE(profile.touched, profile.planned) << "seed " << seed;
    for (const td::ProfileStep& step : profile.steps)
      ASSERT_LE(step.in_use, step.planned) << step.name << ", seed " << seed;
  }
}

// A sum over what repeats one element multiplies, in eager code and in functions alike, whether the
// view is made inside or comes in.
TEST(ControlFlow, SumsOfRepeatedElementsAreTheSameBits) {
  const auto f = [](const Tensor& x) {
    const Tensor row = td::broadcast_to(x, {50001});
    const Tensor chosen =
        td::cond(td::sum(x) > 0, [&] { return td::sum(row); }, [&] { return td::sum(row) * 2; });
    const Tensor given =
        td::sum(td::cond(td::sum(x) > 0, [&] { return row; }, [&] { return row * 2; }));
    const Tensor carried = td::fori_loop(
        0, 2, [&](const Tensor&, const Tensor& c) { return c * 1 + (td::sum(c) - td::sum(row)); },
        row);
    const Tensor mapped = td::map_fn([&](const Tensor& e) { return td::sum(e) + td::sum(row); },
                                     td::broadcast_to(x, {3, 50001}));
    return std::tuple{chosen, given, carried, mapped};
  };
  const Tensor x = td::constant({0.3}, td::f32);
  const auto expected = f(x);
  for (const bool jit : {false, true}) {
    const auto got = td::function(f, {.jit = jit})(x);
    EXPECT_TRUE(td::identical(std::get<0>(got), std::get<0>(expected)));
    EXPECT_TRUE(td::identical(std::get<1>(got), std::get<1>(expected)));
    EXPECT_TRUE(td::identical(std::get<2>(got), std::get<2>(expected)));
    EXPECT_TRUE(td::identical(std::get<3>(got), std::get<3>(expected)));
  }
}

// What branches make of a Variable goes to its bytes, whichever of them is taken.
TEST(ControlFlow, AssignsVariablesInPlaceInBranches) {
  const td::MachineCode machine;
  const td::Variable v(td::ones({1000}), {.name = "v"});
  const auto one = td::function(
      [v](const td::Tensor& x) { td::cond(td::sum(x) > 0, [&] { v.assign_add(x); }, [] {}); });
  // The second branch still reads the old value where it makes the new one: a copy inside it.
  const auto both = td::function([v](const td::Tensor& x) {
    td::cond(
        td::sum(x) > 0, [&] { v.assign(x * 2); },
        [&] { v.assign(td::concat({v[td::Slice{.begin = 1}], v[td::Slice{.end = 1}]}, 0)); });
  });
  const td::Tensor up = td::ones({1000}), down = td::ones({1000}) * -1;
  for (const auto& f : {one, both}) {
    const td::Plan plan = f.plan(up);
    EXPECT_EQ(plan.of(td::ByteClass::shadow), td::Bytes(0)) << plan.to_text();
    EXPECT_EQ(plan.of(td::ByteClass::outputs), td::Bytes(0));
  }
  EXPECT_LE(one.plan(up).peak(), td::Bytes(256));
  EXPECT_LE(both.plan(up).peak(), td::Bytes(4096 + 256));
  one(up);
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(1000, 2));
  one(down);
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(1000, 2));
  v.assign(td::arange(1000) * 1.0f);
  both(down);
  EXPECT_EQ(v.value().to_vector<float>()[0], 1);
  EXPECT_EQ(v.value().to_vector<float>()[999], 0);
  both(up);
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(1000, 2));
  EXPECT_EQ(one.profile(up).touched, one.plan(up).peak());
  EXPECT_EQ(both.profile(down).touched, both.plan(down).peak());
}

TEST(ControlFlow, AssignsVariablesInPlaceInBranchesOfLoops) {
  const td::MachineCode machine;
  const td::Variable v(td::zeros({1000}), {.name = "v"});
  const auto f = [v](const td::Tensor& x) {
    td::fori_loop(
        0, 10,
        [&](const td::Tensor& i, const td::Tensor& sum) {
          td::cond(
              i < 5, [&] { v.assign_add(x); },
              [&] { td::cond(i < 8, [&] { v.assign(v * 2); }, [] {}); });
          return sum + 1;
        },
        td::constant(0.0f));
  };
  const auto compiled = td::function(f);
  const td::Tensor x = td::ones({1000});
  EXPECT_EQ(compiled.plan(x).of(td::ByteClass::shadow), td::Bytes(0));
  EXPECT_LE(compiled.plan(x).peak(), td::Bytes(1024)) << compiled.plan(x).to_text();
  compiled(x);
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(1000, 40));
  v.assign(td::zeros({1000}));
  f(x);
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(1000, 40));
}

TEST(ControlFlow, SaysWhyAVariableIsNotAssignedInPlace) {
  const td::MachineCode machine;
  const td::Variable v(td::ones({1000}), {.name = "v"});
  unsigned line = 0;
  const auto checked = td::function([&](const td::Tensor& x) {
    td::cond(td::sum(x) > 0, [&] { v.assign_add(x); }, [] {});
    line = __LINE__ + 1;
    td::assert_that(td::sum(v) < 1e9, "too much");
  });
  const td::Plan plan = checked.plan(td::spec({1000}));
  EXPECT_EQ(plan.of(td::ByteClass::shadow), td::Bytes(4032));
  std::string reason;
  for (const td::PlanTensor& tensor : plan.at_peak())
    if (tensor.reason.starts_with("shadow")) reason = tensor.reason;
  EXPECT_EQ(reason,
            "shadow: v, not in place: assert_that may fail after it (control_flow_test.cc:" +
                std::to_string(line) + ")");
  // A view of something else is copied there when all steps have run.
  const auto turned = td::function([&](const td::Tensor& x) {
    td::assert_that(td::sum(x) < 1e9, "too much");
    v.assign(td::flip(x, 0));
  });
  EXPECT_EQ(turned.plan(td::spec({1000})).of(td::ByteClass::shadow), td::Bytes(0));
  turned(td::arange(1000) * 1.0f);
  EXPECT_EQ(v.value().to_vector<float>()[0], 999);
}

// ---- vectorized_map -----------------------------------------------------------------------------

// The name of the first step that is a map; empty where none is.
std::string map_of(const td::Plan& plan) {
  for (const td::PlanStep& step : plan.timeline())
    if (step.name.starts_with("map")) return step.name;
  return {};
}

// The gradient that a function gives itself is the one that is used, with the axis and without.
TEST(VectorizedMap, KeepsTheGradientOfACall) {
  const td::MachineCode machine;
  const auto own = td::custom_gradient([](const Tensor& x) {
    return std::pair{td::sin(x), [x](const Tensor& dy) { return dy * x * 100; }};
  });
  const auto slopes = [&](const auto& map) {
    return td::function([&](const Tensor& x) {
      return td::grad([&](const Tensor& at) { return td::sum(map(own, at)); })(x);
    });
  };
  const auto vectorized =
      slopes([](const auto& f, const Tensor& x) { return td::vectorized_map(f, x); });
  const Tensor x = td::random::normal({6, 4}, {.key = td::random::Key(1)});
  EXPECT_TRUE(td::identical(vectorized(x), x * 100));
  EXPECT_EQ(map_of(vectorized.plan(x)), "") << vectorized.plan(x).to_text();
}

// Bodies whose ops all take one more axis, on slices of [n, 4, 3].
TEST(VectorizedMap, TakesAllSlicesAtOnce) {
  const td::MachineCode machine;
  const Tensor w = td::random::normal({3, 5}, {.key = td::random::Key(2)});
  const Tensor row = td::random::normal({3}, {.key = td::random::Key(3)});
  const Tensor deep = td::random::normal({2, 4, 3}, {.key = td::random::Key(4)});
  const std::function<Tensor(const Tensor&)> bodies[] = {
      [&](const Tensor& e) { return td::exp(e) * row + 1; },
      [&](const Tensor& e) { return e + deep; },
      [&](const Tensor& e) { return td::matmul(e, w); },
      [&](const Tensor& e) { return td::matmul(e, e, {.transpose_a = true}); },
      [&](const Tensor& e) { return td::matmul(deep, e, {.transpose_b = true}); },
      [&](const Tensor& e) { return td::sum(e); },
      [&](const Tensor& e) { return td::sum(e, 0) / td::max(e, 0); },
      [&](const Tensor& e) { return e - td::mean(e, 1, td::keepdims); },
      [&](const Tensor& e) { return td::argmax(e, 1); },
      [&](const Tensor& e) { return td::softmax(e, 0); },
      [&](const Tensor& e) { return td::cumsum(e, 1); },
      [&](const Tensor& e) { return td::transpose(e); },
      [&](const Tensor& e) { return td::reshape(e, {2, 6}) * 2; },
      [&](const Tensor& e) { return e[{td::Slice{.begin = 1}, td::Slice{.step = -1}}]; },
      [&](const Tensor& e) { return td::concat({e, td::ones({1, 3})}, 0); },
      [&](const Tensor& e) { return td::pad(e, {{1, 0}, {2, 1}}, 7); },
      [&](const Tensor& e) { return td::sum(td::repeat(e, 100, 0), 0); },
      [&](const Tensor& e) { return td::broadcast_to(td::sum(e, 0), {4, 3}) + 1; },
      [&](const Tensor& e) { return e; },
      [&](const Tensor& e) { return td::where(e > 0, e, row); },
      [&](const Tensor& e) { return td::cast(e * 10, td::i32) + 1; },
      [&](const Tensor& e) {
        return td::take_along_axis(e, td::argmax(e, 1, td::keepdims) - 3, 1);
      },
      [&](const Tensor& e) { return td::sparse_softmax_cross_entropy(td::argmax(e, 1), e); },
      [&](const Tensor& e) { return td::max_pool(td::reshape(e, {1, 4, 3, 1})); },
      td::grad([](const Tensor& e) {
        return td::sum(td::square(td::max_pool(td::reshape(e, {1, 4, 3, 1}))));
      }),
      td::recompute([](const Tensor& e) { return td::tanh(e) * 2; }),
  };
  const Tensor xs = td::random::normal({6, 4, 3}, {.key = td::random::Key(1)});
  int number = 0;
  for (const auto& body : bodies) {
    const auto f = td::function([&](const Tensor& x) { return td::vectorized_map(body, x); });
    const Tensor expected = td::map_fn(body, xs);
    EXPECT_TRUE(td::identical(f(xs), expected)) << "body " << number;
    EXPECT_TRUE(td::identical(td::vectorized_map(body, xs), expected)) << "body " << number;
    EXPECT_EQ(map_of(f.plan(xs)), "") << "body " << number << '\n' << f.plan(xs).to_text();
    // What is walked may repeat one element: a slice of it does not.
    const auto of_repeated = td::function([&](const Tensor& x) {
      return td::sum(td::vectorized_map(body, td::broadcast_to(td::sum(x), {5, 4, 3})), 0);
    });
    const Tensor one = td::ones({1}) * 0.1;
    const Tensor wide = td::broadcast_to(td::sum(one), {5, 4, 3});
    EXPECT_TRUE(td::identical(of_repeated(one), td::sum(td::map_fn(body, wide), 0)))
        << "body " << number;
    ++number;
  }
}

TEST(VectorizedMap, SaysWhyItGoesSliceBySlice) {
  const auto f = td::function([](const Tensor& x) {
    return td::vectorized_map([](const Tensor& e) { return td::gather(e, td::argmax(e, 0), 0); },
                              x);
  });
  const std::string line = std::to_string(__LINE__ - 3);
  const Tensor xs = td::random::normal({6, 4}, {.key = td::random::Key(1)});
  EXPECT_TRUE(td::identical(f(xs), td::max(xs, 1)));
  EXPECT_EQ(map_of(f.plan(xs)),
            "map, slice by slice: gather cannot be batched (control_flow_test.cc:" + line + ")");
  const auto all_alike = td::function(
      [](const Tensor& x) { return td::vectorized_map([](const Tensor&) { return 3; }, x); });
  EXPECT_EQ(map_of(all_alike.plan(xs)),
            "map, slice by slice: a result is the same for every slice");
  const auto repeated = [](const Tensor& x) {
    return td::vectorized_map([](const Tensor& e) { return td::repeat(e, 3); }, x);
  };
  EXPECT_EQ(map_of(td::function(repeated).plan(xs)),
            "map, slice by slice: a result repeats one element");
  const auto running = [](const Tensor& e) { return td::cumsum(e, 0); };
  const auto wide = td::function([&](const Tensor& x) {
    return td::vectorized_map(running, td::broadcast_to(td::sum(x), {5, 100}));
  });
  EXPECT_EQ(map_of(wide.plan(xs)), "map, slice by slice: an input array repeats one element");
  const auto total = [](const Tensor& x) {
    return td::vectorized_map([](const Tensor& e) { return td::sum(e); },
                              td::broadcast_to(td::sum(x), {5, 1000}));
  };
  EXPECT_TRUE(td::identical(td::function(total)(xs), total(xs)));
  // With a bound on how many are alive it is a map.
  const auto bounded = td::function([](const Tensor& x) {
    return td::vectorized_map([](const Tensor& e) { return td::cumsum(e, 0); }, x, {.chunk = 2});
  });
  EXPECT_EQ(map_of(bounded.plan(xs)), "map");
  EXPECT_TRUE(td::identical(bounded(xs), td::cumsum(xs, 1)));
}

TEST(VectorizedMap, HasGradientsAndOpenLengths) {
  const auto loss = [](const Tensor& x) {
    return td::sum(td::vectorized_map([](const Tensor& e) { return td::tanh(e) * td::sum(e); }, x));
  };
  const auto gradient = [loss](const Tensor& x) {
    td::GradientTape tape;
    tape.watch(x);
    return tape.gradient(loss(x), x);
  };
  const auto compiled = td::function(gradient);
  for (const int64_t n : {4, 7, 2}) {
    const Tensor x = td::random::normal({n, 3}, {.key = td::random::Key(1)});
    EXPECT_TRUE(td::all(td::abs(compiled(x) - gradient(x)) < 1e-5).item<bool>()) << n;
  }
  EXPECT_EQ(compiled.cache_info().traces, 2) << compiled.cache_info();
}

}  // namespace
