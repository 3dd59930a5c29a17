// Replaces sums of padded parts by concatenation: the gradient of an array by slices of it.
//
// The sum of n parts would store n arrays of the full size and read them all. It is exact: every
// element is one part's element plus zeros, which has the same bits in any order of the sum. Adding
// +0 once makes the same +0 of -0.
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "tidemark/ops/graph_builder.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

// Parts of an array that do not overlap, each with all of the other axes.
struct PaddedParts {
  int64_t axis = -1;
  std::map<int64_t, Value> at;  // By the index where the part begins.
};

class OfRegion {
 public:
  OfRegion(Graph& graph, RegionId id, const std::vector<int32_t>& uses)
      : graph_(graph), id_(id), uses_(uses) {}

  bool run() {
    for (const int32_t number : region().nodes) find_parts(number);
    std::erase_if(sums_, [&](const auto& sum) { return !is_whole(sum.second); });
    if (sums_.empty()) return false;
    replace_sums();
    return true;
  }

 private:
  Region& region() { return graph_.regions[static_cast<size_t>(id_)]; }
  int64_t length(Value part, int64_t axis) const { return graph_.type(part).shape[axis]; }

  void find_parts(int32_t number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    if (node.op == &def_of(&ops::pad)) {
      if (std::optional<PaddedParts> parts = part_of(node)) sums_[number] = std::move(*parts);
    } else if (node.op == &def_of(&tidemark::add)) {
      add_up(number, node.inputs[0].node, node.inputs[1].node);
    }
  }

  // The part of a node that pads with zeros along one axis.
  std::optional<PaddedParts> part_of(const Node& pad) const {
    const TensorType &whole = pad.results[0], &part = graph_.type(pad.inputs[0]);
    if (whole.shape.is_open() || part.shape.is_open() || whole.dtype == DType::boolean) return {};
    Attrs::Reader read = pad.attrs.read();
    const DimList low(read.sizes()), high(read.sizes());
    const AxisList inside(read.integers());
    const double value = read.number();
    const bool is_zero =
        is_float(whole.dtype) ? value == 0 && !std::signbit(value) : read.integer() == 0;
    if (!is_zero) return {};
    PaddedParts parts;
    for (size_t i = 0; i < low.size(); ++i) {
      if (low[i].is_traced() || high[i].is_traced()) return {};
      const int64_t before = low[i].number(), after = high[i].number();
      if (before == 0 && after == 0 && inside[i] == 0) continue;
      if (parts.axis >= 0 || before < 0 || after < 0 || inside[i] != 0) return {};
      parts.axis = static_cast<int64_t>(i);
      parts.at[before] = pad.inputs[0];
    }
    if (parts.axis < 0 || length(pad.inputs[0], parts.axis) == 0) return {};
    return parts;
  }

  // The fewer parts are moved to the more, so that a sum of n parts costs n log n.
  void add_up(int32_t sum, int32_t a, int32_t b) {
    auto more = sums_.find(a), fewer = sums_.find(b);
    if (a == b || more == sums_.end() || fewer == sums_.end()) return;
    if (uses_[static_cast<size_t>(a)] != 1 || uses_[static_cast<size_t>(b)] != 1) return;
    if (more->second.at.size() < fewer->second.at.size()) std::swap(more, fewer);
    if (more->second.axis != fewer->second.axis || overlap(more->second, fewer->second)) return;
    more->second.at.merge(fewer->second.at);
    PaddedParts both = std::move(more->second);
    sums_.erase(a);
    sums_.erase(b);
    sums_[sum] = std::move(both);
  }

  bool overlap(const PaddedParts& more, const PaddedParts& fewer) const {
    for (const auto& [begin, part] : fewer.at) {
      const auto next = more.at.lower_bound(begin);
      if (next != more.at.end() && next->first < begin + length(part, fewer.axis)) return true;
      if (next == more.at.begin()) continue;
      const auto& [before, earlier] = *std::prev(next);
      if (before + length(earlier, more.axis) > begin) return true;
    }
    return false;
  }

  // Whether there are several parts without a gap between them.
  bool is_whole(const PaddedParts& parts) const {
    int64_t end = parts.at.begin()->first;
    for (const auto& [begin, part] : parts.at) {
      if (begin != end) return false;
      end += length(part, parts.axis);
    }
    return parts.at.size() > 1;
  }

  void replace_sums() {
    std::unordered_map<int32_t, Value> joined;
    const auto replace = [&](Value& value) {
      const auto found = joined.find(value.node);
      if (found != joined.end()) value = found->second;
    };
    const std::vector<int32_t> nodes = std::move(region().nodes);
    region().nodes.clear();
    for (const int32_t number : nodes) {
      const auto sum = sums_.find(number);
      if (sum != sums_.end()) {
        for (auto& [begin, part] : sum->second.at) replace(part);
        joined[number] = join(number, sum->second);
      } else {
        for (Value& input : graph_.nodes[static_cast<size_t>(number)].inputs) replace(input);
        region().nodes.push_back(number);
      }
    }
    for (Value& result : region().results) replace(result);
  }

  Value join(int32_t number, const PaddedParts& parts) {
    const Node sum = graph_.nodes[static_cast<size_t>(number)];
    const TensorType& type = sum.results[0];
    const size_t first = graph_.nodes.size();
    GraphBuilder builder(graph_, id_, sum.source);
    const Value zero = builder.literal(type.dtype, 0.0, 0);
    std::vector<Value> list;
    for (const auto& [begin, part] : parts.at)
      list.push_back(
          is_float(type.dtype) ? builder.apply(def_of(&tidemark::add), {{part, zero}}, {}) : part);
    Value all = builder.apply(def_of(&ops::concat), list, Attrs().add(parts.axis));
    if (graph_.type(all) != type) all = padded(builder, all, parts, type);
    for (size_t made = first; made < graph_.nodes.size(); ++made)
      graph_.nodes[made].gradient_of = sum.gradient_of;
    return all;
  }

  Value padded(GraphBuilder& builder, Value all, const PaddedParts& parts,
               const TensorType& type) const {
    const size_t rank = static_cast<size_t>(type.shape.rank());
    const size_t axis = static_cast<size_t>(parts.axis);
    DimList low(rank), high(rank);
    low[axis] = parts.at.begin()->first;
    high[axis] = type.shape[parts.axis] - low[axis] - length(all, parts.axis);
    const Attrs attrs = Attrs().add(low).add(high).add(AxisList(rank)).add(0.0).add(int64_t{0});
    return builder.apply(def_of(&ops::pad), {{all}}, attrs);
  }

  Graph& graph_;
  const RegionId id_;
  const std::vector<int32_t>& uses_;               // By node.
  std::unordered_map<int32_t, PaddedParts> sums_;  // By node.
};

}  // namespace

void join_pads(Graph& graph) {
  const std::vector<int32_t> uses = count_uses(graph);
  bool changed = false;
  for (size_t id = 0; id < graph.regions.size(); ++id)
    changed |= OfRegion(graph, static_cast<RegionId>(id), uses).run();
  if (changed) remove_dead(graph);
}

}  // namespace tidemark::passes
