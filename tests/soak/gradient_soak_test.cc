// Gradients taken very often: at 2N rounds the process holds what it held at N, to the byte, as
// soak_test.cc has it for calls.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "tests/soak/flat.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;
using td::testing::drawn;
using td::testing::expect_flat;
using td::testing::full_counts;

// A round of eager gradients is tens of ops.
int64_t many() { return full_counts() ? 100'000 : 400; }

td::Tensor loss_of(const td::Tensor& x, const td::Variable& w) {
  return td::sum(td::square(td::tanh(td::matmul(x, w))));
}

TEST(GradientSoak, Tapes) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  expect_flat(many(), [&] {
    td::GradientTape tape;
    tape.watch(x);
    const auto [by_x, by_w] = tape.gradient(loss_of(x, w), std::tuple{x, w});
    w.assign_sub(0.001 * by_w.dense());
  });
}

TEST(GradientSoak, TapesThatAreNeverAsked) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  expect_flat(many(), [&] {
    td::GradientTape tape;
    const td::Tensor loss = loss_of(x, w);
  });
}

TEST(GradientSoak, OneTapeUsedAnewEachTime) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  td::GradientTape tape;
  expect_flat(many(), [&] {
    tape.reset();
    const td::Gradient g = tape.gradient(loss_of(x, w), w);
  });
}

TEST(GradientSoak, PersistentTapes) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  expect_flat(many(), [&] {
    td::GradientTape tape({.persistent = true});
    const td::Tensor loss = loss_of(x, w);
    const td::Gradient once = tape.gradient(loss, w), twice = tape.gradient(loss, w);
    const td::Tensor sum = once.dense() + twice.dense();
    tape.release();
  });
}

// Asked again and again, a tape holds what it held.
TEST(GradientSoak, APersistentTapeAskedOften) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  td::GradientTape tape({.persistent = true});
  const td::Tensor loss = loss_of(x, w);
  tape.stop();
  expect_flat(many(), [&] { const td::Gradient g = tape.gradient(loss, w); });
}

TEST(GradientSoak, TapesInTapes) {
  const td::Tensor x = drawn({6}, 2);
  const auto f = [](const td::Tensor& x) { return td::sum(td::exp(x) * x * x); };
  expect_flat(many() / 5, [&] {
    td::GradientTape outermost;
    outermost.watch(x);
    td::GradientTape outer;
    outer.watch(x);
    td::GradientTape inner;
    inner.watch(x);
    const td::Tensor first = inner.gradient(f(x), x);
    const td::Tensor second = outer.gradient(first, x);
    const td::Tensor third = outermost.gradient(second, x);
  });
}

TEST(GradientSoak, FunctionsOfFunctions) {
  const td::Tensor x = drawn({6}, 2), v = drawn({6}, 3);
  const auto f = [](const td::Tensor& x) { return td::sum(td::sin(x) * x); };
  expect_flat(many() / 5, [&] {
    td::hvp(f, x, v);
    const auto [value, pullback] = td::vjp(f, x);
    pullback(td::ones({}));
    td::jacobian([](const td::Tensor& x) { return td::sin(x); })(x);
  });
}

TEST(GradientSoak, CallsOfFunctionsUnderATape) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Variable count(td::zeros({}), {.name = "count"});
  const td::Tensor x = drawn({5, 8}, 2);
  const auto f = td::function([=](const td::Tensor& x) {
    count.assign_add(1);
    return loss_of(x, w) + count;
  });
  expect_flat(many(), [&] {
    td::GradientTape tape;
    const td::Gradient g = tape.gradient(f(x), w);
  });
}

TEST(GradientSoak, StepsInAFunction) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  const auto step = td::function([=](const td::Tensor& x) {
    td::GradientTape tape;
    const td::Tensor loss = loss_of(x, w);
    w.assign_sub(0.001 * tape.gradient(loss, w).dense());
    return loss;
  });
  expect_flat(10 * many(), [&] { step(x); });
}

TEST(GradientSoak, RowsOfATable) {
  const td::Variable table(drawn({100, 4}), {.name = "table"});
  const td::Tensor ids = td::constant({3, 97, 3});
  expect_flat(many(), [&] {
    td::GradientTape tape;
    const td::Gradient g = tape.gradient(td::sum(td::square(td::gather(table, ids))), table);
    td::clip_by_global_norm(std::vector{g}, 1.0);
  });
}

TEST(GradientSoak, CustomGradientsAndRecompute) {
  const td::Variable w(drawn({8, 8}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  const auto reversed = td::custom_gradient([](const td::Tensor& x) {
    const td::Tensor y = td::exp(x);
    return std::pair{y, [y](const td::Tensor& dy) { return -dy * y; }};
  });
  const auto block = td::recompute([&](const td::Tensor& h) { return td::tanh(td::matmul(h, w)); });
  expect_flat(many() / 2, [&] {
    td::GradientTape tape;
    tape.watch(x);
    const td::Tensor loss = td::sum(reversed(block(block(x))));
    const auto all = tape.gradient(loss, std::tuple{x, w});
  });
}

TEST(GradientSoak, ControlFlow) {
  const td::Tensor x = drawn({6}, 2);
  const auto f = [](const td::Tensor& x) {
    const td::Tensor looped = td::fori_loop(
        0, 3, [](const td::Tensor&, const td::Tensor& c) { return td::tanh(c * 1.5); }, x);
    return td::sum(td::map_fn([](const td::Tensor& e) { return e * e; }, looped));
  };
  const auto compiled = td::function([&](const td::Tensor& x) { return td::grad(f)(x); });
  expect_flat(many() / 5, [&] {
    td::grad(f)(x);
    compiled(x);
  });
}

// What is thrown while a tape records, or while it goes back, leaves nothing behind.
TEST(GradientSoak, ThrownInTheMiddleOfATape) {
  const td::Variable w(drawn({8, 4}), {.name = "w"});
  const td::Tensor x = drawn({5, 8}, 2);
  const auto broken = td::custom_gradient([](const td::Tensor& x) {
    return std::pair{x * 2.0, [](const td::Tensor& dy) -> td::Tensor {
                       if (dy.rank() < 9) throw std::runtime_error("broken");
                       return dy;
                     }};
  });
  const std::vector<std::function<void()>> ways = {
      [&] {
        td::GradientTape tape;
        const td::Tensor h = td::tanh(td::matmul(x, w));
        td::matmul(h, w);  // Sizes do not agree.
      },
      [&] {
        td::GradientTape outer;
        td::GradientTape tape({.persistent = true});
        tape.watch(x);
        tape.gradient(td::sum(broken(td::exp(x))), x);
      },
      [&] {
        td::GradientTape tape;
        tape.gradient(loss_of(x, w), w);
        tape.gradient(loss_of(x, w), w);  // It was used already.
      },
      [&] {
        td::grad([](const td::Tensor& x) -> td::Tensor {
          const td::Tensor y = td::exp(x);
          throw std::runtime_error("stopped");
        })(x);
      },
      [&] { td::function([&](const td::Tensor& x) { return td::grad(broken)(td::sum(x)); })(x); }};
  for (const auto& way : ways) {
    int64_t failed = 0;
    const int64_t rounds = &way == &ways.back() ? many() / 10 : many();
    expect_flat(rounds, [&] {
      try {
        way();
      } catch (const std::runtime_error&) {
        ++failed;
      }
    });
    EXPECT_EQ(failed, 2 + 2 * rounds);
  }
}

}  // namespace
