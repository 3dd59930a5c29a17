// Which part of its operands a part of a node's result is made of, along one axis.
//
// An axis is cut in units, all of one size: an axis of 1024 rows is 4 units of 256 where it was
// reshaped from [4, 256] and the 4 are to be taken apart. Where the leading axes of a shape only
// have the units together, as [8, 100] has 800, they count as one axis, and are one in a part.
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

  int64_t result = kWhole;             // The axis; kWhole where the parts are summed.
  SmallVec<int64_t, 3> operands = {};  // The axis of each; kWhole: all of it is read.
  Sums sums = Sums::no;
  int64_t terms = 1;  // How many terms of the sum one index of the axis stands for.

  friend bool operator==(const Slicing&, const Slicing&) = default;
};

// How many axes from `axis` on are one: 1 or more; 0 where it has no such units.
int64_t span_of(const Shape& shape, int64_t axis, int64_t units);
// How many indices they have together.
int64_t size_along(const Shape& shape, int64_t axis, int64_t units);
// The shape with so many indices there, on one axis.
Shape shape_of_part(Shape shape, int64_t axis, int64_t units, int64_t size);

// Whether a value shows one element several times. A sum over such an axis multiplies.
bool repeats(const Graph& graph, Value value);

// Nothing where a part of the result (or of the operand) along the axis is not made of parts.
std::optional<Slicing> slicing_of_result(const Graph& graph, const Node& node, int64_t axis,
                                         int64_t units);
std::optional<Slicing> slicing_by_operand(const Graph& graph, const Node& node, size_t operand,
                                          int64_t axis, int64_t units);

// The attributes of the node where the result has so many indices along the axis.
Attrs attrs_of_part(const Graph& graph, const Node& node, const Slicing& slicing, int64_t units,
                    int64_t size);

}  // namespace tidemark::passes
