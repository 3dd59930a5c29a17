// Branches, loops and maps: the same bits in eager code and in functions, in the bytes planned.
#include "tidemark/api/control_flow.h"

#include <gtest/gtest.h>

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
    return td::cond(
        p > 0, [&] { return ++first, x * 2; }, [&] { return ++second, x - 1; });
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
        p > 0, [&] { return std::pair{twice + y, x}; }, [&] { return std::pair{y, td::exp(twice)}; });
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
    td::cond(
        p, [&] { v.assign_add(x * 10); }, [&] { w.assign(v * 2); });
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
    td::cond(
        p, [&] { td::print("yes"); }, [&] { td::print("no"); });
    td::print("after");
  });
  testing::internal::CaptureStdout();
  f(true);
  f(false);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "before\nyes\nafter\nbefore\nno\nafter\n");
}

TEST(SwitchCase, TakesTheBranchOfThatNumberOrTheLast) {
  const auto choose = [](const Tensor& i, const Tensor& x) {
    return td::switch_case(
        i, [&] { return x; }, [&] { return x * 10; }, [&] { return x * 100; });
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
  const auto [i, result] =
      td::while_loop([&](const Tensor& i, const Tensor&) { return i < n; },
                     [&](const Tensor& i, const Tensor& r) {
                       return std::tuple{i + 1, td::matmul(r, a)};
                     },
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
                       [&](const Tensor& i, const Tensor& t) {
                         return std::tuple{i + 1, t + x};
                       },
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
    return std::get<1>(td::while_loop(
        [](const Tensor& n, const Tensor&) { return n != 1; },
        [](const Tensor& n, const Tensor& steps) {
          const Tensor next =
              td::cond(n % 2 == 0, [&] { return td::cast(n / 2, td::i32); }, [&] { return 3 * n + 1; });
          return std::tuple{next, steps + 1};
        },
        std::tuple{start, 0}));
  };
  const auto all = td::function([&](const Tensor& most) {
    return td::while_loop([&](const Tensor& n, const Tensor&) { return n <= most; },
                          [&](const Tensor& n, const Tensor& sum) {
                            return std::tuple{n + 1, sum + collatz(n)};
                          },
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

}  // namespace
