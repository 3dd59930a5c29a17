// Axes of size 0, in functions: what eager code gives, for sizes that are closed and open, and
// whichever size comes first.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

// Of x f64[n, 3] and b f64[3].
using Program = std::function<td::Tensor(const td::Tensor&, const td::Tensor&)>;
struct Case {
  const char* name;
  Program run;
};

td::Tensor rows_of(const td::Tensor& x, const td::Tensor& b) {
  td::Shape shape = x.shape();
  return td::broadcast_to(b, shape);
}

std::vector<Case> cases() {
  return {
      {"sum of x", [](const auto& x, const auto& b) { return td::sum(x) + td::sum(b); }},
      {"sum of stretched", [](const auto& x, const auto& b) { return td::sum(rows_of(x, b), 0); }},
      {"sum of stretched, all axes",
       [](const auto& x, const auto& b) { return td::sum(rows_of(x, b)); }},
      {"sum of x + b", [](const auto& x, const auto& b) { return td::sum(x + b, 0); }},
      {"mean of stretched",
       [](const auto& x, const auto& b) { return td::mean(rows_of(x, b), 0); }},
      {"mean of x * b", [](const auto& x, const auto& b) { return td::mean(x * b); }},
      {"prod of stretched",
       [](const auto& x, const auto& b) { return td::prod(rows_of(x, b), 0); }},
      {"prod of x + b", [](const auto& x, const auto& b) { return td::prod(x + b, 0); }},
      {"any and all of stretched",
       [](const auto& x, const auto& b) {
         const td::Tensor is = rows_of(x, b) > -100;
         return td::cast(td::any(is, 0), td::f64) + 2 * td::cast(td::all(is, 0), td::f64);
       }},
      {"count of nonzero",
       [](const auto& x, const auto& b) {
         return td::sum(td::cast(rows_of(x, b) != 0, td::f64), 0);
       }},
      {"x' x, no terms",
       [](const auto& x, const auto&) { return td::matmul(x, x, {.transpose_a = true}); }},
      {"stretched' stretched, no terms",
       [](const auto& x, const auto& b) {
         const td::Tensor rows = rows_of(x, b);
         return td::matmul(rows, rows, {.transpose_a = true});
       }},
      {"x x'", [](const auto& x, const auto&) { return td::matmul(x, x, {.transpose_b = true}); }},
      {"softmax and logsumexp along the other axis",
       [](const auto& x, const auto& b) {
         return td::sum(td::softmax(x + b, 1)) + td::sum(td::logsumexp(x + b, 1));
       }},
      {"logsumexp of stretched",
       [](const auto& x, const auto& b) { return td::sum(td::exp(rows_of(x, b)), 0); }},
      {"max along the other axis",
       [](const auto& x, const auto& b) { return td::sum(td::max(x + b, 1)); }},
      {"cumsum", [](const auto& x, const auto& b) { return td::sum(td::cumsum(x + b, 0), 0); }},
      {"variance", [](const auto& x, const auto& b) { return td::var(x + b, 0); }},
      {"norm", [](const auto& x, const auto& b) { return td::sum(td::square(rows_of(x, b))); }},
      {"concat", [](const auto& x,
                    const auto& b) { return td::sum(td::concat({x, rows_of(x, b), x}, 0), 0); }},
      {"take rows",
       [](const auto& x, const auto& b) {
         return td::sum(td::concat({x, td::reshape(b, {1, 3})}, 0)[td::constant({0})], 0);
       }},
      {"scan over rows",
       [](const auto& x, const auto& b) {
         return td::scan(
                    [&](const td::Tensor& c, const td::Tensor& row) {
                      return std::pair{c * 0.5 + td::sin(row + b), c};
                    },
                    b, x)
             .first;
       }},
      {"map over rows",
       [](const auto& x, const auto& b) {
         return td::sum(td::map_fn([&](const td::Tensor& row) { return td::sin(row * b); }, x), 0);
       }},
      {"vectorized_map over rows",
       [](const auto& x, const auto& b) {
         return td::sum(
             td::vectorized_map(
                 [&](const td::Tensor& row) { return td::sin(row * b) * td::sum(row); }, x),
             0);
       }},
      {"einsum", [](const auto& x, const auto& b) { return td::einsum("ni,nj->ij", x, x + b); }},
      {"outer sum",
       [](const auto& x, const auto& b) {
         return td::sum(td::expand_dims(x, 0) - td::expand_dims(rows_of(x, b), 1));
       }},
      {"mean squared error",
       [](const auto& x, const auto& b) { return td::mean(td::square(x - b)); }},
  };
}

// The same number, NaN as NaN.
void expect_same(const td::Tensor& got, const td::Tensor& want, const std::string& what) {
  EXPECT_EQ(got.shape(), want.shape()) << what;
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool both = std::isnan(a[i]) && std::isnan(b[i]);
    EXPECT_TRUE(both || std::abs(a[i] - b[i]) <= 1e-12 * (1 + std::abs(b[i])))
        << what << ": " << got << ", not " << want;
  }
}

td::Tensor argument(int64_t rows) {
  return td::random::normal({rows, 3}, {.dtype = td::f64, .key = td::random::Key(rows)});
}

// Value and gradient by b.
std::pair<td::Tensor, td::Tensor> value_and_slope(const Program& run, const td::Tensor& x,
                                                  const td::Tensor& b) {
  td::GradientTape tape;
  tape.watch(b);
  const td::Tensor y = run(x, b);
  const td::Tensor found = tape.gradient(td::sum(y), b);
  return {y, found.has_value() ? found : td::zeros_like(b)};
}

TEST(Empty, FunctionsGiveWhatEagerCodeGives) {
  const td::Tensor b = td::constant(std::vector<double>{0.5, -1, 2});
  for (const Case& each : cases()) {
    for (const bool jit : {true, false}) {
      for (const bool open : {true, false}) {
        for (const std::vector<int64_t>& order : {std::vector<int64_t>{4, 0}, {0, 4}}) {
          td::FunctionOptions options{.jit = jit};
          if (open)
            options.input_signature = {td::spec({td::open, 3}, td::f64), td::spec({3}, td::f64)};
          auto f =
              td::function([&](const td::Tensor& x,
                               const td::Tensor& b) { return value_and_slope(each.run, x, b); },
                           options);
          for (const int64_t rows : order) {
            const std::string what = td::cat(each.name, jit ? "" : ", no jit", open ? ", open" : "",
                                             ", ", order[0], " rows first, now ", rows);
            const auto [y, slope] = f(argument(rows), b);
            const auto [want, by_b] = value_and_slope(each.run, argument(rows), b);
            expect_same(y, want, what);
            expect_same(slope, by_b, what + ", gradient");
          }
        }
      }
    }
  }
}

// What a fold over nothing is, whoever computes it.
TEST(Empty, FoldsOverNothingAreTheirIdentity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Fold {
    const char* name;
    std::function<td::Tensor(const td::Tensor&)> fold;
    double want;
  };
  const Fold folds[] = {
      {"sum", [](const td::Tensor& x) { return td::sum(x, 0); }, 0},
      {"mean", [](const td::Tensor& x) { return td::mean(x, 0); }, nan},
      {"prod", [](const td::Tensor& x) { return td::prod(x, 0); }, 1},
      {"any", [](const td::Tensor& x) { return td::cast(td::any(x != 0, 0), td::f64); }, 0},
      {"all", [](const td::Tensor& x) { return td::cast(td::all(x != 0, 0), td::f64); }, 1},
      {"matmul", [](const td::Tensor& x) { return td::matmul(td::transpose(x), x)[0]; }, 0},
  };
  const td::Tensor number = td::constant(0.5, td::f64);
  for (const Fold& each : folds) {
    const auto of_stretched = [&](const td::Tensor& x) {
      return each.fold(td::broadcast_to(x, {0, 2}));
    };
    const td::Tensor want = td::full({2}, each.want, td::f64);
    expect_same(of_stretched(number), want, td::cat(each.name, ", eager"));
    for (const bool jit : {true, false})
      expect_same(td::function(of_stretched, {.jit = jit})(number), want,
                  td::cat(each.name, jit ? "" : ", no jit"));
  }
}

TEST(Empty, ABatchOfNothingMovesNoParameter) {
  for (const bool jit : {true, false}) {
    for (const bool open : {true, false}) {
      td::Variable w(td::ones({3}), {.name = "w"});
      td::nn::SGD sgd({.learning_rate = 0.1});
      td::FunctionOptions options{.jit = jit};
      if (open) options.input_signature = {td::spec({td::open, 3})};
      auto step = td::function(
          [&](const td::Tensor& x) {
            td::GradientTape tape;
            const td::Tensor loss = td::sum(x + w);
            sgd.minimize(tape, loss, w);
            return loss;
          },
          options);
      EXPECT_EQ(step(td::zeros({0, 3})).item<float>(), 0);
      EXPECT_TRUE(td::identical(w.value(), td::ones({3}))) << w.value();
      step(td::zeros({4, 3}));
      const td::Tensor moved = td::constant({0.6f, 0.6f, 0.6f});
      EXPECT_TRUE(td::identical(w.value(), moved)) << w.value();
      step(td::zeros({0, 3}));
      EXPECT_TRUE(td::identical(w.value(), moved)) << w.value();
    }
  }
}

}  // namespace
