#include "tidemark/loops/nest.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tidemark/base/error.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

// out = sum of x * 2 along each row.
Nest doubled_sum() {
  Nest nest;
  nest.buffers = {{.dtype = f32}, {.dtype = f32, .written = true}};
  nest.exprs = {{.op = ExprOp::load, .ref = 0},
                {.op = ExprOp::constant, .bits = std::bit_cast<uint32_t>(2.0F)},
                {.op = ExprOp::multiply, .in = {0, 1, -1}},
                {.op = ExprOp::cell, .ref = 0}};
  nest.sweeps = {{.stores = {}, .folds = {{.cell = 0, .expr = 2}}}};
  nest.finish = {{.buffer = 1, .expr = 3}};
  nest.cells = 1;
  return nest;
}

std::string refusal(const Nest& nest) {
  try {
    verify(nest);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Nest, PrintsOneLinePerThing) {
  EXPECT_EQ(to_text(doubled_sum()),
            "nest lanes\n"
            "  b0: f32 unit\n"
            "  b1: f32 unit written\n"
            "  e0: f32 = load b0\n"
            "  e1: f32 = constant 2\n"
            "  e2: f32 = multiply e0 e1\n"
            "  e3: f32 = cell 0\n"
            "sweep 0\n"
            "  cell 0 = sum e2\n"
            "finish\n"
            "  b1 = e3\n");
}

TEST(Nest, PrintsConstantsOfEveryDType) {
  const auto text = [](DType dtype, uint64_t bits) {
    Nest nest;
    nest.exprs = {{.op = ExprOp::constant, .dtype = dtype, .bits = bits}};
    return to_text(nest).substr(sizeof("nest lanes\n  e0: ") - 1);
  };
  EXPECT_EQ(text(f16, 0x3c00), "f16 = constant 1\n");
  EXPECT_EQ(text(bf16, 0x3f80), "bf16 = constant 1\n");
  EXPECT_EQ(text(f64, std::bit_cast<uint64_t>(0.1)), "f64 = constant 0.10000000000000001\n");
  EXPECT_EQ(text(i32, 0xffffffff), "i32 = constant -1\n");
  EXPECT_EQ(text(i64, 7), "i64 = constant 7\n");
  EXPECT_EQ(text(u8, 65), "u8 = constant 65\n");
  EXPECT_EQ(text(i8, 0xbf), "i8 = constant -65\n");
  EXPECT_EQ(text(u64, ~uint64_t{0}), "u64 = constant 18446744073709551615\n");
  EXPECT_EQ(text(boolean, 1), "bool = constant true\n");
}

TEST(Nest, HashSeesEveryField) {
  const Nest nest = doubled_sum();
  EXPECT_EQ(hash(nest), hash(doubled_sum()));
  const auto changed = [&](auto change) {
    Nest other = nest;
    change(other);
    EXPECT_FALSE(other == nest);
    return hash(other) != hash(nest);
  };
  EXPECT_TRUE(changed([](Nest& n) { n.order = Nest::Order::columns; }));
  EXPECT_TRUE(changed([](Nest& n) { n.buffers[0].columns = BufferRef::Columns::strided; }));
  EXPECT_TRUE(changed([](Nest& n) { n.buffers[1].streaming = true; }));
  EXPECT_TRUE(changed([](Nest& n) { n.exprs[1].bits ^= 1; }));
  EXPECT_TRUE(changed([](Nest& n) { n.exprs[2].op = ExprOp::add; }));
  EXPECT_TRUE(changed([](Nest& n) { std::swap(n.exprs[2].in[0], n.exprs[2].in[1]); }));
  EXPECT_TRUE(changed([](Nest& n) { n.exprs[0].ref = 1; }));
  EXPECT_TRUE(changed([](Nest& n) { n.sweeps[0].folds[0].monoid = Monoid::product; }));
  EXPECT_TRUE(changed([](Nest& n) { n.sweeps[0].folds[0].expr = 0; }));
  EXPECT_TRUE(changed([](Nest& n) { n.finish[0].expr = 2; }));
  EXPECT_TRUE(changed([](Nest& n) { n.finish.clear(); }));
  EXPECT_TRUE(changed([](Nest& n) { n.sweeps.emplace_back(); }));
}

TEST(Verify, TakesAGoodNest) { EXPECT_EQ(refusal(doubled_sum()), ""); }

TEST(Verify, RefusesBrokenNests) {
  const auto breaks = [](const std::string& part, auto change) {
    Nest nest = doubled_sum();
    change(nest);
    const std::string message = refusal(nest);
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in '" << message << "'";
  };
  breaks("e2 (multiply): operand 1 is 2", [](Nest& n) { n.exprs[2].in[1] = 2; });
  breaks("e2 (multiply): operand 1 is -1", [](Nest& n) { n.exprs[2].in[1] = -1; });
  breaks("e2 (multiply): operand 2 is 0", [](Nest& n) { n.exprs[2].in[2] = 0; });
  breaks("e2 (multiply): operand 0 is f32", [](Nest& n) { n.exprs[1].dtype = f64; });
  breaks("e2: no multiply of f32 giving i32", [](Nest& n) { n.exprs[2].dtype = i32; });
  breaks("e0 loads buffer 2", [](Nest& n) { n.exprs[0].ref = 2; });
  breaks("e0 loads f32 from f64", [](Nest& n) { n.buffers[0].dtype = f64; });
  breaks("e3 reads cell 1", [](Nest& n) { n.exprs[3].ref = 1; });
  breaks("e3 reads i32 from a cell of f32", [](Nest& n) { n.exprs[3].dtype = i32; });
  breaks("sweep 0 reads cell 0", [](Nest& n) { n.sweeps[0].stores = {{.buffer = 1, .expr = 3}}; });
  breaks("cell 0 is folded twice",
         [](Nest& n) { n.sweeps[0].folds.push_back(n.sweeps[0].folds[0]); });
  breaks("cell 1 is never folded", [](Nest& n) { n.cells = 2; });
  breaks("cell 0 of 0", [](Nest& n) { n.cells = 0; });
  breaks("finish reads e4, an index", [](Nest& n) {
    n.exprs.push_back({.op = ExprOp::index, .dtype = i64});
    n.buffers.push_back({.dtype = i64, .written = true});
    n.finish.push_back({.buffer = 2, .expr = 4});
  });
  breaks("store to buffer 0", [](Nest& n) { n.finish[0].buffer = 0; });
  breaks("no buffer 5", [](Nest& n) { n.finish[0].buffer = 5; });
  breaks("no expression 9", [](Nest& n) { n.finish[0].expr = 9; });
  breaks("e3 is stored to a buffer of i32", [](Nest& n) { n.buffers[1].dtype = i32; });
  breaks("buffer 0 streams", [](Nest& n) { n.buffers[0].streaming = true; });
  breaks("repeats one element", [](Nest& n) {
    n.buffers[1].columns = BufferRef::Columns::repeat;
    n.sweeps[0].stores = {{.buffer = 1, .expr = 0}};
  });
}

TEST(Verify, RefusesArithmeticInLowPrecision) {
  for (const DType dtype : {f16, bf16}) {
    EXPECT_TRUE(is_defined(ExprOp::cast, f32, dtype));
    EXPECT_TRUE(is_defined(ExprOp::select, dtype, dtype));
    EXPECT_FALSE(is_defined(ExprOp::add, dtype, dtype));
    EXPECT_FALSE(is_defined(ExprOp::equal, boolean, dtype));
    EXPECT_FALSE(is_defined(Monoid::sum, dtype));
  }
  EXPECT_FALSE(is_defined(Monoid::sum, boolean));
  EXPECT_TRUE(is_defined(Monoid::maximum, boolean));
  EXPECT_FALSE(is_defined(ExprOp::divide, i32, i32));
  EXPECT_FALSE(is_defined(ExprOp::index, i32, i32));
}

TEST(Identity, IsNeutral) {
  EXPECT_EQ(identity_bits(Monoid::sum, f32), 0U);
  EXPECT_EQ(identity_bits(Monoid::product, f64), std::bit_cast<uint64_t>(1.0));
  EXPECT_EQ(identity_bits(Monoid::minimum, f32), std::bit_cast<uint32_t>(INFINITY));
  EXPECT_EQ(identity_bits(Monoid::maximum, f32), std::bit_cast<uint32_t>(-INFINITY));
  EXPECT_EQ(static_cast<int32_t>(identity_bits(Monoid::minimum, i32)),
            std::numeric_limits<int32_t>::max());
  EXPECT_EQ(static_cast<int64_t>(identity_bits(Monoid::maximum, i64)),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(identity_bits(Monoid::minimum, u8), 255U);
  EXPECT_EQ(identity_bits(Monoid::minimum, i8), 127U);
  EXPECT_EQ(identity_bits(Monoid::maximum, i16), 0x8000U);
  EXPECT_EQ(identity_bits(Monoid::maximum, u8), 0U);
  EXPECT_EQ(identity_bits(Monoid::minimum, boolean), 1U);
  EXPECT_EQ(identity_bits(Monoid::maximum, boolean), 0U);
  EXPECT_THROW(identity_bits(Monoid::sum, f16), InternalError);
}

}  // namespace
}  // namespace tidemark
