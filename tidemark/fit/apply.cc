#include "tidemark/fit/apply.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::fit {
namespace {

bool leave_none(const Node&) { return false; }

// Whether the region of a group can be one kernel. One that makes fewer results than `fuse` has
// seen may not: a later sweep may have read a result.
bool is_kernel(const Graph& graph, RegionId region) {
  Graph alone;
  std::vector<Value> parameters;
  for (const Value parameter : graph.regions[static_cast<size_t>(region)].parameters)
    parameters.push_back(alone.add_parameter(Graph::kBody, graph.type(parameter), Source::none()));
  alone.body().results = append_copy(graph, region, alone, Graph::kBody, parameters, leave_none);
  passes::remove_dead(alone);
  const Region& body = alone.body();
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  return passes::Scheduler(alone)
      .run(body.nodes, body.results, {.exprs = any, .buffers = any, .sweeps = 30, .row_bytes = any})
      .has_value();
}

class Applier {
 public:
  Applier(Graph& graph, RegionId region, const RegionModel& model, const Timeline& timeline)
      : graph_(graph), region_(region), model_(model), timeline_(timeline) {
    for (const ModelValue& value : model.values)
      latest_.push_back({model.steps[static_cast<size_t>(value.step)].node, value.result});
    for (const ModelStep& step : model.steps) inputs_.push_back(node(step.node).inputs);
  }

  std::vector<Repeat> run() {
    const std::vector<int32_t> nodes = std::move(here().nodes);
    here().nodes.clear();
    for (const int32_t number : nodes) {
      const int32_t step = model_.step_of[static_cast<size_t>(number)];
      if (step >= 0) {
        for (const int32_t again : timeline_.repeated(step)) repeat(again, step, number);
        redirect(number, step);
      }
      here().nodes.push_back(number);
    }
    return std::move(repeats_);
  }

 private:
  Region& here() { return graph_.regions[static_cast<size_t>(region_)]; }
  Node& node(int32_t number) { return graph_.nodes[static_cast<size_t>(number)]; }

  // The latest copy of a value. Views are copied to show it.
  Value current(Value value) {
    const int32_t step = model_.step_of[static_cast<size_t>(value.node)];
    if (step >= 0)
      return latest_[static_cast<size_t>(model_.steps[static_cast<size_t>(step)].first_value +
                                         value.result)];
    if (node(value.node).op == nullptr || node(value.node).op->view == nullptr) return value;
    const Value shown = node(value.node).inputs[0], now = current(shown);
    if (now == shown) return value;
    const auto key = std::pair(value.node, std::pair(now.node, now.result));
    if (const auto known = views_.find(key); known != views_.end()) return known->second;
    Node copy = node(value.node);
    copy.inputs[0] = now;
    return views_[key] = {graph_.add_node(region_, std::move(copy)), value.result};
  }

  // `inputs_` and not the node, which may read copies already.
  SmallVec<Value, 3> current_inputs(int32_t step) {
    SmallVec<Value, 3> inputs = inputs_[static_cast<size_t>(step)];
    for (Value& input : inputs) input = current(input);
    return inputs;
  }

  void redirect(int32_t number, int32_t step) {
    SmallVec<Value, 3> inputs = current_inputs(step);
    node(number).inputs = std::move(inputs);
  }

  void repeat(int32_t step, int32_t slot, int32_t reader) {
    const ModelStep& again = model_.steps[static_cast<size_t>(step)];
    SmallVec<Value, 3> inputs = current_inputs(step);
    Node copy = node(again.node);
    copy.inputs = std::move(inputs);
    for (RegionId& region : copy.regions) region = copy_region(graph_, region, leave_none);
    copy.gradient_of = node(reader).gradient_of;
    std::vector<int32_t> wanted;
    Repeat repeat{.node = again.node, .reader = reader, .cost = again.cost};
    for (int32_t r = 0; r < again.values; ++r) {
      if (!timeline_.is_made_again(again.first_value + r, slot)) continue;
      wanted.push_back(r);
      repeat.bytes += model_.values[static_cast<size_t>(again.first_value + r)].bytes;
    }
    const bool is_trimmed = copy.op->flow == Flow::group && keep_results(copy, wanted);
    const int32_t number = graph_.add_node(region_, std::move(copy));
    for (size_t k = 0; k < wanted.size(); ++k)
      latest_[static_cast<size_t>(again.first_value + wanted[k])] = {
          number, static_cast<int16_t>(is_trimmed ? static_cast<int32_t>(k) : wanted[k])};
    repeats_.push_back(repeat);
  }

  // Results that nobody reads would still be written. Returns whether the group can do without.
  bool keep_results(Node& group, const std::vector<int32_t>& wanted) {
    Region& region = graph_.regions[static_cast<size_t>(group.regions[0])];
    if (wanted.size() == region.results.size()) return false;
    const std::vector<Value> all = region.results;
    std::vector<TensorType> types;
    std::vector<Value> results;
    for (const int32_t r : wanted) {
      types.push_back(group.results[static_cast<size_t>(r)]);
      results.push_back(region.results[static_cast<size_t>(r)]);
    }
    region.results = std::move(results);
    if (!is_kernel(graph_, group.regions[0])) {
      region.results = all;
      return false;
    }
    group.results = std::move(types);
    return true;
  }

  Graph& graph_;
  const RegionId region_;
  const RegionModel& model_;
  const Timeline& timeline_;
  std::vector<Value> latest_;               // By value of the model.
  std::vector<SmallVec<Value, 3>> inputs_;  // By step: what its node read at first.
  std::map<std::pair<int32_t, std::pair<int32_t, int16_t>>, Value> views_;
  std::vector<Repeat> repeats_;
};

}  // namespace

std::vector<Repeat> apply(Graph& graph, RegionId region, const RegionModel& model,
                          const Timeline& timeline) {
  std::vector<Repeat> repeats = Applier(graph, region, model, timeline).run();
  passes::remove_dead(graph);
  return repeats;
}

}  // namespace tidemark::fit
