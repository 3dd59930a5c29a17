// Slicing: the part of its operands that a part of a node's result depends on, along one axis.
//
// An axis is cut into units of equal size: an axis of 1024 rows that was reshaped from [4, 256] has
// 4 units of 256 if the 4 are to be separated. If several leading axes together have the units, as
// [8, 100] has 800, they count as one axis, and are merged in a part.
#pragma once

#include <cstdint>
#include <optional>

#include "tidemark/ir/graph.h"

namespace tidemark::passes {

struct Slicing {
  static constexpr int64_t kWhole = -1;
  enum class Sums : uint8_t {
    no,
    products,  // A contraction over the axis: parts are added in order.
    columns    // A sum over the axis: parts are added pairwise by position.
  };

  int64_t result = kWhole;             // The axis; kWhole if the parts are summed.
  SmallVec<int64_t, 3> operands = {};  // The axis of each; kWhole: all of it is read.
  Sums sums = Sums::no;
  int64_t terms = 1;  // The number of terms of the sum for one index of the axis.

  friend bool operator==(const Slicing&, const Slicing&) = default;
};

// How many axes from `axis` on count as one: 1 or more; 0 if they do not have these units.
int64_t span_of(const Shape& shape, int64_t axis, int64_t units);
// The product of their sizes.
int64_t size_along(const Shape& shape, int64_t axis, int64_t units);
// The shape with these axes merged into one of this size.
Shape shape_of_part(Shape shape, int64_t axis, int64_t units, int64_t size);

// Whether a value is a broadcast: a sum over the broadcast axis multiplies.
bool repeats(const Graph& graph, Value value);

// Empty if a part of the result (or of the operand) along the axis does not depend on parts only.
std::optional<Slicing> slicing_of_result(const Graph& graph, const Node& node, int64_t axis,
                                         int64_t units);
std::optional<Slicing> slicing_by_operand(const Graph& graph, const Node& node, size_t operand,
                                          int64_t axis, int64_t units);

// The attributes of the node for a result of this size along the axis.
Attrs attrs_of_part(const Graph& graph, const Node& node, const Slicing& slicing, int64_t units,
                    int64_t size);

}  // namespace tidemark::passes
