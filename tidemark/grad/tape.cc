#include "tidemark/grad/tape.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tidemark/account/accounts.h"
#include "tidemark/grad/gradients.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/tensor/ops.h"

namespace tidemark::detail {

constinit thread_local Tape* current_tape = nullptr;

void Tape::start() {
  if (running_) return;
  running_ = true;
  outer_ = std::exchange(current_tape, this);
}

// Tapes may end in any order.
void Tape::stop() {
  if (!running_) return;
  running_ = false;
  if (current_tape == this) {
    current_tape = outer_;
    return;
  }
  for (Tape* tape = current_tape; tape != nullptr; tape = tape->outer_) {
    if (tape->outer_ == this) tape->outer_ = outer_;
  }
}

TapeId tape_id_of(const Tensor& tensor) {
  const TensorState* const state = TensorState::of(tensor);
  const bool may_have = state != nullptr && state->kind == TensorState::Kind::concrete;
  return may_have && !state->weak ? state->tape_id : 0;
}

Tensor own_handle(Tensor tensor, Source at) {
  const TensorState& state = *TensorState::of(tensor);
  const bool shared = state.references.load(std::memory_order_relaxed) > 1;
  if (!shared || state.weak || !is_float(state.array.dtype)) return tensor;
  return apart(tensor, at);
}

namespace {

constinit std::atomic<TapeId> last_id{0};

TapeId next_id() { return last_id.fetch_add(1, std::memory_order_relaxed) + 1; }

// The number of a tensor, given to it now if it has none.
TapeId numbered(const Tensor& tensor) {
  TensorState& state = *TensorState::of(tensor);
  if (state.tape_id == 0) state.tape_id = next_id();
  return state.tape_id;
}

}  // namespace

void renumber(const Tensor& tensor) { TensorState::of(tensor)->tape_id = next_id(); }

namespace {

template <class F>
void for_each_tape(F f) {
  for (Tape* tape = current_tape; tape != nullptr; tape = tape->outer()) f(*tape);
}

bool is_known(TapeId id) {
  bool known = false;
  if (id != 0) for_each_tape([&](const Tape& tape) { known |= tape.knows(id); });
  return known;
}

int64_t bytes_of(const Tensor& tensor) {
  const TensorState* const state = TensorState::of(tensor);
  if (state == nullptr || state->kind != TensorState::Kind::concrete) return 0;
  return state->storage->bytes;
}

}  // namespace

TapeId last_tape_id() { return last_id.load(std::memory_order_relaxed); }

void refuse_own_gradient(Source at) {
  throw UserError(
      "gradient: the target depends on a gradient that this tape gave, which it did not record", at,
      "nest two tapes: the outer one records the inner one's gradient(); or take the gradient for "
      "a constant, td::stop_gradient(g)");
}

namespace {

// ---- eager code ---------------------------------------------------------------------------------

// Numbers of values. Those that follow each other take no room beside the first and the last.
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
  std::map<TapeId, TapeId> ranges_;  // The end of each, by its first.
};

class EagerTape : public Tape {
 public:
  explicit EagerTape(Source made_at) : account_(*this, made_at) { at = made_at; }

  void watch(const Tensor& tensor, Source at) override {
    TensorState& state = const_cast<TensorState&>(state_of(tensor, at));
    const TensorType type = type_of(tensor, at);
    if (!is_float(type.dtype))
      throw UserError(cat("watch: ", type, " has no gradient: it holds no floats"), at,
                      "cast it to a float dtype first, or take it for a constant");
    array_of(tensor, at);  // A spec has no value.
    if (state.weak) {
      // A number that is watched is a tensor from now on.
      state.weak = false;
      state.tape_id = 0;
    }
    known_.insert(numbered(tensor));
  }

  void saw(const VariableState& variable, const Tensor& value) override {
    // A trace under way is not the tape's; the call that it is for is.
    if (!watches_variables || TensorState::of(value)->kind != TensorState::Kind::concrete) return;
    const TapeId id = numbered(value);
    of_variables_.insert(id);
    if (!known_.insert(id).second) return;
    reads_.emplace_back(std::const_pointer_cast<VariableState>(variable.shared_from_this()), id);
  }

  bool knows(TapeId id) const override {
    return known_.contains(id) || own_gradients_.contains(id);
  }

  void record(const Recorded& recorded) override {
    Recorded mine = recorded;
    for (TapeId& id : mine.inputs)
      if (!knows(id)) id = 0;
    // Of what comes of its own gradients alone it keeps no more than that it does.
    const bool own = std::all_of(mine.inputs.begin(), mine.inputs.end(),
                                 [&](TapeId id) { return id == 0 || is_own_gradient(id); });
    for (const TapeId id : mine.results) {
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

  std::vector<Found> gradient(const Tensors& targets, const Tensors& output_gradients,
                              const Tensors& tensors, const std::vector<Variable>& variables,
                              Source at) override {
    check_whole(at);
    for (const Tensor& target : targets)
      if (is_own_gradient(tape_id_of(target))) refuse_own_gradient(at);
    const Pause pause(*this);
    // Also where a rule throws on the way: what was let go of does not come back.
    consumed_ = !persistent;
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
    std::vector<Found> found;
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

  // Once, by values it knows.
  std::vector<Found> gradient_by(const std::vector<TapeId>& ids, const Tensors& targets,
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
    std::vector<Found> found;
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

  // Each tensor once, whatever number of rules read it.
  int64_t saved_bytes() const override {
    std::map<const void*, int64_t> bytes;
    int64_t total = 0;
    const auto see = [&](const Tensor& tensor) {
      if (bytes_of(tensor) > 0) bytes[TensorState::of(tensor)->storage] = bytes_of(tensor);
    };
    for (const Recorded& each : list_) {
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
    released_ = true;
  }

 private:
  // While it finds gradients it records nothing; a persistent one goes on then.
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

  // What was found so far, by value.
  class Sums {
   public:
    void add(TapeId id, const Tensor& gradient) {
      Tensor& sum = sums_[id].dense;
      sum = sum.has_value() ? std::move(sum) + gradient : gradient;
    }
    void add_rows(TapeId id, RowGradient rows) { sums_[id].rows.push_back(std::move(rows)); }
    // Taken out unless somebody asks for it in the end.
    Tensor take(TapeId id, bool keep) {
      const auto at = sums_.find(id);
      if (at == sums_.end()) return {};
      return keep ? at->second.dense : std::move(at->second.dense);
    }
    Found found(TapeId id) const {
      const auto at = sums_.find(id);
      return at == sums_.end() ? Found() : at->second;
    }

   private:
    std::unordered_map<TapeId, Found> sums_;
  };

  void check_whole(Source at) const {
    if (consumed_)
      throw UserError("gradient: this tape was used already: it let go of what it had saved", at,
                      "ask for all sources at once, or make the tape {.persistent = true}");
    if (released_)
      throw UserError("gradient: this tape was released", at, "ask for gradients before release()");
  }

  // A value gets a gradient of its own instead of that of what it was made by.
  void forget_how(TapeId made) {
    for (Recorded& each : list_)
      std::replace(each.results.begin(), each.results.end(), made, TapeId{0});
  }

  // It records on, but not what it computes itself: what comes of that is known, and refused.
  void refuse_gradients_of(const std::vector<Found>& found, const Tensors& output_gradients) {
    const auto refuse = [&](const Tensor& tensor) {
      const bool given = std::any_of(
          output_gradients.begin(), output_gradients.end(),
          [&](const Tensor& other) { return TensorState::of(other) == TensorState::of(tensor); });
      if (!given && !known_.contains(numbered(tensor))) own_gradients_.add(numbered(tensor));
    };
    for (const Found& each : found) {
      if (each.dense.has_value()) refuse(each.dense);
      for (const RowGradient& rows : each.rows) refuse(rows.rows);
    }
  }
  bool is_own_gradient(TapeId id) const {
    return own_gradients_.contains(id) && !known_.contains(id);
  }

  void step_back(const Recorded& recorded, Sums& sums, const std::vector<TapeId>& kept) const {
    Tensors gradients;
    bool any = false;
    for (const TapeId id : recorded.results) {
      gradients.push_back(sums.take(id, std::binary_search(kept.begin(), kept.end(), id)));
      any |= gradients.back().has_value();
    }
    if (!any) return;
    for (const TapeId id : recorded.inputs)
      if (is_own_gradient(id)) refuse_own_gradient(recorded.at);
    if (recorded.op == nullptr) {
      std::vector<Found> given = recorded.pullback(std::move(gradients));
      for (size_t i = 0; i < given.size(); ++i) {
        if (recorded.inputs[i] == 0) continue;
        if (given[i].dense.has_value()) sums.add(recorded.inputs[i], given[i].dense);
        for (RowGradient& rows : given[i].rows) sums.add_rows(recorded.inputs[i], std::move(rows));
      }
      return;
    }
    // The looked-up rows of a Variable stay rows.
    if (gives_rows(*recorded.op, recorded.attrs) && of_variables_.contains(recorded.inputs[0])) {
      sums.add_rows(recorded.inputs[0], {recorded.operands[1], gradients[0]});
      return;
    }
    std::vector<bool> wanted;
    for (const TapeId id : recorded.inputs) wanted.push_back(id != 0);
    const Tensors found =
        pull_back({*recorded.op, recorded.attrs, recorded.operands, recorded.values, recorded.at},
                  gradients, wanted);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].has_value()) sums.add(recorded.inputs[i], found[i]);
  }

  // All values it was read with count.
  Found of_variable(const Variable& variable, const Sums& sums) const {
    Found all;
    for (const auto& [state, id] : reads_) {
      if (state != VariableState::of(variable)) continue;
      Found one = sums.found(id);
      if (one.dense.has_value())
        all.dense = all.dense.has_value() ? std::move(all.dense) + one.dense : one.dense;
      all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    }
    return all;
  }

  // What depends on something watched: in a way that is recorded, or by gradients it gave itself.
  std::unordered_set<TapeId> known_;
  IdRanges own_gradients_;
  std::vector<Recorded> list_;
  std::vector<std::pair<std::shared_ptr<VariableState>, TapeId>> reads_;
  std::unordered_set<TapeId> of_variables_;  // Values that Variables had.
  bool consumed_ = false, released_ = false;
  TapeAccount account_;
};

}  // namespace

std::unique_ptr<Tape> make_eager_tape(Source at) { return std::make_unique<EagerTape>(at); }
std::unique_ptr<Tape> make_tape(Source at) {
  return tracing() ? make_traced_tape() : make_eager_tape(at);
}

std::vector<Found> gradients_of_run(const std::vector<TapeId>& known,
                                    const std::vector<TapeId>& variables,
                                    const std::function<Tensors()>& run, const Tensors& gradients) {
  EagerTape tape(Source::none());
  tape.watches_variables = false;
  for (const TapeId id : known) tape.know(id);
  for (const TapeId id : variables) tape.know_variable(id);
  tape.start();
  const Tensors results = run();
  return tape.gradient_by(known, results, gradients);
}

// ---- recording ----------------------------------------------------------------------------------

bool is_watched(std::initializer_list<const Tensor*> operands) {
  return taping() && std::any_of(operands.begin(), operands.end(), [](const Tensor* tensor) {
           return tensor != nullptr && is_known(tape_id_of(*tensor));
         });
}

Recording::Recording(const OpDef& op, const Attrs& attrs, std::span<const Tensor* const> operands,
                     std::span<const TensorType> results, Source at) {
  recorded_.op = &op;
  recorded_.attrs = attrs;
  recorded_.at = at.resolve();
  recorded_.result_types.assign(results.begin(), results.end());
  std::vector<bool> wanted;
  std::vector<TensorType> types;
  for (const Tensor* const operand : operands) {
    types.push_back(type_of(*operand, at));
    const TapeId id = tape_id_of(*operand);
    wanted.push_back(is_known(id) && is_float(types.back().dtype));
    recorded_.inputs.push_back(wanted.back() ? id : 0);
  }
  const bool has_floats = std::any_of(results.begin(), results.end(),
                                      [](const TensorType& type) { return is_float(type.dtype); });
  const bool flows = has_floats && !op.stops_gradient &&
                     std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  if (!flows) {
    recorded_.op = nullptr;
    return;
  }
  const uint32_t read = read_by_rule(op, attrs, types, results, wanted);
  for (size_t i = 0; i < operands.size(); ++i)
    recorded_.operands.push_back((read >> i & 1) != 0 ? *operands[i] : make_spec(types[i], at));
  kept_results_ = read >> operands.size();
}

void Recording::finish(std::span<const Tensor> results) {
  if (recorded_.op == nullptr) return;
  for (size_t r = 0; r < results.size(); ++r) {
    const TensorType& type = recorded_.result_types[r];
    // A result without floats has no gradient: tapes need no number for it.
    recorded_.results.push_back(is_float(type.dtype) ? numbered(results[r]) : 0);
    recorded_.values.push_back((kept_results_ >> r & 1) != 0 ? results[r]
                                                             : make_spec(type, recorded_.at));
  }
  for_each_tape([&](Tape& tape) {
    if (std::any_of(recorded_.inputs.begin(), recorded_.inputs.end(),
                    [&](TapeId id) { return id != 0 && tape.knows(id); }))
      tape.record(recorded_);
  });
}

void record_pullback(std::vector<TapeId> inputs, const Tensors& results, Pullback pullback,
                     const Tensors& held, Source at) {
  if (std::none_of(inputs.begin(), inputs.end(), is_known)) return;
  Recorded recorded;
  recorded.inputs = std::move(inputs);
  recorded.pullback = std::move(pullback);
  recorded.operands = held;
  recorded.at = at.resolve();
  for (const Tensor& result : results) {
    recorded.results.push_back(numbered(result));
    recorded.result_types.push_back(type_of(result, at));
  }
  for_each_tape([&](Tape& tape) {
    if (std::any_of(recorded.inputs.begin(), recorded.inputs.end(),
                    [&](TapeId id) { return id != 0 && tape.knows(id); }))
      tape.record(recorded);
  });
}

}  // namespace tidemark::detail
