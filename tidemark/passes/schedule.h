// Whether nodes can be one kernel, and how: the loops they share and what happens in which sweep.
//
// A group runs over a domain, a list of axes, in one of three orders:
//
//   pointwise   every axis is kept: one sweep, and each element by itself.
//   lanes       [rows..., folded...]: reductions fold the last axes.
//   columns     [rows..., folded..., columns...]: reductions fold axes in the middle.
//
// Views have no part in it: a value is read through the path of views that leads from its own
// indices to the domain's. A value that does not move along the folded axes stands at the level of
// rows: it is computed once per row (and column), not per element. A finished reduction is such a
// value; who needs it among the elements waits for the next sweep. Elements needed again by a later
// sweep are computed again where that is cheap, and else kept: where a result will be whose time
// has not come, or in a scratch row.
//
// The bits are those of the nodes run one by one: each rounds to its own dtype, and a reduction has
// the order that its own operand's shape gives it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/loops/nest.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::passes {

// One view on the way from a value to the domain. A path is a list, from the value on.
struct ViewStep {
  const OpDef* op = nullptr;
  Attrs attrs;
  Shape shape;   // What the view gives.
  int32_t next;  // Of Schedule::views, or -1: the domain is reached.
};

// Where a value, dense, stands at each index of the domain: in elements.
struct IndexMap {
  Strides strides;
  int64_t offset = 0;
  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

// What a member reads.
struct MemberInput {
  enum class Kind : uint8_t { member, load, number, range } kind = Kind::member;
  int32_t index = 0;  // Of Schedule::members, loads, numbers, ranges.
};

struct Load {
  Value value;
  int32_t path = -1;
  IndexMap map;
  bool by_row = false;  // Does not move along folded axes.
  uint32_t needed = 0;  // The sweeps that need it, a bit each.
};

// start + i * step, i counted along the last axis, along the folded one, or over all (pointwise).
struct RangeRead {
  int32_t node = -1;
  IndexMap map;
};

struct Member {
  enum class Kind : uint8_t { pointwise, reduce } kind = Kind::pointwise;
  int32_t node = -1;
  SmallVec<int32_t, 4> operands;  // Of Schedule::operands.
  int32_t path = -1;
  IndexMap map;
  bool by_row = false;
  int64_t repeats = 1;  // reduce: what a sum is multiplied by, for axes that repeat one element.
  int32_t sweep = 0;  // Where it is computed, or folded; of a row's value: can be, at the earliest.
  uint32_t needed = 0;   // The sweeps that need it, a bit each.
  bool kept = false;     // From `sweep` on: in a scratch row, or
  int32_t kept_in = -1;  // in the bytes of this result, which comes later.
  int32_t result = -1;   // Which result of the group it is, or -1.
};

struct Schedule {
  Nest::Order order = Nest::Order::lanes;
  bool folds = false;  // Else pointwise.
  Shape domain;        // Axes of extent 1 are left out.
  int64_t row_axes = 0, fold_axes = 0;
  int32_t sweeps = 1;
  // What the ranges of the group count along: the folded axes, the last one, or all of them.
  enum class Index : uint8_t { none, folded, column, all } index = Index::none;
  std::vector<ViewStep> views;
  std::vector<MemberInput> operands;
  std::vector<Load> loads;
  std::vector<int32_t> numbers;  // Constant nodes.
  std::vector<RangeRead> ranges;
  std::vector<Member> members;  // In an order in which they can be computed.
  int64_t exprs = 0;            // About as many as the kernel will have.

  // The sweep that first writes to a result.
  int32_t first_write(const Member& result) const;
  // An array as the domain sees it; false where a reshape on the path needs it dense.
  bool see(ArrayRef array, int32_t path, ArrayRef& seen) const;
  // Whether a value steps evenly along the folded axes, as one axis.
  bool folds_evenly(const Strides& strides) const;
};

// Bounds on what becomes one kernel.
struct GroupLimits {
  int64_t exprs = 200;
  int64_t buffers = 24;
  int64_t sweeps = 6;
  // What several sweeps over a row may touch.
  int64_t row_bytes = int64_t{512} << 10;
};

// One for a graph: it keeps a table of all nodes.
// How values are seen in the bytes of others. Each view is looked at once, however many stand in a
// row: a node that was asked for stays as it is.
class Views {
 public:
  explicit Views(const Graph& graph) : graph_(graph) {}

  // As a view of the nearest value before it that has bytes of its own.
  ArrayRef of(Value value);
  // Whether a node costs nothing inside a kernel: numbers, ranges, and views of dense values that
  // move no byte.
  bool is_free_in_kernel(int32_t node);

 private:
  const Graph& graph_;
  std::unordered_map<int32_t, ArrayRef> known_;
};

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph) : graph_(graph), views_(graph) {}

  // `nodes`, in order, read each other and values from elsewhere; `results` are what they are for.
  // Nothing where they cannot be one kernel.
  std::optional<Schedule> run(std::span<const int32_t> nodes, std::span<const Value> results,
                              const GroupLimits& limits);

  // Of a group that `fuse` has made: what was small enough to fuse is small enough to run, so
  // nothing limits it. Kept until another one is asked for, or this one is taken.
  const Schedule& of_group(const Node& group);
  Schedule take_group(const Node& group);

  // How much work a node is for each element, in additions, and how many expressions.
  struct Cost {
    int32_t weight = -1, exprs = 0;
  };
  const Cost& cost(int32_t node);
  const Graph& graph() const { return graph_; }
  Views& views() { return views_; }

 private:
  const Graph& graph_;
  Views views_;
  std::vector<int32_t> place_;  // By node: its place in `nodes`, or -1; between runs all are -1.
  std::vector<Cost> costs_;
  RegionId group_ = -1;  // Whose schedule this is.
  Schedule of_group_;
};

// Puts softmax and its like in terms of reductions and pointwise nodes that give the same bits, so
// that they fuse with what is around them; not where their rows would not stay in `row_bytes` of
// cache, since then their own kernel is better than several.
void expand_rows(Graph& graph, RegionId region, int64_t row_bytes);

// Whether a node may be part of a kernel: pointwise ops and reductions.
bool is_kernel_op(const Node& node);
}  // namespace tidemark::passes
