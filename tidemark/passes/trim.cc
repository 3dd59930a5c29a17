// Removes unused parts of control-flow nodes: unread results, carries that only themselves read,
// captures and slices that no region reads. So values around a branch or a loop live no longer than
// needed.
#include <algorithm>
#include <map>
#include <set>

#include "tidemark/ir/value_key.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

using Flags = std::vector<bool>;

template <class List>
void keep_only(List& list, const Flags& kept, size_t first = 0) {
  size_t to = first;
  for (size_t i = first; i < list.size(); ++i)
    if (kept[i - first]) list[to++] = list[i];
  list.resize(to);
}

bool has_all(const Flags& kept) { return std::find(kept.begin(), kept.end(), false) == kept.end(); }

class Trimmer {
 public:
  explicit Trimmer(Graph& graph) : graph_(graph) {}

  // Whether anything was removed.
  bool run() {
    visit(Graph::kBody);
    if (live_.size() == 1) return false;  // There is no control flow.
    for (const RegionId id : live_) {
      Region& region = this->region(id);
      for (const int32_t number : region.nodes)
        for (const Value input : node(number).inputs) note_read(input);
      for (const Value result : region.results) note_read(result);
    }
    for (const RegionId id : live_)
      for (const int32_t number : region(id).nodes) trim_results(number);
    if (!moved_.empty()) {
      for (const RegionId id : live_) {
        for (const int32_t number : region(id).nodes)
          for (Value& input : node(number).inputs) move(input);
        for (Value& result : region(id).results) move(result);
      }
      remove_dead(graph_);
    }
    bool trimmed = !moved_.empty();
    for (const RegionId id : live_)
      for (const int32_t number : region(id).nodes) trimmed |= trim_inputs(number);
    return trimmed;
  }

 private:
  Region& region(RegionId id) { return graph_.regions[static_cast<size_t>(id)]; }
  Node& node(int32_t number) { return graph_.nodes[static_cast<size_t>(number)]; }
  static bool is(const Node& node, Flow flow) { return node.op->flow == flow; }

  void visit(RegionId id) {
    live_.push_back(id);
    for (const int32_t number : region(id).nodes)
      for (const RegionId inner : node(number).regions) visit(inner);
  }

  // Only results of control flow are asked for.
  bool is_of_control(Value value) const { return !graph_.node(value).regions.empty(); }
  void note_read(Value value) {
    if (is_of_control(value)) read_.insert(key_of(value));
  }

  Flags read_results(int32_t number) {
    Flags read;
    for (size_t r = 0; r < node(number).results.size(); ++r)
      read.push_back(read_.contains({number, static_cast<int32_t>(r)}));
    return read;
  }

  void move(Value& value) const {
    if (!is_of_control(value)) return;
    const auto found = moved_.find(key_of(value));
    if (found != moved_.end()) value.result = found->second;
  }

  // Reduces the node to these results, and the results of its regions from `first` on likewise.
  void keep_results(int32_t number, const Flags& kept) {
    int16_t next = 0;
    for (size_t r = 0; r < kept.size(); ++r)
      if (kept[r]) moved_[{number, static_cast<int32_t>(r)}] = next++;
    keep_only(node(number).results, kept);
  }

  void trim_results(int32_t number) {
    if (node(number).regions.empty()) return;
    const Flags read = read_results(number);
    if (has_all(read)) return;
    if (is(node(number), Flow::loop)) return trim_loop(number, read);
    if (!is(node(number), Flow::cond) && !is(node(number), Flow::map)) return;
    // A node without results and effects is removed; one with an effect stays unchanged.
    if (std::find(read.begin(), read.end(), true) == read.end()) return;
    for (const RegionId inner : node(number).regions) keep_only(region(inner).results, read);
    keep_results(number, read);
  }

  // The parameters of a region that these results, and its effects, depend on.
  Flags needed(RegionId id, const Flags& results) {
    const Region& body = region(id);
    std::set<ValueKey> wanted;
    for (size_t r = 0; r < results.size(); ++r)
      if (results[r]) wanted.insert(key_of(body.results[r]));
    for (size_t i = body.nodes.size(); i-- > 0;) {
      const Node& each = node(body.nodes[i]);
      bool is_wanted = has_effect(graph_, each);
      for (size_t r = 0; r < each.results.size(); ++r)
        is_wanted |= wanted.contains({body.nodes[i], static_cast<int32_t>(r)});
      if (!is_wanted) continue;
      for (const Value input : each.inputs) wanted.insert(key_of(input));
    }
    Flags parameters;
    for (const Value parameter : body.parameters)
      parameters.push_back(wanted.contains(key_of(parameter)));
    return parameters;
  }

  // Keeps the carries of a loop that the kept results depend on, in this trip or an earlier one.
  void keep_needed_carries(RegionId id, size_t carries, Flags& kept) {
    const Region& body = region(id);
    std::map<ValueKey, size_t> carry_of;
    for (size_t j = 0; j < carries; ++j) carry_of.emplace(key_of(body.parameters[1 + j]), j);
    std::vector<Value> wanted;
    for (size_t r = 0; r < kept.size(); ++r)
      if (kept[r]) wanted.push_back(body.results[r]);
    std::set<int32_t> seen;
    const auto want_inputs = [&](int32_t number) {
      if (!seen.insert(number).second) return;
      for (const Value input : node(number).inputs) wanted.push_back(input);
    };
    for (const int32_t number : body.nodes)
      if (has_effect(graph_, node(number))) want_inputs(number);
    while (!wanted.empty()) {
      const Value value = wanted.back();
      wanted.pop_back();
      const auto carry = carry_of.find(key_of(value));
      if (carry == carry_of.end()) {
        want_inputs(value.node);
      } else if (!kept[carry->second]) {
        kept[carry->second] = true;
        wanted.push_back(body.results[carry->second]);
      }
    }
  }

  // Removes unread checkpoints; while any is read, the loop stays unchanged.
  void trim_checkpoints(int32_t number, const Flags& read) {
    LoopAttrs attrs(node(number));
    Flags kept(read.size(), true);
    const auto first = static_cast<size_t>(attrs.marks);
    for (size_t r = first; r <= first + attrs.kept_carries().size(); ++r) {
      if (read[r]) return;
      kept[r] = false;
    }
    attrs.marks = attrs.kept = 0;
    node(number).attrs = attrs.attrs();
    keep_results(number, kept);
  }

  void trim_loop(int32_t number, const Flags& read) {
    if (LoopAttrs(node(number)).marks != 0) return trim_checkpoints(number, read);
    LoopAttrs attrs(node(number));
    const auto carries = static_cast<size_t>(attrs.carries);
    const bool counted = attrs.counted;
    const RegionId body = node(number).regions[0];
    Flags kept = read;
    if (node(number).regions.size() == 2) {
      const Flags tested = needed(node(number).regions[1], {true});
      for (size_t j = 0; j < carries; ++j) kept[j] = kept[j] || tested[1 + j];
    }
    keep_needed_carries(body, carries, kept);
    if (has_all(kept)) return;
    const Flags of_carries(kept.begin(), kept.begin() + static_cast<int64_t>(carries));
    Flags front = of_carries;
    for (const RegionId inner : node(number).regions) {
      Flags parameters = of_carries;
      parameters.resize(region(inner).parameters.size() - 1, true);
      keep_only(region(inner).parameters, parameters, 1);
    }
    front.resize(node(number).inputs.size() - (counted ? 1 : 0), true);
    keep_only(node(number).inputs, front, counted ? 1 : 0);
    keep_only(region(body).results, kept);
    attrs.saved = std::count(kept.end() - attrs.saved, kept.end(), true);
    keep_results(number, kept);
    attrs.carries = std::count(of_carries.begin(), of_carries.end(), true);
    attrs.stacked = std::ssize(node(number).results) - attrs.carries;
    node(number).attrs = attrs.attrs();
  }

  static void set_slices(Node& control, int64_t slices) {
    if (is(control, Flow::loop)) {
      LoopAttrs attrs(control);
      attrs.slices = slices;
      control.attrs = attrs.attrs();
    } else if (is(control, Flow::map)) {
      Attrs::Reader read = control.attrs.read();
      read.integer();
      control.attrs = Attrs().add(slices).add(read.size()).add(read.size()).add(read.integers());
    }
  }

  // Removes the parameters from `first` on that no region reads, with the inputs from `input` on.
  bool trim_inputs(int32_t number) {
    Node& control = node(number);
    size_t input = 0, parameter = 0, slices = 0;
    if (is(control, Flow::cond)) {
      input = 1;
    } else if (is(control, Flow::map)) {
      slices = static_cast<size_t>(control.attrs.read().integer());
    } else if (is(control, Flow::loop)) {
      const LoopAttrs attrs(control);
      const auto carries = static_cast<size_t>(attrs.carries);
      parameter = 1 + carries;
      input = attrs.first_carry() + carries;
      slices = static_cast<size_t>(attrs.slices);
    } else {
      return false;
    }
    Flags kept(control.inputs.size() - input);
    for (size_t which = 0; which < control.regions.size(); ++which) {
      const Region& inner = region(control.regions[which]);
      // The condition of a loop takes no slices.
      const size_t behind = is(control, Flow::loop) && which == 1 ? slices : 0;
      const Flags wanted = needed(control.regions[which], Flags(inner.results.size(), true));
      for (size_t i = behind; i < kept.size(); ++i)
        kept[i] = kept[i] || wanted[parameter + i - behind];
    }
    if (has_all(kept)) return false;
    for (size_t which = 0; which < control.regions.size(); ++which) {
      const size_t behind = is(control, Flow::loop) && which == 1 ? slices : 0;
      const Flags mine(kept.begin() + static_cast<int64_t>(behind), kept.end());
      keep_only(region(control.regions[which]).parameters, mine, parameter);
    }
    keep_only(control.inputs, kept, input);
    set_slices(control,
               std::count(kept.begin(), kept.begin() + static_cast<int64_t>(slices), true));
    return true;
  }

  Graph& graph_;
  std::vector<RegionId> live_;
  std::set<ValueKey> read_;            // Of control flow.
  std::map<ValueKey, int16_t> moved_;  // The new index of a result.
};

}  // namespace

void trim(Graph& graph) {
  remove_dead(graph);
  while (Trimmer(graph).run()) remove_dead(graph);
}

}  // namespace tidemark::passes
