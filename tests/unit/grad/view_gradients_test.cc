// Gradients by arguments that are views, captured in control flow: right, whoever asks and wherever
// the tape is.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/slopes.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using Map = std::function<td::Tensor(const td::Tensor&)>;
constexpr double kTolerance = 2e-6;

// f64[2, 3] as a view of x.
struct View {
  const char* name;
  td::Shape of;
  Map view;
};
std::vector<View> views() {
  const td::Slice back{.step = -1}, second{.step = 2};
  const auto stretched = [](const td::Tensor& x) { return td::broadcast_to(x, {2, 3}); };
  return {
      {"dense", {2, 3}, [](const td::Tensor& x) { return x; }},
      {"a number stretched", {}, stretched},
      {"a row stretched", {3}, stretched},
      {"a column stretched", {2, 1}, stretched},
      {"turned", {3, 2}, [](const td::Tensor& x) { return td::transpose(x); }},
      {"sliced",
       {4, 5},
       [](const td::Tensor& x) {
         return x[{td::Slice{.begin = 1, .end = 3}, td::Slice{.begin = 2}}];
       }},
      {"stepped", {4, 6}, [=](const td::Tensor& x) { return x[{second, second}]; }},
      {"backwards", {2, 3}, [=](const td::Tensor& x) { return x[{back, back}]; }},
      {"stretched, then turned",
       {2},
       [](const td::Tensor& x) { return td::transpose(td::broadcast_to(x, {3, 2})); }},
      {"stretched, then stepped",
       {6},
       [=](const td::Tensor& x) { return td::broadcast_to(x, {4, 6})[{second, second}]; }},
      {"turned, then backwards",
       {3, 2},
       [=](const td::Tensor& x) { return td::transpose(x)[{back, td::all}]; }},
  };
}

// What is done with p, f64[2, 3].
struct Program {
  const char* name;
  Map run;
};
std::vector<Program> programs() {
  const auto loop = [](td::Save save) {
    return [save](const td::Tensor& p) {
      return td::fori_loop(
          0, 3, [&](const td::Tensor&, const td::Tensor& c) { return c * td::sin(p) + td::sum(p); },
          p, {.save = save});
    };
  };
  const Map branch = [](const td::Tensor& p) {
    return td::cond(
        td::sum(p) > -100, [&] { return td::sin(p) * td::sum(p, 0); }, [&] { return p * 1.0; });
  };
  return {
      {"no control flow", [](const td::Tensor& p) { return td::sin(p) * td::sum(p); }},
      {"cond", branch},
      {"fori_loop, all kept", loop(td::Save::all())},
      {"fori_loop, 2 states kept", loop(td::Save::slots(2))},
      {"fori_loop, every 2nd kept", loop(td::Save::every(2))},
      {"while_loop",
       [](const td::Tensor& p) {
         const auto [i, c] =
             td::while_loop([](const td::Tensor& i, const td::Tensor&) { return i < 3; },
                            [&](const td::Tensor& i, const td::Tensor& c) {
                              return std::tuple{i + 1, c * td::cos(p) + p};
                            },
                            std::tuple{td::constant(0, td::i64), p});
         return c + td::cast(i, td::f64);
       }},
      {"scan, captured",
       [](const td::Tensor& p) {
         return td::sum(
             td::scan([&](const td::Tensor& c,
                          const td::Tensor& e) { return std::pair{c + td::sin(p) * e, c * p}; },
                      p, td::constant(std::vector<double>{1, 2, 3}))
                 .second,
             0);
       }},
      {"scan, walked",
       [](const td::Tensor& p) {
         return td::scan(
                    [&](const td::Tensor& c, const td::Tensor& row) {
                      return std::pair{c + td::sin(row) * td::sum(p), c * row};
                    },
                    td::sum(p, 0), p)
             .second;
       }},
      {"map_fn",
       [](const td::Tensor& p) {
         return td::map_fn([&](const td::Tensor& row) { return td::sin(row) * td::sum(p * p, 0); },
                           p);
       }},
      {"vectorized_map",
       [](const td::Tensor& p) {
         return td::vectorized_map(
             [&](const td::Tensor& row) { return td::sin(row) * td::sum(p * p, 0); }, p);
       }},
      {"recompute",
       [](const td::Tensor& p) {
         return td::recompute([](const td::Tensor& q) { return td::sin(q) * td::sum(q, 0); })(p);
       }},
      {"custom_gradient",
       [](const td::Tensor& p) {
         return td::custom_gradient([](const td::Tensor& q) {
           return std::pair{td::sin(q), [q](const td::Tensor& dy) { return dy * td::cos(q); }};
         })(p);
       }},
      {"a loop in a branch in a loop",
       [=](const td::Tensor& p) {
         return td::fori_loop(
             0, 2,
             [&](const td::Tensor&, const td::Tensor& c) {
               return td::cond(
                   td::sum(p) > -100, [&] { return c + loop(td::Save::all())(p); },
                   [&] { return c * p; });
             },
             p);
       }},
  };
}

td::Tensor weighted(const td::Tensor& y) {
  return td::sum(y * td::reshape(td::arange(1, y.size() + 1, 1, td::f64), y.shape()));
}

td::Tensor by_tape(const Map& f, const td::Tensor& p) {
  td::GradientTape tape;
  tape.watch(p);
  return tape.gradient(weighted(f(p)), p);
}

class ViewGradient : public testing::Test {
 protected:
  static void expect(const td::Tensor& got, const td::Values& want, const td::Shape& shape,
                     const std::string& what) {
    EXPECT_EQ(got.shape(), shape) << what;
    td::expect_slopes(got, want, what, kTolerance);
  }

  // Each view with each program; a third of the pairs where tests are to be short.
  template <class Expect>
  static void for_each_pair(Expect expect) {
    const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
    const size_t every = counts != nullptr && std::string_view(counts) == "full" ? 1 : 3;
    size_t number = 0;
    for (const View& view : views()) {
      for (const Program& program : programs())
        if (number++ % every == 0) expect(view, program);
      ++number;
    }
  }

  // A tape around a call.
  static void expect_around(const View& view, const Program& program) {
    const std::string what = td::cat(view.name, ", ", program.name, ", a tape around");
    const td::Tensor x = td::drawn_f64(view.of, 3);
    auto f = td::function([run = program.run](const td::Tensor& p) { return run(p); });
    const Map whole = [&](const td::Tensor& x) { return weighted(program.run(view.view(x))); };
    const td::Values by_x = td::differences(whole, x);
    {
      td::GradientTape tape;
      tape.watch(x);
      expect(tape.gradient(weighted(f(view.view(x))), x), by_x, x.shape(), what + ", by x");
    }
    {
      td::GradientTape tape;
      tape.watch(x);
      td::Tensor given = view.view(x);
      expect(tape.gradient(weighted(f(std::move(given))), x), by_x, x.shape(),
             what + ", by x, given away");
    }
    const td::Tensor p = view.view(x);
    const td::Values by_p =
        td::differences([&](const td::Tensor& p) { return weighted(program.run(p)); }, p);
    expect(by_tape([&](const td::Tensor& p) { return f(p); }, p), by_p, {2, 3}, what + ", by p");
  }

  // A tape inside the function.
  static void expect_inside(const View& view, const Program& program) {
    const std::string what = td::cat(view.name, ", ", program.name, ", a tape inside");
    const td::Tensor x = td::drawn_f64(view.of, 3), p = view.view(x);
    const Map loss = [&](const td::Tensor& p) { return weighted(program.run(p)); };
    const td::Values by_p = td::differences(loss, p);
    auto taped = td::function([&](const td::Tensor& p) { return by_tape(program.run, p); });
    expect(taped(p), by_p, {2, 3}, what);
    auto by_grad = td::function([&](const td::Tensor& p) { return td::grad(loss)(p); });
    expect(by_grad(p), by_p, {2, 3}, what + ", td::grad");
    td::Tensor given = view.view(x);
    expect(by_grad(std::move(given)), by_p, {2, 3}, what + ", td::grad, given away");
    // The view is made in the function: a gradient by it, and by what it shows.
    auto both = td::function([&](const td::Tensor& x) {
      td::GradientTape tape({.persistent = true});
      tape.watch(x);
      const td::Tensor seen = view.view(x);
      const td::Tensor loss = weighted(program.run(seen));
      return std::pair{tape.gradient(loss, seen), tape.gradient(loss, x)};
    });
    const auto [by_view, by_x] = both(x);
    expect(by_view, by_p, {2, 3}, what + ", by a view made there");
    expect(by_x, td::differences([&](const td::Tensor& x) { return loss(view.view(x)); }, x),
           x.shape(), what + ", by what such a view shows");
  }
};

TEST_F(ViewGradient, OfATapeAroundACall) { for_each_pair(expect_around); }

TEST_F(ViewGradient, OfATapeInsideAFunction) { for_each_pair(expect_inside); }

// A literal that is watched is a value like any other, and so is a tensor the function captured.
TEST_F(ViewGradient, OfWatchedLiteralsAndCaptures) {
  const td::Tensor stretched = td::broadcast_to(td::constant(std::vector<double>{1, 2, 3}), {2, 3});
  for (const Program& program : programs()) {
    auto by_literal = td::function([&](const td::Tensor& unused) {
      return by_tape(program.run, td::full({2, 3}, 0.5, td::f64)) + 0 * td::sum(unused);
    });
    const Map loss = [&](const td::Tensor& p) { return weighted(program.run(p)); };
    expect(by_literal(td::ones({1}, td::f64)),
           td::differences(loss, td::full({2, 3}, 0.5, td::f64)), {2, 3},
           td::cat(program.name, ", by a literal"));
    auto by_capture = td::function([&](const td::Tensor& unused) {
      return by_tape(program.run, stretched) + 0 * td::sum(unused);
    });
    expect(by_capture(td::ones({1}, td::f64)), td::differences(loss, stretched), {2, 3},
           td::cat(program.name, ", by a captured view"));
  }
}

// Elements that repeat are added by a product, in loops too: the bits of eager code.
TEST_F(ViewGradient, SumsOfStretchedCapturesKeepTheirBits) {
  const td::Tensor p = td::broadcast_to(td::constant(0.1f), {7, 3});
  const Map sums = [](const td::Tensor& p) {
    return td::fori_loop(
        0, 2, [&](const td::Tensor&, const td::Tensor& c) { return c + td::sum(p); },
        td::constant(0.f));
  };
  auto f = td::function([&](const td::Tensor& p) { return sums(p); });
  EXPECT_TRUE(td::identical(f(p), sums(p))) << f(p) << sums(p);
  auto taped = td::function([&](const td::Tensor& p) {
    td::GradientTape tape;
    tape.watch(p);
    const td::Tensor y = sums(p);
    return std::pair{y, tape.gradient(y, p)};
  });
  EXPECT_TRUE(td::identical(taped(p).first, sums(p)));
}

// sum(i * sin(x_i)) over the slices of x has the gradient i * cos(x_i), with -0 in slice 0.
TEST_F(ViewGradient, OfSlicesTakesTheBytesOfOneArray) {
  constexpr int64_t count = 32, length = 512;
  const td::Tensor x = td::cast(td::arange(count * length), td::f64) * 0.01;
  for (const int64_t axis : {0, 1}) {
    const td::Tensor given =
        td::reshape(x, axis == 0 ? td::Shape{count, length} : td::Shape{length, count});
    const auto weighted = [axis](const td::Tensor& rows) {
      td::Tensor total = td::constant(0.0, td::f64);
      double weight = 0;
      for (const td::Tensor& row : td::unstack(rows, axis))
        total = total + td::sum(td::sin(row) * weight++);
      return total;
    };
    const auto gradient =
        td::function([&](const td::Tensor& rows) { return td::grad(weighted)(rows); });
    const td::Tensor numbers = td::cast(td::arange(count), td::f64);
    const td::Tensor want =
        td::cos(given) * (axis == 0 ? td::expand_dims(numbers, 1) : numbers) + 0.0;
    EXPECT_TRUE(td::identical(gradient(given), want)) << axis;
    EXPECT_TRUE(td::identical(td::grad(weighted)(given), want)) << axis;
    EXPECT_LE(gradient.plan(given).peak().count, 5 * count * length * 8 / 4) << axis;
  }
}

}  // namespace
