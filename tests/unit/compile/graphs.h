// Small graphs written by hand, and a way to run them: node by node as eager code does, or with
// groups as programs do.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/compile/backend.h"
#include "tidemark/ir/graph.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/schedule.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::testing {

// Appends to the body of a graph. Numbers become constants of the other operand's dtype.
class GraphMaker {
 public:
  Value parameter(DType dtype, const Shape& shape);
  Value constant(double number, DType dtype);
  Value range(int64_t count, DType dtype, double start = 0, double step = 1);
  // By the name of the op; operands have the dtype they are computed in.
  Value apply(std::string_view op, std::initializer_list<Value> operands);
  Value apply(std::string_view op, Value a, double b) {
    return apply(op, {a, constant(b, type(a).dtype)});
  }
  Value cast(Value x, DType dtype);
  Value reduce(std::string_view op, Value x, const AxisList& axes, bool keep = false);
  Value row(std::string_view op, Value x, int64_t axis);
  Value reshape(Value x, const Shape& shape);
  Value transpose(Value x, const AxisList& order);
  Value slice(Value x, const DimList& begin, const DimList& size, const AxisList& step);
  Value broadcast_to(Value x, const Shape& shape);
  void result(Value x) { graph.body().results.push_back(x); }
  const TensorType& type(Value value) const { return graph.type(value); }

  Graph graph;

 private:
  Value add(std::string_view op, std::span<const Value> operands, const Attrs& attrs);
};

// Memory for one array, dense, between bytes that must not change.
class Memory {
 public:
  explicit Memory(const TensorType& type);
  ArrayRef ref() const { return ref_; }
  bool edges_are_whole() const;
  std::span<const std::byte> bytes() const;

 private:
  std::unique_ptr<std::byte[]> held_;
  size_t size_;
  ArrayRef ref_;
};

// The plan of a group on the CPU, for as many threads as there are.
compile::TaskPlan plan_group(passes::Scheduler& scheduler, const Node& group,
                             std::span<const ArrayRef> inputs, std::span<const ArrayRef> results);

std::vector<Memory> random_arguments(const Graph& graph, uint64_t seed);

// The results of the body. Groups run as tasks, in workspace of the size they ask for.
std::vector<Memory> run_graph(const Graph& graph, const std::vector<Memory>& arguments);

// The index of the first result that differs, with where and how; empty where all have the same
// bits, NaN being NaN.
std::string difference(const std::vector<Memory>& a, const std::vector<Memory>& b);

// The nodes of the body by name; what a node contains stands in brackets, without its constants:
// "group[multiply add] matmul".
std::string outline(const Graph& graph);

}  // namespace tidemark::testing
