#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

#include "tests/unit/compile/graphs.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/ops/scalar.h"

namespace tidemark {
namespace {

using namespace testing;
using compile::Emitter;

// Small whole numbers add up exactly, whatever the order.
TEST(RunReduce, SeveralAxesOfColumnsInSeveralPieces) {
  const std::tuple<Shape, AxisList> cases[] = {{{100, 33, 130}, {0}},
                                               {{3, 100, 40, 50}, {1}},
                                               {{2, 50, 3, 60, 41}, {1, 2}},
                                               {{20, 9, 11, 300}, {0, 1}}};
  for (const auto& [shape, axes] : cases) {
    const Memory x({f32, shape});
    for (int64_t i = 0; i < shape.size(); ++i)
      reinterpret_cast<float*>(x.ref().data)[i] = static_cast<float>(i * 7919 % 13);
    Shape kept;
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(shape[axis]);
    }
    std::vector<float> expected(static_cast<size_t>(kept.size()));
    for (int64_t i = 0; i < shape.size(); ++i) {
      int64_t rest = i, to = 0, scale = 1;
      for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
        const int64_t extent = shape[axis], index = rest % extent;
        rest /= extent;
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
        to += index * scale;
        scale *= extent;
      }
      expected[static_cast<size_t>(to)] += static_cast<float>(i * 7919 % 13);
    }
    for (const Emitter emitter : {Emitter::checked, Emitter::llvm}) {
      compile::set_emitter(emitter);
      const Memory y({f32, kept});
      compile::run_reduce(*find_op("sum"), x.ref(), axes, y.ref());
      EXPECT_TRUE(y.edges_are_whole()) << shape;
      const auto* const got = reinterpret_cast<const float*>(y.ref().data);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got)) << shape;
    }
  }
  compile::set_emitter(Emitter::automatic);
}

// Elements with zeros of both signs, infinities and NaNs among them.
void fill(const ArrayRef& x, uint64_t seed) {
  for (int64_t i = 0; i < x.size(); ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const uint64_t kind = seed >> 59;
    const double special = kind == 0   ? -0.0
                           : kind == 1 ? std::numeric_limits<double>::infinity()
                           : kind == 2 ? std::numeric_limits<double>::quiet_NaN()
                           : kind == 3 ? 0.0
                                       : static_cast<double>(seed >> 33) * 0x1p-31 - 0.5;
    const uint64_t bits = is_float(x.dtype) ? bits_of(special, x.dtype) : seed >> 40;
    std::memcpy(x.data + i * size_of(x.dtype), &bits, static_cast<size_t>(size_of(x.dtype)));
  }
}

class ShortRows : public ::testing::TestWithParam<std::tuple<Emitter, DType>> {
 protected:
  ~ShortRows() override { compile::set_emitter(Emitter::automatic); }

  // Runs over all rows at once, and over each by itself, which is a fold along lanes.
  template <class Run>
  void expect_rows(int64_t columns, DType result, bool by_row, const Run& run) {
    compile::set_emitter(std::get<0>(GetParam()));
    const DType dtype = std::get<1>(GetParam());
    const int64_t rows = 100, kept = by_row ? 1 : columns;
    const Memory x({dtype, {rows, columns}});
    std::vector<Memory> y, expected;
    y.emplace_back(TensorType{result, {rows, kept}});
    expected.emplace_back(TensorType{result, {rows, kept}});
    fill(x.ref(), static_cast<uint64_t>(columns));
    run(x.ref(), y[0].ref());
    EXPECT_TRUE(y[0].edges_are_whole());
    for (int64_t row = 0; row < rows; ++row) {
      ArrayRef one = x.ref(), to = expected[0].ref();
      one.data += row * columns * size_of(dtype);
      to.data += row * kept * size_of(result);
      one.shape = {1, columns};
      to.shape = {1, kept};
      run(one, to);
    }
    EXPECT_EQ(difference(y, expected), "") << columns << " columns";
  }
};

TEST_P(ShortRows, ReduceToTheBitsOfARowByItself) {
  const DType dtype = std::get<1>(GetParam());
  for (const char* const name : {"sum", "prod", "max", "min", "argmax", "argmin"}) {
    const OpDef& op = *find_op(name);
    SCOPED_TRACE(name);
    for (const int64_t columns : {2, 3, 7, 10, 16, 17})
      expect_rows(columns, op.gives_index ? DType::i64 : dtype, true,
                  [&](const ArrayRef& x, ArrayRef y) {
                    const AxisList axes = {1};
                    y.shape = {x.shape[0]};
                    y.strides = {1};
                    compile::run_reduce(op, x, axes, y);
                  });
  }
}

TEST_P(ShortRows, SoftmaxHasTheBitsOfARowByItself) {
  if (!is_float(std::get<1>(GetParam()))) return;
  for (const char* const name : {"softmax", "log_softmax"}) {
    SCOPED_TRACE(name);
    for (const int64_t columns : {2, 3, 7, 10, 16, 17})
      expect_rows(
          columns, std::get<1>(GetParam()), false,
          [&](const ArrayRef& x, const ArrayRef& y) { compile::run_row(*find_op(name), x, 1, y); });
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShortRows,
                         ::testing::Combine(::testing::Values(Emitter::tile, Emitter::llvm,
                                                              Emitter::checked),
                                            ::testing::Values(f32, f64, f16, i32)));

}  // namespace
}  // namespace tidemark
