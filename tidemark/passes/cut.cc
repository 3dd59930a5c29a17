#include "tidemark/passes/cut.h"

#include <algorithm>

#include "tidemark/loops/product_block.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/residuals.h"

namespace tidemark::passes {
namespace {

// Attention with its gradient has about 60. A set that goes on from layer to layer, along what all
// of them add to, is found to have no end only at the last layer, for the table of every layer.
constexpr size_t kMostMembers = 256;

}  // namespace

RegionFacts::RegionFacts(const Graph& graph, RegionId id)
    : region(id),
      is_result(graph.nodes.size()),
      is_forward(forward_nodes(graph, graph.regions[static_cast<size_t>(id)])),
      readers_(graph.nodes.size()),
      position_(graph.nodes.size()) {
  const Region& all = graph.regions[static_cast<size_t>(id)];
  for (size_t at = 0; at < all.nodes.size(); ++at) {
    const int32_t number = all.nodes[at];
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    position_[static_cast<size_t>(number)] = at;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      readers_[static_cast<size_t>(node.inputs[i].node)].push_back({number, i});
  }
  for (const Value result : all.results) is_result[static_cast<size_t>(result.node)] = true;
}

bool is_table(const Graph& graph, const Node& node) {
  constexpr int64_t times = 4;
  if (node.op->cutting != Cutting::product || node.results[0].shape.is_open()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
    const Shape& shape = graph.type(input).shape;
    return !shape.is_open() && shape.size() * times <= node.results[0].shape.size();
  });
}

bool CutSet::is_made_inside(const Slicing& reader, size_t operand, Value value) const {
  return members_.contains(value.node) && reader.operands[operand] != Slicing::kWhole &&
         members_.at(value.node).result == reader.operands[operand];
}

bool CutSet::is_read_outside(int32_t number) const {
  if (facts_.is_result[static_cast<size_t>(number)]) return true;
  const std::vector<RegionFacts::Read>& readers = facts_.readers(number);
  return std::any_of(readers.begin(), readers.end(),
                     [&](const RegionFacts::Read& read) { return !members_.contains(read.node); });
}

bool CutSet::adds_up(int32_t number, const Slicing& slicing, int64_t units) const {
  if (slicing.sums == Slicing::Sums::no) return true;
  const Shape& summed = graph_.type(node(number).inputs[0]).shape;
  const int64_t of_unit = size_along(summed, slicing.operands[0], units_) / units_;
  if (node(number).op->cutting == Cutting::convolution) {
    const Shape& kernel = graph_.type(node(number).inputs[1]).shape;
    const int64_t channels = channels_of_block(kernel[0] * kernel[1]);
    return channels > 0 && units * of_unit % channels == 0;
  }
  const int64_t terms = units * of_unit * slicing.terms;
  const int64_t blocks = terms / kProductBlock;
  const bool is_subtree = slicing.sums == Slicing::Sums::products || (blocks & (blocks - 1)) == 0;
  return terms % kProductBlock == 0 && is_subtree;
}

Cut::Cut(const Graph& graph, const RegionFacts& facts, const Where& where)
    : CutSet(graph, facts, where.units),
      where_(where),
      table_size_(node(where.table).results[0].shape.size()),
      first_(facts.position(where.table)),
      last_(first_) {}

// A value of at least half the table's size counts as large.
bool Cut::is_large(Value value) const {
  const Shape& shape = graph_.type(value).shape;
  return 2 * shape.size() >= table_size_;
}

bool Cut::gives_large(int32_t number) const {
  for (size_t r = 0; r < node(number).results.size(); ++r)
    if (is_large({number, static_cast<int16_t>(r)})) return true;
  return false;
}

bool Cut::grow() {
  if (!add(table(), slicing_of_result(graph_, node(table()), axis(), units()))) return false;
  do {
    while (!to_visit_.empty()) {
      if (members_.size() > kMostMembers) return false;
      const int32_t next = to_visit_.back();
      to_visit_.pop_back();
      if (!add_around(next)) return false;
    }
    find_dependent();
    if (!close()) return false;
  } while (!to_visit_.empty());
  return is_consistent();
}

bool Cut::add(int32_t number, const std::optional<Slicing>& slicing) {
  const Node& added = node(number);
  const bool is_open = std::any_of(added.results.begin(), added.results.end(),
                                   [](const TensorType& type) { return type.shape.is_open(); });
  if (!slicing || is_open) return false;
  if (members_.contains(number)) return members_.at(number) == *slicing;
  members_.add(number, *slicing);
  to_visit_.push_back(number);
  first_ = std::min(first_, facts_.position(number));
  last_ = std::max(last_, facts_.position(number));
  return true;
}

// Adds the producers of large values that a member reads, all readers of large values that it
// computes, and views, which cost nothing and show broadcasts.
bool Cut::add_around(int32_t number) {
  const Slicing slicing = members_.at(number);
  const Node& member = node(number);
  for (size_t i = 0; i < member.inputs.size(); ++i) {
    const Value input = member.inputs[i];
    const Node& maker = graph_.node(input);
    const int64_t axis = slicing.operands[i];
    if (graph_.type(input).shape.is_open()) return false;
    if (axis == Slicing::kWhole || maker.op == nullptr || members_.contains(input.node)) continue;
    // The result of another contraction over large operands is stored anyway.
    const bool is_needed =
        is_large(input) && (maker.op->family != Family::contract || is_table(graph_, maker));
    if (!is_needed && maker.op->view == nullptr) continue;
    const auto made = slicing_of_result(graph_, maker, axis, units());
    if (is_needed || made) {
      if (!add(input.node, made)) return false;
    }
  }
  if (slicing.result == Slicing::kWhole || !gives_large(number)) return true;
  const bool is_outside = is_shown_from_outside({number, 0});
  has_met_views_ |= is_outside;
  if (is_outside && !where_.joins_views) return true;
  if (facts_.is_result[static_cast<size_t>(number)] && !is_outside) return false;
  const std::vector<RegionFacts::Read>& readers = facts_.readers(number);
  return std::all_of(readers.begin(), readers.end(), [&](const RegionFacts::Read& read) {
    if (where_.forward_only && !facts_.is_forward[static_cast<size_t>(read.node)]) return true;
    const auto reader =
        slicing_by_operand(graph_, node(read.node), read.operand, slicing.result, units());
    return (is_outside && !reader) || add(read.node, reader);
  });
}

// A view of a small value needs no memory.
bool Cut::is_shown_from_outside(Value value) const {
  const Node& maker = graph_.node(value);
  if (maker.op != nullptr && maker.op->view != nullptr)
    return is_shown_from_outside(maker.inputs[0]);
  return !is_large(value) && !members_.contains(value.node);
}

std::span<const int32_t> Cut::stretch() const {
  const std::vector<int32_t>& nodes = graph_.regions[static_cast<size_t>(facts_.region)].nodes;
  return std::span(nodes).subspan(first_, last_ + 1 - first_);
}

// Determines which members compute, and which nodes depend on them.
void Cut::find_dependent() {
  computes_.assign(graph_.nodes.size(), 0);
  depends_.assign(graph_.nodes.size(), 0);
  for (const int32_t number : stretch()) {
    const auto at = static_cast<size_t>(number);
    const Node& each = node(number);
    uint8_t after = 0;
    for (const Value input : each.inputs) {
      const auto from = static_cast<size_t>(input.node);
      after |= depends_[from] | computes_[from];
    }
    const bool is_member = members_.contains(number);
    computes_[at] = is_member && (each.op->view == nullptr || after != 0);
    depends_[at] = !is_member && after != 0;
  }
}

// Nodes between members join them, in topological order, except contractions, which are unrelated
// work.
bool Cut::close() {
  const std::span<const int32_t> nodes = stretch();
  std::vector<uint8_t> is_needed(graph_.nodes.size());
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
    if (is_needed[static_cast<size_t>(*at)] == 0 && !computes(*at)) continue;
    for (const Value input : node(*at).inputs) is_needed[static_cast<size_t>(input.node)] = 1;
  }
  for (const int32_t number : nodes) {
    if (!depends(number) || is_needed[static_cast<size_t>(number)] == 0) continue;
    if (!add_between(number)) return false;
    computes_[static_cast<size_t>(number)] = 1;
  }
  return true;
}

// It reads members that compute, among them what joined before it.
bool Cut::add_between(int32_t number) {
  const Node& between = node(number);
  if (between.op->family == Family::contract) return false;
  for (size_t i = 0; i < between.inputs.size(); ++i) {
    const int32_t from = between.inputs[i].node;
    if (!computes(from)) continue;
    const int64_t axis = members_.at(from).result;
    return axis != Slicing::kWhole &&
           add(number, slicing_by_operand(graph_, between, i, axis, units()));
  }
  return false;
}

bool Cut::is_consistent() const {
  for (const auto& [number, slicing] : members_) {
    const Node& member = node(number);
    const bool is_kept = slicing.result != Slicing::kWhole && computes(number) &&
                         gives_large(number) && is_read_outside(number);
    if (is_kept && !where_.forward_only) return false;
    for (size_t i = 0; i < member.inputs.size(); ++i) {
      const Value input = member.inputs[i];
      if (computes(input.node) && !is_made_inside(slicing, i, input)) return false;
    }
  }
  return true;
}

}  // namespace tidemark::passes
