// What becomes one kernel, and that it computes what the nodes do one by one: the same bits.
#include <gtest/gtest.h>

#include "tests/unit/compile/graphs.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/group.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/passes/passes.h"

namespace tidemark {
namespace {

using namespace testing;
using compile::Emitter;

constexpr int64_t kCache = 1 << 20;

Graph fused(const Graph& graph) {
  Graph copy = graph;
  passes::fuse(copy, kCache);
  verify(copy);
  return compact(copy);
}

// Runs on every emitter, on one thread and on two.
void expect_same_bits(const Graph& graph) {
  const Graph grouped = fused(graph);
  const std::vector<Memory> arguments = random_arguments(graph, 7);
  const std::vector<Memory> expected = run_graph(graph, arguments);
  const int threads = num_threads();
  for (const Emitter emitter : {Emitter::tile, Emitter::llvm, Emitter::checked}) {
    for (const int count : {1, 2}) {
      set_num_threads(count);
      compile::set_emitter(emitter);
      EXPECT_EQ(difference(expected, run_graph(grouped, arguments)), "")
          << outline(grouped) << " on " << count << " threads, emitter "
          << static_cast<int>(emitter);
    }
  }
  compile::set_emitter(Emitter::automatic);
  set_num_threads(threads);
}

void expect_groups(const GraphMaker& g, const std::string& expected) {
  EXPECT_EQ(outline(fused(g.graph)), expected);
  expect_same_bits(g.graph);
}

// x * x * 2 + 1
Value polynomial(GraphMaker& g, Value x) {
  return g.apply("add", g.apply("multiply", g.apply("multiply", {x, x}), 2), 1);
}

TEST(Fuse, AChainIsOneKernel) {
  GraphMaker g;
  g.result(polynomial(g, g.parameter(f32, {37, 41})));
  expect_groups(g, "group[multiply multiply add]");
}

TEST(Fuse, LowPrecisionRoundsAfterEveryNode) {
  for (const DType dtype : {f16, bf16}) {
    GraphMaker g;
    g.result(polynomial(g, g.parameter(dtype, {1000})));
    expect_groups(g, "group[multiply multiply add]");
  }
}

TEST(Fuse, ViewsDissolve) {
  GraphMaker g;
  const Value x = g.parameter(f32, {6, 50}), row = g.parameter(f32, {50}),
              column = g.parameter(f32, {6, 1}), square = g.parameter(f32, {50, 6});
  const Value y = g.apply("add", {g.apply("multiply", {x, row}), column});
  const Value z = g.apply("subtract", {g.transpose(y, {1, 0}), square});
  g.result(g.slice(g.apply("exp", {z}), {49, 1}, {25, 2}, {-2, 3}));
  expect_groups(g, "group[multiply add transpose subtract exp] slice");
}

TEST(Fuse, AValueReadTwoWaysIsWritten) {
  GraphMaker g;
  const Value x = g.parameter(f32, {20, 20});
  const Value e = g.apply("exp", {x});
  g.result(g.apply("add", {e, g.transpose(e, {1, 0})}));
  expect_groups(g, "group[exp] group[transpose add]");
}

TEST(Fuse, NothingIsComputedMoreOftenThanBefore) {
  GraphMaker g;
  const Value x = g.parameter(f32, {20, 30}), b = g.parameter(f32, {30});
  g.result(g.apply("add", {x, g.apply("exp", {b})}));
  expect_groups(g, "group[exp] group[add]");
}

TEST(Fuse, ASlicedProducerIsComputedWhereItIsRead) {
  GraphMaker g;
  const Value x = g.parameter(f32, {20, 30});
  g.result(g.apply("add", g.slice(g.apply("exp", {x}), {2, 3}, {5, 9}, {3, 2}), 1));
  expect_groups(g, "group[exp slice add]");
}

TEST(Fuse, SeveralResults) {
  GraphMaker g;
  const Value x = g.parameter(f32, {300});
  const Value a = g.apply("exp", {x}), b = g.apply("multiply", a, 3), c = g.apply("sin", {b});
  g.result(a);
  g.result(g.apply("add", {a, c}));
  g.result(b);
  expect_groups(g, "group[exp multiply sin add]");
}

TEST(Fuse, NoCycleArises) {
  GraphMaker g;
  const Value x = g.parameter(f32, {8, 8});
  const Value a = g.apply("exp", {x});
  const Value m = g.row("softmax", a, 0);
  g.result(g.apply("add", {a, g.row("softmax", g.transpose(m, {1, 0}), 1)}));
  expect_same_bits(g.graph);
}

TEST(Fuse, Softmax) {
  for (const int64_t columns : {5, 64, 1000, 5000}) {
    GraphMaker g;
    const Value x = g.parameter(f32, {33, columns});
    const Value e = g.apply("exp", {g.apply("subtract", {x, g.reduce("max", x, {1}, true)})});
    g.result(g.apply("divide", {e, g.reduce("sum", e, {1}, true)}));
    expect_groups(g, "group[max subtract exp sum divide]");
  }
}

TEST(Fuse, RowOpsFuseWithWhatIsAroundThem) {
  for (const DType dtype : {f32, f64, f16, bf16}) {
    const std::string in = is_low_precision(dtype) ? " cast" : "", out = in;
    for (const int64_t axis : {0, 1, 2}) {
      GraphMaker g;
      const Value x = g.parameter(dtype, {4, 70, 30});
      g.result(g.row("softmax", g.apply("multiply", x, 0.5), axis));
      expect_groups(
          g, cat("group[multiply", in, " max subtract exp sum reciprocal multiply", out, "]"));
    }
    GraphMaker g;
    const Value x = g.parameter(dtype, {40, 30});
    g.result(g.apply("negative", {g.row("log_softmax", x, 1)}));
    expect_groups(g, "group[" + (in.empty() ? "" : in.substr(1) + " ") +
                         "max subtract exp sum log subtract" + out + " negative]");
  }
}

TEST(Fuse, RowOpsKeepTheirKernelWhereTheirOrderIsTheirOwn) {
  GraphMaker g;
  g.result(g.row("softmax", g.parameter(f32, {300, 1}), 0));
  g.result(g.row("softmax", g.parameter(f32, {2, 300000}), 1));
  expect_groups(g, "softmax softmax");
}

TEST(Fuse, SoftmaxOfColumns) {
  for (const int64_t steps : {5, 300, 700}) {
    GraphMaker g;
    const Value x = g.parameter(f32, {3, steps, 70});
    const Value e = g.apply("exp", {g.apply("subtract", {x, g.reduce("max", x, {1}, true)})});
    g.result(g.apply("divide", {e, g.reduce("sum", e, {1}, true)}));
    expect_groups(g, "group[max subtract exp sum divide]");
  }
}

TEST(Fuse, LayerNorm) {
  for (const DType dtype : {f32, f64, f16}) {
    GraphMaker g;
    const Value x = g.parameter(dtype, {40, 96}), scale = g.parameter(dtype, {96}),
                shift = g.parameter(dtype, {96});
    const Value mean = g.apply("divide", g.reduce("sum", x, {1}, true), 96);
    const Value d = g.apply("subtract", {x, mean});
    const Value variance =
        g.apply("divide", g.reduce("sum", g.apply("square", {d}), {1}, true), 96);
    const Value r = g.apply("rsqrt", {g.apply("add", variance, 1e-3)});
    g.result(g.apply("add", {g.apply("multiply", {g.apply("multiply", {d, r}), scale}), shift}));
    g.result(g.reshape(mean, {40}));
    expect_groups(
        g, "group[sum divide subtract square sum divide add rsqrt multiply multiply add] reshape");
  }
}

TEST(Fuse, CrossEntropyReadsAPerRowInput) {
  GraphMaker g;
  const Value x = g.parameter(f32, {50, 100}), label = g.parameter(i32, {50, 1}),
              weight = g.parameter(f32, {50});
  const Value top = g.reduce("max", x, {1}, true);
  const Value total = g.reduce("sum", g.apply("exp", {g.apply("subtract", {x, top})}), {1});
  const Value hit = g.apply("equal", {g.range(100, i32), label});
  const Value zero = g.constant(0, f32);
  const Value picked = g.reduce("sum", g.apply("where", {hit, x, zero}), {1});
  const Value log_total = g.apply("add", {g.apply("log", {total}), g.reshape(top, {50})});
  g.result(g.apply("multiply", {g.apply("subtract", {log_total, picked}), weight}));
  expect_groups(g,
                "group[max subtract exp sum arange equal where sum log reshape add subtract "
                "multiply]");
}

TEST(Fuse, ASumOverARangeMaterialisesNothing) {
  GraphMaker g;
  const Value e = g.parameter(f32, {});
  const Value repeated = g.broadcast_to(e, {100000});
  g.result(g.reduce("sum", g.apply("sin", {g.apply("multiply", {repeated, g.range(100000, f32)})}),
                    {0}));
  expect_groups(g, "group[broadcast_to arange multiply sin sum]");
}

TEST(Fuse, ASumOverARepeatIsAProduct) {
  for (const DType dtype : {f32, f64, f16, i32}) {
    GraphMaker g;
    const Value x = g.parameter(dtype, {30});
    g.result(g.reduce("sum", g.broadcast_to(x, {1000, 30}), {0}));
    g.result(g.reduce("sum", g.broadcast_to(x, {1000, 30}), {0, 1}));
    // Computed from repeats, it is no repeat.
    g.result(g.reduce("sum", g.apply("multiply", g.broadcast_to(x, {1000, 30}), 1), {0}));
    expect_same_bits(g.graph);
  }
}

// Few results and long folds: cut into chunks on two threads, whole on one.
TEST(Fuse, LongFoldsUseAllThreads) {
  for (const DType dtype : {f32, f16, i32}) {
    for (const Shape& shape : {Shape{300001}, Shape{1, 300001}, Shape{3, 300001}}) {
      GraphMaker g;
      const AxisList axes = {shape.rank() - 1};
      Shape kept = shape;
      kept.erase(shape.rank() - 1);
      const Value x = g.parameter(dtype, shape);
      const Value weight = g.parameter(dtype == i32 ? i64 : dtype, kept);
      const Value y = g.apply("add", {g.apply("multiply", x, 3), g.range(300001, dtype)});
      g.result(g.apply("multiply", {g.reduce("sum", y, axes), weight}));
      g.result(g.reduce("max", y, axes));
      g.result(y);
      expect_groups(g, "group[multiply arange add sum multiply max]");
    }
    GraphMaker g;
    const Value x = g.parameter(dtype, {40000, 7});
    const Value weight = g.parameter(dtype == i32 ? i64 : dtype, {7});
    const Value y = g.apply("square", {x});
    g.result(g.apply("multiply", {g.reduce("sum", y, {0}), weight}));
    g.result(g.reduce("min", y, {0}));
    expect_groups(g, "group[square sum multiply min]");
  }
}

TEST(Fuse, LongFoldsHaveWorkspaceForTheirChunks) {
  const int threads = num_threads();
  GraphMaker g;
  g.result(g.reduce("sum", g.apply("square", {g.parameter(f32, {1000000})}), {0}));
  const Graph grouped = fused(g.graph);
  passes::Scheduler scheduler(grouped);
  const ArrayRef in{nullptr, f32, {1000000}, {1}}, out{nullptr, f32, {}, {}};
  const auto bytes = [&](int count) {
    set_num_threads(count);
    const Node& group = grouped.nodes[static_cast<size_t>(grouped.body().nodes[0])];
    return plan_group(scheduler, group, {&in, 1}, {&out, 1}).workspace_bytes;
  };
  // 31 chunks of 8 blocks and their total; the kernel needs no scratch.
  EXPECT_EQ(bytes(1), 0);
  EXPECT_EQ(bytes(2), 128 + 64);
  set_num_threads(threads);
}

TEST(Fuse, Positions) {
  GraphMaker g;
  const Value x = g.parameter(f32, {30, 200});
  const Value y = g.apply("square", {x});
  g.result(g.reduce("argmax", y, {1}));
  g.result(g.reduce("argmin", y, {1}, true));
  expect_groups(g, "group[square argmax argmin]");
}

TEST(Fuse, SiblingsThatWriteLittleReadOnce) {
  GraphMaker g;
  const Value x = g.parameter(f32, {30, 200});
  g.result(g.reduce("max", x, {1}));
  g.result(g.reduce("sum", x, {1}));
  expect_groups(g, "group[max sum]");
}

TEST(Fuse, SiblingsThatWriteMuchStayApart) {
  GraphMaker g;
  const Value x = g.parameter(f32, {30, 200});
  g.result(g.apply("exp", {x}));
  g.result(g.apply("sin", {x}));
  expect_groups(g, "group[exp] group[sin]");
}

TEST(Fuse, RowsThatDoNotFitTheCacheAreNotSweptTwice) {
  GraphMaker g;
  const Value x = g.parameter(f32, {2, 200000});
  g.result(g.apply("subtract", {x, g.reduce("max", x, {1}, true)}));
  expect_groups(g, "group[max] group[subtract]");
}

TEST(Fuse, InnerAndOuterAxesAtOnceFoldInTwoKernels) {
  GraphMaker g;
  const Value x = g.parameter(f32, {5, 6, 7});
  g.result(g.reduce("sum", g.apply("exp", {x}), {0, 2}));
  expect_groups(g, "group[exp] sum");
}

TEST(Fuse, RangesWithoutAnIndexAreRead) {
  GraphMaker g;
  const Value x = g.parameter(f32, {40, 30});
  const Value rows = g.reshape(g.range(40, f32), {40, 1}), columns = g.range(30, f32, 1, 0.5);
  g.result(g.apply("add", {g.apply("multiply", {x, rows}), columns}));
  expect_same_bits(g.graph);
}

TEST(Fuse, TheNumberOfExpressionsIsBounded) {
  GraphMaker g;
  Value x = g.parameter(f32, {100});
  for (int i = 0; i < 300; ++i) x = g.apply("add", x, i);
  g.result(x);
  const Graph grouped = fused(g.graph);
  EXPECT_GT(grouped.body().nodes.size(), 3U);
  EXPECT_LT(grouped.body().nodes.size(), 12U);
  expect_same_bits(g.graph);
}

// ---- in place -----------------------------------------------------------------------------------

const Node& only_group(const Graph& graph) {
  return graph.nodes[static_cast<size_t>(graph.body().nodes[0])];
}

TEST(MayOverwrite, WhereEveryReadIsAtTheElementWritten) {
  GraphMaker g;
  const Value x = g.parameter(f32, {20, 30}), row = g.parameter(f32, {30}),
              other = g.parameter(f32, {30, 20});
  const Value y = g.apply("add", {g.apply("multiply", {x, x}), row});
  g.result(g.apply("add", {y, g.transpose(other, {1, 0})}));
  const Graph grouped = fused(g.graph);
  passes::Scheduler scheduler(grouped);
  const Node& group = only_group(grouped);
  std::string may;
  for (int32_t input = 0; input < 3; ++input)
    may += compile::may_overwrite(scheduler, group, input, 0) ? "yes " : "no ";
  EXPECT_EQ(may, "yes no no ");
}

TEST(MayOverwrite, NotWhereALaterSweepReads) {
  GraphMaker g;
  const Value x = g.parameter(f32, {20, 30});
  const Value y = g.apply("multiply", x, 2);
  const Value top = g.reduce("max", y, {1}, true);
  g.result(y);
  g.result(g.apply("subtract", {x, top}));
  const Graph grouped = fused(g.graph);
  passes::Scheduler scheduler(grouped);
  const Node& group = only_group(grouped);
  EXPECT_EQ(group.results.size(), 2U);
  EXPECT_FALSE(compile::may_overwrite(scheduler, group, 0, 0));
  EXPECT_TRUE(compile::may_overwrite(scheduler, group, 0, 1));
}

// ---- layouts ------------------------------------------------------------------------------------

TEST(GroupTask, TakesAnyLayout) {
  GraphMaker g;
  const Value x = g.parameter(f32, {12, 10});
  const Value y = g.apply("add", g.reshape(x, {8, 15}), 1);
  g.result(g.reduce("sum", y, {1}));
  g.result(y);
  const Graph grouped = fused(g.graph);
  passes::Scheduler scheduler(grouped);
  // The argument as the transpose of another array: its reshape has no strides. The second result
  // goes backwards.
  Memory turned({f32, {10, 12}}), dense({f32, {12, 10}}), sums({f32, {8}}),
      reversed({f32, {8, 15}});
  for (int64_t i = 0; i < 120; ++i)
    reinterpret_cast<float*>(dense.ref().data)[i] = static_cast<float>(i) * 0.37F;
  const ArrayRef seen{turned.ref().data, f32, {12, 10}, {1, 12}};
  compile::run_copy(dense.ref(), seen);
  ArrayRef backwards = reversed.ref();
  backwards.data += 119 * sizeof(float);
  backwards.strides = {-15, -1};
  const ArrayRef results[] = {backwards, sums.ref()};  // In the order of the nodes.
  const compile::TaskPlan plan = plan_group(scheduler, only_group(grouped), {&seen, 1}, results);
  compile::KernelBatch batch;
  const std::unique_ptr<run::Task> task = plan.make(batch);
  batch.compile();
  Memory workspace({u8, {plan.workspace_bytes}});
  std::byte* const operands[] = {seen.data, backwards.data, sums.ref().data};
  task->run(operands, workspace.ref().data);
  EXPECT_TRUE(workspace.edges_are_whole());
  std::vector<Memory> arguments, got;
  arguments.push_back(std::move(dense));
  const std::vector<Memory> expected = run_graph(g.graph, arguments);
  Memory forwards({f32, {8, 15}});
  compile::run_copy(backwards, forwards.ref());
  got.push_back(std::move(sums));
  got.push_back(std::move(forwards));
  EXPECT_EQ(difference(expected, got), "");
}

// ---- kernels ------------------------------------------------------------------------------------

TEST(SharedKernel, EqualNestsHaveOneAndItGoesWithTheLast) {
  const auto task = [](double number) {
    GraphMaker g;
    g.result(g.apply("multiply", g.apply("sin", {g.parameter(f32, {1000})}), number));
    const Graph grouped = fused(g.graph);
    passes::Scheduler scheduler(grouped);
    const ArrayRef layout{nullptr, f32, {1000}, {1}};
    compile::KernelBatch batch;
    auto made = plan_group(scheduler, only_group(grouped), {&layout, 1}, {&layout, 1}).make(batch);
    batch.compile();
    return made;
  };
  const int64_t before = compile::code_bytes();
  std::unique_ptr<run::Task> first = task(2);
  const int64_t one = compile::code_bytes();
  std::unique_ptr<run::Task> second = task(3);  // The same but for a number.
  EXPECT_EQ(compile::code_bytes(), one);
  if (compile::emitter() == Emitter::automatic) {
    EXPECT_GT(one, before);
  }
  first.reset();
  EXPECT_EQ(compile::code_bytes(), one);
  second.reset();
  EXPECT_EQ(compile::code_bytes(), before);
}

// A map over rows whose body is fused before the body of the function is.
Graph mapped_softmax(int64_t trips, int64_t size) {
  const std::string row = cat("f32[", size, "]"), all = cat("f32[", trips, ", ", size, "]");
  return parse_graph(
      cat("function(%x: ", all, ") {\n  %m: ", all, " = map(%x) {slices = 1, trips = ", trips,
          "}\n    (%r: ", row, ") {\n      %a: ", row, " = exp(%r)\n      %b: ", row,
          " = multiply(%a, %r)\n      return %b\n    }\n  %s: ", all,
          " = softmax(%m) {axis = 1}\n  %t: ", all, " = exp(%s)\n  return %t\n}"),
      "mapped");
}

TEST(Fuse, AtASizeWhereItCannotBeTheSameStartsAgain) {
  passes::Fusions fusions;
  Graph first = mapped_softmax(4, 100);
  passes::fuse(first, kCache, &fusions);
  const auto fused_again = [&](const Graph& graph) {
    Graph copy = graph;
    passes::fuse(copy, kCache, &fusions);
    return to_text(compact(std::move(copy)));
  };
  // Alike; rows of one element; rows that do not fit into the cache; no element at all.
  for (const int64_t size : {50, 1, 1 << 20, 0}) {
    const Graph graph = mapped_softmax(3, size);
    EXPECT_EQ(fused_again(graph), to_text(fused(graph))) << size;
  }
}

}  // namespace
}  // namespace tidemark
