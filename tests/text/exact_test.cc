// Passes keep every bit: the programs of this folder are run by the reference interpreter before
// and after each pass, on the inputs where arithmetic goes wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "tests/text/program_file.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/reference.h"
#include "tidemark/ops/text.h"
#include "tidemark/passes/passes.h"

namespace tidemark {
namespace {

struct Array {
  TensorType type;
  std::vector<std::byte> bytes;

  explicit Array(const TensorType& of)
      : type(of), bytes(static_cast<size_t>(of.shape.size() * size_of(of.dtype))) {}
  ArrayRef ref() {
    ArrayRef array;
    array.data = bytes.data();
    array.dtype = type.dtype;
    array.shape = type.shape;
    array.strides = contiguous_strides(type.shape);
    return array;
  }
};

// Neighbours differ, and two arrays of one type are out of step.
Array special_values(const TensorType& type, int64_t salt) {
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
  Array array(type);
  for (int64_t i = 0; i < type.shape.size(); ++i) {
    const auto pick = static_cast<size_t>(i + salt) % std::size(reals);
    if (is_float(type.dtype)) {
      reference::write(array.ref(), i, reals[pick]);
    } else if (type.dtype == DType::boolean) {
      reference::write(array.ref(), i, int64_t{wholes[pick] & 1});
    } else {
      const auto from = reinterpret_cast<const std::byte*>(&wholes[pick]);
      const auto size = static_cast<size_t>(size_of(type.dtype));
      std::memcpy(array.bytes.data() + static_cast<size_t>(i) * size, from, size);
    }
  }
  return array;
}

// Whether the reference can run it: no open sizes, regions or draws.
bool runs(const Graph& graph) {
  for (const Value parameter : graph.body().parameters)
    if (graph.type(parameter).shape.is_open()) return false;
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (!node.regions.empty() || node.op->name.starts_with("random")) return false;
  }
  return true;
}

Array evaluate_constant(const Node& node) {
  Attrs::Reader read = node.attrs.read();
  Array array(node.results[0]);
  read.dtype();
  const double real = read.number();
  const int64_t whole = read.integer();
  if (is_float(array.type.dtype)) {
    reference::write(array.ref(), 0, static_cast<long double>(real));
  } else {
    reference::write(array.ref(), 0, whole);
  }
  return array;
}

std::vector<Array> evaluate(const Graph& graph) {
  std::map<int32_t, Array> made;
  for (const Value parameter : graph.body().parameters)
    made.emplace(parameter.node,
                 special_values(graph.type(parameter), static_cast<int64_t>(made.size()) * 4));
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op == &def_of(&ops::constant)) {
      made.emplace(number, evaluate_constant(node));
      continue;
    }
    std::vector<ArrayRef> operands;
    for (const Value input : node.inputs) operands.push_back(made.at(input.node).ref());
    Array& result = made.emplace(number, Array(node.results[0])).first->second;
    reference::evaluate(*node.op, operands, node.attrs, result.ref());
  }
  std::vector<Array> results;
  for (const Value result : graph.body().results) results.push_back(made.at(result.node));
  return results;
}

// Of a NaN neither sign nor payload is part of the bits.
void expect_same_bits(Array& a, Array& b) {
  ASSERT_EQ(a.type, b.type);
  for (int64_t i = 0; i < a.type.shape.size(); ++i) {
    if (is_float(a.type.dtype) && std::isnan(reference::read_float(a.ref(), i))) {
      EXPECT_TRUE(std::isnan(reference::read_float(b.ref(), i))) << "element " << i;
      continue;
    }
    const auto size = static_cast<size_t>(size_of(a.type.dtype));
    const size_t at = static_cast<size_t>(i) * size;
    EXPECT_EQ(std::memcmp(&a.bytes[at], &b.bytes[at], size), 0) << "element " << i;
  }
}

TEST(Exact, PassesKeepEveryBit) {
  int programs = 0;
  for (const std::string& name : program_names()) {
    SCOPED_TRACE(name);
    const ProgramFile file = read_program_file(name);
    Graph graph = parse_graph(file.program, name);
    if (!runs(graph)) continue;
    ++programs;
    std::vector<Array> before = evaluate(graph);
    for (const passes::Pass& pass : passes::all_passes()) {
      pass.run(graph);
      std::vector<Array> after = evaluate(graph);
      ASSERT_EQ(before.size(), after.size());
      for (size_t i = 0; i < before.size(); ++i) {
        SCOPED_TRACE("after " + std::string(pass.name) + ", result " + std::to_string(i));
        expect_same_bits(before[i], after[i]);
      }
    }
  }
  EXPECT_GE(programs, 5) << "too few programs are without regions";
}

}  // namespace
}  // namespace tidemark
