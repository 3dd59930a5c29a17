// How tapes interpret calls of eager code: each call runs, and is recorded if it depends on a
// watched value.
#include <algorithm>
#include <array>
#include <bit>

#include "tidemark/grad/pullback.h"
#include "tidemark/grad/tape.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/gradient/pullback.h"
#include "tidemark/tensor/composed.h"
#include "tidemark/tensor/eager.h"

namespace tidemark::detail {
namespace {

template <class F>
void for_each_tape(F f) {
  for (Tape* tape = current_tape(); tape != nullptr; tape = tape->outer()) f(*tape);
}

bool is_known(TapeId id) {
  bool known = false;
  if (id != 0) for_each_tape([&](const Tape& tape) { known |= tape.knows(id); });
  return known;
}

// The operands as the op's rule sees them: in the dtypes that the op computes in. Casts are
// recorded as separate ops.
class RuleOperands {
 public:
  RuleOperands(const OpCall& call, const PointwiseTypes& types) {
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const Operand& operand = *call.operands[i];
      // A copy, since the op itself still reads the operand, even if it is an rvalue.
      if (!types.is_as_computed(i))
        converted_[i] =
            tensor_of(operand.tensor() != nullptr ? Operand(*operand.tensor(), call.at) : operand,
                      call.at, types.type.compute[i]);
      list_.push_back(types.is_as_computed(i) ? operand.tensor() : &converted_[i]);
    }
  }
  explicit RuleOperands(const OpCall& call) {
    for (const Operand* const operand : call.operands) list_.push_back(operand->tensor());
  }
  std::span<const Tensor* const> list() const { return list_; }

 private:
  std::array<Tensor, 3> converted_;
  std::vector<const Tensor*> list_;
};

// Made before an eager op runs, so that operands that its rule reads are not overwritten in place.
class Recording {
 public:
  Recording(const OpDef& op, const Attrs& attrs, std::span<const Tensor* const> operands,
            std::span<const TensorType> results, Source at);
  // Called after the op has run.
  void finish(std::span<const Tensor> results);

 private:
  RecordedOp recorded_;
  uint32_t kept_results_ = 0;  // One bit for each result.
};

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
    wanted.push_back(is_known(id) && is_differentiable(types.back().dtype));
    recorded_.inputs.push_back(wanted.back() ? id : 0);
  }
  const bool has_floats = std::any_of(results.begin(), results.end(), [](const TensorType& type) {
    return is_differentiable(type.dtype);
  });
  const bool flows = has_floats && !op.stops_gradient &&
                     std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  if (!flows) {
    recorded_.op = nullptr;
    return;
  }
  const auto [read, is_chain] = passes::form_of_rule(op, attrs, types, results, wanted);
  recorded_.is_chain = is_chain;
  for (size_t i = 0; i < operands.size(); ++i)
    recorded_.operands.push_back((read >> i & 1) != 0 ? *operands[i] : make_spec(types[i], at));
  kept_results_ = read >> operands.size();
}

void Recording::finish(std::span<const Tensor> results) {
  if (recorded_.op == nullptr) return;
  for (size_t r = 0; r < results.size(); ++r) {
    const TensorType& type = recorded_.result_types[r];
    // A result that is not a float has no gradient and needs no number.
    recorded_.results.push_back(is_differentiable(type.dtype) ? numbered(results[r]) : 0);
    recorded_.values.push_back((kept_results_ >> r & 1) != 0 ? results[r]
                                                             : make_spec(type, recorded_.at));
  }
  for_each_tape([&](Tape& tape) {
    if (std::any_of(recorded_.inputs.begin(), recorded_.inputs.end(),
                    [&](TapeId id) { return id != 0 && tape.knows(id); }))
      tape.record(recorded_);
  });
}

bool is_watched(const OpCall& call, const Tape& tape) {
  return call.op.family != Family::effect &&
         std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand* operand) {
           return operand->tensor() != nullptr && tape.observes(*operand->tensor());
         });
}

Tensor recorded(const OpCall& call, const RuleOperands& operands, const TensorType& result) {
  Recording recording(call.op, call.attrs, operands.list(), {&result, 1}, call.at);
  Tensor made;
  {
    const NoTape unseen;
    made = run_now(call);
  }
  recording.finish({&made, 1});
  return made;
}

}  // namespace

Tensor Tape::bind(const OpCall& call) {
  if (!is_watched(call, *this)) return run_now(call);
  if (is_pointwise(call.op)) {
    const PointwiseTypes types(call);
    return recorded(call, RuleOperands(call, types), types.result());
  }
  return recorded(call, RuleOperands(call), result_type(call));
}

Tensors Tape::bind_results(const OpCall& call, uint32_t wanted) {
  if (!is_watched(call, *this)) return run_results_now(call, wanted);
  const std::vector<TensorType> types = result_types(call);
  bool flows = false;
  for (size_t r = 0; r < types.size(); ++r)
    flows |= (wanted >> r & 1) != 0 && is_differentiable(types[r].dtype);
  if (!flows) return run_results_now(call, wanted);
  Recording recording(call.op, call.attrs, RuleOperands(call).list(), types, call.at);
  // The rule may read results that the caller does not want.
  Tensors made = run_results_now(call, ~uint32_t{0});
  recording.finish(made);
  return made;
}

bool Tape::observes(const Tensor& tensor) const { return is_known(tape_id_of(tensor)); }

void Tape::saw_read(const VariableState& variable, const Tensor& value) {
  for_each_tape([&](Tape& tape) { tape.saw(variable, value); });
}

namespace {

// The gradients of f by the operands with these numbers, in eager code or in a trace. The last
// tensor is the gradient of the result.
Tensors gradients_of(const std::function<Tensor(const Tensors&)>& f,
                     const std::vector<size_t>& wanted, Tensors tensors) {
  const Tensor gradient = std::move(tensors.back());
  tensors.pop_back();
  // f(x, x) has two gradients.
  if (!tracing())
    for (const size_t i : wanted) tensors[i] = apart(tensors[i], Source::none());
  const std::unique_ptr<Tape> tape = make_tape(Source::none());
  tape->watches_variables = false;
  Tensors sources;
  for (const size_t i : wanted) sources.push_back(tensors[i]);
  for (const Tensor& source : sources) tape->watch(source, Source::none());
  tape->start();
  const Tensor result = f(tensors);
  Tensors found;
  for (PartialGradient& each : tape->gradient({result}, {gradient}, sources, {}, Source::none()))
    found.push_back(std::move(each.dense));
  return found;
}

Composition gradient_of(Composition what, const std::vector<size_t>& wanted) {
  static constexpr char kSelf = 0;
  what.add(std::bit_cast<uintptr_t>(&kSelf));
  for (const size_t each : wanted) what.add(each);
  return what;
}

}  // namespace

// A trace adds up the contributions to a value in the reverse order of its uses, and so in that of
// the operands.
Tensor Tape::as_one_op(const Composition& what, Tensors operands,
                       const std::function<Tensor(const Tensors&)>& f, Source at) {
  std::vector<size_t> wanted;
  std::vector<TapeId> inputs;
  for (size_t i = operands.size(); i-- > 0;) {
    if (!observes(operands[i])) continue;
    wanted.push_back(i);
    inputs.push_back(tape_id_of(operands[i]));
  }
  if (wanted.empty()) return composed(what, std::move(operands), f, at);
  Tensor result;
  {
    const NoTape unseen;
    result = composed(what, operands, f, at);
  }
  Pullback pullback = [what = gradient_of(what, wanted), operands, wanted, f,
                       at = at.resolve()](Tensors gradients) {
    const UserCode user;
    const SourceScope charged(at);
    Tensors tensors = operands;
    tensors.push_back(std::move(gradients[0]));
    const auto body = [&](const Tensors& given) { return gradients_of(f, wanted, given); };
    return all_dense(composed_results(what, tensors, body, at));
  };
  record_pullback(std::move(inputs), {result}, std::move(pullback), operands, at);
  return result;
}

void Tape::record_pullback(std::vector<TapeId> inputs, const Tensors& results, Pullback pullback,
                           const Tensors& held, Source at) {
  if (std::none_of(inputs.begin(), inputs.end(), is_known)) return;
  RecordedOp recorded;
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
