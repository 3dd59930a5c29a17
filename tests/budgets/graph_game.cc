#include "tests/budgets/graph_game.h"

#include <algorithm>
#include <map>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/compile/group.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/schedule.h"

namespace tidemark::testing {
namespace {

const Node& node_of(const Graph& graph, int32_t number) {
  return graph.nodes[static_cast<size_t>(number)];
}

bool is_parameter(const Node& node) { return node.op == nullptr; }
bool is_literal(const Node& node) {
  return !is_parameter(node) && node.op->literal != Literal::none;
}

int64_t granted(const TensorType& type) {
  return granted_bytes(type.shape.size() * size_of(type.dtype));
}

bool are_same(const ArrayRef& a, const ArrayRef& b) {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides &&
         size_of(a.dtype) == size_of(b.dtype);
}

// A value as a view of one that has bytes of its own.
struct Shown {
  Value root;
  ArrayRef layout;
};

class GameOfGraph {
 public:
  GameOfGraph(const Graph& graph, const WorkOf& work)
      : graph_(graph), work_(work), scheduler_(graph) {}

  GraphGame run() {
    for (const Value parameter : graph_.body().parameters) show_whole(parameter);
    for (const int32_t number : graph_.body().nodes) add_node(number);
    for (const Value result : graph_.body().results) add_result(result);
    return std::move(made_);
  }

 private:
  using Key = std::pair<int32_t, int16_t>;
  static Key key(Value value) { return {value.node, value.result}; }
  const Shown& shown(Value value) const { return shown_.at(key(value)); }
  // -1 of parameters and literals.
  int number_of(Value root) const {
    const auto found = numbers_.find(key(root));
    return found == numbers_.end() ? -1 : found->second;
  }
  void show_whole(Value value) {
    shown_[key(value)] = {value, compile::dense_layout(graph_.type(value))};
  }

  void add_node(int32_t number) {
    const Node& node = node_of(graph_, number);
    TIDEMARK_CHECK(node.regions.empty() || node.op->flow == Flow::group, node.op->name,
                   " is control flow");
    for (size_t r = 0; r < node.results.size(); ++r) show_whole({number, static_cast<int16_t>(r)});
    if (is_literal(node) || is_shown(number)) return;
    add_step(number);
  }

  // Whether the node is a view that needs no bytes.
  bool is_shown(int32_t number) {
    const Node& node = node_of(graph_, number);
    if (node.op->view == nullptr) return false;
    const Shown& from = shown(node.inputs[0]);
    ArrayRef view = compile::dense_layout(node.results[0]);
    if (!node.op->view(from.layout, node.attrs, view)) return false;
    shown_[{number, 0}] = {from.root, view};
    return true;
  }

  void add_step(int32_t number) {
    const Node& node = node_of(graph_, number);
    Game::Step step{.workspace_bytes = workspace_of(number), .work = work_(graph_, node)};
    for (const Value input : node.inputs) {
      const int read = number_of(shown(input).root);
      if (read >= 0 && std::find(step.reads.begin(), step.reads.end(), read) == step.reads.end())
        step.reads.push_back(read);
    }
    for (size_t r = 0; r < node.results.size(); ++r) {
      const Value result{number, static_cast<int16_t>(r)};
      const int made = static_cast<int>(made_.values.size());
      numbers_[key(result)] = made;
      made_.values.push_back(result);
      made_.game.bytes.push_back(granted(node.results[r]));
      step.makes.push_back(made);
      for (const int read : step.reads)
        if (overwrites(node, r, made_.values[static_cast<size_t>(read)]))
          step.overwrites.push_back({made, read});
    }
    made_.game.steps.push_back(std::move(step));
    made_.nodes.push_back(number);
  }

  // Whether the node reads each element of a value before it writes there.
  bool overwrites(const Node& node, size_t result, Value read) {
    const bool is_group = node.op->flow == Flow::group;
    if (!is_group && node.op->family != Family::pointwise && node.op->family != Family::row)
      return false;
    const ArrayRef written = compile::dense_layout(node.results[result]);
    if (granted(graph_.type(read)) != granted(node.results[result])) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Shown& input = shown(node.inputs[k]);
      if (input.root != read) continue;
      if (!are_same(input.layout, written)) return false;
      if (is_group && !compile::may_overwrite(scheduler_, node, static_cast<int32_t>(k),
                                              static_cast<int32_t>(result)))
        return false;
    }
    return true;
  }

  // The bytes that the node needs besides its operands and results, by the layout of a graph that
  // is this node alone.
  int64_t workspace_of(int32_t number) {
    const Node& node = node_of(graph_, number);
    if (node.op->view != nullptr) return 0;  // A copy.
    Graph alone;
    std::map<Key, Value> copies;
    Node copy = node;
    for (Value& input : copy.inputs) input = copied_with_views(input, alone, copies);
    if (!node.regions.empty()) copy.regions = {copied_region(node.regions[0], alone)};
    const int32_t self = alone.add_node(Graph::kBody, std::move(copy));
    compile::Interface interface;
    interface.parameters.resize(alone.body().parameters.size());
    for (size_t r = 0; r < node.results.size(); ++r)
      alone.body().results.push_back({self, static_cast<int16_t>(r)});
    interface.results.resize(node.results.size());
    return compile::layout(compact(alone), interface).program->arena_bytes;
  }

  // Roots become parameters.
  Value copied_with_views(Value value, Graph& to, std::map<Key, Value>& copies) {
    if (const auto known = copies.find(key(value)); known != copies.end()) return known->second;
    const Node& node = graph_.node(value);
    const bool has_bytes = shown(value).root == value && !is_literal(node);
    Value made;
    if (has_bytes) {
      made = to.add_parameter(Graph::kBody, graph_.type(value), node.source);
    } else {
      Node copy = node;
      for (Value& input : copy.inputs) input = copied_with_views(input, to, copies);
      made = {to.add_node(Graph::kBody, std::move(copy)), value.result};
    }
    return copies[key(value)] = made;
  }

  // The region of a group, which has no regions itself.
  RegionId copied_region(RegionId region, Graph& to) const {
    const RegionId made = to.add_region();
    std::vector<Value> parameters;
    for (const Value parameter : graph_.regions[static_cast<size_t>(region)].parameters)
      parameters.push_back(to.add_parameter(made, graph_.type(parameter), Source::none()));
    to.regions[static_cast<size_t>(made)].results =
        append_copy(graph_, region, to, made, parameters, [](const Node&) { return false; });
    return made;
  }

  // A result that is all of a value in order is made in its own bytes; others are copies.
  void add_result(Value result) {
    const Shown& from = shown(result);
    const int value = number_of(from.root);
    Game& game = made_.game;
    if (is_parameter(graph_.node(result))) return;  // Passed on.
    const bool is_whole = value >= 0 && node_of(graph_, from.root.node).op->view == nullptr &&
                          are_same(from.layout, compile::dense_layout(graph_.type(result))) &&
                          granted(graph_.type(from.root)) == granted(graph_.type(result));
    const auto is_in = [value](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    if (is_whole && !is_in(game.results)) {
      game.results.push_back(value);
    } else {
      game.copied_bytes += granted(graph_.type(result));
      if (value >= 0 && !is_in(game.held_at_end)) game.held_at_end.push_back(value);
    }
  }

  const Graph& graph_;
  const WorkOf& work_;
  passes::Scheduler scheduler_;
  std::map<Key, Shown> shown_;
  std::map<Key, int> numbers_;
  GraphGame made_;
};

// Builds the program of a schedule. Views and literals are copied to where they are read.
class Replay {
 public:
  Replay(const Graph& graph, const GraphGame& of, const std::vector<Pebble>& pebbles)
      : graph_(graph), of_(of), pebbles_(pebbles), made_(graph), instances_(pebbles.size()) {
    made_.body().nodes.clear();
    for (size_t v = 0; v < of.values.size(); ++v)
      numbers_[{of.values[v].node, of.values[v].result}] = static_cast<int>(v);
  }

  Graph run(const PebbleSchedule& schedule) {
    for (const Move& move : schedule.moves) run(move);
    held_ = schedule.held_at_end;
    views_.clear();
    for (Value& result : made_.body().results) result = copied(result);
    return compact(std::move(made_));
  }

 private:
  void run(const Move& move) {
    held_ = move.held;
    views_.clear();
    const int32_t number = copy_of(of_.nodes[static_cast<size_t>(move.step)]);
    for (size_t r = 0; r < move.placed.size(); ++r)
      if (move.placed[r] >= 0)
        instances_[static_cast<size_t>(move.placed[r])] = {number, static_cast<int16_t>(r)};
  }

  // A copy of a node at the end of the body, on what its operands are now.
  int32_t copy_of(int32_t number) {
    Node copy = node_of(graph_, number);
    for (Value& input : copy.inputs) input = copied(input);
    for (RegionId& region : copy.regions)
      region = copy_region(made_, region, [](const Node&) { return false; });
    return made_.add_node(Graph::kBody, std::move(copy));
  }

  Value copied(Value value) {
    if (is_parameter(graph_.node(value))) return value;
    const std::pair<int32_t, int16_t> key{value.node, value.result};
    if (const auto found = numbers_.find(key); found != numbers_.end())
      return held_instance(found->second);
    if (!views_.contains(key)) views_[key] = {copy_of(value.node), value.result};
    return views_.at(key);
  }

  // In a slot, where it takes no bytes, or else in the arena.
  Value held_instance(int value) const {
    for (size_t p = pebbles_.size(); p-- > 0;)
      if (pebbles_[p].value == value && (held_ >> p & 1) != 0) return instances_[p];
    TIDEMARK_CHECK(false, "value ", value, " is not held");
    return {};
  }

  const Graph& graph_;
  const GraphGame& of_;
  const std::vector<Pebble>& pebbles_;
  Graph made_;
  std::vector<Value> instances_;  // By pebble.
  std::map<std::pair<int32_t, int16_t>, int> numbers_;
  std::map<std::pair<int32_t, int16_t>, Value> views_;  // Of the present move.
  uint64_t held_ = 0;
};

}  // namespace

GraphGame game_of(const Graph& graph, const compile::Interface& interface, const WorkOf& work) {
  for (const compile::Interface::Parameter& parameter : interface.parameters)
    TIDEMARK_CHECK(!parameter.donated, "a parameter is donated");
  for (const compile::Interface::Result& result : interface.results)
    TIDEMARK_CHECK(result.updates < 0, "a result updates a Variable");
  return GameOfGraph(graph, work).run();
}

int64_t simple_work(const Graph& graph, const Node& node) {
  int64_t work = 0;
  for (const Value input : node.inputs) work += graph.type(input).shape.size();
  for (const TensorType& result : node.results) work += result.shape.size();
  if (node.op->family == Family::contract) {
    const int64_t rows_and_columns = node.results[0].shape.size();
    const Shape& a = graph.type(node.inputs[0]).shape;
    work += rows_and_columns * int64_t{a[a.rank() - 1]};
  }
  return work;
}

Graph replayed(const Graph& graph, const GraphGame& of, const std::vector<Pebble>& pebbles,
               const PebbleSchedule& schedule) {
  return Replay(graph, of, pebbles).run(schedule);
}

}  // namespace tidemark::testing
