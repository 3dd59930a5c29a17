// A tape inside a traced function: the graph is its record.
#include <algorithm>

#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/grad/save_choice.h"
#include "tidemark/grad/tape.h"
#include "tidemark/passes/gradient/differentiate_again.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {
namespace {

const TensorState* traced_state(const Tensor& tensor) {
  const TensorState* const state = TensorState::of(tensor);
  return state != nullptr && state->kind == TensorState::Kind::traced ? state : nullptr;
}

TraceScope* scope_of(const TensorState& state) { return static_cast<TraceScope*>(state.scope); }

// A value of the current scope as a tensor, with the line that made it.
Tensor tensor_of_value(passes::ScopedValue value) {
  if (!value) return {};
  const Value here = handed_in(value.value, value.scope, current_scope(), views_now());
  return traced_tensor(here, value.scope->graph->node(value.value).source);
}

std::vector<PartialGradient> tensors_of(const passes::ValueGradients& found) {
  std::vector<PartialGradient> all;
  for (const passes::ValueGradient& each : found) {
    PartialGradient& one = all.emplace_back(tensor_of_value(each.dense));
    for (const passes::ValueGradient::Rows& rows : each.rows)
      one.rows.push_back({tensor_of_value(rows.indices), tensor_of_value(rows.rows)});
  }
  return all;
}

class TracedTape : public Tape {
 public:
  TracedTape() : trace_(current_scope()->trace), body_(trace_->body()) { retain(body_); }
  ~TracedTape() override {
    Tape::stop();
    detail::release(body_);
  }

  void watch(const Tensor& tensor, Source at) override {
    check_watchable(tensor, at);
    // Throws if the tensor leaked from its trace.
    if (traced_state(tensor) != nullptr) value_of(tensor, at);
    watched_.emplace_back(tensor, next_node());
  }

  void saw(const VariableState& variable, const Tensor& value) override {
    if (!watches_variables || traced_state(value) == nullptr) return;
    const auto state = std::const_pointer_cast<VariableState>(variable.shared_from_this());
    reads_.emplace_back(state, value);
    // A value that is read in a branch or a loop may have been assigned there, and is not visible
    // outside.
    if (traced_state(value)->scope != body_)
      reads_.emplace_back(state, trace_->at_start(variable, Source::none()));
  }

  bool knows(TapeId) const override { return false; }
  void record(const RecordedOp&) override {}
  int64_t saved_bytes() const override { return 0; }

  void start() override {
    if (is_running()) return;
    ranges_.push_back({.first = next_node()});
    Tape::start();
  }
  void stop() override {
    if (!is_running()) return;
    ranges_.back().end = next_node();
    Tape::stop();
  }
  void release() override {
    stop();
    is_released_ = true;
  }

  std::vector<PartialGradient> gradient(const Tensors& targets, const Tensors& output_gradients,
                                        const Tensors& tensors,
                                        const std::vector<Variable>& variables,
                                        Source at) override {
    check_usable(at);
    const bool was_running = is_running();
    stop();
    const int32_t first = next_node();
    std::vector<PartialGradient> found(tensors.size() + variables.size());
    if (TraceScope* const scope = scope_of(targets, at))
      found = back_from(scope, targets, output_gradients, tensors, variables, at);
    own_gradients_.push_back({first, next_node()});
    if (persistent && was_running) start();
    is_used_ = !persistent;
    return found;
  }

  std::vector<Variable> watched_variables() const override {
    std::vector<Variable> list;
    for (const auto& [state, value] : reads_) {
      const Variable each = VariableState::adopt(state);
      if (std::none_of(list.begin(), list.end(),
                       [&](const Variable& other) { return other.same_as(each); }))
        list.push_back(each);
    }
    return list;
  }

 private:
  int32_t next_node() const { return static_cast<int32_t>(trace_->graph().nodes.size()); }

  void check_usable(Source at) const {
    if (!is_inside(current_scope(), body_))
      throw UserError(
          cat("gradient: this tape was made inside ", body_->what, " and used outside it"), at,
          "call gradient() inside, and return the gradients");
    check_unused(at);
  }

  // The scope of the targets, which is the current one or encloses it. Null if all targets are
  // constants.
  static TraceScope* scope_of(const Tensors& targets, Source at) {
    TraceScope* innermost = nullptr;
    for (const Tensor& target : targets) {
      const TensorState* const state = traced_state(target);
      if (state == nullptr) continue;
      value_of(target, at);  // Throws if the tensor leaked from its trace.
      if (innermost == nullptr || is_inside(detail::scope_of(*state), innermost))
        innermost = detail::scope_of(*state);
    }
    return innermost;
  }

  // The value of a tensor in a scope; empty if it is not visible there.
  static Value value_in(TraceScope* scope, const Tensor& tensor, Source at) {
    const TensorState* const state = traced_state(tensor);
    if (state != nullptr && (state->scope->ended || !is_inside(scope, detail::scope_of(*state))))
      return {};
    if (state == nullptr && state_of(tensor, at).weak) return {};  // It is a literal.
    const EnterScope entered(scope);
    return value_of(tensor, at);
  }

  std::vector<PartialGradient> back_from(TraceScope* scope, const Tensors& targets,
                                         const Tensors& output_gradients, const Tensors& tensors,
                                         const std::vector<Variable>& variables, Source at) const {
    const passes::GradientSettings settings{
        .is_recorded = is_recorded_again(),
        .views = views_now(),
        .choose_within = choice_by_plans(trace_->sizes(), trace_->fuses),
        .sizes = &trace_->sizes(),
        .recomputed = &trace_->recomputed()};
    passes::Differentiation asked{.scope = scope, .into = current_scope(), .settings = &settings};
    const auto add = [&](std::vector<Value>& list, const Tensor& tensor) {
      const Value value = value_in(scope, tensor, at);
      if (value.node >= 0) list.push_back(value);
      return value;
    };
    for (const auto& [tensor, since] : watched_)
      if (add(asked.watched, tensor).node >= 0) asked.since.push_back(since);
    std::vector<std::pair<const VariableState*, Value>> reads;
    for (const auto& [state, tensor] : reads_) {
      const Value value = add(asked.watched, tensor);
      if (value.node >= 0) asked.since.push_back(0);
      const std::pair<const VariableState*, Value> read = {state.get(), value};
      if (value.node < 0 || std::find(reads.begin(), reads.end(), read) != reads.end()) continue;
      asked.leaves.push_back(value);
      reads.push_back(read);
    }
    // A value assigned to a Variable has no history, whether or not the Variable is watched.
    if (scope == body_)
      for (const Trace::ReadBack& each : trace_->read_back()) asked.leaves.push_back(each.value);
    for (size_t i = 0; i < targets.size(); ++i) {
      const Value value = value_in(scope, targets[i], at);
      if (value.node < 0) continue;
      const Value gradient = value_of(output_gradients[i], at);
      asked.seeds.emplace_back(value, passes::ScopedValue{gradient, current_scope()});
    }
    for (const Tensor& tensor : tensors) asked.sources.push_back(value_in(scope, tensor, at));
    for (const auto& [state, value] : reads) asked.sources.push_back(value);
    asked.own_gradients = own_gradients_;
    asked.nodes = ranges_;
    asked.nodes.insert(asked.nodes.end(), own_gradients_.begin(), own_gradients_.end());
    const std::vector<PartialGradient> all =
        tensors_of(passes::differentiate(asked, trace_->gradients(), at));
    std::vector<PartialGradient> found(all.begin(),
                                       all.begin() + static_cast<int64_t>(tensors.size()));
    for (const Variable& variable : variables) {
      PartialGradient& sum = found.emplace_back();
      for (size_t i = 0; i < reads.size(); ++i) {
        if (reads[i].first != VariableState::of(variable).get()) continue;
        const PartialGradient& one = all[tensors.size() + i];
        if (one.dense.has_value())
          sum.dense = sum.dense.has_value() ? tidemark::add(sum.dense, one.dense, at) : one.dense;
        sum.rows.insert(sum.rows.end(), one.rows.begin(), one.rows.end());
      }
    }
    return found;
  }

  Trace* trace_;
  TraceScope* body_;
  passes::NodeRanges ranges_;         // Nodes that were added while it recorded.
  passes::NodeRanges own_gradients_;  // Nodes that its gradient() added.
  // With the number of the next node at that time.
  std::vector<std::pair<Tensor, int32_t>> watched_;
  std::vector<std::pair<std::shared_ptr<VariableState>, Tensor>> reads_;
};

}  // namespace

std::unique_ptr<Tape> make_traced_tape() { return std::make_unique<TracedTape>(); }

bool is_recorded_again() {
  const Tape* tape = current_tape();
  while (tape != nullptr && dynamic_cast<const TracedTape*>(tape) == nullptr) tape = tape->outer();
  return tape != nullptr;
}

}  // namespace tidemark::detail
