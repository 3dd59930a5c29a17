// Computes large tables part by part, so that they never exist as a whole.
//
// A table is the result of a contraction that is much larger than its operands: attention scores,
// logits. If all nodes around it can be computed part by part along one axis, they become a map
// over parts of the axis; if gradients sum over the axis, a loop that accumulates them. A gradient
// that reads a table of the forward pass recomputes it if that is cheap, so that the table is not
// kept in between.
//
// The bits do not change: parts along a sum are whole blocks of it, combined in the sum's own
// order.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/cut.h"
#include "tidemark/passes/part_by_part.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/residuals.h"

namespace tidemark::passes {
namespace {

constexpr int64_t kPartRows =
    256;  // Rows of a product: packing its operands pays off from here on.
// A table is recomputed if that takes at most this many multiplications per element.
constexpr int64_t kTermsAgain = 128;

class Splitter {
 public:
  Splitter(Graph& graph, RegionId region, const SplitOptions& options)
      : graph_(graph), region_(region), options_(options) {}

  void run() {
    const std::vector<int32_t>& all = here().nodes;
    // Tested first, since most regions have no table and RegionFacts visits all nodes.
    if (std::none_of(all.begin(), all.end(), [&](int32_t each) { return is_large_table(each); }))
      return;
    look();
    // The replacement takes the node's position; new nodes are visited in their own region.
    const std::vector<int32_t> nodes = here().nodes;
    for (const int32_t number : nodes) {
      if (!is_worth(number)) continue;
      if (split(number) || split_apart(number)) look();
    }
  }

 private:
  const Region& here() const { return graph_.regions[static_cast<size_t>(region_)]; }
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  void look() {
    facts_ = std::make_unique<RegionFacts>(graph_, region_);
    is_listed_.assign(graph_.nodes.size(), false);
    for (const int32_t number : here().nodes) is_listed_[static_cast<size_t>(number)] = true;
  }

  bool is_worth(int32_t number) const {
    return is_listed_[static_cast<size_t>(number)] && is_large_table(number);
  }
  bool is_large_table(int32_t number) const {
    return is_table(graph_, node(number)) && table_bytes(number) >= options_.table_bytes;
  }
  // Elements of 16 bits count as f32, so that mixed precision splits what the same function splits
  // in f32.
  int64_t table_bytes(int32_t number) const {
    const TensorType& type = node(number).results[0];
    return type.shape.size() * std::max(size_of(type.dtype), size_of(DType::f32));
  }

  // A valid cut and its parts; empty if there is none.
  struct SplitPlan {
    std::unique_ptr<Cut> cut;
    Parts parts;
  };
  SplitPlan find(int32_t table, bool forward_only = false) const {
    for (Cut::Where where : places(table, forward_only)) {
      for (const bool joins_views : {true, false}) {
        where.joins_views = joins_views;
        auto cut = std::make_unique<Cut>(graph_, *facts_, where);
        const auto parts = cut->grow() ? choose_parts(*cut) : std::nullopt;
        if (parts) return {std::move(cut), *parts};
        if (!cut->has_met_views()) break;  // The other way is the same.
      }
    }
    return {};
  }
  // Each axis, the slowest first; then the rows of all matrices of a batch together.
  std::vector<Cut::Where> places(int32_t table, bool forward_only) const {
    const Shape& shape = node(table).results[0].shape;
    std::vector<Cut::Where> all;
    int64_t rows = 1;
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] > 1) all.push_back({table, axis, shape[axis], forward_only, true});
      if (axis + 1 < shape.rank()) rows *= shape[axis];
    }
    if (!all.empty() && rows > all[0].units)
      all.push_back({table, all[0].axis, rows, forward_only, true});
    return all;
  }

  bool split(int32_t table) {
    const SplitPlan found = find(table);
    return found.cut != nullptr &&
           compute_part_by_part(graph_, *facts_, *found.cut, found.parts, table);
  }

  bool adds_up(const Cut& cut, int64_t units) const {
    return std::all_of(cut.members().begin(), cut.members().end(), [&](const auto& member) {
      return cut.adds_up(member.first, member.second, units);
    });
  }

  std::optional<Parts> choose_parts(const Cut& cut) const {
    const int64_t all = cut.units();
    const Shape& table = node(cut.table()).results[0].shape;
    int64_t wanted = std::max<int64_t>(1, options_.part_bytes / (table_bytes(cut.table()) / all));
    const bool has_rows = cut.axis() + span_of(table, cut.axis(), all) >= table.rank() - 1;
    if (has_rows) wanted = std::max(wanted, kPartRows);
    // Preferably without a remainder.
    for (int64_t units = std::min(wanted, all / 2); 2 * units > wanted; --units)
      if (all % units == 0 && adds_up(cut, units)) return Parts{units, all};
    for (int64_t units = wanted; 3 * units <= 2 * all; ++units)
      if (adds_up(cut, units)) return Parts{units, all};
    return {};
  }

  // A table that both the forward pass and a gradient read: each computes its own.
  bool split_apart(int32_t table) {
    if (!facts_->is_forward[static_cast<size_t>(table)]) return false;
    const SplitPlan forward = find(table, true);
    if (forward.cut == nullptr || !is_little_work(*forward.cut)) return false;
    const std::vector<int32_t> order = here().nodes;
    const std::vector<Change> changes = make_again(*forward.cut);
    if (changes.empty()) return false;
    look();
    const int32_t again = copies_.contains(table) ? copies_.at(table) : table;
    if (again != table && find(again).cut != nullptr && find(table).cut != nullptr) {
      split(again);
      look();
      return split(table);
    }
    for (const Change& change : changes)
      graph_.nodes[static_cast<size_t>(change.node)].inputs[change.operand] = change.was;
    graph_.regions[static_cast<size_t>(region_)].nodes = order;
    look();
    return false;
  }

  bool is_little_work(const Cut& cut) const {
    return std::all_of(cut.members().begin(), cut.members().end(), [&](const auto& member) {
      const Node& made = node(member.first);
      return made.op->family != Family::contract || !cut.is_large({member.first, 0}) ||
             graph_.type(made.inputs[0]).shape[-1] <= kTermsAgain;
    });
  }

  // Operands of gradients, redirected to copies.
  struct Change {
    int32_t node = -1;
    size_t operand = 0;
    Value was;
  };
  std::vector<Change> make_again(const Cut& cut) {
    copies_.clear();
    std::vector<Change> changes;
    const std::vector<int32_t> nodes = here().nodes;
    graph_.regions[static_cast<size_t>(region_)].nodes.clear();
    for (const int32_t number : nodes) {
      for (size_t i = 0; i < node(number).inputs.size(); ++i) {
        const Value input = node(number).inputs[i];
        const bool is_kept =
            cut.members().contains(input.node) && cut.computes(input.node) && cut.is_large(input);
        if (facts_->is_forward[static_cast<size_t>(number)] || !is_kept) continue;
        changes.push_back({number, i, input});
        graph_.nodes[static_cast<size_t>(number)].inputs[i] = copy_of(cut, input, number);
      }
      graph_.regions[static_cast<size_t>(region_)].nodes.push_back(number);
    }
    return changes;
  }
  Value copy_of(const Cut& cut, Value value, int32_t reader) {
    const bool is_inside =
        cut.members().contains(value.node) && cut.computes(value.node) && cut.is_large(value);
    if (!is_inside && !is_converted_parameter(graph_, here(), value)) return value;
    if (const auto found = copies_.find(value.node); found != copies_.end())
      return {found->second, value.result};
    Node copy = graph_.node(value);
    for (Value& input : copy.inputs) input = copy_of(cut, input, reader);
    copy.gradient_of = node(reader).gradient_of;
    const int32_t number = graph_.add_node(region_, std::move(copy));
    copies_[value.node] = number;
    return {number, value.result};
  }

  Graph& graph_;
  const RegionId region_;
  const SplitOptions& options_;
  std::unique_ptr<RegionFacts> facts_;
  std::vector<bool> is_listed_;
  std::map<int32_t, int32_t> copies_;
};

}  // namespace

void split(Graph& graph, const SplitOptions& options) {
  const size_t nodes = graph.nodes.size();
  for (size_t region = 0; region < graph.regions.size(); ++region)
    Splitter(graph, static_cast<RegionId>(region), options).run();
  if (graph.nodes.size() > nodes) remove_dead(graph);
}

}  // namespace tidemark::passes
