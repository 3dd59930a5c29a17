// Schedule: whether nodes can be one kernel, the loops they share, and what each sweep computes.
//
// A group runs over a domain, a list of axes, in one of three orders:
//
//   pointwise   every axis is kept: one sweep, and each element by itself.
//   lanes       [rows..., folded...]: reductions fold the last axes.
//   columns     [rows..., folded..., columns...]: reductions fold axes in the middle.
//
// Views are not members: a value is read through the path of views from its own indices to the
// domain's. A value that does not vary along the folded axes is at row level: it is computed once
// per row (and column), not per element. A finished reduction is such a value; elements that need
// it are computed in the next sweep. Elements that a later sweep needs again are recomputed if that
// is cheap, else stored: in the buffer of a result that is written later, or in a scratch row.
//
// The bits are those of the nodes run one by one: each rounds to its own dtype, and the reduction
// order is determined by the operand's own shape.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tidemark/ir/graph.h"
#include "tidemark/loops/nest.h"
#include "tidemark/passes/form.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::passes {

// One view on the path from a value to the domain. A path is a linked list that starts at the
// value.
struct ViewStep {
  const OpDef* op = nullptr;
  Attrs attrs;
  Shape shape;   // The shape of the view.
  int32_t next;  // An index into Schedule::views, or -1 at the domain.
};

// The offset of a dense value at each index of the domain, in elements.
struct IndexMap {
  Strides strides;
  int64_t offset = 0;
  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

// An operand of a member.
struct MemberInput {
  enum class Kind : uint8_t { member, load, number, range } kind = Kind::member;
  int32_t index = 0;  // An index into Schedule::members, loads, numbers or ranges.
};

struct Load {
  Value value;
  int32_t path = -1;
  IndexMap map;
  bool by_row = false;  // Does not vary along folded axes.
  uint32_t needed = 0;  // The sweeps that need it, a bit each.
};

// start + i * step, where i counts along the last axis, the folded one, or all (pointwise).
struct RangeRead {
  int32_t node = -1;
  IndexMap map;
};

struct Member {
  enum class Kind : uint8_t { pointwise, reduce } kind = Kind::pointwise;
  int32_t node = -1;
  SmallVec<int32_t, 4> operands;  // Indices into Schedule::operands.
  int32_t path = -1;
  IndexMap map;
  bool by_row = false;
  int64_t repeats = 1;  // reduce: the factor of a sum, for broadcast axes.
  int32_t sweep = 0;  // The sweep that computes or folds it; for row values, the earliest possible.
  uint32_t needed = 0;   // The sweeps that need it, a bit each.
  bool kept = false;     // Stored from `sweep` on in a scratch row, or
  int32_t kept_in = -1;  // in the buffer of this result, which is written later.
  int32_t result = -1;   // The index of the group's result, or -1.
};

struct Schedule {
  Nest::Order order = Nest::Order::lanes;
  bool folds = false;  // False: pointwise.
  Shape domain;        // Axes of extent 1 are left out.
  int64_t row_axes = 0, fold_axes = 0;
  int32_t sweeps = 1;
  // The axes that ranges of the group count along: the folded axes, the last one, or all.
  enum class Index : uint8_t { none, folded, column, all } index = Index::none;
  std::vector<ViewStep> views;
  std::vector<MemberInput> operands;
  std::vector<Load> loads;
  std::vector<int32_t> numbers;  // Constant nodes.
  std::vector<RangeRead> ranges;
  std::vector<Member> members;  // In topological order.
  int64_t exprs = 0;            // An estimate of the kernel's number of expressions.

  // The sweep that first writes to a result.
  int32_t first_write(const Member& result) const;
  // An array indexed by the domain; false if a reshape on the path needs it to be dense.
  bool see(ArrayRef array, int32_t path, ArrayRef& seen) const;
  // Whether a value has one stride along the folded axes, as if they were one axis.
  bool folds_evenly(const Strides& strides) const;
};

// Limits on the size of one kernel.
struct GroupLimits {
  int64_t exprs = 200;
  int64_t buffers = 24;
  int64_t sweeps = 6;
  // The bytes of a row that several sweeps may touch.
  int64_t row_bytes = int64_t{512} << 10;
};

// One for a graph: it keeps a table of all nodes. Resolves chains of views. Each view is resolved
// once; resolved nodes must not change.
class Views {
 public:
  explicit Views(const Graph& graph) : graph_(graph) {}

  // The value as a view of the nearest value that has its own memory.
  ArrayRef of(Value value);
  // Whether a node is free inside a kernel: numbers, ranges, and views of dense values without a
  // copy.
  bool is_free_in_kernel(int32_t node);

 private:
  struct Known {
    ArrayRef array;
    bool needs_copy = false;
  };
  const Known& resolved(int32_t view);

  const Graph& graph_;
  std::vector<int32_t> place_;  // By node: its index in `known_`, or -1.
  std::deque<Known> known_;     // Of views.
};

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph) : graph_(graph), views_(graph), write_(graph) {}

  // `nodes`, in order, read each other and outside values; `results` are read outside. Empty if
  // they cannot be one kernel.
  std::optional<Schedule> run(std::span<const int32_t> nodes, std::span<const Value> results,
                              const GroupLimits& limits);

  // The schedule of a group that `fuse` has made, without limits: a group small enough to fuse is
  // small enough to run. Groups of one form share a schedule, which names the nodes of
  // `first_like`: the region of the first of them that was requested. Their parameters correspond
  // by position.
  const Schedule& of_group(const Node& group);
  RegionId first_like(const Node& group);
  // The number of its form. Groups must not change once it is requested.
  size_t form_of(const Node& group);

  // The cost of a node per element, in additions, and its number of expressions.
  struct Cost {
    int32_t weight = -1, exprs = 0;
  };
  const Cost& cost(int32_t node);
  const Graph& graph() const { return graph_; }
  Views& views() { return views_; }

 private:
  Cost computed_cost(const Node& node) const;

  const Graph& graph_;
  Views views_;
  std::vector<int32_t> place_;  // By node: its index in `nodes`, or -1; all -1 between runs.
  std::vector<Cost> costs_;     // By node.
  std::map<std::pair<const OpDef*, int64_t>, Cost> cost_of_kind_;  // By op and dtypes.
  FormWriter write_;
  FormTable forms_;
  std::vector<int32_t> form_;  // By region of a group: the number of its form, or -1.
  struct Group {
    RegionId first = -1;
    Schedule schedule;
  };
  std::deque<Group> groups_;  // By form.
};

// Expands softmax and similar row ops into reductions and pointwise nodes with the same bits, so
// that they fuse with their neighbours. Rows that do not fit into `row_bytes` of cache are not
// expanded, since their own kernel is faster there.
void expand_rows(Graph& graph, RegionId region, int64_t row_bytes);

// Whether a node may be part of a kernel: pointwise ops and reductions.
bool is_kernel_op(const Node& node);
}  // namespace tidemark::passes
