#include "tidemark/fit/apply.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::fit {

std::vector<int32_t> steps_of(const Timeline& timeline) {
  std::vector<int32_t> steps;
  for (int32_t slot = 0; static_cast<size_t>(slot) < timeline.profile().size(); ++slot) {
    const std::vector<int32_t>& again = timeline.repeated(slot);
    steps.insert(steps.end(), again.begin(), again.end());
    steps.push_back(slot);
  }
  return steps;
}

std::vector<Execution> executions_of(const RegionModel& model, const std::vector<int32_t>& steps) {
  std::vector<Execution> list;
  std::vector<bool> has_run(model.steps.size());
  for (const int32_t step : steps) {
    list.push_back({step, has_run[static_cast<size_t>(step)]});
    has_run[static_cast<size_t>(step)] = true;
  }
  std::vector<bool> is_read(model.values.size());
  for (auto each = list.rbegin(); each != list.rend(); ++each) {
    const ModelStep& step = model.steps[static_cast<size_t>(each->step)];
    for (int32_t r = 0; r < step.values; ++r) {
      const auto value = static_cast<size_t>(step.first_value + r);
      if (each->is_again && is_read[value] && !model.values[value].is_given)
        each->wanted.push_back(r);
      is_read[value] = false;
    }
    for (const int32_t read : step.reads) is_read[static_cast<size_t>(read)] = true;
  }
  return list;
}

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
  Applier(Graph& graph, RegionId region, const RegionModel& model)
      : graph_(graph), region_(region), model_(model) {
    for (const ModelValue& value : model.values)
      latest_.push_back({model.steps[static_cast<size_t>(value.step)].node, value.result});
    for (const ModelStep& step : model.steps) inputs_.push_back(node(step.node).inputs);
    for (size_t k = 0; k < here().results.size(); ++k)
      shown_by_[maker_of(here().results[k])].push_back(k);
  }

  std::vector<Repeat> run(const std::vector<Execution>& executions) {
    const std::vector<int32_t> nodes = std::move(here().nodes);
    here().nodes.clear();
    for (const int32_t number : nodes)
      if (node(number).op->family == Family::source) here().nodes.push_back(number);
    for (size_t i = 0; i < executions.size(); ++i) {
      if (executions[i].is_again)
        repeat(executions[i], reader_of(executions, i));
      else
        run_first(executions[i].step);
    }
    for (size_t k = 0; k < here().results.size(); ++k) give(k);
    return std::move(repeats_);
  }

 private:
  Region& here() { return graph_.regions[static_cast<size_t>(region_)]; }
  Node& node(int32_t number) { return graph_.nodes[static_cast<size_t>(number)]; }

  // The latest copy of a value. A view is listed when it is first needed, and copied if it shows a
  // copy.
  Value current(Value value) {
    const int32_t step = model_.step_of[static_cast<size_t>(value.node)];
    if (step >= 0)
      return latest_[static_cast<size_t>(model_.steps[static_cast<size_t>(step)].first_value +
                                         value.result)];
    if (node(value.node).op == nullptr || node(value.node).op->view == nullptr) return value;
    const Value shown = view_of_[value.node].value_or(node(value.node).inputs[0]);
    view_of_[value.node] = shown;
    const Value now = current(shown);
    const auto key = std::pair(value.node, std::pair(now.node, now.result));
    if (const auto known = views_.find(key); known != views_.end()) return known->second;
    if (now == shown) {
      here().nodes.push_back(value.node);
      return views_[key] = value;
    }
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

  void run_first(int32_t step) {
    const int32_t number = model_.steps[static_cast<size_t>(step)].node;
    SmallVec<Value, 3> inputs = current_inputs(step);
    node(number).inputs = std::move(inputs);
    here().nodes.push_back(number);
    for (const size_t k : shown_by_[step]) give(k);
  }

  void give(size_t result) {
    const Value now = current(here().results[result]);
    here().results[result] = now;
  }

  // The step whose value a result of the region shows; -1 if there is none.
  int32_t maker_of(Value result) {
    while (node(result.node).op != nullptr && node(result.node).op->view != nullptr &&
           model_.step_of[static_cast<size_t>(result.node)] < 0)
      result = node(result.node).inputs[0];
    return model_.step_of[static_cast<size_t>(result.node)];
  }

  // The node for which a step runs again: the next one that runs for the first time.
  int32_t reader_of(const std::vector<Execution>& executions, size_t i) const {
    while (i + 1 < executions.size() && executions[i].is_again) ++i;
    return model_.steps[static_cast<size_t>(executions[i].step)].node;
  }

  void repeat(const Execution& execution, int32_t reader) {
    const ModelStep& again = model_.steps[static_cast<size_t>(execution.step)];
    const std::vector<int32_t>& wanted = execution.wanted;
    SmallVec<Value, 3> inputs = current_inputs(execution.step);
    Node copy = node(again.node);
    copy.inputs = std::move(inputs);
    for (RegionId& region : copy.regions) region = copy_region(graph_, region, leave_none);
    copy.gradient_of = node(reader).gradient_of;
    const bool is_trimmed = copy.op->flow == Flow::group && keep_results(copy, wanted);
    const int32_t number = graph_.add_node(region_, std::move(copy));
    Repeat repeat{.node = again.node, .cost = again.cost};
    for (size_t k = 0; k < wanted.size(); ++k) {
      const auto value = static_cast<size_t>(again.first_value + wanted[k]);
      latest_[value] = {number,
                        static_cast<int16_t>(is_trimmed ? static_cast<int32_t>(k) : wanted[k])};
      repeat.bytes += model_.values[value].bytes;
    }
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
  std::vector<Value> latest_;               // By value of the model.
  std::vector<SmallVec<Value, 3>> inputs_;  // By step: what its node read at first.
  // Results by the step that makes what they show: their views directly follow it.
  std::map<int32_t, std::vector<size_t>> shown_by_;
  std::map<int32_t, std::optional<Value>> view_of_;  // By view: what it showed at first.
  std::map<std::pair<int32_t, std::pair<int32_t, int16_t>>, Value> views_;
  std::vector<Repeat> repeats_;
};

}  // namespace

std::vector<Repeat> apply(Graph& graph, RegionId region, const RegionModel& model,
                          const std::vector<Execution>& executions) {
  std::vector<Repeat> repeats = Applier(graph, region, model).run(executions);
  passes::remove_dead(graph);
  return repeats;
}

}  // namespace tidemark::fit
