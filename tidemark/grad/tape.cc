#include "tidemark/grad/tape.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tidemark/account/accounts.h"
#include "tidemark/calls/ops.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/passes/gradient/pullback.h"

namespace tidemark::detail {

void Tape::start() {
  if (running_) return;
  running_ = true;
  outer_ = current_tape();
  interpreters.recorder = this;
}

// Tapes may end in any order.
void Tape::stop() {
  if (!running_) return;
  running_ = false;
  if (current_tape() == this) {
    interpreters.recorder = outer_;
    return;
  }
  for (Tape* tape = current_tape(); tape != nullptr; tape = tape->outer_) {
    if (tape->outer_ == this) tape->outer_ = outer_;
  }
}

void Tape::check_watchable(const Tensor& tensor, Source at) {
  const TensorType type = type_of(tensor, at);
  if (is_differentiable(type.dtype)) return;
  throw UserError(cat("watch: only floats have gradients, got ", type), at,
                  "cast it to a float dtype first, or do not watch it: it is a constant then");
}

void Tape::check_unused(Source at) const {
  if (is_used_)
    throw UserError("gradient: this tape was already used, and its saved values are released", at,
                    "ask for all sources in one call, or make the tape {.persistent = true}");
  if (is_released_)
    throw UserError("gradient: this tape was released", at, "call gradient() before release()");
}

namespace {

int64_t bytes_of(const Tensor& tensor) {
  const TensorState* const state = TensorState::of(tensor);
  if (state == nullptr || state->kind != TensorState::Kind::concrete) return 0;
  return state->storage->bytes;
}

// ---- eager code ---------------------------------------------------------------------------------

// A set of value numbers. A run of consecutive numbers takes one entry.
class IdRanges {
 public:
  void add(TapeId id) {
    const auto next = ranges_.upper_bound(id);
    const auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
    if (before != ranges_.end() && id < before->second) return;
    const bool joins_next = next != ranges_.end() && next->first == id + 1;
    const TapeId end = joins_next ? next->second : id + 1;
    if (joins_next) ranges_.erase(next);
    if (before != ranges_.end() && before->second == id)
      before->second = end;
    else
      ranges_.emplace(id, end);
  }
  bool contains(TapeId id) const {
    const auto next = ranges_.upper_bound(id);
    return next != ranges_.begin() && id < std::prev(next)->second;
  }

 private:
  std::map<TapeId, TapeId> ranges_;  // The end of each range, by its first number.
};

class EagerTape : public Tape {
 public:
  explicit EagerTape(Source made_at) : account_(*this, made_at) { at = made_at; }

  void watch(const Tensor& tensor, Source at) override {
    TensorState& state = const_cast<TensorState&>(state_of(tensor, at));
    check_watchable(tensor, at);
    array_of(tensor, at);  // Throws for a spec, which has no value.
    if (state.weak) {
      // A watched plain number becomes a tensor.
      state.weak = false;
      state.tape_id = 0;
    }
    known_.insert(numbered(tensor));
  }

  void saw(const VariableState& variable, const Tensor& value) override {
    // A value that a trace reads is not this tape's; the tape records the traced call as a whole.
    if (!watches_variables || TensorState::of(value)->kind != TensorState::Kind::concrete) return;
    const TapeId id = numbered(value);
    of_variables_.insert(id);
    if (!known_.insert(id).second) return;
    reads_.emplace_back(std::const_pointer_cast<VariableState>(variable.shared_from_this()), id);
  }

  bool knows(TapeId id) const override {
    return known_.contains(id) || own_gradients_.contains(id);
  }

  void record(const RecordedOp& recorded) override {
    RecordedOp mine = recorded;
    for (TapeId& id : mine.inputs)
      if (!knows(id)) id = 0;
    // Of ops that only depend on gradients of this tape, it notes only that they do.
    const bool own = std::all_of(mine.inputs.begin(), mine.inputs.end(),
                                 [&](TapeId id) { return id == 0 || is_own_gradient(id); });
    for (const TapeId id : mine.results) {
      if (id == 0) continue;  // It has no floats.
      if (knows(id))
        forget_how(id);
      else if (own)
        own_gradients_.add(id);
      else
        known_.insert(id);
    }
    if (!own) list_.push_back(std::move(mine));
    account_.set_records(list_.size());
  }

  bool made_last(TapeId id) const override {
    if (id == 0 || list_.empty()) return false;
    const std::vector<TapeId>& made = list_.back().results;
    return std::find(made.begin(), made.end(), id) != made.end();
  }

  std::vector<PartialGradient> gradient(const Tensors& targets, const Tensors& output_gradients,
                                        const Tensors& tensors,
                                        const std::vector<Variable>& variables,
                                        Source at) override {
    check_unused(at);
    for (const Tensor& target : targets)
      if (is_own_gradient(tape_id_of(target))) passes::refuse_own_gradient(at);
    const Pause pause(*this);
    // Set even if a rule throws on the way: released values cannot be restored.
    is_used_ = !persistent;
    Sums sums;
    for (size_t i = 0; i < targets.size(); ++i)
      if (knows(tape_id_of(targets[i]))) sums.add(tape_id_of(targets[i]), output_gradients[i]);
    std::vector<TapeId> kept;
    for (const Tensor& tensor : tensors) kept.push_back(tape_id_of(tensor));
    for (const auto& [variable, id] : reads_) kept.push_back(id);
    std::sort(kept.begin(), kept.end());
    for (size_t i = list_.size(); i-- > 0;) {
      step_back(list_[i], sums, kept);
      if (!persistent) list_[i] = {};
    }
    std::vector<PartialGradient> found;
    for (const Tensor& tensor : tensors) found.push_back(sums.found(tape_id_of(tensor)));
    for (const Variable& variable : variables) found.push_back(of_variable(variable, sums));
    if (pause.ends) refuse_gradients_of(found, output_gradients);
    if (!persistent) {
      list_.clear();
      account_.set_records(0);
    }
    return found;
  }

  void know(TapeId id) { known_.insert(id); }
  void know_variable(TapeId id) { of_variables_.insert(id); }

  // One backward pass, for values that the tape knows.
  std::vector<PartialGradient> gradient_by(const std::vector<TapeId>& ids, const Tensors& targets,
                                           const Tensors& output_gradients) {
    stop();
    Sums sums;
    for (size_t i = 0; i < targets.size(); ++i)
      if (output_gradients[i].has_value() && knows(tape_id_of(targets[i])))
        sums.add(tape_id_of(targets[i]), output_gradients[i]);
    for (size_t i = list_.size(); i-- > 0;) {
      step_back(list_[i], sums, ids);
      list_[i] = {};
    }
    std::vector<PartialGradient> found;
    for (const TapeId id : ids) found.push_back(sums.found(id));
    return found;
  }

  std::vector<Variable> watched_variables() const override {
    std::vector<Variable> list;
    for (const auto& [variable, id] : reads_) {
      const Variable each = VariableState::adopt(variable);
      if (std::none_of(list.begin(), list.end(),
                       [&](const Variable& other) { return other.same_as(each); }))
        list.push_back(each);
    }
    return list;
  }

  // Counts each tensor once, even if several rules read it.
  int64_t saved_bytes() const override {
    std::map<const void*, int64_t> bytes;
    int64_t total = 0;
    const auto see = [&](const Tensor& tensor) {
      if (bytes_of(tensor) > 0) bytes[TensorState::of(tensor)->storage] = bytes_of(tensor);
    };
    for (const RecordedOp& each : list_) {
      for (const Tensor& operand : each.operands) see(operand);
      for (const Tensor& value : each.values) see(value);
    }
    for (const auto& [storage, count] : bytes) total += count;
    return total;
  }

  void release() override {
    stop();
    list_.clear();
    account_.set_records(0);
    is_released_ = true;
  }

 private:
  // Pauses recording during the backward pass; a persistent tape resumes after it.
  struct Pause {
    explicit Pause(EagerTape& paused)
        : tape(paused), ends(paused.persistent && paused.is_running()) {
      tape.stop();
    }
    ~Pause() {
      if (ends) tape.start();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

    EagerTape& tape;
    const bool ends;
  };

  // The sums of gradients so far, by value.
  class Sums {
   public:
    void add(TapeId id, const Tensor& gradient) {
      Tensor& sum = sums_[id].dense;
      sum = sum.has_value() ? std::move(sum) + gradient : gradient;
    }
    void add_rows(TapeId id, RowGradient rows) { sums_[id].rows.push_back(std::move(rows)); }
    // Removes the sum unless it is also a source.
    Tensor take(TapeId id, bool keep) {
      const auto at = sums_.find(id);
      if (at == sums_.end()) return {};
      return keep ? at->second.dense : std::move(at->second.dense);
    }
    PartialGradient found(TapeId id) const {
      const auto at = sums_.find(id);
      return at == sums_.end() ? PartialGradient() : at->second;
    }

   private:
    std::unordered_map<TapeId, PartialGradient> sums_;
  };

  // Drops the record that computed the value, which gets a custom gradient.
  void forget_how(TapeId made) {
    for (RecordedOp& each : list_)
      std::replace(each.results.begin(), each.results.end(), made, TapeId{0});
  }

  // The tape continues to record after gradient(), but has not recorded its own gradients: values
  // that depend on them are noted, and refused as targets.
  void refuse_gradients_of(const std::vector<PartialGradient>& found,
                           const Tensors& output_gradients) {
    const auto refuse = [&](const Tensor& tensor) {
      const bool given = std::any_of(
          output_gradients.begin(), output_gradients.end(),
          [&](const Tensor& other) { return TensorState::of(other) == TensorState::of(tensor); });
      if (!given && !known_.contains(numbered(tensor))) own_gradients_.add(numbered(tensor));
    };
    for (const PartialGradient& each : found) {
      if (each.dense.has_value()) refuse(each.dense);
      for (const RowGradient& rows : each.rows) refuse(rows.rows);
    }
  }
  bool is_own_gradient(TapeId id) const {
    return own_gradients_.contains(id) && !known_.contains(id);
  }

  void step_back(const RecordedOp& recorded, Sums& sums, const std::vector<TapeId>& kept) const {
    Tensors gradients;
    bool any = false;
    for (const TapeId id : recorded.results) {
      gradients.push_back(sums.take(id, std::binary_search(kept.begin(), kept.end(), id)));
      any |= gradients.back().has_value();
    }
    if (!any) return;
    for (const TapeId id : recorded.inputs)
      if (is_own_gradient(id)) passes::refuse_own_gradient(recorded.at);
    if (recorded.op == nullptr) {
      std::vector<PartialGradient> given = recorded.pullback(std::move(gradients));
      for (size_t i = 0; i < given.size(); ++i) {
        if (recorded.inputs[i] == 0) continue;
        if (given[i].dense.has_value()) sums.add(recorded.inputs[i], given[i].dense);
        for (RowGradient& rows : given[i].rows) sums.add_rows(recorded.inputs[i], std::move(rows));
      }
      return;
    }
    // The gradient of a Variable that is only looked up in stays row-sparse.
    if (passes::gives_rows(*recorded.op, recorded.attrs) &&
        of_variables_.contains(recorded.inputs[0])) {
      sums.add_rows(recorded.inputs[0], {recorded.operands[1], gradients[0]});
      return;
    }
    std::vector<bool> wanted;
    for (const TapeId id : recorded.inputs) wanted.push_back(id != 0);
    const Tensors found = pull_back({*recorded.op, recorded.attrs, recorded.operands,
                                     recorded.values, recorded.at, recorded.is_chain},
                                    gradients, wanted);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].has_value()) sums.add(recorded.inputs[i], found[i]);
  }

  // A Variable may have been read with several values; all of them count.
  PartialGradient of_variable(const Variable& variable, const Sums& sums) const {
    PartialGradient all;
    for (const auto& [state, id] : reads_) {
      if (state != VariableState::of(variable)) continue;
      PartialGradient one = sums.found(id);
      if (one.dense.has_value())
        all.dense = all.dense.has_value() ? std::move(all.dense) + one.dense : one.dense;
      all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    }
    return all;
  }

  // Values that depend on a watched value, through recorded ops or through gradients of this tape.
  std::unordered_set<TapeId> known_;
  IdRanges own_gradients_;
  std::vector<RecordedOp> list_;
  std::vector<std::pair<std::shared_ptr<VariableState>, TapeId>> reads_;
  std::unordered_set<TapeId> of_variables_;  // The values of Variables.
  TapeAccount account_;
};

}  // namespace

std::unique_ptr<Tape> make_eager_tape(Source at) { return std::make_unique<EagerTape>(at); }
std::unique_ptr<Tape> make_tape(Source at) {
  return tracing() ? make_traced_tape() : make_eager_tape(at);
}

std::vector<PartialGradient> gradients_of_run(const std::vector<TapeId>& known,
                                              const std::vector<TapeId>& variables,
                                              const std::function<Tensors()>& run,
                                              const Tensors& gradients) {
  EagerTape tape(Source::none());
  tape.watches_variables = false;
  for (const TapeId id : known) tape.know(id);
  for (const TapeId id : variables) tape.know_variable(id);
  tape.start();
  const Tensors results = run();
  return tape.gradient_by(known, results, gradients);
}

}  // namespace tidemark::detail
