#include "tidemark/passes/schedule.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/interrupt.h"
#include "tidemark/base/work.h"
#include "tidemark/loops/expr.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/structure.h"

namespace tidemark::passes {
namespace {

// A placeholder address, for computations that need only strides.
std::byte* const kSomewhere = reinterpret_cast<std::byte*>(uintptr_t{1} << 46);

bool is_view(const Node& node) { return node.op != nullptr && node.op->view != nullptr; }
bool is_constant(const Node& node) { return node.op->literal == Literal::number; }
bool is_range(const Node& node) { return node.op->routine == Routine::arange; }

ArrayRef dense(const TensorType& type) {
  return {kSomewhere, type.dtype, type.shape, contiguous_strides(type.shape)};
}

Shape without_ones(const Shape& shape) {
  Shape kept;
  for (const Dim dim : shape) {
    if (dim != 1) kept.push_back(dim);
  }
  return kept;
}

// The axes that a reduction folds, without those of size 1 and broadcast ones.
struct Folding {
  AxisList repeated;    // Broadcast axes of the operand: read at index 0.
  int64_t repeats = 1;  // The factor of a sum over them.
  Shape read;           // The operand's shape with those axes at 1.
  Shape natural;        // The same without axes of extent 1.
  AxisList order;       // natural[order[i]] is axis i of the domain.
  int64_t row_axes = 0, fold_axes = 0;
  bool lanes = false;
  bool possible = true;  // False: inner and outer axes are folded at once, which takes two kernels.
};

Folding folding_of(const ArrayRef& operand, const Node& node) {
  const AxisList axes(node.attrs.read().integers());
  const bool may_repeat = node.op->monoid != Monoid::product && !node.op->gives_index;
  Folding folding;
  folding.read = operand.shape;
  std::vector<bool> folded;  // By axis of `natural`.
  for (int64_t axis = 0; axis < operand.rank(); ++axis) {
    const bool folds = std::find(axes.begin(), axes.end(), axis) != axes.end();
    const int64_t extent = operand.shape[axis];
    if (extent == 1) continue;
    // A sum of no elements is not a product.
    if (folds && may_repeat && extent > 1 && operand.strides[static_cast<size_t>(axis)] == 0) {
      folding.repeated.push_back(axis);
      folding.read.set(axis, 1);
      if (node.op->monoid == Monoid::sum) folding.repeats *= extent;
      continue;
    }
    folding.natural.push_back(extent);
    folded.push_back(folds);
  }
  const auto rank = static_cast<int64_t>(folded.size());
  int64_t last = rank - 1;  // The last folded axis.
  while (last >= 0 && !folded[static_cast<size_t>(last)]) --last;
  for (int64_t axis = 0; axis <= last; ++axis) {
    if (!folded[static_cast<size_t>(axis)]) folding.order.push_back(axis);
  }
  folding.row_axes = static_cast<int64_t>(folding.order.size());
  for (int64_t axis = 0; axis <= last; ++axis) {
    if (folded[static_cast<size_t>(axis)]) folding.order.push_back(axis);
  }
  folding.fold_axes = static_cast<int64_t>(folding.order.size()) - folding.row_axes;
  for (int64_t axis = last + 1; axis < rank; ++axis) folding.order.push_back(axis);
  folding.lanes = last == rank - 1;
  // In lanes order only trailing axes fold, so other folded axes are moved after them.
  if (folding.lanes && folding.fold_axes > 0)
    folding.possible =
        folding.row_axes == 0 ||
        folding.order[static_cast<size_t>(folding.row_axes - 1)] < rank - folding.fold_axes;
  return folding;
}

// Builds a Schedule: backwards from the results, each value's path to the domain; then forwards,
// the sweeps.
class Maker {
 public:
  Maker(const Graph& graph, std::span<const int32_t> nodes, std::span<const Value> results,
        const GroupLimits& limits, const std::vector<int32_t>& place, Scheduler& scheduler)
      : graph_(graph),
        nodes_(nodes),
        results_(results),
        limits_(limits),
        place_(place),
        scheduler_(scheduler) {}

  std::optional<Schedule> run() {
    if (!find_members() || !find_domain() || !find_paths() || !find_index()) return std::nullopt;
    if (!find_sweeps() || !within_limits()) return std::nullopt;
    return std::move(s_);
  }

 private:
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  Member& member(size_t i) { return s_.members[i]; }

  bool find_members() {
    member_of_.assign(nodes_.size(), -1);
    s_.members.reserve(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = node(nodes_[i]);
      for (const TensorType& type : n.results) {
        if (type.shape.is_open()) return false;
      }
      for (const Value input : n.inputs) {
        if (graph_.type(input).shape.is_open()) return false;
      }
      if (!is_kernel_op(n)) continue;
      member_of_[i] = static_cast<int32_t>(s_.members.size());
      Member& m = s_.members.emplace_back();
      m.node = nodes_[i];
      if (n.op->family == Family::reduce) {
        const Folding& folding =
            foldings_
                .emplace_back(s_.members.size() - 1,
                              folding_of(scheduler_.views().of(n.inputs[0]), n))
                .second;
        // The position of a single element is 0; an empty reduction is the identity.
        if (!folding.possible || (folding.fold_axes == 0 && n.op->gives_index)) return false;
        m.kind = folding.fold_axes > 0 ? Member::Kind::reduce : Member::Kind::pointwise;
        m.repeats = folding.repeats;
      }
    }
    for (size_t r = 0; r < results_.size(); ++r) {
      const int32_t at = place_[static_cast<size_t>(results_[r].node)];
      if (at < 0 || member_of_[static_cast<size_t>(at)] < 0) return false;
      member(static_cast<size_t>(member_of_[static_cast<size_t>(at)])).result =
          static_cast<int32_t>(r);
    }
    return !s_.members.empty();
  }

  bool find_domain() {
    for (const auto& [i, folding] : foldings_) {
      if (member(i).kind != Member::Kind::reduce) continue;
      Shape domain;
      for (const int64_t axis : folding.order) domain.push_back(folding.natural[axis]);
      if (!s_.folds) {
        s_.folds = true;
        s_.order = folding.lanes ? Nest::Order::lanes : Nest::Order::columns;
        s_.domain = domain;
        s_.row_axes = folding.row_axes;
        s_.fold_axes = folding.fold_axes;
        natural_ = folding.natural;
        order_ = folding.order;
        continue;
      }
      const bool same = s_.domain == domain && s_.row_axes == folding.row_axes &&
                        s_.fold_axes == folding.fold_axes && order_ == folding.order;
      if (!same) return false;
    }
    if (!s_.folds) {
      int64_t most = -1;
      for (const Value result : results_) {
        const Shape& shape = graph_.type(result).shape;
        if (shape.size() <= most) continue;
        most = shape.size();
        s_.domain = without_ones(shape);
      }
      natural_ = s_.domain;
      s_.row_axes = s_.domain.rank();
      for (int64_t axis = 0; axis < s_.domain.rank(); ++axis) order_.push_back(axis);
    }
    return s_.domain.size() > 0;
  }

  bool is_folded(int64_t axis) const {
    return axis >= s_.row_axes && axis < s_.row_axes + s_.fold_axes;
  }

  int32_t add_step(const OpDef& op, const Attrs& attrs, const Shape& shape, int32_t next) {
    s_.views.push_back({&op, attrs, shape, next});
    return static_cast<int32_t>(s_.views.size()) - 1;
  }
  int32_t reshape_step(const Shape& shape, int32_t next) {
    return add_step(def_of(&ops::reshape), Attrs().add(shape), shape, next);
  }
  int32_t broadcast_step(const Shape& shape, int32_t next) {
    return add_step(def_of(&ops::broadcast_to), Attrs().add(shape), shape, next);
  }
  // From the natural order of axes to the domain's.
  int32_t domain_step() {
    if (natural_step_ != -2) return natural_step_;
    natural_step_ = std::is_sorted(order_.begin(), order_.end())
                        ? -1
                        : add_step(def_of(&ops::transpose), Attrs().add(order_), s_.domain, -1);
    return natural_step_;
  }

  IndexMap map_of(const TensorType& type, int32_t path) const {
    ArrayRef seen;
    if (!s_.see(dense(type), path, seen)) return {};
    return {seen.strides, (seen.data - kSomewhere) / size_of(type.dtype)};
  }

  // The path of a result that no member reads; false if the domain does not contain it.
  bool seed(Member& m) {
    const Shape& shape = node(m.node).results[0].shape;
    const Shape bare = without_ones(shape);
    if (bare == natural_) {
      m.path = domain_step();
      if (shape != natural_) m.path = reshape_step(natural_, m.path);
      return true;
    }
    Shape kept, kept_bare;
    for (int64_t axis = 0; axis < natural_.rank(); ++axis) {
      const auto at = std::find(order_.begin(), order_.end(), axis) - order_.begin();
      kept.push_back(is_folded(at) ? Dim(1) : natural_[axis]);
      if (!is_folded(at)) kept_bare.push_back(natural_[axis]);
    }
    if (!s_.folds || bare != kept_bare) return false;
    m.path = reshape_step(kept, broadcast_step(natural_, domain_step()));
    return true;
  }

  // Whether a value with this map varies along every axis of its level.
  bool find_level(const IndexMap& map, int64_t size, bool& by_row) const {
    if (map.strides.size() != static_cast<size_t>(s_.domain.rank())) return false;
    by_row = s_.folds;
    bool moves = true, still = true;
    for (int64_t axis = 0; axis < s_.domain.rank(); ++axis) {
      const bool zero = map.strides[static_cast<size_t>(axis)] == 0;
      if (is_folded(axis) && !zero) by_row = false;
      still = still && zero;
    }
    for (int64_t axis = 0; axis < s_.domain.rank(); ++axis) {
      if (is_folded(axis) && by_row) continue;
      moves = moves && map.strides[static_cast<size_t>(axis)] != 0;
    }
    return moves || (still && size == 1);
  }

  bool find_paths() {
    set_.assign(s_.members.size(), false);
    for (size_t i = s_.members.size(); i-- > 0;) {
      if (!set_[i]) {
        if (member(i).result < 0 || !seed(member(i))) return false;
        if (!set_map(i, member(i).path)) return false;
      }
      if (!check_member(i) || !read_operands(i)) return false;
    }
    return true;
  }

  bool set_map(size_t i, int32_t path) {
    const TensorType& type = node(member(i).node).results[0];
    IndexMap map = map_of(type, path);
    if (set_[i]) return map == member(i).map;
    if (!find_level(map, type.shape.size(), member(i).by_row)) return false;
    member(i).path = path;
    member(i).map = std::move(map);
    set_[i] = true;
    return true;
  }

  int64_t level_size(bool by_row) const {
    int64_t size = 1;
    for (int64_t axis = 0; axis < s_.domain.rank(); ++axis) {
      if (!by_row || !is_folded(axis)) size *= s_.domain[axis];
    }
    return size;
  }

  bool check_member(size_t i) {
    const Member& m = member(i);
    const int64_t size = node(m.node).results[0].shape.size();
    // A result stores each computed element.
    if (m.result >= 0 && size != level_size(m.by_row)) return false;
    if (!m.by_row && !s_.folds_evenly(m.map.strides)) return false;
    if (m.kind != Member::Kind::reduce) return true;
    // The fold visits rows (and columns) in their natural order.
    int64_t expected = 1;
    if (!m.by_row || m.map.offset != 0) return false;
    for (int64_t axis = s_.domain.rank() - 1; axis >= 0; --axis) {
      if (is_folded(axis)) continue;
      if (m.map.strides[static_cast<size_t>(axis)] != expected) return false;
      expected *= s_.domain[axis];
    }
    return true;
  }

  const Folding& folding_at(size_t member) const {
    return std::lower_bound(foldings_.begin(), foldings_.end(), member,
                            [](const auto& each, size_t at) { return each.first < at; })
        ->second;
  }

  bool read_operands(size_t i) {
    const Node& n = node(member(i).node);
    for (const Value input : n.inputs) {
      const Shape& shape = graph_.type(input).shape;
      int32_t path = member(i).path;
      if (n.op->family == Family::reduce) {
        const Folding& folding = folding_at(i);
        if (member(i).kind == Member::Kind::reduce) {
          path = domain_step();
          if (folding.read != natural_) path = reshape_step(natural_, path);
        } else if (folding.read != n.results[0].shape) {
          path = reshape_step(n.results[0].shape, path);
        }
        if (!folding.repeated.empty()) {
          const DimList zeros(static_cast<size_t>(shape.rank()), 0);
          const AxisList ones(static_cast<size_t>(shape.rank()), 1);
          path = add_step(def_of(&ops::slice), Attrs().add(zeros).add(folding.read).add(ones),
                          folding.read, path);
        }
      } else if (shape != n.results[0].shape) {
        path = broadcast_step(n.results[0].shape, path);
      }
      MemberInput operand;
      if (!read(input, path, operand)) return false;
      member(i).operands.push_back(static_cast<int32_t>(s_.operands.size()));
      s_.operands.push_back(operand);
    }
    return true;
  }

  bool read(Value value, int32_t path, MemberInput& operand) {
    while (true) {
      const int32_t at = place_[static_cast<size_t>(value.node)];
      if (at < 0) return read_load(value, path, operand);
      const Node& n = graph_.node(value);
      if (is_constant(n)) return read_number(value.node, operand);
      if (is_range(n)) return read_range(value, path, operand);
      if (!is_view(n)) {
        operand = {MemberInput::Kind::member, member_of_[static_cast<size_t>(at)]};
        return set_map(static_cast<size_t>(operand.index), path);
      }
      path = add_step(*n.op, n.attrs, n.results[0].shape, path);
      value = n.inputs[0];
    }
  }

  bool read_load(Value value, int32_t path, MemberInput& operand) {
    Load load{value, path, map_of(graph_.type(value), path)};
    if (load.map.strides.size() != static_cast<size_t>(s_.domain.rank())) return false;
    if (!s_.folds_evenly(load.map.strides)) return false;
    load.by_row = s_.folds;
    for (int64_t axis = 0; axis < s_.domain.rank(); ++axis) {
      if (is_folded(axis) && load.map.strides[static_cast<size_t>(axis)] != 0) load.by_row = false;
    }
    for (size_t i = 0; i < s_.loads.size(); ++i) {
      if (s_.loads[i].value == value && s_.loads[i].map == load.map) {
        operand = {MemberInput::Kind::load, static_cast<int32_t>(i)};
        return true;
      }
    }
    operand = {MemberInput::Kind::load, static_cast<int32_t>(s_.loads.size())};
    s_.loads.push_back(std::move(load));
    return true;
  }

  bool read_number(int32_t number, MemberInput& operand) {
    const auto found = std::find(s_.numbers.begin(), s_.numbers.end(), number);
    operand = {MemberInput::Kind::number, static_cast<int32_t>(found - s_.numbers.begin())};
    if (found == s_.numbers.end()) s_.numbers.push_back(number);
    return true;
  }

  bool read_range(Value value, int32_t path, MemberInput& operand) {
    RangeRead range{value.node, map_of(graph_.type(value), path)};
    if (range.map.strides.size() != static_cast<size_t>(s_.domain.rank())) return false;
    for (size_t i = 0; i < s_.ranges.size(); ++i) {
      if (s_.ranges[i].node == range.node && s_.ranges[i].map == range.map) {
        operand = {MemberInput::Kind::range, static_cast<int32_t>(i)};
        return true;
      }
    }
    operand = {MemberInput::Kind::range, static_cast<int32_t>(s_.ranges.size())};
    s_.ranges.push_back(std::move(range));
    return true;
  }

  // One index per kernel: all ranges must count along the same axes.
  bool find_index() {
    using Index = Schedule::Index;
    const int64_t rank = s_.domain.rank();
    for (const RangeRead& range : s_.ranges) {
      const Strides& strides = range.map.strides;
      const auto only_in = [&](int64_t begin, int64_t end) {
        for (int64_t axis = 0; axis < rank; ++axis) {
          if (strides[static_cast<size_t>(axis)] != 0 && (axis < begin || axis >= end))
            return false;
        }
        for (int64_t axis = begin; axis + 1 < end; ++axis) {
          const auto at = static_cast<size_t>(axis);
          if (strides[at] != strides[at + 1] * s_.domain[axis + 1]) return false;
        }
        return true;
      };
      Index index = Index::none;
      if (s_.folds) {
        if (only_in(s_.row_axes, s_.row_axes + s_.fold_axes)) index = Index::folded;
      } else if (rank == 0 || only_in(rank - 1, rank)) {
        index = Index::column;
      } else if (only_in(0, rank)) {
        index = Index::all;
      }
      if (index == Index::none || (s_.index != Index::none && s_.index != index)) return false;
      s_.index = index;
    }
    return true;
  }

  // False if there are too many sweeps: `needed` has one bit for each.
  bool find_sweeps() {
    std::vector<int32_t> ready(s_.members.size());  // The sweep from which its value can be read.
    int32_t last = 0;
    for (size_t i = 0; i < s_.members.size(); ++i) {
      Member& m = member(i);
      for (const int32_t k : m.operands) {
        const MemberInput& operand = s_.operands[static_cast<size_t>(k)];
        if (operand.kind == MemberInput::Kind::member)
          m.sweep = std::max(m.sweep, ready[static_cast<size_t>(operand.index)]);
      }
      ready[i] = m.sweep;
      if (m.kind == Member::Kind::reduce) ready[i] += node(m.node).op->gives_index ? 2 : 1;
      // Values that only rows need do not wait for a sweep.
      if (!m.by_row || m.kind == Member::Kind::reduce)
        last = std::max(last, m.kind == Member::Kind::reduce ? ready[i] - 1 : m.sweep);
    }
    s_.sweeps = last + 1;
    if (s_.sweeps > limits_.sweeps) return false;
    std::vector<int64_t> again(s_.members.size());  // The cost of recomputing an element.
    for (size_t i = 0; i < s_.members.size(); ++i) {
      Member& m = member(i);
      if (m.by_row) continue;
      again[i] = scheduler_.cost(m.node).weight;
      for (const int32_t k : m.operands) {
        const MemberInput& operand = s_.operands[static_cast<size_t>(k)];
        if (operand.kind == MemberInput::Kind::member)
          again[i] += again[static_cast<size_t>(operand.index)];
        if (operand.kind == MemberInput::Kind::range) again[i] += 3;
      }
      again[i] = std::min<int64_t>(again[i], 1 << 20);
    }
    for (size_t i = s_.members.size(); i-- > 0;) {
      Member& m = member(i);
      uint32_t computed = m.needed;
      if (m.kind == Member::Kind::reduce) {
        computed = 1U << m.sweep;
        if (node(m.node).op->gives_index) computed |= 2U << m.sweep;
      } else if (m.by_row) {
        continue;
      } else {
        if (m.result >= 0) m.needed |= 1U << m.sweep;
        computed = m.needed;
        const uint32_t later = m.needed & ~(1U << m.sweep);
        if (later != 0 && again[i] > kCheap) {
          m.kept = true;
          computed = 1U << m.sweep;
          m.needed |= computed;
        }
      }
      for (const int32_t k : m.operands) need(s_.operands[static_cast<size_t>(k)], computed);
    }
    find_room();
    return true;
  }

  // The stored element goes to the buffer of a result of the same dtype that is written no earlier
  // than the element's last read; this also loads the buffer's lines into the cache early.
  void find_room() {
    std::vector<bool> taken(s_.members.size());
    for (Member& m : s_.members) {
      if (!m.kept) continue;
      const auto last = static_cast<int32_t>(std::bit_width(m.needed)) - 1;
      for (size_t i = 0; i < s_.members.size() && m.kept_in < 0; ++i) {
        const Member& other = member(i);
        if (other.result < 0 || other.by_row || taken[i] || other.sweep < last ||
            other.sweep <= m.sweep ||
            node(other.node).results[0].dtype != node(m.node).results[0].dtype)
          continue;
        m.kept_in = other.result;
        taken[i] = true;
      }
    }
  }

  void need(const MemberInput& operand, uint32_t sweeps) {
    if (operand.kind == MemberInput::Kind::load)
      s_.loads[static_cast<size_t>(operand.index)].needed |= sweeps;
    if (operand.kind == MemberInput::Kind::member &&
        !member(static_cast<size_t>(operand.index)).by_row)
      member(static_cast<size_t>(operand.index)).needed |= sweeps;
  }

  bool within_limits() {
    int64_t results = 0, kept = 0, row_bytes = 0;
    for (const Member& m : s_.members) {
      const int64_t size = size_of(node(m.node).results[0].dtype);
      s_.exprs += scheduler_.cost(m.node).exprs;
      results += m.result >= 0 ? 1 : 0;
      kept += m.kept && m.kept_in < 0 ? 1 : 0;
      row_bytes += m.kept ? size : 0;
    }
    s_.exprs += static_cast<int64_t>(s_.loads.size() + 4 * s_.ranges.size());
    if (s_.exprs > limits_.exprs) return false;
    if (static_cast<int64_t>(s_.loads.size()) + results + kept > limits_.buffers) return false;
    if (s_.sweeps == 1) return true;
    for (const Load& load : s_.loads) {
      if (!load.by_row && (load.needed & (load.needed - 1)) != 0)
        row_bytes += size_of(graph_.type(load.value).dtype);
    }
    int64_t length = s_.order == Nest::Order::lanes ? 1 : kLanes;
    for (int64_t axis = 0; axis < s_.domain.rank(); ++axis) {
      if (is_folded(axis)) length *= s_.domain[axis];
    }
    return row_bytes * length <= limits_.row_bytes;
  }

  // Elements cheaper than this are recomputed rather than stored.
  static constexpr int64_t kCheap = 8;

  const Graph& graph_;
  std::span<const int32_t> nodes_;
  std::span<const Value> results_;
  const GroupLimits& limits_;
  const std::vector<int32_t>& place_;
  Scheduler& scheduler_;
  Schedule s_;
  Shape natural_;   // The domain's axes in the order of the arrays.
  AxisList order_;  // Axis i of the domain is natural_[order_[i]].
  int32_t natural_step_ = -2;
  std::vector<int32_t> member_of_;                    // By index in nodes_.
  std::vector<std::pair<size_t, Folding>> foldings_;  // Of members that are reductions.
  std::vector<bool> set_;
};

}  // namespace

bool Schedule::see(ArrayRef array, int32_t path, ArrayRef& seen) const {
  for (; path >= 0; path = views[static_cast<size_t>(path)].next) {
    const ViewStep& step = views[static_cast<size_t>(path)];
    ArrayRef next{nullptr, array.dtype, step.shape, {}};
    if (!step.op->view(array, step.attrs, next)) return false;
    array = std::move(next);
  }
  seen = std::move(array);
  return true;
}

int32_t Schedule::first_write(const Member& result) const {
  for (const Member& m : members) {
    if (m.kept && m.kept_in == result.result) return m.sweep;
  }
  return result.by_row ? sweeps : result.sweep;
}

bool Schedule::folds_evenly(const Strides& strides) const {
  for (int64_t axis = row_axes; axis + 1 < row_axes + fold_axes; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (strides[at] != strides[at + 1] * domain[axis + 1]) return false;
  }
  return true;
}

bool is_kernel_op(const Node& node) {
  return node.op != nullptr &&
         (node.op->family == Family::pointwise || node.op->family == Family::reduce);
}

ArrayRef Views::of(Value value) {
  return is_view(graph_.node(value)) ? resolved(value.node).array : dense(graph_.type(value));
}

const Views::Known& Views::resolved(int32_t view) {
  place_.resize(graph_.nodes.size(), -1);
  const auto place = [&](int32_t node) -> int32_t& { return place_[static_cast<size_t>(node)]; };
  SmallVec<int32_t, 8> chain;  // Unresolved views, the last one first.
  while (place(view) < 0) {
    chain.push_back(view);
    const Value shown = graph_.nodes[static_cast<size_t>(view)].inputs[0];
    if (!is_view(graph_.node(shown))) break;
    view = shown.node;
  }
  Work::add(1 + static_cast<int64_t>(chain.size()));
  for (; !chain.empty(); chain.pop_back()) {
    const Node& node = graph_.nodes[static_cast<size_t>(chain.back())];
    const ArrayRef shown = of(node.inputs[0]);
    ArrayRef seen{nullptr, shown.dtype, node.results[0].shape, {}};
    const bool shows = node.op->view(shown, node.attrs, seen);
    place(chain.back()) = static_cast<int32_t>(known_.size());
    known_.push_back({shows ? std::move(seen) : dense(node.results[0]), !shows});
    view = chain.back();
  }
  return known_[static_cast<size_t>(place(view))];
}

bool Views::is_free_in_kernel(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  if (node.op == nullptr) return false;
  if (is_constant(node) || is_range(node)) return true;
  if (!is_view(node) || node.results[0].shape.is_open() ||
      graph_.type(node.inputs[0]).shape.is_open())
    return false;
  // A kernel reads the buffers that it is given, which are reals.
  if (node.results[0].dtype != graph_.type(node.inputs[0]).dtype) return false;
  return !resolved(number).needs_copy;
}

const Scheduler::Cost& Scheduler::cost(int32_t number) {
  costs_.resize(graph_.nodes.size());
  Cost& cost = costs_[static_cast<size_t>(number)];
  if (cost.weight >= 0) return cost;
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  auto dtypes = static_cast<int64_t>(node.results[0].dtype);
  for (size_t i = 0; node.op->value != nullptr && i < node.inputs.size(); ++i)
    dtypes = dtypes * kDTypes + static_cast<int64_t>(graph_.type(node.inputs[i]).dtype);
  Cost& of_kind = cost_of_kind_[{node.op, dtypes}];
  if (of_kind.weight < 0) of_kind = computed_cost(node);
  return cost = of_kind;
}

Scheduler::Cost Scheduler::computed_cost(const Node& node) const {
  Cost cost = {.weight = 1, .exprs = 3};
  if (is_low_precision(node.results[0].dtype)) cost = {.weight = 4, .exprs = 4};
  if (node.op->value == nullptr) return cost;
  std::vector<DType> dtypes;
  for (const Value input : node.inputs) dtypes.push_back(graph_.type(input).dtype);
  for (const Expr& expr : record(*node.op, dtypes).exprs) {
    ++cost.exprs;
    cost.weight += work_of(expr);
  }
  return cost;
}

std::optional<Schedule> Scheduler::run(std::span<const int32_t> nodes,
                                       std::span<const Value> results, const GroupLimits& limits) {
  Work::add(static_cast<int64_t>(graph_.nodes.size() - place_.size() + nodes.size()));
  tidemark::detail::poll_interrupt();
  place_.resize(graph_.nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i)
    place_[static_cast<size_t>(nodes[i])] = static_cast<int32_t>(i);
  std::optional<Schedule> schedule = Maker(graph_, nodes, results, limits, place_, *this).run();
  for (const int32_t node : nodes) place_[static_cast<size_t>(node)] = -1;
  return schedule;
}

size_t Scheduler::form_of(const Node& group) {
  const auto id = static_cast<size_t>(group.regions[0]);
  form_.resize(graph_.regions.size(), -1);
  if (form_[id] >= 0) return static_cast<size_t>(form_[id]);
  const Region& region = graph_.regions[id];
  std::vector<Value> parameters = region.parameters;
  const FormTable::Found found =
      forms_.find(write_.write(region.nodes, region.results, parameters));
  if (found.is_new) groups_.push_back({.first = group.regions[0], .schedule = {}});
  form_[id] = static_cast<int32_t>(found.number);
  return found.number;
}

RegionId Scheduler::first_like(const Node& group) { return groups_[form_of(group)].first; }

const Schedule& Scheduler::of_group(const Node& group) {
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  constexpr int64_t most_sweeps = 30;  // Member::needed has a bit for each.
  Group& form = groups_[form_of(group)];
  if (!form.schedule.members.empty()) return form.schedule;
  const Region& region = graph_.regions[static_cast<size_t>(form.first)];
  std::optional<Schedule> found =
      run(region.nodes, region.results,
          {.exprs = any, .buffers = any, .sweeps = most_sweeps, .row_bytes = any});
  TIDEMARK_CHECK(found.has_value(), "a group of ", region.nodes.size(), " nodes that is no kernel");
  return form.schedule = std::move(*found);
}

}  // namespace tidemark::passes
