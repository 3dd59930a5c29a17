#include "tidemark/emit/llvm/jit.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <thread>

#include "problem.h"
#include "tidemark/base/text.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

using Columns = BufferRef::Columns;
constexpr DType kAll[] = {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean};
static_assert(std::size(kAll) == kDTypes);

// Compiles all the problems' nests at once and compares each with the naive evaluator.
void expect_same(const std::vector<Problem>& problems) {
  std::vector<Nest> nests;
  for (const Problem& problem : problems) {
    verify(problem.nest);
    nests.push_back(problem.nest);
  }
  for (const device::Isa isa : isas()) {
    const auto kernels = compile_nests(nests, isa);
    for (size_t i = 0; i < problems.size(); ++i) {
      ASSERT_NE(kernels[i], nullptr) << to_text(nests[i]);
      ASSERT_EQ(difference(problems[i], *kernels[i]), "") << "isa " << static_cast<int>(isa);
    }
  }
}

// One nest on many sizes.
void expect_same(const Problem& base, const std::vector<std::array<int64_t, 3>>& sizes) {
  verify(base.nest);
  for (const device::Isa isa : isas()) {
    const auto kernel = compile_nest(base.nest, isa);
    ASSERT_NE(kernel, nullptr) << to_text(base.nest);
    for (const auto& [rows, steps, columns] : sizes) {
      Problem problem = base;
      problem.rows = rows;
      problem.steps = steps;
      problem.columns = columns;
      ASSERT_EQ(difference(problem, *kernel), "") << "isa " << static_cast<int>(isa);
    }
  }
}

Nest one_op(ExprOp op, DType dtype, DType operand) {
  NestBuilder b;
  int32_t in[3] = {-1, -1, -1};
  const int operands = arity(op);
  for (int i = 0; i < operands; ++i) {
    const bool is_mask = op == ExprOp::select && i == 0;
    in[i] = b.load(b.buffer(is_mask ? boolean : operand));
  }
  const int32_t out = b.output(dtype);
  b.nest.sweeps.push_back({.stores = {{out, b.op(op, dtype, in[0], in[1], in[2])}}, .folds = {}});
  return b.nest;
}

TEST(Jit, HasTheBitsOfEveryOpOnEveryDType) {
  std::vector<Problem> problems;
  for (int op = static_cast<int>(ExprOp::add); op < kExprOps; ++op) {
    for (const DType operand : kAll) {
      for (const DType dtype : {operand, boolean}) {
        if (!is_defined(static_cast<ExprOp>(op), dtype, operand)) continue;
        if (dtype == boolean && operand != boolean && op < static_cast<int>(ExprOp::equal))
          continue;
        problems.push_back({.nest = one_op(static_cast<ExprOp>(op), dtype, operand),
                            .columns = 1000,
                            .seed = problems.size()});
      }
    }
  }
  expect_same(problems);
}

TEST(Jit, CastsEveryDTypeToEveryOther) {
  std::vector<Problem> problems;
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      problems.push_back(
          {.nest = one_op(ExprOp::cast, to, from), .columns = 3000, .seed = problems.size()});
    }
  }
  expect_same(problems);
}

TEST(Jit, TakesEveryLayout) {
  std::vector<std::array<int64_t, 3>> sizes;
  for (int64_t columns = 0; columns <= 130; ++columns) sizes.push_back({2, 1, columns});
  for (const DType dtype : {f32, f64, u8, i64}) {
    for (const Columns x : {Columns::unit, Columns::repeat, Columns::strided}) {
      for (const Columns out : {Columns::unit, Columns::strided}) {
        NestBuilder b;
        const int32_t left = b.load(b.buffer(dtype, x));
        const int32_t right = b.load(b.buffer(dtype));
        const int32_t sum = b.op(ExprOp::add, dtype, left, right);
        b.nest.sweeps.push_back({.stores = {{b.output(dtype, out), sum}}, .folds = {}});
        for (const int64_t stride : {3, 2, -2}) {
          expect_same({.nest = b.nest, .column_elements = stride}, sizes);
        }
      }
    }
  }
}

// Code of a heavy body serves full and partial vectors.
TEST(Jit, TakesEveryLayoutInHeavyBodies) {
  std::vector<std::array<int64_t, 3>> sizes;
  for (const int64_t columns : {0, 1, 15, 16, 17, 31, 63, 64, 65, 130})
    sizes.push_back({2, 1, columns});
  for (const DType dtype : {f32, f64, u8}) {
    for (const Columns x : {Columns::unit, Columns::strided}) {
      NestBuilder b;
      int32_t sum = b.load(b.buffer(dtype, x));
      const int32_t right = b.load(b.buffer(dtype));
      for (int i = 0; i < 14; ++i) sum = b.op(ExprOp::add, dtype, sum, i % 2 == 0 ? right : sum);
      b.nest.sweeps.push_back({.stores = {{b.output(dtype, x), sum}}, .folds = {}});
      for (const int64_t stride : {3, 2}) {
        expect_same({.nest = b.nest, .column_elements = stride}, sizes);
      }
    }
  }
}

TEST(Jit, RunsRowsStepsAndColumns) {
  NestBuilder b;
  b.nest.order = Nest::Order::columns;
  const int32_t x = b.load(b.buffer(f32));
  const int32_t y = b.load(b.buffer(f32, Columns::repeat));
  const int32_t i = b.op(ExprOp::cast, f32, b.leaf(ExprOp::index, i64));
  const int32_t sum = b.op(ExprOp::add, f32, b.op(ExprOp::multiply, f32, x, y), i);
  b.nest.sweeps.push_back({.stores = {{b.output(f32), sum}}, .folds = {}});
  expect_same({.nest = b.nest},
              {{3, 4, 5}, {1, 1, 1}, {0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {2, 7, 33}});
}

TEST(Jit, CountsWithScalarsAndIndices) {
  NestBuilder b;
  const int32_t i = b.leaf(ExprOp::index, i64);
  const int32_t s = b.leaf(ExprOp::scalar, i64, 1);
  b.nest.sweeps.push_back(
      {.stores = {{b.output(i64), b.op(ExprOp::multiply, i64, i, s)}}, .folds = {}});
  expect_same({.nest = b.nest}, {{3, 1, 70}, {1, 1, 7}});
}

// Linear in the index, in any form, wrapping in 64 and in 32 bits; and what is not.
TEST(Jit, CountsInSteps) {
  for (const Nest::Order order : {Nest::Order::lanes, Nest::Order::columns}) {
    NestBuilder b;
    b.nest.order = order;
    const int32_t i = b.leaf(ExprOp::index, i64);
    const int32_t start = b.leaf(ExprOp::scalar, i64, 0), step = b.leaf(ExprOp::scalar, i64, 1);
    const int32_t far = b.leaf(ExprOp::constant, i64);
    b.nest.exprs.back().bits = 0x8000'0000'ffff'fff3U;
    const auto times = [&](int32_t x, int32_t y) { return b.op(ExprOp::multiply, i64, x, y); };
    const auto plus = [&](int32_t x, int32_t y) { return b.op(ExprOp::add, i64, x, y); };
    std::vector<Store> stores;
    for (const int32_t each :
         {plus(start, times(i, step)), plus(times(step, i), start), times(plus(i, far), step),
          plus(times(i, i), start), times(far, times(start, plus(far, i))), plus(i, i),
          b.op(ExprOp::subtract, i64, start, times(far, i))}) {
      stores.push_back({b.output(i64), each});
      stores.push_back({b.output(i32), b.op(ExprOp::cast, i32, each)});
      stores.push_back({b.output(u8), b.op(ExprOp::cast, u8, each)});
      stores.push_back({b.output(f32), b.op(ExprOp::cast, f32, each)});
    }
    b.nest.sweeps.push_back({.stores = stores, .folds = {}});
    expect_same({.nest = b.nest}, {{3, 1, 70}, {1, 1, 7}, {2, 1, 1000}});
  }
}

Nest fold_nest(Nest::Order order, Monoid monoid, DType dtype, Columns columns = Columns::unit) {
  NestBuilder b;
  b.nest.order = order;
  b.nest.cells = 1;
  const int32_t x = b.load(b.buffer(dtype, columns));
  b.nest.sweeps.push_back({.stores = {}, .folds = {{0, x, monoid}}});
  b.nest.finish.push_back({b.output(dtype), b.leaf(ExprOp::cell, dtype)});
  return b.nest;
}

TEST(Jit, FoldsAlongLanesInTheDefinedOrder) {
  std::vector<std::array<int64_t, 3>> sizes;
  for (const int64_t columns : {0,   1,   2,   15,  16,   17,   31,   33,   63,   64,   65,   66,
                                100, 127, 128, 130, 4095, 4096, 4097, 8191, 8192, 8193, 20000}) {
    sizes.push_back({2, 1, columns});
  }
  for (const DType dtype : {f32, f64, i16, i32, i64, u8, u32, u64, boolean}) {
    for (const Monoid monoid : {Monoid::sum, Monoid::product, Monoid::minimum, Monoid::maximum}) {
      if (!is_defined(monoid, dtype)) continue;
      const Nest nest = fold_nest(Nest::Order::lanes, monoid, dtype);
      expect_same({.nest = nest}, sizes);
      expect_same({.nest = nest, .is_tame = true}, sizes);
    }
  }
  expect_same({.nest = fold_nest(Nest::Order::lanes, Monoid::sum, f32, Columns::strided)}, sizes);
  expect_same({.nest = fold_nest(Nest::Order::lanes, Monoid::sum, u8, Columns::strided)}, sizes);
  expect_same({.nest = fold_nest(Nest::Order::lanes, Monoid::sum, f32, Columns::repeat)}, sizes);
}

TEST(Jit, FoldsAlongColumnsInTheDefinedOrder) {
  const std::vector<std::array<int64_t, 3>> few = {{2, 0, 17}, {2, 257, 65}, {1, 9, 2100}};
  std::vector<std::array<int64_t, 3>> sizes;
  for (const int64_t columns : {0, 1, 15, 17, 64, 65, 129}) {
    for (const int64_t steps : {0, 1, 255, 256, 257, 800}) sizes.push_back({2, steps, columns});
  }
  // Whole rows, rows in parts, and several rows at a time.
  for (const int64_t columns : {200, 300, 1024, 1025, 2100, 5000}) sizes.push_back({1, 9, columns});
  sizes.push_back({1, 520, 1100});
  for (const DType dtype : {f32, f64, i16, i32, i64, u8, u32, u64, boolean}) {
    for (const Monoid monoid : {Monoid::sum, Monoid::product, Monoid::minimum, Monoid::maximum}) {
      if (!is_defined(monoid, dtype)) continue;
      // Sums of floats are the ones whose order shows, and u8 has the most lanes.
      const bool all = dtype == u8 || (monoid == Monoid::sum && is_float(dtype));
      expect_same({.nest = fold_nest(Nest::Order::columns, monoid, dtype), .is_tame = true},
                  all ? sizes : few);
    }
  }
  expect_same({.nest = fold_nest(Nest::Order::columns, Monoid::sum, f32)}, sizes);
  expect_same({.nest = fold_nest(Nest::Order::columns, Monoid::sum, f32, Columns::strided)}, sizes);
}

Nest softmax(Nest::Order order) {
  NestBuilder b;
  b.nest.order = order;
  b.nest.cells = 2;
  const int32_t in = b.buffer(f32);
  const int32_t out = b.output(f32);
  const int32_t x = b.load(in);
  const int32_t shifted = b.op(ExprOp::subtract, f32, x, b.leaf(ExprOp::cell, f32, 0));
  const int32_t e = b.op(ExprOp::exp, f32, shifted);
  const int32_t one = b.constant(1.0F);
  const int32_t inverse = b.op(ExprOp::divide, f32, one, b.leaf(ExprOp::cell, f32, 1));
  const int32_t y = b.op(ExprOp::multiply, f32, b.load(out), inverse);
  b.nest.sweeps.push_back({.stores = {}, .folds = {{0, x, Monoid::maximum}}});
  b.nest.sweeps.push_back({.stores = {{out, e}}, .folds = {{1, e, Monoid::sum}}});
  b.nest.sweeps.push_back({.stores = {{out, y}}, .folds = {}});
  return b.nest;
}

Nest argmax(Nest::Order order) {
  NestBuilder b;
  b.nest.order = order;
  b.nest.cells = 2;
  const int32_t x = b.load(b.buffer(f32));
  const int32_t top = b.leaf(ExprOp::cell, f32, 0);
  const int32_t is_top = b.op(ExprOp::equal, boolean, x, top);
  const int32_t nan = b.op(ExprOp::not_equal, boolean, x, x);
  const int32_t found = b.op(ExprOp::bit_or, boolean, is_top, nan);
  const int32_t none = b.leaf(ExprOp::constant, i64);
  b.nest.exprs.back().bits = uint64_t{1} << 40;
  const int32_t at = b.op(ExprOp::select, i64, found, b.leaf(ExprOp::index, i64), none);
  b.nest.sweeps.push_back({.stores = {}, .folds = {{0, x, Monoid::maximum}}});
  b.nest.sweeps.push_back({.stores = {}, .folds = {{1, at, Monoid::minimum}}});
  b.nest.finish.push_back({b.output(i64), b.leaf(ExprOp::cell, i64, 1)});
  b.nest.finish.push_back({b.output(f32), top});
  return b.nest;
}

TEST(Jit, RunsManySweeps) {
  const std::vector<std::array<int64_t, 3>> lanes = {{3, 1, 0},  {3, 1, 1},    {3, 1, 16},
                                                     {3, 1, 17}, {2, 1, 100},  {2, 1, 1024},
                                                     {2, 1, 64}, {1, 1, 4097}, {1, 1, 9000}};
  const std::vector<std::array<int64_t, 3>> columns = {
      {2, 3, 1}, {2, 10, 33}, {1, 300, 20}, {1, 600, 70}, {1, 5, 300}, {2, 4, 0}, {1, 19, 700}};
  for (const bool is_tame : {false, true}) {
    expect_same({.nest = softmax(Nest::Order::lanes), .is_tame = is_tame}, lanes);
    expect_same({.nest = argmax(Nest::Order::lanes), .is_tame = is_tame}, lanes);
    expect_same({.nest = softmax(Nest::Order::columns), .is_tame = is_tame}, columns);
    expect_same({.nest = argmax(Nest::Order::columns), .is_tame = is_tame}, columns);
  }
}

TEST(Jit, WritesOverItsInput) {
  expect_same({.nest = softmax(Nest::Order::lanes), .same_as = {0, 0}},
              {{3, 1, 17}, {2, 1, 100}, {1, 1, 4100}});
  NestBuilder b;
  const int32_t x = b.load(b.buffer(f32));
  const int32_t y = b.op(ExprOp::add, f32, b.op(ExprOp::multiply, f32, x, x), x);
  b.nest.sweeps.push_back({.stores = {{b.output(f32), y}}, .folds = {}});
  expect_same({.nest = b.nest, .same_as = {0, 0}}, {{3, 1, 17}, {2, 1, 100}, {1, 1, 4100}});
}

TEST(Jit, StreamsWhereAligned) {
  for (const DType dtype : {f32, f64, u8}) {
    NestBuilder b;
    const int32_t x = b.load(b.buffer(dtype));
    const int32_t out = b.output(dtype);
    b.nest.buffers.back().streaming = true;
    b.nest.sweeps.push_back({.stores = {{out, b.op(ExprOp::add, dtype, x, x)}}, .folds = {}});
    for (const bool is_aligned : {true, false}) {
      expect_same({.nest = b.nest, .is_aligned = is_aligned},
                  {{1, 1, 1000}, {3, 1, 160}, {3, 1, 163}, {2, 1, 5}, {1, 1, 0}});
    }
  }
}

// After sweeps over the same row, which the second of them fetches the next row in.
TEST(Jit, StreamsAfterOtherSweeps) {
  NestBuilder b;
  b.nest.order = Nest::Order::lanes;
  b.nest.cells = 2;
  const int32_t x = b.load(b.buffer(f32)), weight = b.load(b.buffer(f32, Columns::repeat));
  const int32_t shifted = b.op(ExprOp::subtract, f32, x, b.leaf(ExprOp::cell, f32, 0));
  const int32_t e = b.op(ExprOp::exp, f32, shifted);
  const int32_t y = b.op(ExprOp::subtract, f32, shifted, b.leaf(ExprOp::cell, f32, 1));
  const int32_t out = b.output(f32);
  b.nest.buffers.back().streaming = true;
  b.nest.sweeps.push_back({.stores = {}, .folds = {{0, x, Monoid::maximum}}});
  b.nest.sweeps.push_back({.stores = {}, .folds = {{1, e, Monoid::sum}}});
  b.nest.sweeps.push_back({.stores = {{out, b.op(ExprOp::multiply, f32, y, weight)}}, .folds = {}});
  for (const bool is_aligned : {true, false}) {
    for (const bool is_tame : {true, false}) {
      expect_same({.nest = b.nest, .is_aligned = is_aligned, .is_tame = is_tame},
                  {{1, 1, 1000}, {3, 1, 160}, {3, 1, 163}, {2, 1, 5}, {2, 1, 0}, {3, 1, 4112}});
    }
  }
}

// A random nest: expressions over random leaves, each used somewhere.
Nest random_nest(std::mt19937_64& random) {
  const auto pick = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  NestBuilder b;
  b.nest.order = pick(2) == 0 ? Nest::Order::lanes : Nest::Order::columns;
  std::vector<int32_t> plain;  // Without cells.
  for (int64_t i = 0, n = 1 + pick(3); i < n; ++i) {
    const auto columns = static_cast<Columns>(pick(3));
    plain.push_back(b.load(b.buffer(kAll[pick(kDTypes)], columns)));
  }
  plain.push_back(b.leaf(ExprOp::scalar, kAll[pick(kDTypes)], 0));
  if (pick(3) == 0) plain.push_back(b.leaf(ExprOp::index, i64));
  const auto dtype_of = [&](int32_t e) { return b.nest.exprs[static_cast<size_t>(e)].dtype; };
  // Appends a random op on `pool`.
  const auto grow = [&](std::vector<int32_t>& pool) {
    const int32_t a = pool[static_cast<size_t>(pick(static_cast<int64_t>(pool.size())))];
    if (pick(3) == 0) {
      pool.push_back(b.op(ExprOp::cast, kAll[pick(kDTypes)], a));
      return;
    }
    const auto op = static_cast<ExprOp>(static_cast<int>(ExprOp::add) +
                                        pick(kExprOps - static_cast<int>(ExprOp::add)));
    const bool compares = op >= ExprOp::equal && op <= ExprOp::less_equal;
    const DType dtype = compares ? boolean : dtype_of(a);
    if (op == ExprOp::select || !is_defined(op, dtype, dtype_of(a))) return;
    int32_t in[3] = {-1, -1, -1};
    for (int i = 0; i < arity(op); ++i) {
      in[i] = a;
      for (const int32_t other : pool) {
        if (dtype_of(other) == dtype_of(a) && pick(2) == 0) in[i] = other;
      }
    }
    pool.push_back(b.op(op, dtype, in[0], in[1], in[2]));
  };
  for (int i = 0; i < 8; ++i) grow(plain);
  const int64_t folds = pick(3);
  Sweep first;
  for (int64_t i = 0; i < folds; ++i) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const int32_t e = plain[static_cast<size_t>(pick(static_cast<int64_t>(plain.size())))];
      const auto monoid = static_cast<Monoid>(pick(kMonoids));
      if (!is_defined(monoid, dtype_of(e))) continue;
      first.folds.push_back({b.nest.cells++, e, monoid});
      break;
    }
  }
  const auto output = [&](int32_t e) -> Store {
    return {b.output(dtype_of(e), pick(4) == 0 ? Columns::strided : Columns::unit), e};
  };
  first.stores.push_back(output(plain.back()));
  b.nest.sweeps.push_back(first);
  if (!first.folds.empty()) {
    std::vector<int32_t> late = plain;
    std::vector<int32_t> only_cells;
    for (const Fold& fold : first.folds) {
      only_cells.push_back(b.leaf(ExprOp::cell, dtype_of(fold.expr), fold.cell));
      late.push_back(only_cells.back());
    }
    for (int i = 0; i < 5; ++i) grow(late);
    for (int i = 0; i < 3; ++i) grow(only_cells);
    b.nest.sweeps.push_back({.stores = {output(late.back())}, .folds = {}});
    b.nest.finish.push_back(output(only_cells.back()));
  }
  return b.nest;
}

std::vector<Problem> random_problems(uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<Problem> problems;
  for (int i = 0; i < count; ++i) {
    Problem problem{.nest = random_nest(random)};
    problem.rows = 1 + static_cast<int64_t>(random() % 3);
    const bool in_lanes = problem.nest.order == Nest::Order::lanes;
    problem.steps = in_lanes ? 1 : static_cast<int64_t>(random() % 20);
    problem.columns = static_cast<int64_t>(random() % (random() % 4 == 0 ? 600 : 70));
    problem.seed = random();
    problem.column_elements = random() % 2 == 0 ? 2 : -1;
    problem.is_tame = random() % 2 == 0;
    problems.push_back(problem);
  }
  return problems;
}

TEST(Jit, AgreesOnRandomNests) { expect_same(random_problems(7, 200)); }

// Compiled for a number of columns, a row gives the bits that it gives as one of any.
TEST(Jit, AgreesOnRowsOfKnownColumns) {
  std::vector<Problem> problems;
  for (Problem& problem : random_problems(9, 300)) {
    if (problem.nest.cells == 0 || problem.nest.order != Nest::Order::lanes) continue;
    problem.columns = 1 + problem.columns % kLanes;
    problems.push_back(std::move(problem));
  }
  for (const int64_t columns : {1, 3, 10, 16, 17, 32, 33, 47, 64}) {
    for (const Nest& nest : {softmax(Nest::Order::lanes), argmax(Nest::Order::lanes),
                             fold_nest(Nest::Order::lanes, Monoid::sum, f64),
                             fold_nest(Nest::Order::lanes, Monoid::maximum, u8)}) {
      problems.push_back({.nest = nest});
      problems.back().rows = 5;
      problems.back().columns = columns;
    }
  }
  ASSERT_GT(problems.size(), 60U);
  for (const device::Isa isa : isas()) {
    for (const Problem& problem : problems) {
      const auto kernel = compile_nest(problem.nest, isa, static_cast<int32_t>(problem.columns));
      ASSERT_NE(kernel, nullptr) << to_text(problem.nest);
      ASSERT_EQ(difference(problem, *kernel), "") << device::name(isa) << problem.columns;
    }
  }
}

TEST(Jit, AgreesWithTheInterpreterOnRandomNests) {
  const std::vector<Problem> problems = random_problems(8, 200);
  for (const device::Isa isa : isas()) {
    for (const Problem& problem : problems) {
      const auto interpreted = make_tile_kernel(problem.nest, isa);
      const auto compiled = compile_nest(problem.nest, isa);
      ASSERT_NE(compiled, nullptr) << to_text(problem.nest);
      ASSERT_EQ(difference(problem, *interpreted, *compiled), "") << device::name(isa);
    }
  }
}

TEST(Jit, GivesCodeBack) {
  ASSERT_EQ(code_bytes_held(), 0);
  {
    const auto alone = compile_nest(softmax(Nest::Order::lanes), isas().back());
    EXPECT_EQ(alone->code_bytes, code_bytes_held());
    EXPECT_EQ(alone->code_bytes % 4096, 0);
    const std::vector<Nest> nests = {softmax(Nest::Order::lanes), argmax(Nest::Order::lanes)};
    auto together = compile_nests(nests, isas().back());
    EXPECT_EQ(alone->code_bytes + together[0]->code_bytes + together[1]->code_bytes,
              code_bytes_held());
    together[0] = nullptr;
    EXPECT_GT(code_bytes_held(), alone->code_bytes);
    together[1] = nullptr;
    EXPECT_EQ(code_bytes_held(), alone->code_bytes);
  }
  EXPECT_EQ(code_bytes_held(), 0);
}

int64_t resident_bytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

TEST(Jit, StaysFlatOverManyCompiles) {
  const Nest nest = one_op(ExprOp::add, f32, f32);
  const auto compile = [&](int count) {
    for (int i = 0; i < count; ++i) compile_nest(nest, isas().back());
  };
  compile(128);
  const int64_t before = resident_bytes();
  compile(1024);
  EXPECT_EQ(code_bytes_held(), 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static_cast<void>(before);  // What was freed stays resident for a while, to find who uses it.
#else
  EXPECT_LE(resident_bytes() - before, 1 << 20);
#endif
}

TEST(Jit, CompilesOnManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&wrong, i] {
      for (int k = 0; k < 8; ++k) {
        const Nest nest = k % 2 == 0 ? softmax(Nest::Order::lanes) : argmax(Nest::Order::columns);
        const auto kernel = compile_nest(nest, isas()[static_cast<size_t>(i) % isas().size()]);
        const Problem problem{.nest = nest, .rows = 2, .steps = k % 2 == 0 ? 1 : 9, .columns = 77};
        if (!difference(problem, *kernel).empty()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(code_bytes_held(), 0);
}

TEST(Jit, DoesNotCompileWhatIsNotDefined) {
  Nest nest = one_op(ExprOp::add, f32, f32);
  for (Expr& expr : nest.exprs) expr.dtype = f16;
  EXPECT_EQ(compile_nest(nest, device::Isa::baseline), nullptr);
}

}  // namespace
}  // namespace tidemark
