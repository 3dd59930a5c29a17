// Where a function computes what is only a part of a value: never outside the bytes that are the
// part's own, however few bytes more the value has.
#include <gtest/gtest.h>

#include <functional>

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

}  // namespace
