// Passes keep every bit: the programs of this folder are run by the reference interpreter before
// and after each pass, on the inputs where arithmetic goes wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "tests/sweep/cases.h"
#include "tests/text/program_file.h"
#include "tidemark/compile/cpu/compute.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/reference.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/passes/passes.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace {

using Runner = Tensor (*)(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs,
                          int result);

ArrayRef array_of(const Tensor& tensor) { return detail::array_of(tensor, Source::none()); }

// Neighbours differ, and two tensors of one type are out of step.
Tensor special_values(const TensorType& type, size_t salt) {
  using Real = std::numeric_limits<float>;
  const long double reals[] = {-0.0L,
                               1.5L,
                               Real::quiet_NaN(),
                               0.0L,
                               -Real::infinity(),
                               -2.25L,
                               Real::denorm_min(),
                               Real::infinity(),
                               Real::max(),
                               -0.3L,
                               300.0L};
  const int64_t wholes[] = {0,
                            1,
                            -1,
                            std::numeric_limits<int64_t>::min(),
                            200,
                            -128,
                            std::numeric_limits<int64_t>::max(),
                            77,
                            0x80000000LL,
                            3,
                            255};
  Tensor tensor = detail::make_tensor(type.dtype, type.shape, Source::here());
  const ArrayRef array = array_of(tensor);
  for (int64_t i = 0; i < type.shape.size(); ++i) {
    const size_t pick = (static_cast<size_t>(i) + salt) % std::size(reals);
    if (is_float(type.dtype)) {
      reference::write(array, i, reals[pick]);
    } else if (type.dtype == DType::boolean) {
      reference::write(array, i, wholes[pick] & 1);
    } else {
      // The low bytes, so that narrow dtypes get their own extremes.
      const int64_t size = size_of(type.dtype);
      std::memcpy(array.data + i * size, &wholes[pick], static_cast<size_t>(size));
    }
  }
  return tensor;
}

// Whether it can be run node by node: no open sizes, regions, effects or draws.
bool runs(const Graph& graph) {
  for (const Value parameter : graph.body().parameters)
    if (graph.type(parameter).shape.is_open()) return false;
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    const bool draw = node.op->family == Family::random && node.op->reference == nullptr;
    if (!node.regions.empty() || node.op->family == Family::effect || draw) return false;
  }
  return true;
}

Tensor constant_of(const Node& node) {
  Attrs::Reader read = node.attrs.read();
  const DType dtype = read.dtype();
  const double real = read.number();
  const int64_t whole = read.integer();
  Tensor tensor = detail::make_tensor(dtype, {}, Source::here());
  if (is_float(dtype)) {
    reference::write(array_of(tensor), 0, static_cast<long double>(real));
  } else {
    reference::write(array_of(tensor), 0, whole);
  }
  return tensor;
}

std::vector<Tensor> evaluate(const Graph& graph, Runner run) {
  std::map<std::pair<int32_t, int>, Tensor> made;
  const auto at = [&](Value value) { return made.at({value.node, value.result}); };
  for (const Value parameter : graph.body().parameters)
    made[{parameter.node, 0}] = special_values(graph.type(parameter), made.size() * 4);
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    std::vector<Tensor> operands;
    for (const Value input : node.inputs) operands.push_back(at(input));
    const bool literal = node.op->literal == Literal::number;
    for (int r = 0; r < node.op->results; ++r)
      made[{number, r}] = literal ? constant_of(node) : run(*node.op, operands, node.attrs, r);
  }
  std::vector<Tensor> results;
  for (const Value result : graph.body().results) results.push_back(sweep::dense_copy(at(result)));
  return results;
}

// Of a NaN neither sign nor payload is part of the bits.
void expect_same_bits(const Tensor& before, const Tensor& after) {
  const ArrayRef a = array_of(before), b = array_of(after);
  ASSERT_TRUE(a.dtype == b.dtype && a.shape == b.shape);
  const int64_t size = size_of(a.dtype);
  for (int64_t i = 0; i < a.shape.size(); ++i) {
    if (is_float(a.dtype) && std::isnan(reference::read_float(a, i))) {
      EXPECT_TRUE(std::isnan(reference::read_float(b, i))) << "element " << i;
      continue;
    }
    EXPECT_EQ(std::memcmp(a.data + i * size, b.data + i * size, static_cast<size_t>(size)), 0)
        << "element " << i;
  }
}

void expect_exact(Runner run) {
  // Numbers are folded by the kernels, and the reference may round otherwise.
  passes::Machine machine;
  if (run == sweep::run) machine.compute = compile::compute;
  int programs = 0;
  for (const std::string& name : program_names()) {
    SCOPED_TRACE(name);
    Graph graph = parse_graph(read_program_file(name).program, name);
    if (!runs(graph)) continue;
    ++programs;
    const std::vector<Tensor> before = evaluate(graph, run);
    for (const passes::Pass& pass : passes::all_passes()) {
      if (pass.name == "fuse") continue;  // Groups run as programs: tests/unit/compile.
      pass.run(graph, machine, {});
      if (!runs(graph)) break;  // So do parts: tests/unit/function/split_test.cc.
      const std::vector<Tensor> after = evaluate(graph, run);
      ASSERT_EQ(before.size(), after.size());
      for (size_t i = 0; i < before.size(); ++i) {
        SCOPED_TRACE("after " + std::string(pass.name) + ", result " + std::to_string(i));
        expect_same_bits(before[i], after[i]);
      }
    }
  }
  EXPECT_GE(programs, 5) << "too few programs are without regions";
}

TEST(Exact, PassesKeepEveryBitOfTheReference) { expect_exact(sweep::expected); }

// Kernels see layouts, too: a sum over what repeats one element multiplies.
TEST(Exact, PassesKeepEveryBitOfTheKernels) { expect_exact(sweep::run); }

}  // namespace
}  // namespace tidemark
