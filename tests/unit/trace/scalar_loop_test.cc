// Loops on a few numbers: one step of the program, and the bits of eager code.
#include <gtest/gtest.h>

#include <random>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;
using td::TensorArray;

namespace {

// As machine code, and interpreted.
class ScalarLoop : public testing::TestWithParam<td::compile::Emitter> {
 protected:
  ScalarLoop() : before_(td::compile::emitter()) { td::compile::set_emitter(GetParam()); }
  ~ScalarLoop() override { td::compile::set_emitter(before_); }

 private:
  td::compile::Emitter before_;
};
INSTANTIATE_TEST_SUITE_P(By, ScalarLoop,
                         testing::Values(td::compile::Emitter::llvm, td::compile::Emitter::tile),
                         [](const auto& each) {
                           return std::string(each.param == td::compile::Emitter::llvm ? "llvm"
                                                                                       : "tile");
                         });

// Whether the loop is the last step of the function: a body in steps would come behind it.
template <class F, class... A>
bool loop_is_last(const F& f, const A&... arguments) {
  return f.plan(arguments...).timeline().back().name == "loop";
}

// The same in eager code and in a function, where it is one step.
template <class Body, class... A>
void expect_one_step(const Body& body, const A&... arguments) {
  const auto f = td::function<Tensor(std::conditional_t<true, Tensor, A>...)>(body);
  const Tensor expected = body(arguments...);
  EXPECT_TRUE(td::identical(f(arguments...), expected)) << f(arguments...) << expected;
  EXPECT_TRUE(loop_is_last(f, arguments...));
  EXPECT_EQ(f.profile(arguments...).second.touched, f.plan(arguments...).peak());
}

TEST_P(ScalarLoop, CarriesNumbersOfEveryDtype) {
  for (const td::DType dtype : {td::f32, td::f64, td::i32, td::i64, td::u8}) {
    const auto body = [](const Tensor& x) {
      return td::fori_loop(
          0, 100,
          [&](const Tensor& i, const Tensor& s) { return s * 3 + td::cast(i, s.dtype()) - x; }, x);
    };
    expect_one_step(body, td::full({}, 5, dtype));
  }
  const auto flips = [](const Tensor& x) {
    return td::while_loop(
        [](const Tensor& n, const Tensor&) { return n < 7; },
        [&](const Tensor& n, const Tensor& b) { return std::tuple{n + 1, b ^ (n > x)}; },
        std::tuple{0, td::constant(true)});
  };
  const auto second = [&](const Tensor& x) { return std::get<1>(flips(x)); };
  for (int x = -2; x < 9; ++x) expect_one_step(second, td::constant(x));
}

TEST_P(ScalarLoop, KeepsStepsForWhatItCannotDo) {
  const auto halves = td::function([](const Tensor& x) {
    return td::fori_loop(0, 9, [](const Tensor&, const Tensor& s) { return s * 0.7 + 1; }, x);
  });
  const Tensor x = td::full({}, 0.3, td::f16);
  Tensor expected = x;
  for (int i = 0; i < 9; ++i) expected = expected * 0.7 + 1;
  EXPECT_TRUE(td::identical(halves(x), expected));
  EXPECT_FALSE(loop_is_last(halves, x));
}

TEST_P(ScalarLoop, CarriesFewElementsThroughViewsAndBroadcasts) {
  const auto body = [](const Tensor& x, const Tensor& y) {
    return td::fori_loop(
        0, 20,
        [&](const Tensor& i, const Tensor& s) {
          const Tensor t = td::transpose(td::reshape(s, {3, 2}));
          return td::tanh(t + y * i) - td::reshape(x, {2, 1}) + s[{0, 1}];
        },
        td::broadcast_to(y, {2, 3}));
  };
  const Tensor wide = td::random::normal({2, 5});
  // A column of a matrix: its elements do not lie side by side.
  const auto of_column = [&](const Tensor& y) { return body(wide[{td::all, 3}], y); };
  expect_one_step(body, td::random::normal({2}), td::random::normal({3}));
  const auto f = td::function(of_column);
  const Tensor y = td::random::normal({3});
  EXPECT_TRUE(td::identical(f(y), of_column(y)));
}

TEST_P(ScalarLoop, JoinsPieces) {
  const auto body = [](const Tensor& x) {
    return td::fori_loop(
        0, 9,
        [](const Tensor& i, const Tensor& s) {
          const Tensor left = s[{td::all, td::Slice{.end = 1}}];
          return td::concat({s[{td::all, td::Slice{.begin = 1}}] * 0.5, left + i}, 1);
        },
        x);
  };
  expect_one_step(body, td::random::normal({2, 3}));
  const auto stacked = [](const Tensor& x) {
    return td::fori_loop(
               0, 9,
               [&](const Tensor& i, const TensorArray& a) {
                 return a.write(i, td::stack({x * i, x + i, td::sin(x)}));
               },
               TensorArray(td::f32, {.size = 9}))
        .stack();
  };
  expect_one_step(stacked, td::full({}, 0.25f));
}

TEST_P(ScalarLoop, SwapsCarries) {
  const auto body = [](const Tensor& n) {
    return std::get<0>(
        td::while_loop([&](const Tensor&, const Tensor&, const Tensor& i) { return i < n; },
                       [](const Tensor& a, const Tensor& b, const Tensor& i) {
                         return std::tuple{b, a + b, i + 1};
                       },
                       std::tuple{td::constant(0), td::constant(1), td::constant(0)}));
  };
  for (int n = 0; n < 40; n += 3) expect_one_step(body, td::constant(n));
}

TEST_P(ScalarLoop, WritesAndReadsArrays) {
  const auto body = [](const Tensor& x) {
    return td::fori_loop(
               2, 50,
               [](const Tensor& i, const TensorArray& a) {
                 const Tensor first = a.read(0);
                 return a.write(i, a.read(i - 1) * 0.5 + a.read(i - 2)).write(-1, first);
               },
               TensorArray(td::f32, {.size = 60}).write(0, x).write(1, x * 2))
        .stack();
  };
  expect_one_step(body, td::random::normal({2}));
}

TEST_P(ScalarLoop, KeepsAnArrayThatIsReadAfterAWrite) {
  // The old array is read after the new one is made: not in place.
  const auto body = [](const Tensor& x) {
    return td::fori_loop(
               0, 6,
               [](const Tensor& i, const TensorArray& a) {
                 const TensorArray b = a.write(i, a.read(i) + 1);
                 return b.write((i + 1) % 6, a.read(i) * 10);
               },
               TensorArray(td::f32, {.size = 6}).unstack(x))
        .stack();
  };
  const Tensor x = td::random::normal({6});
  EXPECT_TRUE(td::identical(td::function(body)(x), body(x)));
}

TEST_P(ScalarLoop, ScansBothWays) {
  for (const bool reverse : {false, true}) {
    const auto scanned = [=](const Tensor& xs) {
      return td::scan(
          [](const Tensor& c, const Tensor& x) {
            const Tensor next = c * 0.9 + x[0] - x[1];
            return std::pair{next, std::pair{next * 2, x + next}};
          },
          0.5, xs, {.reverse = reverse});
    };
    const auto f = td::function([=](const Tensor& xs) { return scanned(xs); });
    const Tensor xs = td::random::normal({13, 2});
    const auto [carry, ys] = f(xs);
    const auto [carry_eager, ys_eager] = scanned(xs);
    EXPECT_TRUE(td::identical(carry, carry_eager));
    EXPECT_TRUE(td::identical(ys.first, ys_eager.first));
    EXPECT_TRUE(td::identical(ys.second, ys_eager.second));
    EXPECT_TRUE(loop_is_last(f, xs));
    EXPECT_EQ(f(td::zeros({0, 2})).second.second.shape(), (td::Shape{0, 2}));
  }
}

TEST_P(ScalarLoop, TellsOfAnIndexOutOfRange) {
  const auto f = td::function([](const Tensor& n, const Tensor& x) {
    return td::fori_loop(
               0, n, [&](const Tensor& i, const TensorArray& a) { return a.write(i, x); },
               TensorArray(td::f32, {.size = 3}))
        .stack();
  });
  const Tensor x = td::ones({2});
  EXPECT_TRUE(loop_is_last(f, td::constant(3), x));
  EXPECT_EQ(td::sum(f(td::constant(3), x)).item<float>(), 6);
  try {
    f(td::constant(5), x);
    ADD_FAILURE() << "no error";
  } catch (const td::UserError& error) {
    EXPECT_NE(
        std::string(error.what()).find("put: index 3 is out of range for axis 0 of f32[3, 2]"),
        std::string::npos)
        << error.what();
  }
}

TEST_P(ScalarLoop, LeavesOutOnlyTheChecksThatCannotFail) {
  // Slots first + step * trip of 6, in 5 trips.
  const auto written = [](int first, int step) {
    return [=](const Tensor& x) {
      const auto body = [&](const Tensor& i, const TensorArray& a) {
        const Tensor slot = step < 0 ? first - i : first + i;
        return a.write(slot, x + td::cast(i, td::f32)).write(0, a.read(slot));
      };
      const TensorArray array(td::f32, {.size = 6, .element_shape = td::Shape{2}});
      return td::fori_loop(0, 5, body, array).stack();
    };
  };
  const Tensor x = td::constant({1.0F, 2.0F});
  for (const int first : {-6, -5, -1, 0, 1}) expect_one_step(written(first, 1), x);
  for (const int first : {-2, 0, 4, 5}) expect_one_step(written(first, -1), x);
  for (const int first : {-7, 2}) EXPECT_THROW(td::function(written(first, 1))(x), td::UserError);
  for (const int first : {-3, 6}) EXPECT_THROW(td::function(written(first, -1))(x), td::UserError);
}

TEST_P(ScalarLoop, RunsInsideMapsAndLoops) {
  const auto collatz = [](const Tensor& start) {
    return std::get<1>(td::while_loop(
        [](const Tensor& n, const Tensor&) { return n != 1; },
        [](const Tensor& n, const Tensor& steps) {
          return std::tuple{td::where(n % 2 == 0, td::floor_divide(n, 2), 3 * n + 1), steps + 1};
        },
        std::tuple{start, 0}));
  };
  const auto all = [&](const Tensor& ns) { return td::map_fn(collatz, ns, {.chunk = 3}); };
  const auto f = td::function([&](const Tensor& ns) { return all(ns); });
  const Tensor ns = td::arange(1, 40);
  EXPECT_TRUE(td::identical(f(ns), all(ns)));
  EXPECT_EQ(f(ns).to_vector<int>()[26], 111);
}

// Random pointwise bodies on three carries and an array, drawn alike in eager code and in a trace.
TEST_P(ScalarLoop, GivesTheBitsOfEagerCodeForRandomBodies) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto program = [seed](const Tensor& x, const Tensor& y) {
      std::mt19937 outer(seed);
      const auto body = [&](const Tensor& i, const Tensor& a, const Tensor& b, const Tensor& n,
                            const TensorArray& array) {
        std::mt19937 draw(seed + 1);
        std::vector<Tensor> known = {a, td::cast(i, td::f32), x, array.read(n % 8)};
        std::vector<Tensor> doubles = {b, y, td::cast(n, td::f64)};
        TensorArray written = array;
        for (int step = 0; step < 8; ++step) {
          const Tensor p = known[draw() % known.size()], q = known[draw() % known.size()];
          const Tensor u = doubles[draw() % doubles.size()], w = doubles[draw() % doubles.size()];
          switch (draw() % 7) {
            case 0:
              known.push_back(td::tanh(p) * 0.7 - q);
              break;
            case 1:
              known.push_back(td::where(p > q, p, td::sin(q)));
              break;
            case 2:
              doubles.push_back(td::exp(-td::abs(u)) + w);
              break;
            case 3:
              doubles.push_back(td::floor(u) * 0.5 - td::minimum(u, w));
              break;
            case 4:
              known.push_back(td::cast(u, td::f32) + p % 3);
              break;
            case 5:
              known.push_back(td::flip(p + td::zeros({2})) * q);
              break;
            default:
              written = written.write((n + step) % 8, p + td::zeros({2}));
              known.push_back(written.read(i % 8));
          }
        }
        const Tensor next = td::tanh(known.back() + td::zeros({2}));
        return std::tuple{next, td::tanh(doubles.back()) + 0.1, (n * 5 + 1) % 11, written};
      };
      const auto [a, b, n, array] = td::fori_loop(
          0, static_cast<int>(outer() % 30), body,
          std::tuple{x + td::zeros({2}), y, td::constant(1),
                     TensorArray(td::f32, {.size = 8, .element_shape = td::Shape{2}})});
      return std::tuple{a, b, n, array.stack()};
    };
    const auto f = td::function([&](const Tensor& x, const Tensor& y) { return program(x, y); });
    const Tensor x = td::full({}, 0.3f), y = td::full({}, -0.7, td::f64);
    const auto [a, b, n, array] = f(x, y);
    const auto [a1, b1, n1, array1] = program(x, y);
    ASSERT_TRUE(td::identical(a, a1) && td::identical(b, b1)) << "seed " << seed;
    ASSERT_TRUE(td::identical(n, n1) && td::identical(array, array1)) << "seed " << seed;
  }
}

}  // namespace
