// The messages of gradients, with their exact text: the same in eager code and in functions.
#include "tests/errors/expect_error.h"
#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

// In eager code and in a function.
void expect_both(const std::function<void(const Tensor&)>& call, const std::string& text,
                 td::Source at = td::Source::here()) {
  expect_error([&] { call(td::ones({2})); }, text, at);
  const auto f = td::function([&](const Tensor& x) { call(x); });
  expect_error([&] { f(td::ones({2})); }, text, at);
}

Tensor squares(const Tensor& x) { return td::sum(x * x); }

TEST(GradientErrors, OfTapesWithoutRecord) {
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(x);
        const Tensor y = squares(x);
        tape.gradient(y, x);
        tape.gradient(y, x);
      },
      "gradient: this tape was already used, and its saved values are released\n"
      "  at @\n  ask for all sources in one call, or make the tape {.persistent = true}");
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(x);
        const Tensor y = squares(x);
        tape.release();
        tape.gradient(y, x);
      },
      "gradient: this tape was released\n  at @\n  call gradient() before release()");
}

TEST(GradientErrors, OfTapesThatLeaveTheirTrace) {
  std::optional<td::GradientTape> tape;
  const auto f = td::function([&](const Tensor& x) {
    tape.emplace();
    return squares(x);
  });
  const Tensor y = f(td::ones({2}));
  expect_error([&] { tape->gradient(y, y); },
               "gradient: this tape was made inside the function and used outside it\n"
               "  at @\n  call gradient() inside, and return the gradients");
}

TEST(GradientErrors, OfTypesWithoutGradients) {
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(td::cast(x, td::i32));
      },
      "watch: only floats have gradients, got i32[2]\n"
      "  at @\n  cast it to a float dtype first, or do not watch it: it is a constant then");
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(x);
        tape.gradient(td::cast(x, td::i32), x);
      },
      "gradient: the target must be floats, got i32[2]\n  at @\n  cast it to a float dtype");
  expect_both([](const Tensor& x) { td::grad([](const Tensor& v) { return v * v; })(x); },
              "grad: the function must return one float, got f32[2]\n"
              "  at @\n  reduce it, td::sum(y), or use td::vjp or td::jacobian");
  expect_both(
      [](const Tensor& x) {
        td::grad([](const Tensor& v) { return td::cast(td::sum(v), td::i32); })(x);
      },
      "grad: the function must return one float, got i32[]\n  at @\n  cast it to a float dtype");
  expect_both(
      [](const Tensor& x) { td::jvp([](const Tensor& v) { return td::cast(v, td::i32); }, x, x); },
      "jvp: the results of f must be floats, got i32[2]\n"
      "  at @\n  capture other values instead of passing them, and do not return them");
}

TEST(GradientErrors, OfOutputGradients) {
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(x);
        tape.gradient(x * x, x, {.output_gradients = std::vector{x, x}});
      },
      "gradient: 2 output gradients for 1 targets\n"
      "  at @\n  give one for each tensor of the target, or none");
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(x);
        tape.gradient(x * x, x, {.output_gradients = td::ones({3})});
      },
      "gradient: the target is f32[2], and its output gradient is f32[3]\n"
      "  at @\n  give it the shape of the target");
}

TEST(GradientErrors, OfSourcesThatAreNotConnected) {
  expect_both(
      [](const Tensor& x) {
        td::GradientTape tape;
        tape.watch(x);
        tape.gradient(td::sum(td::ones({3})), x, {.unconnected = td::Unconnected::error});
      },
      "gradient: the target does not depend on source 0, f32[2]\n  at @\n  watch it before it is "
      "used, or pass {.unconnected = td::Unconnected::zero}");
}

TEST(GradientErrors, OfDenseGradientsAskedForRows) {
  const td::Variable w(td::ones({2}));
  td::GradientTape tape;
  const td::Gradient gradient = tape.gradient(td::sum(w * w), w);
  expect_error([&] { gradient.rows(); },
               "rows: this gradient is dense\n  at @\n  check is_rows() first, or use dense()");
}

// Eager code names the line that asks for the gradient, and in brackets the line that made the
// function. A trace makes the gradient function's nodes where the function is called.
void expect_of_custom(const std::function<Tensor(const Tensor&)>& f, const std::string& problem,
                      const std::string& remedy) {
  const auto gradient =
      td::grad([&](const Tensor& v) { return f(v); }, td::Source::here("loss.cc", 7));
  EXPECT_EQ(td::error_of([&] { gradient(td::ones({2})); }),
            problem + "\n  at loss.cc:7 [own.cc:3]\n  " + remedy);
  EXPECT_EQ(td::error_of([&] { td::function<Tensor(Tensor)>(gradient)(td::ones({2})); }),
            problem + "\n  at own.cc:3\n  " + remedy);
}

TEST(GradientErrors, OfCustomGradients) {
  const td::Source made = td::Source::here("own.cc", 3);
  const auto with_wrong_type = [](const Tensor& x) {
    return std::pair{td::sum(x), [](const Tensor& dy) { return dy; }};
  };
  expect_of_custom(td::custom_gradient(with_wrong_type, made),
                   "custom_gradient: the gradient of an argument of type f32[2] is f32[]",
                   "return a gradient of the same dtype and shape as the argument");
  const auto with_two = [](const Tensor& x) {
    return std::pair{td::sum(x), [](const Tensor& dy) { return std::vector<Tensor>{dy, dy}; }};
  };
  expect_of_custom(
      td::custom_gradient(with_two, made),
      "custom_gradient: the gradient function returned 2 gradients, the arguments have 1 tensors",
      "return one for each tensor, in order; a std::tuple if there are several");
  const td::Variable w(td::ones({2}), {.name = "w"});
  const auto without_variable = [w](const Tensor& x) {
    return std::pair{td::sum(x * w), [](const Tensor& dy) { return td::ones({2}) * dy; }};
  };
  expect_of_custom(
      td::custom_gradient(without_variable, made),
      "custom_gradient: the function reads trainable Variable \"w\", and its gradient function "
      "returns no gradient for it",
      "return std::pair{dx, td::VariableGradients}; td::vjp's pullback(dy, variables) gives both");
}

}  // namespace
