// The steps of a node, other than control flow: how each kind of node becomes a step or a view.
#include <algorithm>

#include "tidemark/base/interrupt.h"
#include "tidemark/base/work.h"
#include "tidemark/compile/group.h"
#include "tidemark/compile/work.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/layout/builder.h"

namespace tidemark::compile {

void LayoutBuilder::add_node(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value result{number, 0};
  Work::add(static_cast<int64_t>(1 + node.inputs.size() + node.results.size()));
  tidemark::detail::poll_interrupt();
  if (node.op->literal == Literal::number) return;
  const bool has_body = !node.regions.empty() && node.op->flow != Flow::group;
  const InMemory there(*this, has_body               ? interface_.home
                              : node.results.empty() ? device::kHostMemory
                                                     : device_of(result));
  if (node.op->view != nullptr && root(result) != id(result)) {
    // A view has no step and no bytes; its root lives until the last reader.
  } else if (node.op->view != nullptr) {
    add_view_copy(number);
  } else if (node.op->transfers) {
    add_transfer(scope, number);
  } else if (node.op->flow == Flow::cond) {
    add_cond(scope, number);
  } else if (node.op->flow == Flow::loop) {
    add_loop(scope, number);
  } else if (node.op->flow == Flow::reverse_loop) {
    add_reverse(scope, number);
  } else if (node.op->flow == Flow::map) {
    add_map(scope, number);
  } else if (node.op->flow == Flow::group) {
    add_group(scope, number);
  } else if (is_made_of_parts(number)) {
    add_concat(scope, number);
  } else if (node.op->family == Family::effect) {
    add_effect(number);
  } else if (node.op->family == Family::pointwise) {
    add_pointwise(scope, number);
  } else {
    add_op(scope, number);
  }
  for (const Value input : node.inputs) {
    const int32_t held = memory_of(root(input));
    if (held >= 0) extend_to_now(held);
  }
  for (size_t r = 0; r < node.results.size(); ++r) {
    const int32_t held = memory_of(root({number, static_cast<int16_t>(r)}));
    if (held >= 0) extend_to_now(held);
  }
}

void LayoutBuilder::add_pointwise(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  const Value result{number, 0};
  std::vector<OperandLayout> operands;
  std::vector<run::Address> places;
  for (const Value input : node.inputs) {
    operands.push_back({.layout = view_of(input).layout});
    if (is_constant(input)) {
      operands.back().is_number = true;
      operands.back().number = constant_bits(input);
    } else {
      places.push_back(address_of(input));
    }
  }
  choose(node, result, scope);
  places.push_back(address_of(result));
  add_step(plan_op(node, operands, {&view_of(result).layout, 1}), places, node.op->name,
           node.source);
  set_work(work_of(graph_, node));
}

// The layouts and addresses of a node's operands; literals are written to buffers.
void LayoutBuilder::read_operands(const Node& node, std::vector<OperandLayout>& operands,
                                  std::vector<run::Address>& places,
                                  std::vector<int32_t>& literals) {
  operands.reserve(node.inputs.size());
  places.reserve(node.inputs.size() + node.results.size());
  for (const Value input : node.inputs) {
    operands.push_back({.layout = view_of(input).layout});
    if (is_constant(input)) {
      literals.push_back(materialise(input, node.source));
      operands.back().layout = dense_layout(graph_.type(input));
      places.push_back(memory(literals.back()).address);
    } else {
      places.push_back(address_of(input));
    }
  }
}

void LayoutBuilder::add_op(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<OperandLayout> operands;
  std::vector<run::Address> places;
  std::vector<int32_t> literals;
  read_operands(node, operands, places, literals);
  std::vector<ArrayRef> results;
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value result{number, static_cast<int16_t>(r)};
    results.push_back(dense_layout(node.results[r]));
    // One of several results takes no bytes if it is not read.
    if (node.results.size() > 1 && last_use(id(result)) == scope.position) {
      results.back().data = nullptr;
      continue;
    }
    choose(node, result, scope);
    places.push_back(address_of(result));
  }
  add_step(plan_op(node, operands, results), places, node.op->name, node.source,
           passes::can_fail(graph_, node));
  set_work(work_of(graph_, node));
  for (const int32_t literal : literals) extend_to_now(literal);
}

// A view that requires a dense operand: the result is the dense copy.
void LayoutBuilder::add_view_copy(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  memory_of(id({number, 0})) = materialise(node.inputs[0], node.source);
}

// Copies between memories are dense; a strided operand is first copied within its own memory.
void LayoutBuilder::add_transfer(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  add_dense(node.inputs[0], choose(node, {number, 0}, scope), node.source);
}

void LayoutBuilder::add_effect(int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<OperandLayout> operands;
  std::vector<run::Address> places;
  std::vector<int32_t> literals;
  read_operands(node, operands, places, literals);
  add_step(plan_op(node, operands, {}), places, node.op->name, node.source, true);
  set_work(work_of(graph_, node));
  for (const int32_t literal : literals) extend_to_now(literal);
}

void LayoutBuilder::add_group(Scope& scope, int32_t number) {
  const Node& node = graph_.nodes[static_cast<size_t>(number)];
  std::vector<OperandLayout> operands;
  std::vector<ArrayRef> layouts, results;
  std::vector<run::Address> places;
  std::vector<int32_t> literals;
  read_operands(node, operands, places, literals);
  layouts.reserve(operands.size());
  for (OperandLayout& operand : operands) layouts.push_back(std::move(operand.layout));
  results.reserve(node.results.size());
  for (size_t r = 0; r < node.results.size(); ++r) {
    const Value result{number, static_cast<int16_t>(r)};
    choose(node, result, scope);
    places.push_back(address_of(result));
    results.push_back(view_of(result).layout);
  }
  const auto is_shared = [&](Value value) { return shared_[static_cast<size_t>(id(value))]; };
  bool shared = std::any_of(node.inputs.begin(), node.inputs.end(), is_shared);
  for (size_t r = 0; r < node.results.size(); ++r)
    shared |= is_shared({number, static_cast<int16_t>(r)});
  add_step(plan_group(node, layouts, results, shared), places, name_of_group(node), node.source);
  set_work(work_of(graph_, node));
  for (const int32_t literal : literals) extend_to_now(literal);
}

std::string_view LayoutBuilder::name_of_group(const Node& group) {
  const size_t form = scheduler_.form_of(group);
  if (group_names_.size() <= form) group_names_.resize(form + 1);
  if (group_names_[form].empty()) group_names_[form] = group_name(graph_, group);
  return group_names_[form];
}

// Groups of one form with the same layouts have equal tasks, which share what they were planned
// with.
TaskPlan LayoutBuilder::plan_group(const Node& node, std::span<const ArrayRef> operands,
                                   std::span<const ArrayRef> results, bool shared) {
  std::vector<int64_t> words = {static_cast<int64_t>(scheduler_.form_of(node)), threads(), shared,
                                in_memory_};
  for (const std::span<const ArrayRef> list : {operands, results}) {
    for (const ArrayRef& layout : list) {
      words.push_back(layout.data - kNowhere);
      words.insert(words.end(), layout.strides.begin(), layout.strides.end());
    }
  }
  const passes::FormTable::Found found = planned_groups_.find(words);
  if (!found.is_new) {
    TaskPlan again = tasks_[task_of_[found.number]];
    again.heap_bytes = 0;  // The first one holds it.
    return again;
  }
  task_of_.push_back(tasks_.size());
  GroupWork work = group_work(scheduler_, node, operands, results);
  work.threads = threads();
  work.shared = shared;
  TaskPlan task;
  const int fewer = threads_within(threads(), interface_.most_scratch, [&](int count) {
    work.threads = count;
    task = backend().group(work);
    return task.workspace_bytes;
  });
  if (!task.make || work.threads != fewer) {
    work.threads = fewer;
    task = backend().group(std::move(work));
  }
  if (fewer < threads()) task.threads = fewer;
  return task;
}

}  // namespace tidemark::compile
