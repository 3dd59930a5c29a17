// Random graphs of pointwise ops, views and reductions, fused and run on every emitter, against the
// same nodes run one by one. TIDEMARK_FUZZ sets how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/unit/compile/graphs.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/device/threads.h"
#include "tidemark/passes/passes.h"

namespace tidemark {
namespace {

using namespace testing;
using compile::Emitter;

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  Graph make() {
    const int64_t parameters = 1 + below(3);
    shape_ = one_of<Shape>({{7},
                            {300},
                            {5000},
                            {9, 40},
                            {33, 130},
                            {3, 4, 5},
                            {2, 300, 6},
                            {80, 2},
                            {3, 30, 3},
                            {40, 16},
                            {1, 50},
                            {50, 1},
                            {4, 1, 70}});
    for (int64_t i = 0; i < parameters; ++i)
      values_.push_back(g_.parameter(any_dtype(), below(3) == 0 ? thinned(shape_) : shape_));
    const int64_t count = 2 + below(14);
    for (int64_t i = 0; i < count; ++i) values_.push_back(grow());
    const int64_t results = 1 + below(3);
    for (int64_t i = 0; i < results; ++i) g_.result(values_[values_.size() - 1 - below_size(4)]);
    return g_.graph;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  size_t below_size(size_t n) {
    return static_cast<size_t>(below(static_cast<int64_t>(std::min(n, values_.size()))));
  }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }
  DType any_dtype() { return one_of({f32, f32, f32, f64, f16, i32, boolean}); }

  // Some axes at 1, so that it broadcasts.
  Shape thinned(Shape shape) {
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (below(2) == 0) shape.set(axis, 1);
    }
    return shape;
  }

  Value any() { return values_[values_.size() - 1 - below_size(6)]; }
  Value as(Value x, DType dtype) { return g_.type(x).dtype == dtype ? x : g_.cast(x, dtype); }

  bool broadcasts(Value a, Value b) {
    const Shape &p = g_.type(a).shape, &q = g_.type(b).shape;
    for (int64_t i = 1; i <= std::min(p.rank(), q.rank()); ++i) {
      if (p[-i] != q[-i] && p[-i] != 1 && q[-i] != 1) return false;
    }
    return true;
  }

  Value grow() {
    const Value x = any();
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return binary(x);
      case 4:
      case 5:
        return unary(x);
      case 6:
      case 7:
        return reduction(x);
      case 8:
        return g_.cast(x, any_dtype());
      case 9:
        return view(x);
      case 10:
        return ranged(x);
      default:
        return selected(x);
    }
  }

  Value unary(Value x) {
    const DType dtype = one_of({f32, f64, f16});
    return g_.apply(one_of({"exp", "sin", "negative", "abs", "square", "tanh", "isnan"}),
                    {as(x, dtype)});
  }

  Value binary(Value a) {
    Value b = any();
    if (!broadcasts(a, b)) b = a;
    const DType dtype = below(4) == 0 ? i32 : one_of({f32, f32, f64, f16});
    if (below(4) == 0)
      return g_.apply(one_of({"add", "multiply", "maximum"}), as(a, dtype),
                      static_cast<double>(below(7) - 3));
    return g_.apply(one_of({"add", "subtract", "multiply", "maximum", "less"}),
                    {as(a, dtype), as(b, dtype)});
  }

  Value selected(Value a) {
    const Value b = any(), c = any();
    if (!broadcasts(a, b) || !broadcasts(a, c) || !broadcasts(b, c)) return unary(a);
    const DType dtype = any_dtype();
    return g_.apply("where", {as(a, boolean), as(b, dtype), as(c, dtype)});
  }

  Value ranged(Value x) {
    const Shape shape = g_.type(x).shape;
    if (shape.rank() == 0) return unary(x);
    const int64_t axis = below(shape.rank());
    const DType dtype = one_of({f32, i32});
    Shape thin;
    for (int64_t i = 0; i < shape.rank(); ++i) thin.push_back(i == axis ? shape[i] : Dim(1));
    return g_.apply("add", {as(x, dtype), g_.reshape(g_.range(shape[axis], dtype, 1, 2), thin)});
  }

  // Of one axis, or of several; often compared at once with what was reduced, as norms are; at
  // times over a repeat.
  Value reduction(Value x) {
    Shape shape = g_.type(x).shape;
    if (below(6) == 0 && shape.size() < 5000) {
      shape.insert(0, 2 + below(6));
      x = g_.broadcast_to(x, shape);
    }
    if (shape.rank() == 0) return unary(x);
    AxisList axes = {below(shape.rank())};
    for (int64_t axis = 0; axis < shape.rank() && below(3) == 0; ++axis) {
      if (axis != axes[0]) axes.push_back(axis);
    }
    std::sort(axes.begin(), axes.end());
    const char* op = one_of({"sum", "sum", "max", "min", "prod", "any", "argmax"});
    if (g_.type(x).dtype == boolean && std::string_view(op) != "any") x = g_.cast(x, i32);
    const bool keep = below(3) != 0;
    const Value y = g_.reduce(op, x, axes, keep);
    if (!keep || below(3) == 0) return y;
    const DType dtype = one_of({f32, f32, f64, f16});
    const Value normed =
        g_.apply(one_of({"subtract", "multiply", "divide"}), {as(x, dtype), as(y, dtype)});
    return below(2) == 0 ? g_.apply(one_of({"exp", "tanh"}), {normed}) : normed;
  }

  Value view(Value x) {
    const Shape shape = g_.type(x).shape;
    const auto rank = static_cast<size_t>(shape.rank());
    switch (below(5)) {
      case 0: {
        AxisList order;
        for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
        std::shuffle(order.begin(), order.end(), random_);
        return g_.transpose(x, order);
      }
      case 1: {
        DimList begin, size;
        AxisList step;
        for (const Dim dim : shape) {
          const int64_t by = one_of<int64_t>({1, 1, 2, -1});
          size.push_back(std::max<int64_t>(1, int64_t{dim} / (by == 2 ? 2 : 1) - below(2)));
          begin.push_back(by < 0 ? int64_t{dim} - 1 : 0);
          step.push_back(by);
        }
        return g_.slice(x, begin, size, step);
      }
      case 2: {
        Shape wide = shape;
        for (int64_t axis = 0; axis < wide.rank(); ++axis) {
          if (wide[axis] == 1) wide.set(axis, 1 + below(20));
        }
        if (below(2) == 0) wide.insert(0, 1 + below(5));
        return wide.size() > 40000 ? unary(x) : g_.broadcast_to(x, wide);
      }
      case 3:
        return g_.reshape(x, {shape.size()});
      default: {
        Shape split = shape;
        for (int64_t axis = 0; axis < split.rank(); ++axis) {
          if (split[axis] % 2 == 0) {
            split.set(axis, split[axis] / 2);
            split.insert(axis + 1, 2);
            break;
          }
        }
        return g_.reshape(x, split);
      }
    }
  }

  std::mt19937_64 random_;
  GraphMaker g_;
  Shape shape_;
  std::vector<Value> values_;
};

TEST(FuseFuzz, SameBitsAsNodeByNode) {
  const char* wanted = std::getenv("TIDEMARK_FUZZ");
  const char* first = std::getenv("TIDEMARK_FUZZ_SEED");
  const int64_t count = wanted != nullptr ? std::atoll(wanted) : 300;
  const uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const int threads = num_threads();
  for (uint64_t seed = begin; seed < begin + static_cast<uint64_t>(count); ++seed) {
    const Graph graph = RandomGraph(seed).make();
    Graph grouped = graph;
    passes::fuse(grouped, int64_t{1} << 20);
    verify(grouped);
    const std::vector<Memory> arguments = random_arguments(graph, seed);
    compile::set_emitter(Emitter::tile);
    const std::vector<Memory> expected = run_graph(graph, arguments);
    set_num_threads(1 + static_cast<int>(seed % 2));
    // Machine code takes a while to make: every fourth.
    const Emitter machine = seed % 4 == 0 ? Emitter::llvm : Emitter::tile;
    for (const Emitter emitter : {Emitter::checked, machine}) {
      compile::set_emitter(emitter);
      ASSERT_EQ(difference(expected, run_graph(grouped, arguments)), "")
          << "seed " << seed << ": " << outline(grouped);
    }
    set_num_threads(threads);
  }
  compile::set_emitter(Emitter::automatic);
}

}  // namespace
}  // namespace tidemark
