// Where a function computes what is only a part of a value: never outside the bytes that are the
// part's own, however few bytes more the value has.
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

namespace {

using Tensors = std::vector<Tensor>;
using Body = std::function<Tensors(const Tensor&)>;

void expect_bits_of_eager_code(const Body& body, const Tensor& x, const std::string& what) {
  const Tensors expected = body(x);
  for (const bool jit : {true, false}) {
    const Tensors got = td::function(body, {.jit = jit})(x);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(td::identical(expected[i], got[i]))
          << what << ", result " << i << (jit ? "" : ", without jit") << ": " << expected[i]
          << "\nbecame " << got[i];
  }
}

Tensor first(const Tensor& x, int64_t count) { return x[td::Slice{.end = count}]; }

// What a trip computes: `part` shows the first elements of `whole`, which is read besides.
struct Trip {
  Tensor whole, part;
};
Trip trip_of(const Tensor& row, int64_t count) {
  const Tensor whole = td::cumsum(row, 0);
  return {whole, first(whole, count)};
}

TEST(Placement, PutsOnlyAPartOfAValueIntoTheSlotOfATrip) {
  // 1 2, 3 4, 5 6 add up to 1 2, 4 6, 9 12; then 7 8, ...
  const Tensor x = td::reshape(td::arange(1, 19, 1, td::f64), {3, 3, 2});
  const auto body = [](const Tensor& c, const Tensor& row) {
    const Tensor t = td::cumsum(row, 0);
    return std::pair{c + 1, Tensors{t[0], t[1] + t[2]}};
  };
  for (const bool reverse : {false, true}) {
    const auto f = td::function([&](const Tensor& given) {
      const auto parts = td::scan(body, 0.0, given, {.reverse = reverse}).second;
      return parts[0] - parts[1];
    });
    EXPECT_EQ(f(x).to_vector<double>(), (std::vector<double>{-12, -16, -36, -40, -60, -64}));
  }
}

TEST(Placement, KeepsTripsApartAtEverySize) {
  for (const int64_t columns : {2, 3, 5, 8, 15, 16, 17, 33}) {
    const Tensor x = td::random::normal({4, columns}, {.key = td::random::Key(1)});
    for (int64_t count = 1; count < columns; count += 1 + columns / 5) {
      const std::string what = td::cat(count, " of ", columns);
      const auto scanned = [&](const Tensor& given, bool reverse) -> Tensors {
        const auto [last, stacked] = td::scan(
            [&](const Tensor& c, const Tensor& row) {
              const auto [whole, part] = trip_of(row + c, count);
              return std::pair{td::sum(whole), part};
            },
            Tensor(0.0f), given, {.reverse = reverse});
        return {last, stacked};
      };
      expect_bits_of_eager_code([&](const Tensor& g) { return scanned(g, false); }, x, what);
      expect_bits_of_eager_code([&](const Tensor& g) { return scanned(g, true); }, x, what);
      const auto one = [&](const Tensor& row) {
        const auto [whole, part] = trip_of(row, count);
        return Tensors{part, td::max(whole)};
      };
      expect_bits_of_eager_code(
          [&](const Tensor& g) { return td::map_fn(one, g, {.parallel_iterations = 3}); }, x, what);
      expect_bits_of_eager_code(
          [&](const Tensor& g) { return td::vectorized_map(one, g, {.chunk = 2}); }, x, what);
    }
  }
}

// States that are stacked are made in the slots of the stack.
TEST(Placement, PutsOnlyAPartOfAValueIntoTheSlotOfTheNextState) {
  for (const int64_t count : {1, 3, 15}) {
    for (const bool reverse : {false, true}) {
      const auto states = [&](const Tensor& x) -> Tensors {
        const auto [last, stacked] = td::scan(
            [&](const Tensor& h, const Tensor& row) {
              const Tensor whole = td::cumsum(row + td::sum(h), 0);
              return std::pair{first(whole, count), Tensors{h, td::sum(whole)}};
            },
            td::zeros({count}), x, {.reverse = reverse});
        return {last * 2, stacked[0], stacked[1]};  // The loop is free to choose its place.
      };
      expect_bits_of_eager_code(states, td::random::normal({5, 16}, {.key = td::random::Key(2)}),
                                td::cat(count, " of 16"));
    }
  }
}

TEST(Placement, GivesTheGradientOfCellsThatJoinAndSplit) {
  const auto normal = [](const td::Shape& shape, uint64_t key) {
    return td::random::normal(shape, {.key = td::random::Key(key)}) * 0.5;
  };
  const Tensor xs = normal({6, 4}, 1), joined = normal({12, 8}, 2), split = normal({8, 16}, 3);
  for (const bool reverse : {false, true}) {
    for (const td::Save& save : {td::Save::all(), td::Save::every(2), td::Save::slots(2)}) {
      const auto of_join = [&](const Tensor& x, const Tensor& w) {
        const auto cell = [&](const Tensor& h, const Tensor& row) {
          const Tensor next = td::tanh(td::matmul(td::concat({row, h}), w));
          return std::pair{next, next};
        };
        return td::sum(td::square(
            td::scan(cell, td::zeros({8}), x, {.reverse = reverse, .save = save}).second));
      };
      const auto of_split = [&](const Tensor& x, const Tensor& w) {
        const auto cell = [&](const Tensor& h, const Tensor& row) {
          const auto parts = td::split(td::tanh(td::matmul(h, w) + td::sum(row)), 2);
          return std::pair{parts[1], parts[0]};
        };
        return td::sum(td::square(
            td::scan(cell, td::ones({8}), x, {.reverse = reverse, .save = save}).second));
      };
      expect_bits_of_eager_code(
          [&](const Tensor& x) -> Tensors {
            const auto [dx, dw] = td::grad<0, 1>(of_join)(x, joined);
            return {dx, dw};
          },
          xs, "join");
      expect_bits_of_eager_code(
          [&](const Tensor& x) -> Tensors {
            const auto [dx, dw] = td::grad<0, 1>(of_split)(x, split);
            return {dx, dw};
          },
          xs, "split");
    }
  }
}

// The bytes behind a Variable are somebody else's: here those of the array it was made of.
TEST(Placement, AssignsAPartOfAValueInsideTheVariable) {
  const Tensor x = td::random::normal({16}, {.key = td::random::Key(4)});
  for (const bool branches : {false, true}) {
    td::Variable v(td::zeros({15}));
    const auto f = td::function([&](const Tensor& given) {
      const Tensor whole = td::cumsum(given + td::sum(v.value()), 0);
      const Tensor chosen = branches
                                ? td::cond(
                                      td::sum(given) > -1e9, [&] { return td::cumsum(whole, 0); },
                                      [&] { return whole; })
                                : whole;
      v.assign(first(chosen, 15));
      return td::sum(chosen);
    });
    const Tensor sum = f(x);
    const Tensor whole = branches ? td::cumsum(td::cumsum(x, 0), 0) : td::cumsum(x, 0);
    EXPECT_TRUE(td::identical(v.value(), first(whole, 15)));
    EXPECT_TRUE(td::identical(sum, td::sum(whole)));
  }
}

// A view that begins behind the start of its storage has fewer bytes than its storage.
TEST(Placement, TakesNoPartOfAStorageForAllOfIt) {
  const auto tail = [] {
    const Tensor whole = td::arange(0, 16, 1, td::f32);
    return whole[td::Slice{.begin = 1}];
  };
  td::Variable v(tail());
  v.assign_add(1.0f);
  EXPECT_TRUE(td::identical(v.value(), td::arange(2, 17, 1, td::f32)));
  const auto twice = td::function([](const Tensor& x) { return x * 2; });
  EXPECT_TRUE(td::identical(twice(tail()), td::arange(2, 32, 2, td::f32)));
}

// ---- What is put together -----------------------------------------------------------------------

TEST(Placement, StacksTenThousandTensorsInTheBytesOfTheStack) {
  const td::MachineCode machine;
  constexpr int64_t count = 10'000;
  const Tensor x = td::arange(0, 8, 1, td::f32);
  for (const bool jit : {true, false}) {
    const auto stacked = td::function(
        [](const Tensor& given) {
          Tensors list;
          for (int64_t i = 0; i < count; ++i) list.push_back(given + static_cast<float>(i));
          return td::stack(list);
        },
        {.jit = jit});
    EXPECT_EQ(stacked.plan(x).peak().count, count * 8 * 4);
    const Tensor expected = td::expand_dims(td::arange(0, count, 1, td::f32), 1) + x;
    EXPECT_TRUE(td::identical(stacked(x), expected));
  }
}

TEST(Placement, TakesTenThousandArgumentsResultsVariablesAndTerms) {
  constexpr int64_t count = 10'000;
  Tensors given;
  std::vector<td::Variable> variables;
  for (int64_t i = 0; i < count; ++i) {
    given.push_back(Tensor(static_cast<float>(i)));
    variables.emplace_back(td::zeros({}));
  }
  const auto all = td::function([&](const Tensors& terms) {
    Tensor sum = terms[0];
    for (int64_t i = 1; i < count; ++i) sum = sum + terms[static_cast<size_t>(i)];
    Tensors results = {sum, td::concat({td::stack(terms), td::stack(terms)})};
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      variables[at].assign_add(terms[at] * 2);
      results.push_back(terms[at] + 1);
    }
    return results;
  });
  const Tensors results = all(given);
  float sum = 0;
  for (int64_t i = 1; i < count; ++i) sum += static_cast<float>(i);
  EXPECT_EQ(results[0].item<float>(), sum);
  const Tensor once = td::arange(0, count, 1, td::f32);
  EXPECT_TRUE(td::identical(results[1], td::concat({once, once})));
  for (int64_t i = 0; i < count; i += 999) {
    EXPECT_EQ(results[static_cast<size_t>(2 + i)].item<float>(), static_cast<float>(i + 1));
    EXPECT_EQ(variables[static_cast<size_t>(i)].value().item<float>(), static_cast<float>(2 * i));
  }
}

// Operands of every kind, along every axis: computed, given, literal, twice, read elsewhere, views,
// put together before; and what becomes of the whole.
TEST(Placement, PutsOperandsOfEveryKindTogether) {
  const Tensor x = td::random::normal({4, 6}, {.key = td::random::Key(5)});
  const Tensor square = td::random::normal({6, 6}, {.key = td::random::Key(6)});
  td::Variable kept(td::zeros({8, 6}));
  for (const int64_t axis : {0, 1}) {
    const auto along = [axis](const Tensors& list) { return td::concat(list, axis); };
    const auto body = [&](const Tensor& g) -> Tensors {
      const Tensor wave = td::sin(g), once = g * 3 - 1, product = td::matmul(g, square);
      const Tensor running = td::cumsum(g + 2, axis), turned = td::flip(td::exp(-td::abs(g)), 0);
      const Tensor twice = td::tanh(g), inner = along({g + 4, td::sqrt(td::abs(g) + 1), g});
      const Tensor loop = td::fori_loop(
          0, 3, [](const Tensor&, const Tensor& c) { return c * 0.5 + 1; }, td::cos(g));
      const Tensor whole = along({g, once, td::full({4, 6}, 2.5), wave, product, running, turned,
                                  twice, twice, inner, loop, td::zeros({4, 6})});
      const Tensor between = along({td::sign(g), td::relu(g)}) * 2;
      const Tensor rows = td::stack({td::exp(g[0]), td::log(td::abs(g[1]) + 1), g[2]}, axis);
      return {whole,
              wave + 1,
              td::sum(along({td::square(g), g - 1, td::square(g + 1)}), axis),
              between,
              rows,
              td::pad(along({g * 5, g * 6}), {{1, 2}, {0, 3}}),
              along({td::pad(g * 7, {{1, 0}, {0, 0}}), td::ones({5, 6})})};
    };
    expect_bits_of_eager_code(body, x, td::cat("axis ", axis));
  }
  const auto assigned = td::function([&](const Tensor& g) {
    kept.assign(td::concat({g * 2, g + td::sum(kept.value())}));
    return td::sum(kept.value());
  });
  assigned(x);
  EXPECT_TRUE(td::identical(kept.value(), td::concat({x * 2, x + 0})));
  assigned(x);
  const Tensor before = td::sum(td::concat({x * 2, x + 0}));
  EXPECT_TRUE(td::identical(kept.value(), td::concat({x * 2, x + before})));
}

// Nothing waits in the whole where that takes more bytes than putting it together at the end.
TEST(Placement, TakesNoBytesEarlyThatAreNeededOnTheWay) {
  // Sums of a value that is gone by the time the other part, much larger, is made.
  const auto peak_of = [](bool joined) {
    return td::function([joined](const Tensor& x) {
             const Tensor first = td::cumsum(td::exp(x), 0);
             const Tensor sums = td::sum(first, 0, td::keepdims);
             const Tensor last = td::cumsum(td::cumsum(first, 1), 0)[td::Slice{.end = 128}] * 2;
             return joined ? td::sum(td::cumsum(td::concat({sums, last}), 0))
                           : td::sum(td::cumsum(last, 0)) + td::sum(sums);
           })
        .plan(td::spec({256, 1024}))
        .peak()
        .count;
  };
  EXPECT_LE(peak_of(true), peak_of(false) + 8 * 1024);
}

TEST(Placement, ChecksMoreValuesThanAStepOfTheProgramTakes) {
  const auto checked = td::function([](const Tensor& x) {
    Tensors values;
    for (int i = 0; i < 100; ++i) values.push_back(x + i);
    td::assert_that(x > 0, "positive", values);
    return x * 2;
  });
  EXPECT_EQ(checked(Tensor(3.0f)).item<float>(), 6);
  try {
    checked(Tensor(-1.0f));
    ADD_FAILURE() << "-1 is positive";
  } catch (const td::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("98"), std::string::npos) << error.what();
  }
}

}  // namespace
