// Gradients of loops, whatever is kept of their trips: right, and the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/least_bytes.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/slopes.h"
#include "tests/unit/small_counts.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using namespace tidemark::literals;

namespace {

using td::differences;
using td::error_of;
using td::Values;
using Scalar = td::ScalarFunction;
using Saved = std::function<td::Tensor(const td::Tensor&, td::Save)>;
constexpr auto drawn = td::drawn_f64;

void expect_near(const td::Tensor& got, const Values& want, const std::string& what) {
  td::expect_slopes(got, want, what, 2e-6);
}

// A run touches what was planned; less where there are fewer trips than there may be.
td::Tensor compiled_gradient(const Scalar& f, const td::Tensor& x, bool touches_all) {
  const td::MachineCode machine;
  auto compiled = td::function([&f](const td::Tensor& each) { return td::grad(f)(each); });
  const td::Bytes planned = compiled.plan(x).peak();
  const auto [found, profile] = compiled.profile(x);
  for (const td::ProfileStep& step : profile.steps)
    EXPECT_LE(step.in_use, step.planned) << step.name;
  if (touches_all)
    EXPECT_EQ(profile.touched, planned);
  else
    EXPECT_LE(profile.touched, planned);
  return found;
}

struct Choice {
  std::string name;
  td::Save save;
};
std::vector<Choice> choices(bool is_bounded) {
  if (td::small_counts())
    return {{"automatic", td::Save::automatic()}, {"2 slots", td::Save::slots(2)}};
  std::vector<Choice> list = {
      {"automatic", td::Save::automatic()}, {"1 slot", td::Save::slots(1)},
      {"2 slots", td::Save::slots(2)},      {"3 slots", td::Save::slots(3)},
      {"100 slots", td::Save::slots(100)},  {"many bytes", td::Save::bytes(1_MiB)}};
  if (is_bounded) {
    list.push_back({"all", td::Save::all()});
    list.push_back({"every", td::Save::every(1)});
    list.push_back({"every third", td::Save::every(3)});
  }
  return list;
}

// The same, and the fewest bytes that such a program can keep to.
std::vector<Choice> choices_of(bool is_bounded, const std::function<void(td::Save)>& use) {
  std::vector<Choice> list = choices(is_bounded);
  if (td::small_counts()) return list;
  list.push_back({"few bytes", td::Save::bytes(td::least_bytes(use))});
  return list;
}

// Right in a function for every choice, and all the same bits; right in eager code.
void expect_gradient(const Saved& f, const td::Tensor& x, bool is_bounded = true,
                     bool touches_all = true) {
  const Values want =
      differences([&](const td::Tensor& each) { return f(each, td::Save::automatic()); }, x);
  td::Tensor first;
  const auto plan = [&](td::Save save) {
    const Scalar chosen = [&](const td::Tensor& each) { return f(each, save); };
    td::function([&](const td::Tensor& each) { return td::grad(chosen)(each); }).plan(x);
  };
  for (const Choice& choice : choices_of(is_bounded, plan)) {
    const Scalar chosen = [&](const td::Tensor& each) { return f(each, choice.save); };
    const td::Tensor found = compiled_gradient(chosen, x, touches_all);
    expect_near(found, want, choice.name);
    if (!first.has_value()) first = found;
    EXPECT_TRUE(td::identical(found, first)) << choice.name << ": " << found << first;
  }
  expect_near(td::grad([&](const td::Tensor& each) { return f(each, td::Save::automatic()); })(x),
              want, "eager");
}

TEST(LoopGradient, OfForiLoop) {
  const td::Tensor a = drawn({3, 3}, 1) * 0.3, x = drawn({2, 3}, 2);
  const auto power = [](const td::Tensor& x, const td::Tensor& a, td::Save save) {
    return td::sum(td::fori_loop(0, 11,
                                 [&](const td::Tensor& i, const td::Tensor& c) {
                                   return td::tanh(td::matmul(c, a)) +
                                          td::cast(i, td::f64) * 0.1 * c;
                                 },
                                 x, {.save = save}));
  };
  expect_gradient([&](const td::Tensor& x, td::Save save) { return power(x, a, save); }, x);
  expect_gradient([&](const td::Tensor& a, td::Save save) { return power(x, a, save); }, a);
}

// What a trip ends with is all its gradient reads besides its start.
TEST(LoopGradient, ReadsTheEndOfATrip) {
  const td::Tensor a = drawn({3, 3}, 1) * 0.3, x = drawn({2, 3}, 2);
  const auto power = [](const td::Tensor& x, const td::Tensor& a, td::Save save) {
    return td::sum(td::fori_loop(
        0, 12, [&](const td::Tensor&, const td::Tensor& c) { return td::tanh(td::matmul(c, a)); },
        x, {.save = save}));
  };
  expect_gradient([&](const td::Tensor& a, td::Save save) { return power(x, a, save); }, a);
}

TEST(LoopGradient, OfBoundsThatAreTensors) {
  const td::Tensor w = drawn({3}, 3);
  for (const int count : {0, 1, 2, 9}) {
    const td::Tensor upper = td::constant(count);
    expect_gradient(
        [&](const td::Tensor& x, td::Save save) {
          return td::sum(td::fori_loop(0, upper,
                                       [&](const td::Tensor& i, const td::Tensor& c) {
                                         return td::sin(c * w) + x * td::cast(i, td::f64);
                                       },
                                       x, {.save = save}));
        },
        drawn({3}, 1), false, false);
  }
}

TEST(LoopGradient, OfWhileLoop) {
  const td::Tensor w = drawn({3}, 3);
  for (const bool is_bounded : {true, false}) {
    for (const double most : {0.5, 3.0, 40.0}) {
      expect_gradient(
          [&](const td::Tensor& x, td::Save save) {
            td::LoopOptions options{.save = save};
            if (is_bounded) options.max_iterations = 9;
            const auto [c, n] =
                td::while_loop([&](const td::Tensor&, const td::Tensor& n) { return n < most; },
                               [&](const td::Tensor& c, const td::Tensor& n) {
                                 return std::tuple{td::sin(c * w) * 1.1 + x, n * 1.2 + 0.3};
                               },
                               std::tuple{x, td::constant(0.0, td::f64)}, options);
            return td::sum(c * c);
          },
          drawn({3}, 1), is_bounded, false);
    }
  }
}

TEST(LoopGradient, OfScanInBothDirections) {
  for (const bool reverse : {false, true}) {
    const td::Tensor xs = drawn({7, 3}, 1), w = drawn({3}, 2);
    const auto f = [&](const td::Tensor& xs, const td::Tensor& w, td::Save save) {
      const auto [last, ys] = td::scan(
          [&](const td::Tensor& c, const td::Tensor& x) {
            const td::Tensor next = td::sin(c * w) + x * x;
            return std::pair{next, next * c};
          },
          td::zeros({3}, td::f64), xs, {.reverse = reverse, .save = save});
      return td::sum(last) + td::sum(ys * ys);
    };
    expect_gradient([&](const td::Tensor& xs, td::Save save) { return f(xs, w, save); }, xs);
    expect_gradient([&](const td::Tensor& w, td::Save save) { return f(xs, w, save); }, w);
  }
}

TEST(LoopGradient, OfNestedLoops) {
  const td::Tensor w = drawn({2}, 1);
  expect_gradient(
      [&](const td::Tensor& x, td::Save save) {
        return td::sum(td::fori_loop(0, 5,
                                     [&](const td::Tensor&, const td::Tensor& outer) {
                                       return td::fori_loop(
                                           0, 4,
                                           [&](const td::Tensor&, const td::Tensor& inner) {
                                             return td::sin(inner * w) + outer * 0.5;
                                           },
                                           outer, {.save = save});
                                     },
                                     x, {.save = save}));
      },
      drawn({2}, 2));
}

// ---- inner loops that are the same in all trips -------------------------------------------------

// One trip of an outer loop, whose inner control flow depends on x alone.
struct InnerLoop {
  const char* name;
  std::function<td::Tensor(const td::Tensor& c, const td::Tensor& x)> trip;
};
std::vector<InnerLoop> inner_loops() {
  const auto sine = [](const td::Tensor&, const td::Tensor& d) { return td::sin(d); };
  const auto pair = [](const td::Tensor& a, const td::Tensor& b) {
    return std::pair{a * 0.5 + b, a * b};
  };
  return {
      {"fori_loop",
       [=](const auto& c, const auto& x) { return c + td::max(td::fori_loop(0, 2, sine, x)); }},
      {"fori_loop, 2 states kept",
       [=](const auto& c, const auto& x) {
         return c * td::sum(td::fori_loop(0, 4, sine, x, {.save = td::Save::slots(2)}));
       }},
      {"while_loop",
       [=](const auto& c, const auto& x) {
         return c * td::sum(td::while_loop([](const td::Tensor& d) { return td::sum(d) < 4; },
                                           [](const td::Tensor& d) { return d + d * d; }, x * x));
       }},
      {"scan",
       [=](const auto& c, const auto& x) {
         return td::sin(c) * td::sum(td::scan(pair, td::sum(x), x).second);
       }},
      {"logsumexp of scan",
       [=](const auto& c, const auto& x) {
         return c * 0.1 + td::logsumexp(td::scan(pair, x, x).second);
       }},
      {"map_fn",
       [=](const auto& c, const auto& x) {
         return c * td::max(td::map_fn([&](const td::Tensor& e) { return e * td::sin(x); }, x));
       }},
      {"vectorized_map",
       [=](const auto& c, const auto& x) {
         return c + td::max(td::vectorized_map([&](const td::Tensor& e) { return e * x; }, x));
       }},
      {"cond",
       [=](const auto& c, const auto& x) {
         return c * td::cond(
                        td::sum(x) > 0, [&] { return td::sum(td::sin(x)); },
                        [&] { return td::sum(x * x); });
       }},
      {"a loop in a loop",
       [=](const auto& c, const auto& x) {
         const auto twice = [&](const td::Tensor&, const td::Tensor& d) {
           return td::fori_loop(0, 2, sine, d) * x;
         };
         return c * td::sum(td::exp(td::fori_loop(0, 2, twice, x)));
       }},
      {"recompute",
       [=](const auto& c, const auto& x) {
         const auto inner = [=](const td::Tensor& y) {
           return td::sum(td::exp(td::fori_loop(0, 2, sine, y)));
         };
         return c * td::recompute(inner)(x);
       }},
      {"one loop read by another",
       [=](const auto& c, const auto& x) {
         const td::Tensor first = td::fori_loop(0, 2, sine, x);
         return c * td::sum(td::scan(pair, first, td::stack({first, x})).second * first);
       }},
      {"a power iteration",
       [=](const auto& c, const auto& x) {
         const td::Tensor w = td::outer(x, x) + td::eye(3, td::f64);
         const td::Tensor u = td::fori_loop(
             0, 3,
             [&](const td::Tensor&, const td::Tensor& u) {
               const td::Tensor v = td::matmul(w, u);
               return v / td::norm(v);
             },
             td::ones({3}, td::f64));
         return td::tanh(c * td::sum(w / td::norm(td::matmul(w, u))));
       }},
  };
}

TEST(LoopGradient, OfInnerLoopsThatAreTheSameInAllTrips) {
  const td::Tensor x = td::constant(std::vector<double>{0.5, -0.25, 1.5});
  for (const InnerLoop& inner : inner_loops()) {
    SCOPED_TRACE(inner.name);
    const Saved whole = [&](const td::Tensor& x, td::Save save) {
      return td::fori_loop(0, 3,
                           [&](const td::Tensor&, const td::Tensor& c) { return inner.trip(c, x); },
                           td::sum(x), {.save = save});
    };
    const Values want =
        differences([&](const td::Tensor& x) { return whole(x, td::Save::all()); }, x);
    for (const td::Save save : {td::Save::all(), td::Save::slots(2)}) {
      auto compiled = td::function([&](const td::Tensor& x) {
        return td::value_and_grad([&](const td::Tensor& x) { return whole(x, save); })(x);
      });
      const auto [value, slope] = compiled(x);
      EXPECT_TRUE(td::identical(value, whole(x, save))) << value;
      expect_near(slope, want, "in a function");
    }
  }
}

// A body that never ran may hold what would fail, or go on without an end: it is not run apart.
TEST(LoopGradient, RunsNothingOfABodyThatNeverRan) {
  const auto body = [](const td::Tensor& c, const td::Tensor& x, int64_t row) {
    const td::Tensor picked = td::gather(x, td::constant({row}));
    const td::Tensor ended =
        td::while_loop([](const td::Tensor& d) { return td::sum(d) < 100; },
                       [](const td::Tensor& d) { return d * 2; }, picked * picked);
    return c * td::exp(td::sum(picked)) * td::log(td::sum(ended) + 1);
  };
  const auto gradient = [=](const td::Tensor& x, const td::Tensor& trips, int64_t row) {
    return td::grad([&](const td::Tensor& x) {
      return std::get<1>(
          td::while_loop([&](const td::Tensor& i, const td::Tensor&) { return i < trips; },
                         [&](const td::Tensor& i, const td::Tensor& c) {
                           return std::tuple{i + 1, body(c, x, row)};
                         },
                         std::tuple{td::constant(int64_t{0}), td::sum(x)},
                         {.max_iterations = 4, .save = td::Save::all()}));
    })(x);
  };
  // Row 2 is 0, which no number of doublings brings to 100; there is no row 7.
  const td::Tensor x = td::constant(std::vector<double>{0.5, -0.25, 0});
  for (const int64_t row : {0, 2, 7}) {
    auto compiled = td::function(
        [=](const td::Tensor& x, const td::Tensor& trips) { return gradient(x, trips, row); });
    EXPECT_TRUE(td::identical(compiled(x, td::constant(int64_t{0})), td::ones({3}, td::f64)));
  }
}

TEST(LoopGradient, OfSeveralCarries) {
  const td::Tensor w = drawn({2}, 1);
  // The sum needs no checkpoints; the counter is what the others come from.
  expect_gradient(
      [&](const td::Tensor& x, td::Save save) {
        const auto [c, total, n] = td::fori_loop(
            0, 6,
            [&](const td::Tensor&, const td::Tensor& c, const td::Tensor& total,
                const td::Tensor& n) {
              return std::tuple{td::sin(c * w * td::cast(n, td::f64)), total + td::sum(c * c),
                                n + 1};
            },
            std::tuple{x, td::constant(0.0, td::f64), td::constant(1)}, {.save = save});
        return total;
      },
      drawn({2}, 2));
}

TEST(LoopGradient, OfBranchesAndDrawsInTheBody) {
  expect_gradient(
      [&](const td::Tensor& x, td::Save save) {
        return td::sum(td::fori_loop(
            0, 8,
            [&](const td::Tensor& i, const td::Tensor& c) {
              const td::random::Key key = td::random::Key(7).fold_in(i);
              const td::Tensor noise = td::random::normal({3}, {.dtype = td::f64, .key = key});
              return td::cond(
                  i < 4, [&] { return td::sin(c * noise); }, [&] { return c * c * 0.3 + noise; });
            },
            x, {.save = save}));
      },
      drawn({3}, 1));
}

TEST(LoopGradient, OfVariables) {
  for (const Choice& choice : choices(true)) {
    td::Variable w(td::constant(Values{0.5, -0.25}), {.name = "w"});
    const td::Tensor x = td::constant(Values{0.3, 0.7});
    const auto loss = [&] {
      return td::sum(td::fori_loop(
          0, 6, [&](const td::Tensor&, const td::Tensor& c) { return td::sin(c * w) + c; }, x,
          {.save = choice.save}));
    };
    auto step = td::function([&](const td::Tensor&) {
      td::GradientTape tape;
      const td::Tensor value = loss();
      return td::Tensor(tape.gradient(value, w));
    });
    td::GradientTape tape;
    const td::Tensor value = loss();
    const td::Tensor eager = tape.gradient(value, w);
    expect_near(step(x), eager.to_vector<double>(), choice.name);
  }
}

// The product of a trip is added where the sum lies: no bytes for it, and the same bits, of numbers
// that are none too.
TEST(LoopGradient, OfWeightsTakesNoBytesForTheProductsOfTrips) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const td::DType dtype : {td::f32, td::f64}) {
    for (const double odd : {-0.0, 0.5, kInfinity}) {
      const td::Tensor a = td::cast(drawn({96, 96}, 1) * 0.2, dtype);
      const td::Tensor x = td::cast(
          td::concat({drawn({30, 96}, 2), td::full({2, 96}, td::constant(odd, td::f64))}, 0),
          dtype);
      for (const Choice& choice : choices(true)) {
        SCOPED_TRACE(choice.name);
        const td::MachineCode machine;
        const auto gradient = [&](const td::Tensor& a) {
          return td::grad([&](const td::Tensor& a) {
            return td::sum(td::fori_loop(
                0, 9,
                [&](const td::Tensor&, const td::Tensor& c) { return td::tanh(td::matmul(c, a)); },
                x, {.save = choice.save}));
          })(a);
        };
        const auto joined = td::function(gradient);
        const auto apart = td::function(gradient, {.jit = false});
        const auto [found, profile] = joined.profile(a);
        EXPECT_TRUE(td::identical(found, apart(a)));
        EXPECT_EQ(profile.touched, joined.plan(a).peak());
        EXPECT_LT(joined.plan(a).peak(), apart.plan(a).peak());
        EXPECT_NE(joined.text("accumulate").find("accumulate("), std::string::npos);
      }
    }
  }
}

// Second order, for every choice: what a tape of the ops of all trips gives, the same bits, and
// planned as it is touched.
void expect_second(const Saved& f, const td::Tensor& x, bool is_bounded = true,
                   bool touches_all = true) {
  td::Tensor first;
  const auto slopes = [&](td::Save save) {
    return [&f, save](const td::Tensor& x) {
      return td::sum(td::square(td::grad([&](const td::Tensor& x) { return f(x, save); })(x)));
    };
  };
  const auto plan = [&](td::Save save) {
    td::function([&](const td::Tensor& each) { return td::grad(slopes(save))(each); }).plan(x);
  };
  for (const Choice& choice : choices_of(is_bounded, plan)) {
    const Scalar g = slopes(choice.save);
    const td::Tensor found = compiled_gradient(g, x, touches_all);
    td::expect_slopes(found, td::grad(g)(x).to_vector<double>(), choice.name, 1e-11);
    if (!first.has_value()) {
      first = found;
      td::expect_slopes(found, differences(g, x), "differences", 1e-4);
    }
    EXPECT_TRUE(td::identical(found, first)) << choice.name << ": " << found << first;
  }
}

TEST(LoopGradient, OfGradients) {
  const td::Tensor w = drawn({2}, 2);
  const auto power = [](const td::Tensor& x, const td::Tensor& w, td::Save save) {
    return td::sum(td::fori_loop(
        0, 5,
        [&](const td::Tensor&, const td::Tensor& c) { return td::sin(c * w) * 1.1 + c * c * 0.1; },
        x, {.save = save}));
  };
  const td::Tensor x = drawn({2}, 1);
  expect_second([&](const td::Tensor& x, td::Save save) { return power(x, w, save); }, x);
  expect_second([&](const td::Tensor& w, td::Save save) { return power(x, w, save); }, w);
}

// Of a body whose gradient reads the end of a trip.
TEST(LoopGradient, OfGradientsThatReadTheEndOfATrip) {
  const td::Tensor x = drawn({2, 3}, 1);
  expect_second(
      [&](const td::Tensor& a, td::Save save) {
        return td::sum(td::fori_loop(
            0, 7,
            [&](const td::Tensor&, const td::Tensor& c) { return td::tanh(td::matmul(c, a)); }, x,
            {.save = save}));
      },
      drawn({3, 3}, 2) * 0.5);
}

TEST(LoopGradient, OfGradientsOfScan) {
  for (const bool reverse : {false, true}) {
    const td::Tensor xs = drawn({6, 2}, 1), w = drawn({2}, 2);
    const auto f = [&](const td::Tensor& xs, const td::Tensor& w, td::Save save) {
      const auto [last, ys] = td::scan(
          [&](const td::Tensor& c, const td::Tensor& x) {
            const td::Tensor next = td::sin(c * w) + x * x;
            return std::pair{next, next * c};
          },
          td::zeros({2}, td::f64), xs, {.reverse = reverse, .save = save});
      return td::sum(last * last) + td::sum(ys * ys);
    };
    expect_second([&](const td::Tensor& xs, td::Save save) { return f(xs, w, save); }, xs);
    expect_second([&](const td::Tensor& w, td::Save save) { return f(xs, w, save); }, w);
  }
}

TEST(LoopGradient, OfGradientsOfNestedLoops) {
  const td::Tensor w = drawn({2}, 1);
  expect_second(
      [&](const td::Tensor& x, td::Save save) {
        return td::sum(td::fori_loop(
            0, 3,
            [&](const td::Tensor& i, const td::Tensor& outer) {
              const td::Tensor last =
                  td::fori_loop(0, 4,
                                [&](const td::Tensor&, const td::Tensor& inner) {
                                  return td::sin(inner * w) + outer * 0.5;
                                },
                                outer, {.save = save});
              return td::cond(i < 2, [&] { return last * x; }, [&] { return td::exp(last); });
            },
            x, {.save = save}));
      },
      drawn({2}, 2));
}

TEST(LoopGradient, OfGradientsOfWhileLoop) {
  for (const bool is_bounded : {true, false}) {
    for (const int64_t trips : {0, 1, 5}) {
      expect_second(
          [&](const td::Tensor& x, td::Save save) {
            td::LoopOptions options{.save = save};
            if (is_bounded) options.max_iterations = 8;
            return td::sum(std::get<0>(
                td::while_loop([&](const td::Tensor&, const td::Tensor& n) { return n < trips; },
                               [&](const td::Tensor& c, const td::Tensor& n) {
                                 return std::tuple{td::sin(c * x) * 1.1 + c * c * 0.1, n + 1};
                               },
                               std::tuple{x, td::constant(0)}, options)));
          },
          drawn({2}, 1), is_bounded, false);
    }
  }
}

TEST(LoopGradient, OfGradientsWhereTheLossReadsTheEndOfABoundedLoop) {
  // The outer gradient goes back over the loop itself too, whose marks the inner one has left.
  expect_second(
      [](const td::Tensor& x, td::Save save) {
        const auto [r, i] = td::while_loop(
            [](const td::Tensor&, const td::Tensor& i) { return i < 5; },
            [&](const td::Tensor& r, const td::Tensor& i) {
              return std::tuple{td::sin(r) + x * 0.1, i + 1};
            },
            std::tuple{x, td::Tensor(td::constant(0))}, {.max_iterations = 11, .save = save});
        return td::sum(r * r);
      },
      drawn({2}, 1), true, false);
}

// What it was told to keep holds for the second order too.
TEST(LoopGradient, OfGradientsKeepsWhatItIsToldTo) {
  const td::MachineCode machine;
  const auto planned = [](td::Save save) {
    auto f = td::function([=](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        return td::sum(td::square(td::grad([&](const td::Tensor& x) {
          return td::sum(td::fori_loop(
              0, 400, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c) * 1.01; }, x,
              {.save = save}));
        })(x)));
      })(x);
    });
    return f.plan(td::spec({1024})).peak();
  };
  constexpr int64_t state = 4096;
  EXPECT_LE(planned(td::Save::slots(10)), td::Bytes((2 * 10 + 20) * state));
  EXPECT_LE(planned(td::Save::bytes(200 * state)), td::Bytes(201 * state));
  EXPECT_GE(planned(td::Save::all()), td::Bytes(400 * state));
}

// A gradient that somebody wrote need not be linear: then a bound is needed.
TEST(LoopGradient, OfGradientsWithACustomGradientInTheBody) {
  const auto clipped = td::custom_gradient([](const td::Tensor& x) {
    return std::pair{td::sin(x), [x](const td::Tensor& dy) { return td::tanh(dy * td::cos(x)); }};
  });
  const auto second = [&](td::LoopOptions options) {
    return [=](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        return td::sum(td::square(td::grad([&](const td::Tensor& x) {
          return td::sum(std::get<0>(td::while_loop(
              [](const td::Tensor&, const td::Tensor& n) { return n < 4; },
              [&](const td::Tensor& c, const td::Tensor& n) {
                return std::tuple{clipped(c) * 1.2, n + 1};
              },
              std::tuple{x, td::constant(0)}, options, td::Source::here("loop.cc", 7))));
        })(x)));
      })(x);
    };
  };
  const td::Tensor x = drawn({3}, 1);
  const auto bounded = second({.max_iterations = 6, .save = td::Save::slots(2)});
  expect_near(td::function(bounded)(x), bounded(x).to_vector<double>(), "bounded");
  EXPECT_EQ(error_of([&] { td::function(second({}))(x); }),
            "gradient: the gradient of this loop is not differentiable: its number of trips has no "
            "bound, and its body has a custom_gradient or a max_pool, whose gradients may be "
            "nonlinear\n  at loop.cc:7\n  give max_iterations, or plain numbers for the bounds of "
            "fori_loop");
}

// Going back reads no state: what is kept all the same can be run again from itself.
TEST(LoopGradient, OfABodyThatIsLinear) {
  expect_gradient(
      [&](const td::Tensor& x, td::Save save) {
        const auto [n, c] =
            td::fori_loop(0, 6,
                          [&](const td::Tensor&, const td::Tensor& n, const td::Tensor& c) {
                            return std::tuple{n + td::sum(c), c * 0.5 + x};
                          },
                          std::tuple{td::constant(0.0, td::f64), x}, {.save = save});
        return td::sum(c) + n;
      },
      drawn({3}, 1));
}

// x = (x + a / x) / 2 until it no longer moves: the square root of a.
TEST(LoopGradient, OfNewtonsIterationToATolerance) {
  const td::MachineCode machine;
  const auto root = [](const td::Tensor& a, td::LoopOptions options) {
    const auto [x, before] = td::while_loop(
        [](const td::Tensor& x, const td::Tensor& before) {
          return td::max(td::abs(x - before)) > 1e-13;
        },
        [&](const td::Tensor& x, const td::Tensor&) { return std::tuple{(x + a / x) * 0.5, x}; },
        std::tuple{a, td::zeros_like(a)}, options);
    return td::sum(x);
  };
  const td::Tensor a = td::linspace(0.5, 40.0, 1000, td::f64);
  Values want;
  for (const double each : a.to_vector<double>()) want.push_back(0.5 / std::sqrt(each));
  const int64_t state = 8'000;
  const auto check = [&](td::LoopOptions options, td::Bytes most) {
    auto f = td::function([&](const td::Tensor& a) {
      return td::grad([&](const td::Tensor& a) { return root(a, options); })(a);
    });
    const td::Plan plan = f.plan(a);
    EXPECT_LE(plan.of(td::ByteClass::saved) + plan.of(td::ByteClass::temporaries), most) << plan;
    const auto [found, profile] = f.profile(a);
    expect_near(found, want, "newton");
    EXPECT_LE(profile.touched, plan.peak());
  };
  // Without a bound on the trips: 32 states, and ten more in work.
  check({}, 42 * state);
  check({.save = td::Save::slots(4)}, 14 * state);
  check({.max_iterations = 30, .save = td::Save::bytes(100_KiB)}, 100_KiB);
}

// Its second and third derivatives: in functions, and under tapes around calls of functions.
TEST(LoopGradient, OfNewtonsIterationHasHigherOrders) {
  const auto root = [](const td::Tensor& a, td::Save save) {
    const auto [x, before] = td::while_loop(
        [](const td::Tensor& x, const td::Tensor& before) {
          return td::max(td::abs(x - before)) > 1e-14;
        },
        [&](const td::Tensor& x, const td::Tensor&) { return std::tuple{(x + a / x) * 0.5, x}; },
        std::tuple{a, td::zeros_like(a)}, {.save = save});
    return td::sum(x);
  };
  const td::Tensor a = td::linspace(0.5, 8.0, 6, td::f64);
  Values second, third;
  for (const double each : a.to_vector<double>()) {
    second.push_back(-0.25 * std::pow(each, -1.5));
    third.push_back(0.375 * std::pow(each, -2.5));
  }
  for (const td::Save save : {td::Save::automatic(), td::Save::slots(1), td::Save::slots(3)}) {
    const Scalar f = [&](const td::Tensor& a) { return root(a, save); };
    const Scalar g = [&](const td::Tensor& a) { return td::sum(td::grad(f)(a)); };
    const Scalar h = [&](const td::Tensor& a) { return td::sum(td::grad(g)(a)); };
    expect_near(compiled_gradient(g, a, true), second, "second");
    expect_near(compiled_gradient(h, a, true), third, "third");
    auto call = td::function([&](const td::Tensor& a) { return root(a, save); });
    td::GradientTape outer;
    outer.watch(a);
    td::GradientTape inner;
    inner.watch(a);
    const td::Tensor value = call(a);
    const td::Tensor slope = inner.gradient(value, a);
    expect_near(outer.gradient(td::sum(slope), a), second, "tapes around a call");
    auto gradient = td::function([&](const td::Tensor& a) { return td::grad(f)(a); });
    td::GradientTape tape;
    tape.watch(a);
    const td::Tensor total = td::sum(gradient(a));
    expect_near(tape.gradient(total, a), second, "a tape around the call of a gradient");
  }
}

// Where checkpoints would take more than the little that all trips take, all of it is kept.
TEST(LoopGradient, KeepsAllWhereThatIsLess) {
  const td::MachineCode machine;
  const auto planned = [](td::Save save) {
    auto f = td::function([=](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        return td::fori_loop(0, 50,
                             [](const td::Tensor&, const td::Tensor& c) { return td::sin(c); }, x,
                             {.save = save});
      })(x);
    });
    return f.plan(td::spec({}, td::f64)).peak();
  };
  EXPECT_LE(planned(td::Save::bytes(4_KiB)), planned(td::Save::all()));
  EXPECT_LE(planned(td::Save::bytes(1_MiB)), planned(td::Save::all()));
  const int64_t least = td::least_bytes([&](td::Save save) { planned(save); });
  EXPECT_LE(planned(td::Save::bytes(least)), planned(td::Save::slots(1)));
}

// Bars: what 1,000 and 10,000 trips on 128 x 128 take.
TEST(LoopGradient, KeepsTheCarriesAndLittleMore) {
  const td::MachineCode machine;
  constexpr int64_t carry = 128 * 128 * 4;
  const auto plan_of = [](int64_t trips, td::Save save) {
    auto f = td::function([=](const td::Tensor& c, const td::Tensor& a) {
      return td::grad([&](const td::Tensor& a) {
        return td::sum(td::fori_loop(
            0, trips,
            [&](const td::Tensor&, const td::Tensor& c) { return td::tanh(td::matmul(c, a)); }, c,
            {.save = save}));
      })(a);
    });
    return f.plan(td::spec({128, 128}), td::spec({128, 128}));
  };
  const auto bytes = [](const td::Plan& plan) {
    return plan.of(td::ByteClass::saved) + plan.of(td::ByteClass::temporaries);
  };
  EXPECT_LE(bytes(plan_of(1'000, td::Save::all())), td::Bytes(1'000 * carry * 102 / 100));
  EXPECT_LE(plan_of(10'000, td::Save::bytes(16_MiB)).peak(), 16_MiB);
  // All of 1,000 trips is small enough to be kept without being asked for; of 10,000 it is not.
  EXPECT_EQ(plan_of(1'000, td::Save::automatic()).peak(), plan_of(1'000, td::Save::all()).peak());
  EXPECT_EQ(plan_of(10'000, td::Save::automatic()).peak(),
            plan_of(10'000, td::Save::slots(100)).peak());
}

// Transposed in the body, but the same in all trips: kept once beside the carries.
TEST(LoopGradient, KeepsOnceWhatIsTheSameInAllTrips) {
  const td::MachineCode machine;
  constexpr int64_t carry = 32 * 32 * 4;
  auto f = td::function([](const td::Tensor& c, const td::Tensor& a) {
    return td::grad([&](const td::Tensor& a) {
      return td::sum(td::fori_loop(0, 100,
                                   [&](const td::Tensor&, const td::Tensor& c) {
                                     return td::tanh(td::matmul(c, td::sin(td::transpose(a))));
                                   },
                                   c, {.save = td::Save::all()}));
    })(a);
  });
  const td::Plan plan = f.plan(td::spec({32, 32}), td::spec({32, 32}));
  EXPECT_EQ(plan.of(td::ByteClass::saved), td::Bytes((100 + 1) * carry)) << plan;
}

TEST(LoopGradient, ThePlanSaysWhatEachChoiceCosts) {
  const auto explained = [](td::Save save, bool is_bounded) {
    auto f = td::function([=](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        if (is_bounded)
          return td::sum(td::fori_loop(
              0, 1'000, [](const td::Tensor&, const td::Tensor& c) { return td::sin(c); }, x,
              {.save = save}, td::Source::here("loop.cc", 7)));
        return td::sum(td::while_loop([](const td::Tensor& c) { return td::max(c) > 0.1; },
                                      [](const td::Tensor& c) { return td::sin(c); }, x,
                                      {.save = save}, td::Source::here("loop.cc", 7)));
      })(x);
    });
    const std::string text = f.plan(td::spec({256})).explain();
    const size_t begin = text.find("the loop at");
    return begin == std::string::npos ? text : text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(explained(td::Save::all(), true),
            "the loop at loop.cc:7 keeps, of 1000 trips, all: 1000.0 KiB, 0 trips run again (or "
            "slots(32): 32.0 KiB, 1406 trips run again; every(32): 63.0 KiB, 967 trips run again)");
  EXPECT_EQ(explained(td::Save::slots(10), true),
            "the loop at loop.cc:7 keeps, of 1000 trips, slots(10): 10.0 KiB, 2637 trips run again "
            "(or all: 1000.0 KiB, 0 trips run again; slots(32): 32.0 KiB, 1406 trips run again; "
            "every(32): 63.0 KiB, 967 trips run again)");
  EXPECT_EQ(explained(td::Save::every(10), true),
            "the loop at loop.cc:7 keeps, of 1000 trips, every(10): 109.0 KiB, 899 trips run again "
            "(or all: 1000.0 KiB, 0 trips run again; slots(32): 32.0 KiB, 1406 trips run again; "
            "every(32): 63.0 KiB, 967 trips run again)");
  EXPECT_EQ(explained(td::Save::slots(10), false),
            "the loop at loop.cc:7 keeps, of trips without a bound, slots(10): 10.0 KiB");
}

TEST(LoopGradient, NeedsABoundToKeepAll) {
  const auto gradient = [](td::Save save) {
    auto f = td::function([=](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& x) {
        return td::sum(td::while_loop([](const td::Tensor& c) { return td::max(c) > 0.1; },
                                      [](const td::Tensor& c) { return td::sin(c); }, x,
                                      {.save = save}, td::Source::here("loop.cc", 7)));
      })(x);
    });
    f(td::ones({3}));
  };
  EXPECT_EQ(
      error_of([&] { gradient(td::Save::all()); }),
      "gradient: save = all takes memory in proportion to the number of trips, which has no "
      "bound in this loop\n  at loop.cc:7\n  give max_iterations, or save = td::Save::slots(32)");
  EXPECT_EQ(
      error_of([&] { gradient(td::Save::every(3)); }),
      "gradient: save = every takes memory in proportion to the number of trips, which has no "
      "bound in this loop\n  at loop.cc:7\n  give max_iterations, or save = td::Save::slots(32)");
  EXPECT_EQ(error_of([&] { gradient(td::Save::slots(0)); }),
            "while_loop: save = slots must be at least 1, got 0\n  at loop.cc:7\n  leave it out "
            "for the default");
}

}  // namespace
