#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/unit/compile/graphs.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/kernels.h"

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

}  // namespace
}  // namespace tidemark
