#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/emit/naive.h"
#include "tests/unit/emit/tile/call.h"
#include "tidemark/emit/tile/code.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

using namespace testing;
using Columns = BufferRef::Columns;
using Order = Nest::Order;

constexpr Monoid kAllMonoids[] = {Monoid::sum, Monoid::product, Monoid::minimum, Monoid::maximum};

// out = x * x * 2 + 1.
Nest polynomial(DType dtype, Columns in = Columns::unit, Columns out = Columns::unit,
                Order order = Order::lanes) {
  NestBuilder b(order);
  const int32_t x = b.load(b.buffer(dtype, in));
  const int32_t result = b.output(dtype, out);
  b.sweep();
  const int32_t square = b.apply(ExprOp::multiply, x, x);
  const int32_t doubled = b.apply(ExprOp::multiply, square, b.constant(dtype, 2));
  b.store(result, b.apply(ExprOp::add, doubled, b.constant(dtype, 1)));
  return b.nest;
}

// out = fold of x + y, each cell stored once.
Nest reduction(Order order, Monoid monoid, DType dtype) {
  NestBuilder b(order);
  const int32_t x = b.load(b.buffer(dtype));
  const int32_t out = b.output(dtype);
  b.sweep();
  const int32_t value = dtype == boolean ? x : b.apply(ExprOp::add, x, x);
  const int32_t cell = b.fold(monoid, value);
  b.finish(out, b.cell(cell, dtype));
  return b.nest;
}

// Three sweeps: the maximum; exp(x - maximum), stored and summed; the product with 1 / sum.
Nest softmax(Order order) {
  NestBuilder b(order);
  const int32_t x = b.load(b.buffer(f32));
  const int32_t out = b.output(f32);
  b.sweep();
  const int32_t largest = b.cell(b.fold(Monoid::maximum, x), f32);
  b.sweep();
  const int32_t e = b.apply(ExprOp::exp, b.apply(ExprOp::subtract, x, largest));
  b.store(out, e);
  const int32_t total = b.cell(b.fold(Monoid::sum, e), f32);
  b.sweep();
  const int32_t scale = b.apply(ExprOp::divide, b.constant(f32, 1), total);
  b.store(out, b.apply(ExprOp::multiply, b.load(out), scale));
  return b.nest;
}

// The maximum, then the least index at which it stands.
Nest argmax(Order order) {
  NestBuilder b(order);
  const int32_t x = b.load(b.buffer(f32));
  const int32_t out = b.output(i64);
  b.sweep();
  const int32_t largest = b.cell(b.fold(Monoid::maximum, x), f32);
  b.sweep();
  const int32_t here = b.apply(ExprOp::equal, boolean, x, largest);
  const int32_t never = b.constant(i64, std::numeric_limits<double>::infinity());
  const int32_t index = b.index();
  const int32_t found = b.apply(ExprOp::select, i64, here, index, never);
  b.finish(out, b.cell(b.fold(Monoid::minimum, found), i64));
  return b.nest;
}

TEST(TileNest, MapsRowsOfEveryLength) {
  for (const int64_t columns :
       {1,   2,   3,   7,    8,    15,   16,   17,   31,   33,   63,   64,  65,
        100, 255, 513, 1023, 1024, 1025, 2047, 4095, 4096, 4097, 8191, 8193}) {
    for (const int64_t rows : {1, 2, 5}) {
      EXPECT_EQ(Call(polynomial(f32), rows, 1, columns).differences(), "");
    }
    EXPECT_EQ(Call(polynomial(i64), 3, 1, columns).layout(0, {columns + 3, 0, 1}).differences(),
              "");
  }
  EXPECT_EQ(Call(polynomial(f32), 2500, 1, 3).layout(0, {4, 0, 1}).differences(), "");
  EXPECT_EQ(Call(polynomial(f64), 2500, 1, 1).layout(0, {2, 0, 1}).differences(), "");
}

TEST(TileNest, MapsNothing) {
  EXPECT_EQ(Call(polynomial(f32), 0, 1, 5).differences(), "");
  EXPECT_EQ(Call(polynomial(f32), 5, 1, 0).differences(), "");
  EXPECT_EQ(
      Call(polynomial(f32, Columns::unit, Columns::unit, Order::columns), 5, 0, 5).differences(),
      "");
}

TEST(TileNest, FollowsStrides) {
  for (const DType dtype : {f32, f64, i16, i32, i64, u8, u64}) {
    for (const int64_t columns : {1, 5, 40, 700, 1500}) {
      const Nest nest = polynomial(dtype, Columns::strided, Columns::strided);
      for (const int64_t stride : {1, 2, -1, -3}) {
        const int64_t row = columns * std::abs(stride) + 1;
        EXPECT_EQ(Call(nest, 3, 1, columns)
                      .layout(0, {row, 0, stride})
                      .layout(1, {-row, 0, -stride})
                      .differences(),
                  "");
      }
      // Transposed reads, and transposed writes.
      EXPECT_EQ(Call(nest, 37, 1, columns).layout(0, {1, 0, 37}).differences(), "");
      EXPECT_EQ(Call(nest, 37, 1, columns).layout(1, {1, 0, 38}).differences(), "");
    }
  }
}

TEST(TileNest, MapsStepsToo) {
  for (const int64_t columns : {1, 3, 50, 1024, 1030}) {
    for (const int64_t steps : {1, 2, 70, 300, 513}) {
      if (steps * columns > 20000) continue;
      const Nest nest = polynomial(f32, Columns::strided, Columns::unit, Order::columns);
      Call call(nest, 3, steps, columns);
      EXPECT_EQ(call.differences(), "");
      call.layout(0, {1, 3, 3 * steps});
      EXPECT_EQ(call.differences(), "");
    }
  }
}

TEST(TileNest, RepeatsAlongColumns) {
  for (const Order order : {Order::lanes, Order::columns}) {
    for (const int64_t columns : {1, 3, 64, 900, 3000}) {
      NestBuilder b(order);
      const int32_t x = b.load(b.buffer(f32));
      const int32_t scale = b.load(b.buffer(f32, Columns::repeat));
      const int32_t shift = b.load(b.buffer(f32));
      const int32_t out = b.output(f32);
      b.sweep();
      const int32_t root = b.apply(ExprOp::sqrt, scale);
      b.store(out, b.apply(ExprOp::fma, x, root, shift));
      // The shift is one row for all.
      Call call(b.nest, 9, order == Order::lanes ? 1 : 11, columns);
      EXPECT_EQ(call.layout(2, {0, 0, 1}).differences(), "");
    }
  }
}

TEST(TileNest, FoldsInTheDefinedOrder) {
  for (const DType dtype : {f32, f64, i8, i32, i64, u8, u16, u64, boolean}) {
    for (const Monoid monoid : kAllMonoids) {
      if (!is_defined(monoid, dtype)) continue;
      for (const int64_t n : {0, 1, 3, 31, 32, 33, 63, 64, 65, 200, 1023, 1025, 4095, 4096, 4097,
                              8191, 8192, 8193, 21000}) {
        EXPECT_EQ(
            Call(reduction(Order::lanes, monoid, dtype), n < 100 ? 40 : 2, 1, n).differences(), "");
      }
      for (const int64_t n : {0, 1, 2, 255, 256, 257, 511, 513, 2000}) {
        EXPECT_EQ(Call(reduction(Order::columns, monoid, dtype), 2, n, 5).differences(), "");
      }
    }
  }
}

TEST(TileNest, FoldsColumnsOfEveryWidth) {
  for (const int64_t columns : {1, 2, 7, 8, 17, 64, 1000, 1024, 1025, 2500}) {
    for (const int64_t steps : {1, 4, 300}) {
      if (steps * columns > 20000) continue;
      EXPECT_EQ(Call(reduction(Order::columns, Monoid::sum, f32), 7, steps, columns).differences(),
                "");
    }
  }
  // More partial results than there are registers for them at full width.
  EXPECT_EQ(Call(reduction(Order::columns, Monoid::sum, u8), 1, 256 * 1100, 1).differences(), "");
}

TEST(TileNest, SumsOfNegativeZeroArePositive) {
  for (const Order order : {Order::lanes, Order::columns}) {
    NestBuilder b(order);
    const int32_t out = b.output(f32);
    b.sweep();
    b.finish(out, b.cell(b.fold(Monoid::sum, b.constant(f32, -0.0)), f32));
    EXPECT_EQ(Call(b.nest, 3, order == Order::lanes ? 1 : 7, 7).differences(), "");
  }
}

TEST(TileNest, ComputesSoftmax) {
  for (const int64_t n : {1, 3, 10, 64, 100, 1000, 1024, 5000, 9000}) {
    Call lanes(softmax(Order::lanes), 7, 1, n);
    EXPECT_EQ(lanes.differences(), "");
    EXPECT_EQ(lanes.alias(1, 0).differences(), "");
  }
  for (const int64_t n : {1, 3, 200, 600}) {
    for (const int64_t columns : {1, 5, 1100}) {
      if (n * columns > 20000) continue;
      Call by_columns(softmax(Order::columns), 3, n, columns);
      EXPECT_EQ(by_columns.differences(), "");
      EXPECT_EQ(by_columns.alias(1, 0).differences(), "");
    }
  }
}

TEST(TileNest, FindsTheFirstMaximum) {
  for (const int64_t n : {1, 3, 64, 1000, 5000}) {
    EXPECT_EQ(Call(argmax(Order::lanes), 9, 1, n).index(0, 0).differences(), "");
    EXPECT_EQ(Call(argmax(Order::lanes), 9, 1, n).index(100, n).differences(), "");
    EXPECT_EQ(Call(argmax(Order::columns), 3, n, 5).index(-4, 0).differences(), "");
  }
}

TEST(TileNest, WritesOverItsInputs) {
  for (const int64_t columns : {3, 500, 3000, 10000}) {
    EXPECT_EQ(Call(polynomial(f32), 3, 1, columns).alias(1, 0).differences(), "");
  }
  // Each of two outputs lies over an input that the other also reads.
  NestBuilder b;
  const int32_t x = b.load(b.buffer(f32));
  const int32_t y = b.load(b.buffer(f32));
  const int32_t sum = b.output(f32);
  const int32_t swapped = b.output(f32);
  const int32_t copy = b.output(f32);
  b.sweep();
  b.store(sum, b.apply(ExprOp::add, x, y));
  b.store(swapped, b.apply(ExprOp::subtract, x, y));
  b.store(copy, x);
  for (const int64_t columns : {3, 500, 3000}) {
    EXPECT_EQ(Call(b.nest, 5, 1, columns).alias(2, 0).alias(3, 1).differences(), "");
    EXPECT_EQ(Call(b.nest, 5, 1, columns).alias(4, 1).differences(), "");
  }
  // A plain exchange.
  NestBuilder exchange;
  const int32_t p = exchange.load(exchange.buffer(i32));
  const int32_t q = exchange.load(exchange.buffer(i32));
  const int32_t to_p = exchange.output(i32);
  const int32_t to_q = exchange.output(i32);
  exchange.sweep();
  exchange.store(to_p, q);
  exchange.store(to_q, p);
  EXPECT_EQ(Call(exchange.nest, 5, 1, 5000).alias(2, 0).alias(3, 1).differences(), "");
}

TEST(TileNest, FoldsWhatItStoresOver) {
  NestBuilder b;
  const int32_t x = b.load(b.buffer(f32));
  const int32_t out = b.output(f32);
  const int32_t total = b.output(f32);
  b.sweep();
  b.store(out, b.apply(ExprOp::negate, x));
  b.finish(total, b.cell(b.fold(Monoid::sum, x), f32));
  for (const int64_t columns : {3, 500, 9000}) {
    EXPECT_EQ(Call(b.nest, 5, 1, columns).alias(1, 0).differences(), "");
  }
}

TEST(TileNest, FinishReadsBuffers) {
  for (const Nest::Order order : {Nest::Order::lanes, Nest::Order::columns}) {
    const bool lanes = order == Nest::Order::lanes;
    NestBuilder b(order);
    const int32_t x = b.load(b.buffer(f32));
    const int32_t weight = b.buffer(f32, lanes ? Columns::repeat : Columns::unit);
    const int32_t out = b.output(f32);
    b.sweep();
    const int32_t total = b.cell(b.fold(Monoid::sum, x), f32);
    b.finish(out, b.apply(ExprOp::multiply, total, b.load(weight)));
    for (const int64_t columns : {1, 3, 70, 1500, 5000}) {
      const Steps steps = lanes ? Steps{1, 0, 0} : Steps{columns, 0, 1};
      Call call(b.nest, 5, lanes ? 1 : 9, columns);
      call.layout(weight, steps);
      EXPECT_EQ(call.differences(), "") << columns;
      for (const device::Isa isa : available_isas())
        EXPECT_EQ(call.compiled_differences(isa), "") << columns;
    }
  }
}

TEST(TileNest, ReadsScalarsAndIndices) {
  NestBuilder b;
  const int32_t out = b.output(f64);
  b.sweep();
  const int32_t index = b.apply(ExprOp::cast, f64, b.index());
  const int32_t scaled = b.apply(ExprOp::multiply, index, b.scalar(f64, 1));
  b.store(out, b.apply(ExprOp::add, scaled, b.apply(ExprOp::exp, b.scalar(f64, 0))));
  const std::vector<uint64_t> words = {std::bit_cast<uint64_t>(0.25), std::bit_cast<uint64_t>(3.0)};
  for (const int64_t columns : {3, 1500}) {
    EXPECT_EQ(Call(b.nest, 700, 1, columns).scalars(words).index(5, columns).differences(), "");
    EXPECT_EQ(Call(b.nest, 7, 1, columns).scalars(words).index(5, 100).differences(), "");
  }
}

TEST(TileNest, KeepsLongChainsInFewRegisters) {
  NestBuilder b;
  int32_t value = b.load(b.buffer(f32));
  const int32_t x = value;
  const int32_t out = b.output(f32);
  b.sweep();
  for (int i = 0; i < 60; ++i)
    value = b.apply(i % 2 == 0 ? ExprOp::add : ExprOp::multiply, value, x);
  b.store(out, value);
  EXPECT_EQ(Call(b.nest, 2, 1, 3000).differences(), "");
  EXPECT_LE(tile::compile(b.nest, device::isa()).scratch_bytes, 16 * 1024);
}

TEST(TileChecking, NamesTheFirstAccessOutside) {
  const auto has = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const Call call(polynomial(f32), 3, 1, 5000);
  EXPECT_EQ(call.message_when_cut(0, 0), "");
  has(call.message_when_cut(0, 4), "buffer 0 is left at row 0, step 0, column 14999");
  has(call.message_when_cut(1, 4), "buffer 1 is left at row 0, step 0, column 14999");
  has(call.message_when_cut(1, -4), "buffer 1 is left at row 0, step 0, column 0");
  Call strided(polynomial(i32, Columns::strided, Columns::strided), 3, 1, 50);
  strided.layout(0, {200, 0, -3}).layout(1, {1, 0, 3});
  has(strided.message_when_cut(0, -4), "buffer 0 is left at row 0, step 0, column 49");
  has(strided.message_when_cut(1, 1), "buffer 1 is left at row 2, step 0, column 49");
  const Call steps(reduction(Order::columns, Monoid::sum, f64), 2, 400, 7);
  has(steps.message_when_cut(0, 8), "buffer 0 is left at row 1, step 399, column 6");
  has(steps.message_when_cut(1, 8), "buffer 1 is left at row 1, step 0, column 6");
}

}  // namespace
}  // namespace tidemark
