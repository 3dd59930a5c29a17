#include "tidemark/fit/region_model.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tidemark/base/text.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/overwrite.h"

namespace tidemark::fit {
namespace {

int64_t key_of(Value value) { return int64_t{value.node} << 16 | value.result; }

bool has_known_trips(const Graph& graph, const Node& node);

bool has_known_trips(const Graph& graph, RegionId region) {
  const std::vector<int32_t>& nodes = graph.regions[static_cast<size_t>(region)].nodes;
  return std::all_of(nodes.begin(), nodes.end(), [&](int32_t number) {
    return has_known_trips(graph, graph.nodes[static_cast<size_t>(number)]);
  });
}

// The cost of a while loop is not known.
bool has_known_trips(const Graph& graph, const Node& node) {
  if (node.op->flow == Flow::group || node.regions.empty()) return true;
  const bool is_open = (node.op->flow == Flow::loop && LoopAttrs(node).trips.is_open()) ||
                       (node.op->flow == Flow::reverse_loop && ReverseAttrs(node).trips.is_open());
  return !is_open && std::all_of(node.regions.begin(), node.regions.end(),
                                 [&](RegionId region) { return has_known_trips(graph, region); });
}

class ModelBuilder {
 public:
  ModelBuilder(const Graph& graph, RegionId region, const ModelOptions& options)
      : graph_(graph), region_(graph.regions[static_cast<size_t>(region)]), options_(options) {}

  RegionModel run() {
    model_.step_of.assign(graph_.nodes.size(), -1);
    for (size_t i = 0; i < region_.parameters.size(); ++i) {
      const Value parameter = region_.parameters[i];
      parameter_of_[parameter.node] = static_cast<int32_t>(i);
      layout_[key_of(parameter)] = compile::dense_layout(graph_.type(parameter));
    }
    find_given();
    for (size_t i = 0; i < region_.nodes.size(); ++i) add(region_.nodes[i], i);
    model_.steps.shrink_to_fit();
    model_.values.shrink_to_fit();
    find_last_reads();
    model_.offset.assign(model_.steps.size(), 0);
    return std::move(model_);
  }

 private:
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }

  // What bytes a value shows: a value of a step, a parameter, or nothing (a literal).
  struct Root {
    int32_t value = -1, parameter = -1;
  };
  Root root_of(Value value) const {
    if (const auto found = parameter_of_.find(value.node); found != parameter_of_.end())
      return {-1, found->second};
    const auto found = root_.find(key_of(value));
    return found == root_.end() ? Root{} : found->second;
  }

  void find_given() {
    for (Value result : region_.results) {
      while (given_.insert(key_of(result)).second) {
        const Node& maker = graph_.node(result);
        if (maker.op == nullptr || maker.op->view == nullptr) break;
        result = maker.inputs[0];
      }
    }
  }

  void add(int32_t number, size_t position) {
    const Node& made = node(number);
    if (made.op->family == Family::source) return;
    if (made.op->view != nullptr && add_view(number, made)) return;
    const auto self = static_cast<int32_t>(model_.steps.size());
    model_.step_of[static_cast<size_t>(number)] = self;
    model_.position.push_back(static_cast<int32_t>(position));
    ModelStep& step = model_.steps.emplace_back();
    step.node = number;
    read_operands(made, step);
    add_values(number, made, step);
    passes::find_overwritten(
        graph_, made, [&](Value input) { return root_of(input).value; }, step.overwrites);
    if (options_.inside) step.inside = options_.inside(graph_, made);
    step.cost = cost_of(graph_, made);
    step.can_repeat = can_repeat(made);
  }

  // A copy of a node with regions that may fail would come after Variables were written, which then
  // need shadow copies. An index that was checked once cannot fail again.
  bool can_repeat(const Node& made) const {
    const bool may_fail = !made.regions.empty() && passes::can_fail(graph_, made);
    return !may_fail && !made.op->updates_first && !passes::has_effect(graph_, made) &&
           has_known_trips(graph_, made);
  }

  // Returns false for a view that needs a dense operand and so is a copy: a step.
  bool add_view(int32_t number, const Node& made) {
    const Value value{number, 0};
    ArrayRef shown = compile::dense_layout(graph_.type(value));
    const auto operand = layout_.find(key_of(made.inputs[0]));
    const ArrayRef from = operand == layout_.end()
                              ? compile::dense_layout(graph_.type(made.inputs[0]))
                              : operand->second;
    if (!made.op->view(from, made.attrs, shown)) return false;
    layout_[key_of(value)] = shown;
    root_[key_of(value)] = root_of(made.inputs[0]);
    return true;
  }

  void read_operands(const Node& made, ModelStep& step) {
    for (const Value input : made.inputs) {
      const Root root = root_of(input);
      NumberList& list = root.value >= 0 ? step.reads : step.parameters;
      const int32_t read = root.value >= 0 ? root.value : root.parameter;
      if (read >= 0 && std::find(list.begin(), list.end(), read) == list.end())
        list.push_back(read);
    }
  }

  void add_values(int32_t number, const Node& made, ModelStep& step) {
    step.first_value = static_cast<int32_t>(model_.values.size());
    step.values = static_cast<int32_t>(made.results.size());
    for (size_t r = 0; r < made.results.size(); ++r) {
      const Value value{number, static_cast<int16_t>(r)};
      const TensorType& type = made.results[r];
      root_[key_of(value)] = {static_cast<int32_t>(model_.values.size()), -1};
      model_.values.push_back({.step = static_cast<int32_t>(model_.steps.size()) - 1,
                               .result = static_cast<int16_t>(r),
                               .bytes = granted_bytes(type.shape.size() * size_of(type.dtype)),
                               .is_given = given_.contains(key_of(value))});
    }
  }

  void find_last_reads() {
    std::vector<int32_t> last(region_.parameters.size(), 0);
    for (size_t i = 0; i < model_.steps.size(); ++i)
      for (const int32_t parameter : model_.steps[i].parameters)
        last[static_cast<size_t>(parameter)] = static_cast<int32_t>(i);
    model_.readable_until.assign(region_.parameters.size(), kNever);
    for (size_t i = 0; i < region_.parameters.size(); ++i) {
      const bool is_donated = i < options_.donated.size() && options_.donated[i];
      if (is_donated) model_.readable_until[i] = last[i];
      if (i >= options_.replaced_by.size() || options_.replaced_by[i] < 0) continue;
      const Value next = region_.results[static_cast<size_t>(options_.replaced_by[i])];
      const Root writer = root_of(next);
      const int32_t step =
          writer.value < 0 ? -1 : model_.values[static_cast<size_t>(writer.value)].step;
      model_.readable_until[i] = std::max(last[i], step);
    }
  }

  const Graph& graph_;
  const Region& region_;
  const ModelOptions& options_;
  RegionModel model_;
  std::unordered_map<int32_t, int32_t> parameter_of_;  // By node.
  std::unordered_map<int64_t, Root> root_;
  std::unordered_map<int64_t, ArrayRef> layout_;  // Of parameters and views; others are dense.
  std::unordered_set<int64_t> given_;
};

}  // namespace

RegionModel model_of(const Graph& graph, RegionId region, const ModelOptions& options) {
  return ModelBuilder(graph, region, options).run();
}

void calibrate(RegionModel& model, std::span<const int64_t> modelled,
               std::span<const int64_t> measured) {
  for (size_t i = 0; i < model.steps.size(); ++i) {
    const int64_t missing = measured[i] - modelled[i];
    model.steps[i].inside.bytes += std::max<int64_t>(0, missing);
    model.steps[i].inside.least += std::max<int64_t>(0, missing);
    model.offset[i] += std::min<int64_t>(0, missing);
  }
}

}  // namespace tidemark::fit
