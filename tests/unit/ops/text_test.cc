#include "tidemark/ops/text/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "tidemark/ops/check_node.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/linalg.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/scan.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

using Integers = std::vector<int64_t>;
using Sizes = std::vector<Dim>;

Attrs& operator<<(Attrs& attrs, const Integers& list) {
  return attrs.add(std::span<const int64_t>(list));
}
template <class... Parts>
Attrs attributes(const Parts&... parts) {
  Attrs attrs;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_same_v<decltype(part), const Integers&>) {
      attrs << part;
    } else if constexpr (std::is_same_v<decltype(part), const Sizes&>) {
      attrs.add(std::span<const Dim>(part));
    } else {
      attrs.add(part);
    }
  };
  (add(parts), ...);
  return attrs;
}

// A graph made through its API, which remembers the ops it has used.
struct Maker {
  Graph graph;
  std::set<std::string_view> used;

  Value parameter(DType dtype, const Shape& shape, RegionId region = Graph::kBody) {
    return graph.add_parameter(region, {dtype, shape}, Source::here());
  }
  Value add(const OpDef& op, const std::vector<Value>& inputs, const Attrs& attrs = {},
            const std::vector<RegionId>& regions = {}, RegionId region = Graph::kBody) {
    Node node;
    node.op = &op;
    node.attrs = attrs;
    node.inputs = SmallVec<Value, 3>(std::span(inputs));
    node.regions = SmallVec<RegionId, 2>(std::span(regions));
    node.results = check_node(graph, node);
    used.insert(op.name);
    return {graph.add_node(region, std::move(node)), 0};
  }
  template <class Op>
  Value add(const Op& op, const std::vector<Value>& inputs, const Attrs& attrs = {},
            const std::vector<RegionId>& regions = {}, RegionId region = Graph::kBody) {
    return add(def_of(&op), inputs, attrs, regions, region);
  }
  Value constant(DType dtype, double real, int64_t whole, RegionId region = Graph::kBody) {
    return add(ops::constant, {}, attributes(dtype, real, whole), {}, region);
  }
  void returns(const std::vector<Value>& values, RegionId region = Graph::kBody) {
    graph.regions[static_cast<size_t>(region)].results = values;
  }
};

void expect_same(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const Node &x = a.nodes[i], &y = b.nodes[i];
    EXPECT_TRUE(x.op == y.op && x.attrs == y.attrs && x.inputs == y.inputs &&
                x.results == y.results && x.regions == y.regions)
        << "node " << i;
  }
  ASSERT_EQ(a.regions.size(), b.regions.size());
  for (size_t i = 0; i < a.regions.size(); ++i) {
    const Region &x = a.regions[i], &y = b.regions[i];
    EXPECT_TRUE(x.parameters == y.parameters && x.nodes == y.nodes && x.results == y.results)
        << "region " << i;
  }
}

void expect_round_trip(const Graph& graph) {
  verify(graph);
  const std::string text = to_text(graph);
  SCOPED_TRACE(text);
  const Graph parsed = parse_graph(text, "round.tm");
  verify(parsed);
  expect_same(compact(graph), parsed);
  EXPECT_EQ(to_text(parsed), text);
}

// A dtype that the op computes in.
DType dtype_for(const OpDef& op) {
  for (const DType dtype : {DType::f32, DType::i32, DType::boolean})
    if (computes_in(op, dtype)) return dtype;
  return DType::f32;
}

void add_by_family(Maker& make, const OpDef& op) {
  const DType dtype = dtype_for(op);
  std::vector<Value> inputs;
  for (int i = 0; i < op.arity; ++i) {
    const bool condition = i == 0 && has_condition(op);
    inputs.push_back(
        make.parameter(condition ? DType::boolean : dtype, i == 1 ? Shape{1, 3} : Shape{2, 3}));
  }
  if (op.family == Family::pointwise) make.add(op, inputs);
  if (op.family == Family::reduce) make.add(op, inputs, attributes(Integers{0, 1}, true));
  if (op.family == Family::row) make.add(op, inputs, attributes(int64_t{1}));
}

void add_structure(Maker& make) {
  const Value x = make.parameter(DType::f32, {2, 3});
  make.add(ops::cast, {x}, attributes(DType::bf16));
  const Value pairs = make.add(ops::reshape, {x}, attributes(Sizes{3, 2}));
  make.add(ops::view_as_real, {make.add(ops::view_as_complex, {pairs})});
  make.add(ops::transpose, {x}, attributes(Integers{1, 0}));
  make.add(ops::stop_gradient, {x});
  make.add(ops::transfer, {x}, attributes(int64_t{1}));
  make.add(ops::transfer_back, {x, x});
  make.add(ops::slice, {x}, attributes(Sizes{1, 2}, Sizes{1, 2}, Integers{1, -2}));
  make.add(ops::broadcast_to, {x}, attributes(Sizes{4, 2, 3}));
  make.add(ops::update, {x, make.parameter(DType::f32, {1, 2})},
           attributes(Sizes{1, 2}, Sizes{1, 2}, Integers{1, -2}));
  make.add(ops::concat, {x, x, x}, attributes(int64_t{1}));
  make.add(ops::pad, {x}, attributes(Sizes{1, 0}, Sizes{0, 2}, Integers{0, 1}, -0.0, int64_t{0}));
}

void add_indexing(Maker& make) {
  const Value x = make.parameter(DType::f32, {2, 3});
  const Value rows = make.parameter(DType::i32, {4});
  const Value places = make.parameter(DType::i64, {2, 5});
  const Value updates = make.parameter(DType::f32, {4, 3});
  make.add(ops::gather, {x, rows}, attributes(int64_t{0}));
  make.add(ops::take_along_axis, {x, places}, attributes(int64_t{1}, true));
  make.add(ops::scatter_add, {x, rows, updates}, attributes(int64_t{0}, false));
  make.add(ops::scatter_max, {x, rows, updates}, attributes(int64_t{0}, false));
  make.add(ops::scatter_min, {x, rows, updates}, attributes(int64_t{0}, false));
  make.add(ops::scatter_mul, {x, rows, updates}, attributes(int64_t{0}, false));
  make.add(ops::cummax, {x}, attributes(int64_t{0}, true));
  make.add(ops::cummin, {x}, attributes(int64_t{1}, false));
  make.add(ops::cumprod, {x}, attributes(int64_t{1}, false));
  make.add(ops::cumsum, {x}, attributes(int64_t{1}, true));
  make.add(ops::linear_scan, {x, x}, attributes(int64_t{1}, true));
  const Value pairs = make.parameter(DType::f32, {3, 2});
  make.add(ops::fourier, {pairs}, attributes(Integers{0, 1}, true, 0.5));
  make.add(ops::real_fourier, {x}, ops::RealFourierSpec{.count = 3}.attrs());
  make.add(ops::searchsorted, {x, x}, attributes(true));
  make.add(ops::first_equal, {rows});
  make.add(ops::sort, {x}, attributes(int64_t{1}, true));
  make.add(ops::top_k, {x}, attributes(int64_t{0}, Dim(1)));
  make.add(ops::put, {x, make.parameter(DType::i64, {}), make.parameter(DType::f32, {3})});
}

void add_contractions(Maker& make) {
  const Value a = make.parameter(DType::f32, {7, 2, 3}), b = make.parameter(DType::f32, {3, 5});
  make.add(ops::matmul, {a, b});
  make.add(ops::distances, {a, b}, attributes(true));
  make.add(ops::weighted_differences, {a, make.parameter(DType::f32, {2, 5}), b});
  const Value image = make.parameter(DType::f32, {1, 8, 8, 4});
  const Value kernel = make.parameter(DType::f32, {3, 3, 2, 6});
  make.add(
      ops::conv2d, {image, kernel},
      ops::ConvSpec{.stride = {2, 1}, .pad_low = {1, 0}, .pad_high = {0, -1}, .groups = 2}.attrs());
  make.add(
      ops::conv3d,
      {make.parameter(DType::f32, {1, 4, 5, 6, 2}), make.parameter(DType::f32, {2, 3, 1, 2, 7})},
      ops::ConvSpec{.pad_low = {1, 0, 2}, .spread = {1, 2, 3}, .axes = 3}.attrs());
  make.add(ops::conv_kernel, {image, make.parameter(DType::f32, {1, 6, 7, 6})},
           ops::ConvSpec{.groups = 2, .taps = {3, 2}}.attrs());
  make.add(ops::resample, {a}, ops::ResampleSpec{1, Dim(9), Sampling::cubic, true, false}.attrs());
  const Value rows = make.parameter(DType::f32, {2, 3}),
              columns = make.parameter(DType::f32, {3, 4});
  make.add(ops::accumulate, {make.parameter(DType::f32, {2, 4}), rows, columns});
  make.add(
      ops::accumulate_conv2d,
      {make.parameter(DType::f32, {1, 6, 6, 5}), image, make.parameter(DType::f32, {3, 3, 4, 5})},
      ops::ConvSpec{.by_channel = true}.attrs());
}

void add_linear_algebra(Maker& make) {
  const Value a = make.parameter(DType::f64, {2, 3, 3}), b = make.parameter(DType::f64, {2, 3, 4});
  for (const auto* op : {&ops::cholesky, &ops::eigh, &ops::expm, &ops::lu, &ops::svd})
    make.add(*op, {a});
  make.add(ops::pinv, {b}, attributes(-1.0));
  make.add(ops::qr, {b}, attributes(true));
  make.add(ops::solve, {a, b}, attributes(true));
  make.add(ops::solve_triangular, {a, b}, attributes(true, false, true));
}

void add_sources(Maker& make) {
  const Sizes shape = {2, 3};
  make.add(ops::arange, {},
           attributes(Sizes{5}, DType::f64, 0.1, -2.5, false, int64_t{0}, int64_t{0}));
  const Value key = make.constant(DType::i64, 0, -7);
  make.add(ops::random_fold, {key, key});
  make.add(ops::random_integers, {key}, attributes(shape, DType::i32, int64_t{0}, int64_t{9}));
  for (const auto* op : {&ops::random_bernoulli, &ops::random_normal, &ops::random_uniform})
    make.add(*op, {key}, attributes(shape, DType::f32, 0.25, 1e-300));
  make.add(ops::random_permutation, {key}, attributes(Sizes{6}, DType::i64, 0.0, 0.0));
  make.add(ops::random_by_element, {key, make.parameter(DType::f64, {2, 3})},
           attributes(Sizes{2, 3}, DType::f64, int64_t{0}));
  make.add(ops::size_value, {}, attributes(Dim(5), DType::i64));
  make.constant(DType::bf16, 0.5, 0);
  make.constant(DType::i64, 0, std::numeric_limits<int64_t>::min());
  make.constant(DType::u8, 0, 255);
  make.constant(DType::i8, 0, -128);
  make.constant(DType::u64, 0, -1);  // 2^64 - 1, by its bits.
  make.constant(DType::boolean, 0, 1);
}

void add_effects(Maker& make) {
  const Value x = make.parameter(DType::f32, {2}), yes = make.parameter(DType::boolean, {});
  const Value index = make.parameter(DType::i32, {3});
  make.add(ops::print, {x, yes}, attributes(Integers{'x', ' ', -1, '"', -1, 255}));
  make.add(ops::check_numerics, {x}, attributes(Integers{'a'}));
  make.add(ops::assert_that, {yes, x}, attributes(Integers{}));
  make.add(ops::check_index, {index}, attributes(Integers{'i', -1}, Dim(5)));
}

// A map in a branch in a loop, and a group.
void add_control(Maker& make) {
  const Value start = make.parameter(DType::f32, {4});
  const Value rows = make.parameter(DType::f32, {6, 4});
  const Value yes = make.parameter(DType::boolean, {});

  const RegionId body = make.graph.add_region();
  make.parameter(DType::i64, {}, body);
  const Value carry = make.parameter(DType::f32, {4}, body);
  const Value row = make.parameter(DType::f32, {4}, body);
  const Value flag = make.parameter(DType::boolean, {}, body);

  const RegionId then = make.graph.add_region();
  const Value inner = make.parameter(DType::f32, {4}, then);
  const RegionId each = make.graph.add_region();
  const Value element = make.parameter(DType::f32, {}, each);
  make.returns({make.add(negative, {element}, {}, {}, each)}, each);
  const Value mapped =
      make.add(ops::map, {inner}, attributes(int64_t{1}, Dim(4), Dim(2), Integers{}), {each}, then);
  make.returns({mapped}, then);
  const RegionId otherwise = make.graph.add_region();
  make.returns({make.parameter(DType::f32, {4}, otherwise)}, otherwise);
  const Value chosen = make.add(ops::cond, {flag, carry}, {}, {then, otherwise}, body);
  const Value next = make.add(add, {chosen, row}, {}, {}, body);
  make.returns({next, next}, body);
  const Value looped =
      make.add(ops::loop, {start, rows, yes},
               attributes(int64_t{1}, int64_t{1}, int64_t{1}, Dim(6), true, false, int64_t{1},
                          int64_t{0}, int64_t{1}, int64_t{0}, int64_t{0}),
               {body});

  const Value marks = make.parameter(DType::i64, {6});
  const Value states = make.parameter(DType::f32, {3, 4});
  const RegionId ahead = make.graph.add_region(), back = make.graph.add_region();
  make.parameter(DType::i64, {}, ahead);
  const Value state = make.parameter(DType::f32, {4}, ahead);
  make.returns({make.add(add, {state, make.parameter(DType::f32, {4}, ahead)}, {}, {}, ahead)},
               ahead);
  make.parameter(DType::i64, {}, back);
  make.parameter(DType::f32, {4}, back);
  const Value gradient = make.parameter(DType::f32, {4}, back);
  make.returns({gradient, make.parameter(DType::f32, {4}, back)}, back);
  make.add(ops::reverse_loop, {marks, states, start, start, rows},
           attributes(int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, Dim(6), true, false, true,
                      int64_t{1}, int64_t{3}, int64_t{4}),
           {ahead, back});

  const RegionId fused = make.graph.add_region();
  const Value a = make.parameter(DType::f32, {4}, fused);
  make.returns({make.add(exp, {a}, {}, {}, fused), a}, fused);
  const Value grouped = make.add(ops::group, {looped}, {}, {fused});
  make.returns({{looped.node, 1}, {grouped.node, 1}, grouped});
}

void add_call(Maker& make) {
  const Value x = make.parameter(DType::f32, {4});
  const RegionId body = make.graph.add_region();
  make.returns({make.add(exp, {make.parameter(DType::f32, {4}, body)}, {}, {}, body)}, body);
  make.add(ops::call, {x}, attributes(int64_t{1}, Integers{}, Integers{}), {body});
}

TEST(Text, RoundTripsEveryOp) {
  Maker make;
  make.graph.name = "all";
  for (const OpDef& op : catalogue())
    if (op.value != nullptr || op.family == Family::reduce || op.family == Family::row)
      add_by_family(make, op);
  add_structure(make);
  add_indexing(make);
  add_contractions(make);
  add_linear_algebra(make);
  add_sources(make);
  add_effects(make);
  add_control(make);
  add_call(make);
  for (const OpDef& op : catalogue_of_programs()) {
    EXPECT_TRUE(make.used.contains(op.name)) << op.name << " is not tested";
  }
  expect_round_trip(make.graph);
}

TEST(Text, PrintsRegionsResultsAndAttributes) {
  Maker make;
  add_control(make);
  EXPECT_EQ(to_text(make.graph),
            R"(function(%0: f32[4], %1: f32[6, 4], %2: bool[], %3: i64[6], %4: f32[3, 4]) {
  %5: f32[4], %6: f32[6, 4] = loop(%0, %1, %2) {carries = 1, slices = 1, stacked = 1, trips = 6, reverse = true, save = 1, saved = 1}
    (%7: i64[], %8: f32[4], %9: f32[4], %10: bool[]) {
      %11: f32[4] = cond(%10, %8)
        (%12: f32[4]) {
          %13: f32[4] = map(%12) {slices = 1, trips = 4, alive = 2}
            (%14: f32[]) {
              %15: f32[] = negative(%14)
              return %15
            }
          return %13
        }
        (%16: f32[4]) {
          return %16
        }
      %17: f32[4] = add(%11, %9)
      return %17, %17
    }
  %18: f32[4], %19: f32[6, 4] = reverse_loop(%3, %4, %0, %0, %1) {carries = 1, backs = 1, slices = 1, stacked = 1, trips = 6, reverse = true, linear = true, seeds = 1, save = 3, amount = 4}
    (%20: i64[], %21: f32[4], %22: f32[4]) {
      %23: f32[4] = add(%21, %22)
      return %23
    }
    (%24: i64[], %25: f32[4], %26: f32[4], %27: f32[4]) {
      return %26, %27
    }
  %28: f32[4], %29: f32[4] = group(%5)
    (%30: f32[4]) {
      %31: f32[4] = exp(%30)
      return %31, %30
    }
  return %6, %29, %28
}
)");
}

// Marks and checkpoints stand where `marks` says; what is stacked later stands behind them.
TEST(Text, ReadsLoopsWithCheckpoints) {
  constexpr std::string_view text = R"(function(%0: f32[4]) {
  %1: f32[4], %2: f32[6, 4], %3: i64[8], %4: f32[4, 4], %5: f32[6, 4] = loop(%0) {carries = 1, stacked = 2, trips = 6, save = 3, amount = 4, saved = 1, marks = 2, kept = 1}
    (%6: i64[], %7: f32[4]) {
      %8: f32[4] = sin(%7)
      return %8, %7, %8
    }
  return %2, %3, %4
}
)";
  const Graph graph = parse_graph(text, "round.tm");
  verify(graph);
  EXPECT_EQ(to_text(graph), text);
}

TEST(Text, PrintsEffectsWithTheirTexts) {
  Maker make;
  add_effects(make);
  EXPECT_EQ(to_text(make.graph), R"(function(%0: f32[2], %1: bool[], %2: i32[3]) {
  print(%0, %1) {text = "x \%\"\%\xff"}
  check_numerics(%0) {text = "a"}
  assert_that(%1, %0)
  check_index(%2) {text = "i\%", size = 5}
  return
}
)");
  expect_round_trip(make.graph);
}

TEST(Text, PrintsNoTraceOfWhatPassesDropped) {
  Maker make;
  const Value x = make.parameter(DType::f32, {2});
  make.add(exp, {x});
  const Value y = make.add(sin, {x});
  make.returns({y});
  make.graph.body().nodes.erase(make.graph.body().nodes.begin());
  EXPECT_EQ(to_text(make.graph),
            "function(%0: f32[2]) {\n  %1: f32[2] = sin(%0)\n  return %1\n}\n");
  expect_round_trip(make.graph);
}

TEST(Text, PrintsTheLineOfANodeWhereAsked) {
  const Graph graph = parse_graph("function f(%x: f32[]) {\n\n%y: f32[] = exp(%x) return %y }",
                                  "some/folder/model.tm");
  EXPECT_EQ(to_text(graph, {.sources = true}),
            "function f(%0: f32[]) {\n  %1: f32[] = exp(%0)  # model.tm:3\n  return %1\n}\n");
  EXPECT_STREQ(graph.nodes[1].source.file, "some/folder/model.tm");
}

TEST(Text, KeepsNumbersToTheBit) {
  const double numbers[] = {0.0,
                            -0.0,
                            0.1,
                            1.0 / 3,
                            1e22,
                            -2.5,
                            123456789012345680,
                            std::numeric_limits<double>::max(),
                            std::numeric_limits<double>::min(),
                            std::numeric_limits<double>::denorm_min(),
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity()};
  for (const double number : numbers) {
    Maker make;
    make.returns({make.constant(DType::f64, number, 0)});
    const Graph parsed = parse_graph(to_text(make.graph), "numbers.tm");
    Attrs::Reader read = parsed.nodes[0].attrs.read();
    EXPECT_EQ(read.dtype(), DType::f64);
    EXPECT_EQ(std::bit_cast<int64_t>(read.number()), std::bit_cast<int64_t>(number)) << number;
  }
  Maker make;
  make.returns({make.constant(DType::f32, std::nan(""), 0)});
  EXPECT_EQ(to_text(make.graph), "function() {\n  %0: f32[] = constant nan\n  return %0\n}\n");
  expect_round_trip(make.graph);
}

TEST(Text, QuotesNamesThatAreNone) {
  Graph graph;
  graph.name = "a \"step\"\\\n\xff";
  EXPECT_EQ(to_text(graph), "function \"a \\\"step\\\"\\\\\\x0a\\xff\"() {\n  return\n}\n");
  expect_round_trip(graph);
}

TEST(Text, TakesNamesCommentsAndAttributesInAnyOrder) {
  const Graph graph = parse_graph(
      "# A comment.\n"
      "function f(%image: f32[?, 3],%w_1:f32[3,4]){ # another\n"
      "  %total: f32[1, 1] = sum(%w_1) {keepdims = true, axes = [0, 1]}\r\n"
      "  %y: f32[?, 3] = multiply(%image, %image)\n"
      "  return %y, %total }\n",
      "f.tm");
  EXPECT_EQ(to_text(graph),
            "function f(%0: f32[?, 3], %1: f32[3, 4]) {\n"
            "  %2: f32[1, 1] = sum(%1) {axes = [0, 1], keepdims = true}\n"
            "  %3: f32[?, 3] = multiply(%0, %0)\n"
            "  return %3, %2\n"
            "}\n");
}

// Every program in the documentation is one.
TEST(Text, ParsesTheExamplesOfItsDocumentation) {
  std::ifstream in(TIDEMARK_SOURCE_DIR "/docs/ir.md");
  std::ostringstream whole;
  whole << in.rdbuf();
  const std::string page = whole.str();
  int examples = 0;
  for (size_t at = page.find("```tm\n"); at != std::string::npos; at = page.find("```tm\n", at)) {
    at += 6;
    const std::string example = page.substr(at, page.find("```", at) - at);
    EXPECT_EQ(to_text(parse_graph(example, "ir.md")), example);
    ++examples;
  }
  EXPECT_GE(examples, 1);
}

// ---- errors -------------------------------------------------------------------------------------

void expect_error(const std::string& text, const std::string& error) {
  try {
    parse_graph(text, "p.tm");
    ADD_FAILURE() << "no error in: " << text << "\nwanted: " << error;
  } catch (const TextError& found) {
    EXPECT_EQ(found.what(), error) << text;
  }
}
// `nodes` in a function with parameters of several types.
void expect_node_error(const std::string& nodes, const std::string& error) {
  expect_error("function(%a: f32[2, 3], %b: f32[3, 4], %i: i32[2], %c: bool[], %s: f32[]) {\n" +
                   nodes + "\n return }",
               error);
}
const std::string kGrammar = "\n  docs/ir.md has the grammar of programs";

TEST(TextErrors, NameWhatWasExpectedAndFound) {
  expect_error(
      "", "p.tm:1:1: expected 'function' at the beginning, found the end of the file" + kGrammar);
  expect_error("\n  step(",
               "p.tm:2:3: expected 'function' at the beginning, found 'step'" + kGrammar);
  expect_error("function f\n{",
               "p.tm:2:1: expected '(' before the parameters, found '{'" + kGrammar);
  expect_error("function f(x", "p.tm:1:12: expected a value such as %0, found 'x'" + kGrammar);
  expect_error("function f(%x f32[])",
               "p.tm:1:15: expected ':' before the value's type, found 'f32'" + kGrammar);
  expect_error("function f(%x: f32[] %y",
               "p.tm:1:22: expected ',' or ')' after a parameter, found '%y'" + kGrammar);
  expect_error("function f(%x: f32)",
               "p.tm:1:19: expected '[' after the dtype, found ')'" + kGrammar);
  expect_error("function f() return",
               "p.tm:1:14: expected '{' before the nodes of a function or region, found 'return'" +
                   kGrammar);
  expect_error("function f() { return",
               "p.tm:1:22: expected '}' after the results, found the end of the file" + kGrammar);
  expect_error("function f() { return } x",
               "p.tm:1:25: expected the end of the file after the function, found 'x'" + kGrammar);
  expect_error("function f() { (",
               "p.tm:1:16: expected a value, an op or 'return', found '('" + kGrammar);
  expect_error("function f() { @",
               "p.tm:1:16: expected a value, an op or 'return', found '@'" + kGrammar);
  expect_error("function f() { \x01\xff",
               "p.tm:1:16: expected a value, an op or 'return', found '?'" + kGrammar);
  expect_error("function f(%x: f33[])",
               "p.tm:1:16: expected a dtype, found 'f33'\n  the dtypes are f16, bf16, f32, f64, "
               "i8, i16, i32, i64, u8, u16, u32, u64, bool, c64 and c128");
  expect_error("function f(%x: f32[n])",
               "p.tm:1:20: expected a size, found 'n'\n  a size is a number from 0 up, or ? for an "
               "open size");
  expect_error("function f(%x: f32[-2])",
               "p.tm:1:20: expected a size, found '-2'\n  a size is a number from 0 up, or ? for "
               "an open size");
  expect_error("function f(%x: f32[1.5])",
               "p.tm:1:20: expected a whole number, found '1.5'" + kGrammar);
  expect_error(
      "function f(%x: f32[99999999999999999999])",
      "p.tm:1:20: '99999999999999999999' does not fit 64 bits\n  write a number that does");
  expect_error("function f(%x: f32[0, 4611686018427387904])",
               "p.tm:1:16: f32[0, 4611686018427387904] has more bytes than a machine can address\n "
               " make one of the sizes smaller");
  expect_error("function \"\\q\"() {",
               "p.tm:1:10: '\"\\q\"' has an unknown escape sequence\n  the escapes are \\\\, \\\", "
               "\\xNN, and \\% for an operand");
  expect_error("function \"open",
               "p.tm:1:10: expected '(' before the parameters, found '\"open'" + kGrammar);
}

TEST(TextErrors, OfValues) {
  expect_node_error("%a: f32[] = exp(%s)",
                    "p.tm:2:1: '%a' is defined twice in its region\n  a value is defined once: "
                    "give this one another name");
  expect_node_error(
      "%y: f32[] = exp(%z)",
      "p.tm:2:17: '%z' is not defined before this line\n  values are defined before they are read");
  expect_node_error(
      "%y: f32[] = exp(%y)",
      "p.tm:2:17: '%y' is not defined before this line\n  values are defined before they are read");
  expect_node_error("%y: f32[2] = map(%i) {slices = 1, trips = 2} (%k: i32[]) { return %s }",
                    "p.tm:2:67: '%s' belongs to a region around this one\n  regions are closed: "
                    "make it an operand of the node and a parameter of the region");
  expect_node_error("%y: f32[] exp(%s)",
                    "p.tm:2:11: expected '=' after the results, found 'exp'" + kGrammar);
  expect_node_error("%y: f32[] = exp %s",
                    "p.tm:2:17: expected '(' before the operands, found '%s'" + kGrammar);
  expect_node_error("%y: f32[] = exp(%s",
                    "p.tm:3:2: expected ',' or ')' after an operand, found 'return'" + kGrammar);
  expect_node_error(
      "%y: f32[] = expp(%s)",
      "p.tm:2:13: there is no op 'expp'\n  ops have the names of the C++ functions, without td::");
}

TEST(TextErrors, OfMarks) {
  expect_node_error("%y: f32[2, 3] = exp(%a) gradient of expp",
                    "p.tm:2:37: there is no op 'expp'\n  a gradient is that of an op: gradient of "
                    "tanh");
  expect_node_error("%y: f32[2, 3] = exp(%a) gradient exp",
                    "p.tm:2:34: expected 'of' after 'gradient', found 'exp'\n  docs/ir.md has the "
                    "grammar of programs");
}

TEST(TextErrors, OfTypes) {
  expect_node_error("%y: f32[2, 2] = exp(%a)",
                    "p.tm:2:5: expected f32[2, 3], which exp gives, found f32[2, 2]\n  write the "
                    "type that the op gives, or give it other operands");
  expect_node_error(
      "%y: f32[2, 3], %z: f32[] = exp(%a)",
      "p.tm:2:28: exp has 1 result, the text names 2\n  name each result, with its type");
  expect_node_error(
      "exp(%a)", "p.tm:2:1: exp has 1 result, the text names 0\n  name each result, with its type");
  expect_node_error("%y: f32[] = exp(%a, %a)",
                    "p.tm:2:13: exp: takes 1 operand, got 2\n  e to the power of each element.");
  expect_node_error(
      "%y: f32[] = add(%a)",
      "p.tm:2:13: add: takes 2 operands, got 1\n  Sums of elements; logical or of bools.");
  expect_node_error("%y: f32[] = concat()",
                    "p.tm:2:13: concat: takes one operand or more, got 0\n  Tensors one after "
                    "another along an axis.");
  expect_node_error("%y: f32[] = add(%a, %b)",
                    "p.tm:2:13: add: shapes [2, 3] and [3, 4] do not broadcast (2 and 3 at axis "
                    "-2)\n  sizes must be equal, or one of them 1");
  expect_node_error("%y: f32[] = add(%a, %i)",
                    "p.tm:2:13: add: operands f32[2, 3] and i32[2] differ in dtype\n  programs do "
                    "not promote dtypes: add a cast node for one of them");
  expect_node_error("%y: f32[] = exp(%i)",
                    "p.tm:2:13: exp: does not compute in i32\n  programs do not promote dtypes: "
                    "add a cast node for the operand");
  expect_node_error("%y: c64[2] = cast(%i) {dtype = c64}",
                    "p.tm:2:14: cast: does not compute in c64\n  compute on pairs: view_as_real "
                    "before it, view_as_complex behind it");
  expect_node_error("%y: f32[] = where(%s, %s, %s)",
                    "p.tm:2:13: where: the condition is f32[], not bool\n  add a cast node or a "
                    "comparison before it");
  expect_node_error(
      "%y: f32[2, 4] = accumulate(%a, %a, %b)",
      "p.tm:2:17: accumulate: takes products of f32 or f64 and a sum of the same type, got f32[2, "
      "3] and f32[2, 4]\n  cast the sum to the product's type");
  expect_node_error("%y: f32[] = matmul(%a, %a)",
                    "p.tm:2:13: matmul: inner sizes differ: f32[2, 3] x f32[2, 3] (3 and 2)\n  did "
                    "you mean to transpose the second operand? {.transpose_b = true}");
  expect_node_error("%y: f32[] = exp(%s) (%q: f32[]) { return }",
                    "p.tm:2:13: exp: has no regions, got 1\n  e to the power of each element.");
}

TEST(TextErrors, OfConstants) {
  expect_node_error("constant 2", "p.tm:2:1: a constant has one result\n  name it, with its type");
  expect_node_error("%y: f32[2] = constant 2",
                    "p.tm:2:5: expected f32[], which constant gives, found f32[2]\n  write the "
                    "type that the op gives, or give it other operands");
  expect_node_error("%y: i32[] = constant 2.5",
                    "p.tm:2:22: expected a whole number, found '2.5'" + kGrammar);
  expect_node_error("%y: u8[] = constant 256",
                    "p.tm:2:21: 256 does not fit u8\n  use a wider dtype");
  expect_node_error("%y: i16[] = constant 32768",
                    "p.tm:2:22: 32768 does not fit i16\n  use a wider dtype");
  expect_node_error("%y: u64[] = constant -1",
                    "p.tm:2:22: -1 does not fit u64\n  use a wider dtype");
  expect_node_error("%y: bool[] = constant 1",
                    "p.tm:2:23: expected 'true' or 'false', found '1'" + kGrammar);
  expect_node_error("%y: f32[] = constant x", "p.tm:2:22: expected a number, found 'x'" + kGrammar);
  expect_node_error("%y: f32[] = constant 1e999",
                    "p.tm:2:22: '1e999' does not fit 64 bits\n  write a number that does");
}

TEST(TextErrors, OfAttributes) {
  expect_node_error("%y: f32[] = sum(%a) {axis = 1}",
                    "p.tm:2:22: sum has no attribute 'axis'\n  it has axes, keepdims");
  expect_node_error("%y: f32[] = exp(%s) {axis = 1}",
                    "p.tm:2:22: exp has no attribute 'axis'\n  it has none");
  expect_node_error("%y: f32[] = sum(%a) {axes = [0], axes = [1]}",
                    "p.tm:2:34: 'axes' is given twice\n  give it once");
  expect_node_error("%y: f32[] = sum(%a) {axes = 1}",
                    "p.tm:2:29: expected '[' before a list, found '1'" + kGrammar);
  expect_node_error("%y: f32[] = sum(%a) {axes = [1 2]}",
                    "p.tm:2:32: expected ',' or ']' after an item, found '2'" + kGrammar);
  expect_node_error("%y: f32[] = sum(%a) {axes [1]}",
                    "p.tm:2:27: expected '=' after the attribute's name, found '['" + kGrammar);
  expect_node_error("%y: f32[] = sum(%a) {1}",
                    "p.tm:2:22: expected the name of an attribute, found '1'" + kGrammar);
  expect_node_error("%y: f32[] = sum(%a) {keepdims = true axes",
                    "p.tm:2:38: expected ',' or '}' after an attribute, found 'axes'" + kGrammar);
  expect_node_error("%y: f32[] = cast(%a)",
                    "p.tm:2:13: cast needs the attribute 'dtype'\n  only attributes that are 0, "
                    "false or [] may be left out");
  expect_node_error("%y: f32[] = softmax(%a) {axis = 2}",
                    "p.tm:2:13: softmax: f32[2, 3] has no axis 2\n  axes go from 0 to 1");
  expect_node_error(
      "%e: f32[0, 3] = slice(%a) {begin = [0, 0], size = [0, 3], step = [1, 1]}\n"
      "  %y: f32[3] = min(%e) {axes = [0]}",
      "p.tm:3:16: min: f32[0, 3] has no elements along axis 0, so none can be selected\n  check "
      "the size first, or add an element with td::concat or td::pad");
  expect_node_error("%y: f32[] = softmax(%s)",
                    "p.tm:2:13: softmax: f32[] has no axis 0\n  it is a scalar");
  expect_node_error(
      "%y: f32[] = sum(%a) {axes = [1, 0]}",
      "p.tm:2:13: sum: axes are not in increasing order\n  name each axis once, the least first");
  expect_node_error("%y: f32[] = transpose(%a) {order = [0, 0]}",
                    "p.tm:2:13: transpose: order does not name each axis of f32[2, 3] once\n  "
                    "write every axis from 0 on, in the order of the result");
  expect_node_error("%y: f32[] = slice(%a) {begin = [0], size = [1], step = [1]}",
                    "p.tm:2:13: slice: begin has 1 items for f32[2, 3]\n  write 2 of them");
  expect_node_error("%y: f32[] = slice(%a) {begin = [0, 1], size = [1, 2], step = [1, 2]}",
                    "p.tm:2:13: slice: 2 elements from 1 by steps of 2 leave axis 1 of f32[2, 3]\n "
                    " its elements go from 0 to 2");
  expect_node_error("%y: f32[] = reshape(%a) {shape = [-6]}",
                    "p.tm:2:13: reshape: a size cannot be -6\n  sizes are at least 0");
  expect_node_error("%y: f32[] = reshape(%a) {shape = [6, -9223372036854775808]}",
                    "p.tm:2:38: a size cannot be -9223372036854775808\n  sizes are at least 0");
  expect_node_error("%y: f32[] = pad(%a) {low = [0, -1], high = [0, 0], inside = [0, 0]}",
                    "p.tm:2:13: pad: low has -1 for f32[2, 3]\n  it is a number of elements, and "
                    "the result must fit in memory");
}

TEST(TextErrors, OfEffectsKeysAndParts) {
  expect_node_error("print(%a) {text = \"a\"}",
                    "p.tm:2:1: print: its text has 0 places for operands, not 1\n  A line of text "
                    "with the operands in it.");
  expect_node_error(
      "%y: f32[] = print() {text = \"a\"}",
      "p.tm:2:13: print has 0 results, the text names 1\n  name each result, with its type");
  expect_node_error("print(%a) {text = [1]}",
                    "p.tm:2:19: expected a text in double quotes, found '['" + kGrammar);
  expect_node_error("check_numerics(%i) {text = \"a\"}",
                    "p.tm:2:1: check_numerics: i32[2] is not a tensor of floats\n  An "
                    "error with this text where an element is infinite or NaN.");
  expect_node_error("check_index(%a) {text = \"\\%\", size = 5}",
                    "p.tm:2:1: check_index: f32[2, 3] is not a tensor of integers\n  An error with "
                    "this text where "
                    "an index points outside an axis of this size.");
  expect_node_error("check_index(%i) {text = \"\\%\", size = -5}",
                    "p.tm:2:1: check_index: a size cannot be -5\n  sizes are at least 0");
  expect_node_error(
      "assert_that(%a) {text = \"a\"}",
      "p.tm:2:1: assert_that: its first operand is not a bool\n  An error with this text where the "
      "first operand is not true throughout; shows the other operands.");
  expect_node_error("%y: f32[] = random_normal(%s) {shape = [], dtype = f32}",
                    "p.tm:2:13: random_normal: f32[] is not a key\n  a key is an i64[]");
  expect_node_error("%y: f32[] = put(%a, %i, %i)",
                    "p.tm:2:13: put: operands f32[2, 3] and i32[2] differ in dtype\n  programs do "
                    "not promote dtypes: add a cast node for one of them");
  expect_node_error(
      "%y: f32[] = update(%a, %s) {begin = [0, 0], size = [1, 1], step = [1, 1]}",
      "p.tm:2:13: update: f32[] does not fit the slice [1, 1]\n  give it the sizes of the slice");
}

TEST(TextErrors, OfRegions) {
  expect_node_error(
      "%y: f32[] = cond(%c) () { return }",
      "p.tm:2:13: cond: has 2 regions, got 1\n  One of two regions, chosen by a bool.");
  expect_node_error("%y: f32[] = cond() () { return } () { return }",
                    "p.tm:2:13: cond: takes at least 1 operands here, got 0\n  One of two regions, "
                    "chosen by a bool.");
  expect_node_error("%y: f32[] = cond(%s) () { return } () { return }",
                    "p.tm:2:13: cond: the condition is f32[], not bool[]\n  One of two regions, "
                    "chosen by a bool.");
  expect_node_error("%y: f32[] = cond(%c, %s) (%x: f32[]) { return %x } (%x: f32[]) { return }",
                    "p.tm:2:13: cond: the second region has 0 results, not 1\n  One of two "
                    "regions, chosen by a bool.");
  expect_node_error("%y: f32[] = cond(%c, %s) (%x: f32[2]) { return %x } (%x: f32[]) { return }",
                    "p.tm:2:13: cond: parameter 0 of region 0 is f32[2], not f32[]\n  One of two "
                    "regions, chosen by a bool.");
  expect_node_error("%y: f32[] = map(%a) {slices = -1} () { return }",
                    "p.tm:2:13: map: slices = -1 is not a count\n  write a number from 0 up");
  expect_node_error(
      "%y: f32[] = map(%a) {slices = 1, trips = 5} () { return }",
      "p.tm:2:13: map: cannot slice f32[2, 3] in 5 trips\n  each trip reads one slice "
      "of the first axis");
  expect_node_error("%y: f32[] = map(%a) {slices = 1, trips = -2} () { return }",
                    "p.tm:2:13: map: trips = -2 is not a count\n  write -1 if it is not known");
  expect_node_error("%y: f32[] = map(%a) {slices = 1, trips = 2, alive = -2} () { return }",
                    "p.tm:2:13: map: alive = -2 is not a count\n  write -1 for as many as the "
                    "budget has room for");
  expect_node_error(
      "%y: f32[] = loop(%s) {carries = 1, trips = 3} (%t: i64[], %x: f32[]) { return }",
      "p.tm:2:13: loop: its body returns 0 values for carries = 1 and stacked = 0\n  a body "
      "returns the next carries, then the elements to stack");
  expect_node_error(
      "%y: f32[] = loop(%s) {carries = 1, trips = 3} (%t: i64[], %x: f32[]) { return %t }",
      "p.tm:2:13: loop: carry 0 of the body is i64[], not f32[]\n  A region run again and again on "
      "values it carries.");
  expect_node_error(
      "%y: f32[] = loop(%s) {carries = 1, trips = -1} (%t: i64[], %x: f32[]) { return %x } (%t: "
      "i64[], %x: f32[]) { return %x }",
      "p.tm:2:13: loop: result 0 of the condition is f32[], not bool[]\n  A region run again and "
      "again on values it carries.");
}

TEST(TextErrors, OfLoopsThatKeepStates) {
  const auto loop = [](const std::string& attributes) {
    return "%y: f32[], %m: i64[3], %r: f32[1] = loop(%s) {carries = 1, trips = 3, " + attributes +
           "} (%t: i64[], %x: f32[]) { return %x }";
  };
  const std::string at = "p.tm:2:37: loop: ";
  expect_node_error(
      loop("save = 9"),
      at + "save = 9 is not a choice\n  0: automatic, 1: all, 2: every, 3: slots, 4: bytes");
  expect_node_error(loop("saved = 1"),
                    at + "saved = 1 of stacked = 0\n  it is the number of stacked arrays, counted "
                         "from the last, that are residuals");
  expect_node_error(loop("marks = 5"), at + "marks = 5 is not the index of a result after the "
                                            "carries\n  write 0 if there are no marks");
  expect_node_error(
      loop("marks = 1, kept = 2"),
      at + "kept = 2 is not a set of carries with checkpoints\n  it has one bit for each "
           "carry, or is -1 for all of them, and needs marks");
  expect_node_error(
      loop("marks = 1, kept = 1"),
      at + "its marks are 3 words\n  marks have 1 word without checkpoints, else 2 for each slot");
}

TEST(TextErrors, OfReversals) {
  const std::string ahead = " (%t: i64[], %x: f32[]) { return %x }";
  const std::string back = " (%t: i64[], %x: f32[], %g: f32[]) { return %g }";
  const auto reversal = [](const std::string& marks, const std::string& regions) {
    return "%y: f32[] = reverse_loop(" + marks +
           ", %s, %s, %s) {carries = 1, backs = 1, trips = 3}" + regions;
  };
  expect_node_error(
      reversal("%s", ahead + back),
      "p.tm:2:13: reverse_loop: its marks are f32[]\n  marks are i64, 2 for each slot");
  expect_node_error(
      "%y: f32[] = reverse_loop(%s, %s, %s, %s) {carries = 1, backs = 1, seeds = 1, trips = 3}" +
          ahead + back,
      "p.tm:2:13: reverse_loop: seeds = 1 of slices = 0\n  it is the number of slices, counted "
      "from the last, that are seeds");
  expect_node_error(reversal("%s", ahead),
                    "p.tm:2:13: reverse_loop: has 2 regions, got 1\n  A loop walked backwards from "
                    "checkpoints.");
}

TEST(TextErrors, OfTransformsAndGradientsByKernels) {
  expect_node_error(
      "%y: f32[] = real_fourier(%a) {inverse = false, scale = 1, count = 4, adjoint = false}",
      "p.tm:2:13: real_fourier: takes 4 numbers of f32 or f64, got f32[2, 3]\n  td::fft::rfft and "
      "td::fft::irfft pad or cut off");
  expect_node_error(
      "%y: f32[] = real_fourier(%a) {inverse = true, scale = 1, count = 3, adjoint = false}",
      "p.tm:2:13: real_fourier: takes 2 pairs of f32 or f64, got f32[2, 3]\n  td::fft::rfft and "
      "td::fft::irfft pad or cut off");
  expect_node_error("%y: f32[] = distances(%a, %a) {euclidean = true}",
                    "p.tm:2:13: distances: inner sizes differ: f32[2, 3] x f32[2, 3] (3 and 2)\n  "
                    "did you mean to transpose the second operand? {.transpose_b = true}");
  expect_error(
      "function(%w: f32[2, 3], %a: f32[4, 5], %b: f32[3, 5]) {\n%y: f32[] = "
      "weighted_differences(%w, %a, %b) return }",
      "p.tm:2:13: weighted_differences: weights f32[2, 3] of points f32[3, 5] need points [..., 2, "
      "5] to differ from, got f32[4, 5]\n  the points of a have a row of weights each");
  const std::string operands = "function(%x: f32[1, 8, 8, 4], %g: f32[1, 6, 7, 4]) {\n";
  const std::string kernel =
      "%y: f32[] = conv_kernel(%x, %g) {stride = [1, 1], pad_low = [0, 0], pad_high = [0, 0], "
      "dilation = [1, 1], groups = 4, spread = [], by_channel = false, taps = ";
  expect_error(
      operands + kernel + "[3, 3]} return }",
      "p.tm:2:13: conv_kernel: the gradient f32[1, 6, 7, 4] is not that of f32[1, 6, 6, "
      "4]\n  it has the type of what the convolution gives, of pixels that are not spread");
  expect_error(operands + kernel + "[3]} return }",
               "p.tm:2:13: conv_kernel: taps has 1 items for f32[1, 8, 8, 4]\n  write 2 of them");
}

TEST(TextErrors, OfTooMuch) {
  expect_error(
      "function(%x: f32[1, 8, 8, 4], %w: f32[3, 3, 4, 4]) {\n%y: f32[] = conv2d(%x, %w) {stride = "
      "[1, 1], pad_low = [0, 0], pad_high = [0, 0], dilation = [1, 1], groups = "
      "999999999999999999} return }",
      "p.tm:2:13: conv2d: groups = 999999999999999999 is too many\n  write 1 for a single group of "
      "all channels");
  expect_error(
      "function(%x: u8[140737488355328]) {\n%y: u8[1] = concat(%x, %x) return }",
      "p.tm:2:13: concat: the total size of its operands is too large\n  use fewer of them");
  std::string results = "%0: f32[]";
  for (int i = 1; i < 32768; ++i) results += cat(", %", i, ": f32[]");
  expect_error("function() {\n" + results + " = exp() return }",
               "p.tm:2:1: a node has 32768 results\n  32767 is the most");
}

TEST(TextErrors, OfRegionsTooDeep) {
  const auto nested = [](int depth) {
    std::string text = "function(%x: f32[]) {";
    for (int i = 0; i < depth; ++i) text += " %y: f32[] = group(%x) (%x: f32[]) {";
    for (int i = 0; i < depth; ++i) text += " return %x }";
    return text + " return %x }";
  };
  expect_round_trip(parse_graph(nested(kDeepestRegion), "p.tm"));
  expect_error(nested(kDeepestRegion + 1),
               "p.tm:1:7245: regions are nested more than 200 deep\n  nest fewer regions");
  try {
    parse_graph(nested(100'000), "p.tm");
    ADD_FAILURE() << "no error";
  } catch (const TextError& error) {
    EXPECT_EQ(error.column(), 7245);
  }
}

TEST(TextErrors, SayWhereInTheFile) {
  try {
    parse_graph("function f() {\n\n  oops", "p.tm");
    ADD_FAILURE() << "no error";
  } catch (const TextError& error) {
    EXPECT_EQ(error.line(), 3);
    EXPECT_EQ(error.column(), 3);
  }
}

}  // namespace
}  // namespace tidemark
