// Gradients of what is looked up in a table are rows, wherever the lookup stands, and take no more
// bytes than the rows.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tests/unit/slopes.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

constexpr int64_t kRows = 50'000, kWidth = 16;
constexpr int64_t kTableBytes = kRows * kWidth * 4;

td::Variable table() {
  return {td::random::normal({kRows, kWidth}, {.key = td::random::Key(1)}), {.name = "table"}};
}

using Lookup = std::function<td::Tensor(const td::Tensor& ids)>;

// Rows in eager code, in a function and around one, all of them small, and right.
void expect_rows(const td::Variable& v, const Lookup& loss) {
  const td::Tensor ids = td::constant({3, 49'999, 3, 7});
  const auto by_table = [&](const auto& f, const td::Tensor& at) {
    td::GradientTape tape;
    const td::Gradient g = tape.gradient(f(at), v);
    EXPECT_TRUE(g.is_rows());
    return std::pair{g.rows().indices, g.rows().rows};
  };
  auto inside = td::function([&](const td::Tensor& at) { return by_table(loss, at); });
  auto compiled = td::function([&](const td::Tensor& at) { return loss(at); });
  const td::Tensor picked = td::gather(v, ids);
  const td::Tensor want = 2.0F * picked;
  const auto check = [&](const auto& find) {
    find();  // Compiles.
    const td::Bytes before = td::memory::current();
    td::memory::reset_peak();
    const auto [indices, rows] = find();
    EXPECT_LT(td::memory::peak().count - before.count, kTableBytes / 100);
    EXPECT_EQ(td::cast(indices, td::i32).template to_vector<int32_t>(),
              ids.template to_vector<int32_t>());
    EXPECT_TRUE(td::identical(rows, want)) << rows << want;
  };
  check([&] { return by_table(loss, ids); });
  check([&] { return inside(ids); });
  check([&] { return by_table(compiled, ids); });
  EXPECT_LT(inside.plan(ids).peak().count, kTableBytes / 100);
}

TEST(RowGradients, OfGather) {
  const td::Variable v = table();
  expect_rows(v, [&](const td::Tensor& ids) { return td::sum(td::square(td::gather(v, ids))); });
}

TEST(RowGradients, OfASubscript) {
  const td::Variable v = table();
  expect_rows(v, [&](const td::Tensor& ids) { return td::sum(td::square(v[ids])); });
  expect_rows(v, [&](const td::Tensor& ids) { return td::sum(td::square(v[{ids, td::all}])); });
}

TEST(RowGradients, OfALookupInsideRecompute) {
  const td::Variable v = table();
  const auto looked_up = td::recompute([&](const td::Tensor& ids) { return td::gather(v, ids); });
  expect_rows(v, [&](const td::Tensor& ids) { return td::sum(td::square(looked_up(ids))); });
  const auto twice = td::recompute([&](const td::Tensor& ids) { return looked_up(ids); });
  expect_rows(v, [&](const td::Tensor& ids) { return td::sum(td::square(twice(ids))); });
}

// In loops and maps each trip has its rows, in whatever order.
void expect_rows_of_trips(const td::Variable& v, const Lookup& loss) {
  const td::Tensor ids = td::constant({3, 49'999, 3, 7});
  const auto by_table = [&](const auto& f, const td::Tensor& at) {
    td::GradientTape tape;
    const td::Gradient g = tape.gradient(f(at), v);
    EXPECT_TRUE(g.is_rows());
    return std::pair{g.rows().indices, g.rows().rows};
  };
  auto inside = td::function([&](const td::Tensor& at) { return by_table(loss, at); });
  auto compiled = td::function([&](const td::Tensor& at) { return loss(at); });
  td::GradientTape tape;
  const td::Tensor whole = tape.gradient(td::sum(td::square(td::gather(v, ids))), v).dense();
  const auto check = [&](const auto& find) {
    find();  // Compiles.
    const td::Bytes before = td::memory::current();
    td::memory::reset_peak();
    const auto [indices, rows] = find();
    EXPECT_LT(td::memory::peak().count - before.count, kTableBytes / 100);
    EXPECT_EQ(indices.shape(), td::Shape({4}));
    const td::Tensor dense = td::scatter_add(td::zeros_like(whole), indices, rows);
    EXPECT_TRUE(td::identical(dense, whole));
  };
  check([&] { return by_table(loss, ids); });
  check([&] { return inside(ids); });
  check([&] { return by_table(compiled, ids); });
  const td::Bytes planned = inside.plan(ids).peak();
  EXPECT_LT(planned.count, kTableBytes / 100);
  EXPECT_EQ(inside.profile(ids).second.touched, planned);
}

TEST(RowGradients, OfALookupInALoop) {
  const td::MachineCode machine;
  const td::Variable v = table();
  for (const td::Save save : {td::Save::all(), td::Save::slots(2)}) {
    expect_rows_of_trips(v, [&](const td::Tensor& ids) {
      const auto [total, ys] = td::scan(
          [&](const td::Tensor& total, const td::Tensor& id) {
            const td::Tensor row = td::gather(v, id);
            return std::pair{total + td::sum(td::square(row)), total};
          },
          td::constant(0.0F), ids, {.save = save});
      return total;
    });
    expect_rows_of_trips(v, [&](const td::Tensor& ids) {
      return td::fori_loop(0, 2,
                           [&](const td::Tensor& i, const td::Tensor& total) {
                             return td::fori_loop(
                                 0, 2,
                                 [&](const td::Tensor& j, const td::Tensor& inner) {
                                   return inner +
                                          td::sum(td::square(v[td::gather(ids, 2 * i + j)]));
                                 },
                                 total, {.save = save});
                           },
                           td::constant(0.0F), {.save = save});
    });
  }
}

TEST(RowGradients, OfALookupInAMap) {
  const td::MachineCode machine;
  const td::Variable v = table();
  expect_rows_of_trips(v, [&](const td::Tensor& ids) {
    return td::sum(td::map_fn(
        [&](const td::Tensor& id) { return td::sum(td::square(td::gather(v, id))); }, ids));
  });
}

TEST(RowGradients, BecomeDenseWhereTheTableIsAlsoUsedWhole) {
  const td::Variable v(td::ones({4, 2}));
  const auto loss = [&](const td::Tensor& ids) {
    return td::sum(td::recompute([&](const td::Tensor& at) { return td::gather(v, at); })(ids)) +
           td::sum(td::square(v));
  };
  const auto by_v = [&](const auto& f) {
    td::GradientTape tape;
    const td::Gradient g = tape.gradient(f(td::constant({1, 1})), v);
    EXPECT_FALSE(g.is_rows());
    return g.dense().to_vector<float>();
  };
  const std::vector<float> want = {2, 2, 4, 4, 2, 2, 2, 2};
  EXPECT_EQ(by_v(loss), want);
  EXPECT_EQ(by_v(td::function([&](const td::Tensor& ids) { return loss(ids); })), want);
}

// ---- their length -------------------------------------------------------------------------------

td::Gradient rows_of(const td::Variable& v, const td::Tensor& ids) {
  td::GradientTape tape;
  return tape.gradient(td::sum(td::square(td::gather(v, ids))), v);
}

TEST(GlobalNorm, CountsARowOnceWhoseIndexComesTwice) {
  // A table with fewer rows than there are elements looked up, and one with more.
  for (const int64_t rows : {5, 1000}) {
    const td::Variable v(td::random::normal({rows, 3}, {.key = td::random::Key(2)}));
    const td::Tensor ids = td::constant({3, 1, 3, 3, -1});
    const auto norm = [&](const td::Tensor& at) { return td::global_norm({rows_of(v, at)}); };
    const td::Tensor want = td::global_norm({td::Gradient(rows_of(v, ids).dense())});
    EXPECT_FLOAT_EQ(norm(ids).item<float>(), want.item<float>());
    auto compiled = td::function([&](const td::Tensor& at) { return norm(at); });
    EXPECT_TRUE(td::identical(compiled(ids), norm(ids)));
  }
}

TEST(GlobalNorm, TakesNoMoreThanTheRows) {
  const td::MachineCode machine;
  const td::Variable v = table();
  const td::Tensor ids = td::zeros({64}, td::i32) + td::arange(64) * 2;
  auto norm = td::function([&](const td::Tensor& at) { return td::global_norm({rows_of(v, at)}); });
  EXPECT_LT(norm.plan(ids).peak().count, 8 * 64 * kWidth * 4);
  auto clipped = td::function([&](const td::Tensor& at) {
    const td::Gradient g = td::clip_by_global_norm(std::vector{rows_of(v, at)}, 1.0)[0];
    return std::pair{g.rows().indices, g.rows().rows};
  });
  EXPECT_LT(clipped.plan(ids).peak().count, 8 * 64 * kWidth * 4);
  EXPECT_NEAR(td::sum(td::square(clipped(ids).second)).item<float>(), 1.0, 1e-5);
}

TEST(GlobalNorm, SkipsWhatThereIsNoGradientBy) {
  const td::Variable used(td::constant({3.0, 4.0})), unused(td::ones({5}));
  td::GradientTape tape;
  const std::vector<td::Gradient> found =
      tape.gradient(td::sum(td::square(used)) / 2.0, std::vector{used, unused},
                    {.unconnected = td::Unconnected::none});
  EXPECT_EQ(td::global_norm(found).item<float>(), 5.0F);
  const std::vector<td::Gradient> clipped = td::clip_by_global_norm(found, 1.0);
  EXPECT_FALSE(clipped[1].has_value());
  EXPECT_FLOAT_EQ(clipped[0].dense().to_vector<float>()[1], 0.8F);
  const std::vector<td::Tensor> tensors =
      td::clip_by_global_norm(std::vector<td::Tensor>{td::constant({3.0, 4.0}), td::Tensor()}, 2.5);
  EXPECT_FALSE(tensors[1].has_value());
  EXPECT_EQ(tensors[0].to_vector<float>(), (std::vector<float>{1.5, 2}));
  EXPECT_EQ(td::global_norm({}).item<float>(), 0.0F);
}

TEST(ClipByNorm, HasAGradientAtZeroAndBelowAndAboveTheBound) {
  const td::Tensor weights = td::constant({2.0, 3.0});
  const auto f = [&](const td::Tensor& x) { return td::sum(td::clip_by_norm(x, 1.0) * weights); };
  const auto at = [&](double a, double b) {
    return td::grad(f)(td::constant({a, b})).to_vector<float>();
  };
  EXPECT_EQ(at(0, 0), (std::vector<float>{2, 3}));
  EXPECT_EQ(at(0.25, 0.5), (std::vector<float>{2, 3}));
  // Above: (w - u (u·w)) / |x| with u = x / |x|.
  EXPECT_NEAR(at(3, 4)[0], (2 - 0.6 * 3.6) / 5, 1e-6);
  EXPECT_EQ(td::function([&](const td::Tensor& x) { return td::grad(f)(x); })(td::zeros({2}))
                .to_vector<float>(),
            (std::vector<float>{2, 3}));
}

}  // namespace
