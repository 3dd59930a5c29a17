// Computes the forward pass and its gradients for a part of the batch at a time, so that only the
// activations of one part exist at once.
//
// The batch is the first axis of what the first contractions read. All nodes that can be computed
// for a part of it, in both passes, become a loop over the parts. Gradients of weights are sums
// over the batch: the loop carries them and adds to them in place. What needs the whole batch, such
// as the loss or the mean of a normalization, comes after the loop, with all that depends on it.
//
// The bits do not change: a part is a whole number of blocks of every sum over the batch.
#include <algorithm>
#include <set>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/cut.h"
#include "tidemark/passes/part_by_part.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

constexpr int64_t kMostParts = 16;
// What the parts need at once, of what the whole needs, if they are worth a loop.
constexpr double kWorthwhile = 0.85;

bool is_contraction(const Node& node) { return node.op->family == Family::contract; }
bool is_view(const Node& node) { return node.op != nullptr && node.op->view != nullptr; }

class BatchSet : public CutSet {
 public:
  // Forward nodes before the position `first` in the region stay outside, and so do their
  // gradients.
  BatchSet(const Graph& graph, const RegionFacts& facts, int64_t parts, size_t first)
      : CutSet(graph, facts, parts),
        first_(first),
        seeds_(graph.nodes.size(), Slicing::kWhole),
        is_uniform_(graph.nodes.size()),
        shows_early_(graph.nodes.size()) {
    computes_.assign(graph.nodes.size(), 0);
    depends_.assign(graph.nodes.size(), 0);
  }

  void grow() {
    for (const int32_t number : nodes()) mark_uniform(number);
    for (const int32_t number : nodes()) mark_seed(number);
    for (const int32_t number : nodes()) visit(number);
    give_back();
  }

  // The first node that is computed in parts; -1 if none is.
  int32_t first_node() const {
    for (const int32_t number : nodes())
      if (computes(number) && !is_view(node(number))) return number;
    return -1;
  }

  // The bytes of sums and of values that wait for a gradient or for the end of the parts, if those
  // that only members read exist for one part of `parts`.
  double bytes(int64_t parts) const {
    double all = 0;
    for (const int32_t number : nodes()) {
      if (!computes(number) || is_view(node(number))) continue;
      const auto bytes = static_cast<double>(bytes_of(number));
      if (sums(number) || is_kept(number))
        all += bytes;
      else if (is_forward(number) && waits(number))
        all += bytes / static_cast<double>(parts);
    }
    return all;
  }

 private:
  const std::vector<int32_t>& nodes() const {
    return graph_.regions[static_cast<size_t>(facts_.region)].nodes;
  }
  bool is_forward(int32_t number) const { return facts_.is_forward[static_cast<size_t>(number)]; }
  bool sums(int32_t number) const { return members_.at(number).sums != Slicing::Sums::no; }
  bool is_early(int32_t number) const {
    return is_forward(number) && facts_.position(number) < first_;
  }
  int64_t bytes_of(int32_t number) const {
    int64_t bytes = 0;
    for (const TensorType& type : node(number).results) bytes += known_bytes(type);
    return bytes;
  }
  bool is_open(const Node& each) const {
    const auto open = [](const TensorType& type) { return type.shape.is_open(); };
    return std::any_of(each.results.begin(), each.results.end(), open) ||
           std::any_of(each.inputs.begin(), each.inputs.end(),
                       [&](Value input) { return open(graph_.type(input)); });
  }

  // ---- where the set begins ---------------------------------------------------------------------

  // A contraction of the batch by something that all of it shares, and what its batch is made from.
  void mark_seed(int32_t number) {
    const Node& each = node(number);
    if (!is_contraction(each) || !is_forward(number) || is_early(number) || is_open(each)) return;
    const auto slicing = slicing_of_result(graph_, each, 0, units());
    if (!slicing || slicing->operands[0] != 0 || slicing->operands[1] != Slicing::kWhole) return;
    const Shape& shape = each.results[0].shape;
    const int64_t rows = shape.size() / std::max<int64_t>(1, shape[-1]);
    if (batch_ == 0) batch_ = shape[0], rows_ = rows;
    if (shape[0] != batch_ && rows != rows_) return;
    seeds_[static_cast<size_t>(number)] = 0;
    mark_above(each.inputs[0], 0);
  }
  void mark_above(Value value, int64_t axis) {
    const Node& maker = graph_.node(value);
    if (maker.op == nullptr || is_contraction(maker) || !is_forward(value.node) ||
        is_early(value.node) || seeds_[static_cast<size_t>(value.node)] != Slicing::kWhole ||
        is_open(maker))
      return;
    const auto slicing = slicing_of_result(graph_, maker, axis, units());
    if (!slicing) return;
    seeds_[static_cast<size_t>(value.node)] = axis;
    for (size_t i = 0; i < maker.inputs.size(); ++i)
      if (slicing->operands[i] != Slicing::kWhole)
        mark_above(maker.inputs[i], slicing->operands[i]);
  }

  // ---- how it grows -----------------------------------------------------------------------------

  void visit(int32_t number) {
    const Node& each = node(number);
    const auto at = static_cast<size_t>(number);
    bool reads_part = false;
    for (const Value input : each.inputs) {
      const bool computed = computes(input.node);
      reads_part |= computed;
      if (depends(input.node) || (computed && sums(input.node))) depends_[at] = 1;
    }
    if (depends(number)) return;
    const std::optional<Slicing> slicing = wanted(number);
    if (slicing && joins(number, *slicing)) return add(number, *slicing);
    depends_[at] = reads_part ? 1 : 0;
    shows_early_[at] = !reads_part && !is_early(number) &&
                       std::any_of(each.inputs.begin(), each.inputs.end(),
                                   [&](Value input) { return stays_outside(input); });
  }

  std::optional<Slicing> wanted(int32_t number) const {
    const Node& each = node(number);
    if (is_early(number) || is_open(each)) return {};
    for (size_t i = 0; i < each.inputs.size(); ++i)
      if (const int32_t from = each.inputs[i].node; computes(from))
        return slicing_by_operand(graph_, each, i, members_.at(from).result, units());
    const int64_t axis = seeds_[static_cast<size_t>(number)];
    if (axis == Slicing::kWhole || is_view(each)) return {};
    return slicing_of_result(graph_, each, axis, units());
  }

  bool joins(int32_t number, const Slicing& slicing) const {
    if (!adds_up(number, slicing, 1)) return false;
    const Node& each = node(number);
    for (size_t i = 0; i < each.inputs.size(); ++i) {
      const Value input = each.inputs[i];
      if (computes(input.node)) {
        if (!is_made_inside(slicing, i, input)) return false;
      } else if (slicing.operands[i] != Slicing::kWhole) {
        if (!can_walk(input, slicing.operands[i])) return false;
        if (!is_forward(number) && is_of_early_node(input, slicing.operands[i])) return false;
      }
    }
    return true;
  }
  // Whether the value is what a node that stays outside has computed, such as an activation, or is
  // computed from that alone, such as where an activation is positive: the gradient of that node
  // reads it.
  bool stays_outside(Value value) const {
    if (graph_.node(value).op == nullptr || computes(value.node)) return false;
    if (is_early(value.node)) return !walked_.contains(shown_by(value).node);
    return shows_early_[static_cast<size_t>(value.node)];
  }
  // Whether parts of the value stay outside.
  bool is_of_early_node(Value value, int64_t axis) const {
    if (is_uniform(value)) return false;
    const Node& maker = graph_.node(value);
    if (const auto slicing = slicing_of_view(value, axis)) {
      for (size_t i = 0; i < maker.inputs.size(); ++i)
        if (slicing->operands[i] != Slicing::kWhole &&
            is_of_early_node(maker.inputs[i], slicing->operands[i]))
          return true;
      return false;
    }
    return stays_outside(value);
  }
  Value shown_by(Value value) const {
    while (is_view(graph_.node(value))) value = graph_.node(value).inputs[0];
    return value;
  }

  // Whether parts of an outside value can be taken along the axis. Views are made inside where they
  // can be; a repeated element would become many.
  bool can_walk(Value value, int64_t axis) const {
    const Node& maker = graph_.node(value);
    if (is_uniform(value)) return slicing_of_view(value, axis).has_value();
    if (!is_view(maker)) return true;
    if (const auto slicing = slicing_of_view(value, axis)) {
      for (size_t i = 0; i < maker.inputs.size(); ++i)
        if (slicing->operands[i] != Slicing::kWhole &&
            !can_walk(maker.inputs[i], slicing->operands[i]))
          return false;
      return true;
    }
    return !repeats(graph_, value);
  }
  // Whether all elements are computed from the same numbers, as in the gradient of a mean: what
  // would be stored as a whole is computed for each part.
  bool is_uniform(Value value) const { return is_uniform_[static_cast<size_t>(value.node)]; }
  void mark_uniform(int32_t number) {
    const Node& each = node(number);
    if (is_open(each) || (each.op->family != Family::pointwise && !is_view(each))) return;
    is_uniform_[static_cast<size_t>(number)] = std::all_of(
        each.inputs.begin(), each.inputs.end(),
        [&](Value input) { return graph_.type(input).shape.size() == 1 || is_uniform(input); });
  }
  // Of a view, or of a value that is as cheap as one.
  std::optional<Slicing> slicing_of_view(Value value, int64_t axis) const {
    if (!is_view(graph_.node(value)) && !is_uniform(value)) return {};
    if (members_.contains(value.node) && members_.at(value.node).result != axis) return {};
    return slicing_of_result(graph_, graph_.node(value), axis, units());
  }

  void add(int32_t number, const Slicing& slicing) {
    const Node& each = node(number);
    for (size_t i = 0; i < each.inputs.size(); ++i)
      if (!computes(each.inputs[i].node) && slicing.operands[i] != Slicing::kWhole) {
        if (is_forward(number)) walked_.insert(shown_by(each.inputs[i]).node);
        add_view(each.inputs[i], slicing.operands[i]);
      }
    members_.add(number, slicing);
    computes_[static_cast<size_t>(number)] = 1;
  }
  void add_view(Value value, int64_t axis) {
    const auto slicing = slicing_of_view(value, axis);
    if (!slicing || members_.contains(value.node)) return;
    const Node& view = graph_.node(value);
    for (size_t i = 0; i < view.inputs.size(); ++i)
      if (slicing->operands[i] != Slicing::kWhole) add_view(view.inputs[i], slicing->operands[i]);
    members_.add(value.node, *slicing);
  }

  // ---- what it gives back -----------------------------------------------------------------------

  // Whether a value, or a view of it, is read after the parts, so that it exists as a whole.
  bool is_kept(int32_t number) const {
    const std::vector<RegionFacts::Read>& readers = facts_.readers(number);
    return facts_.is_result[static_cast<size_t>(number)] ||
           std::any_of(readers.begin(), readers.end(), [&](const RegionFacts::Read& read) {
             return !computes(read.node) || (is_view(node(read.node)) && is_kept(read.node));
           });
  }
  // Whether a gradient reads it.
  bool waits(int32_t number) const {
    const std::vector<RegionFacts::Read>& readers = facts_.readers(number);
    return std::any_of(readers.begin(), readers.end(), [&](const RegionFacts::Read& read) {
      return !is_forward(read.node) || (is_view(node(read.node)) && waits(read.node));
    });
  }

  // Members that only the outside reads go there if no more bytes are kept then, or for a
  // contraction, fewer.
  void give_back() {
    const std::vector<int32_t>& all = nodes();
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
      if (!computes(*at) || is_read_inside(*at)) continue;
      const int64_t more = bytes_kept_without(*at), less = bytes_of(*at);
      if (more > less || (more == less && is_contraction(node(*at)))) continue;
      computes_[static_cast<size_t>(*at)] = 0;
      depends_[static_cast<size_t>(*at)] = 1;
    }
    Members left(graph_.nodes.size());
    for (const auto& [number, slicing] : members_)
      if (!depends(number)) left.add(number, slicing);
    members_ = std::move(left);
  }
  bool is_read_inside(int32_t number) const {
    const std::vector<RegionFacts::Read>& readers = facts_.readers(number);
    return std::any_of(readers.begin(), readers.end(),
                       [&](const RegionFacts::Read& read) { return computes(read.node); });
  }
  int64_t bytes_kept_without(int32_t number) const {
    int64_t bytes = 0;
    std::set<int32_t> seen;
    for (const Value input : node(number).inputs)
      if (computes(input.node) && !is_kept(input.node) && seen.insert(input.node).second)
        bytes += bytes_of(input.node);
    return bytes;
  }

  const size_t first_;
  std::vector<int64_t> seeds_;    // By node: the axis, if the set may begin there.
  std::vector<bool> is_uniform_;  // By node.
  std::vector<bool>
      shows_early_;  // By node: it is computed from early nodes, though it is not one.
  int64_t batch_ = 0, rows_ = 0;
  std::set<int32_t> walked_;  // Outside nodes of which the forward pass takes parts.
};

// The contractions of the forward pass, in order.
std::vector<int32_t> forward_contractions(const Graph& graph, const RegionFacts& facts) {
  std::vector<int32_t> all;
  for (const int32_t number : graph.body().nodes)
    if (is_contraction(graph.nodes[static_cast<size_t>(number)]) &&
        facts.is_forward[static_cast<size_t>(number)])
      all.push_back(number);
  return all;
}

}  // namespace

MicroBatches::Made micro_batches(Graph& graph, const MicroBatches& options) {
  const RegionFacts facts(graph, Graph::kBody);
  const std::vector<int32_t> contractions = forward_contractions(graph, facts);
  const auto skipped =
      static_cast<size_t>(options.skipped * static_cast<double>(contractions.size()));
  if (skipped >= contractions.size()) return {};
  const size_t first = skipped == 0 ? 0 : facts.position(contractions[skipped]);
  std::optional<BatchSet> best;
  double least = 0;
  for (int64_t parts = 2; parts <= kMostParts; parts *= 2) {
    BatchSet set(graph, facts, parts, first);
    set.grow();
    const double bytes = set.bytes(parts);
    if (bytes >= kWorthwhile * set.bytes(1) || (best && bytes >= least)) continue;
    least = bytes;
    best.emplace(std::move(set));
  }
  if (!best) return {};
  const int64_t parts = best->units();
  const Parts each = {.units = 1, .all = parts, .carries_results = true};
  if (!compute_part_by_part(graph, facts, *best, each, best->first_node())) return {};
  remove_dead(graph);
  return {.parts = parts, .skipped = skipped};
}

}  // namespace tidemark::passes
