#include "tidemark/grad/pullback.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/passes.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

Term TensorBuilder::add(const Tensor& tensor) {
  types_.push_back(type_of(tensor, at_));
  tensors_.push_back(tensor);
  return {this, {.node = static_cast<int32_t>(tensors_.size()) - 1}};
}

namespace {

bool is_spec(const Tensor& tensor) {
  return TensorState::of(tensor)->kind == TensorState::Kind::spec;
}

// What an op would give: rules may go on with what they do not read in the end.
Tensor applied_to_types(const OpDef& op, const std::vector<Tensor>& operands, const Attrs& attrs,
                        Source at) {
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(type_of(operand, at));
  if (op.infer != nullptr) return make_spec(op.infer({op, types, attrs, at}), at);
  std::vector<OperandType> parts;
  Shape shape;
  for (const TensorType& type : types) {
    parts.push_back({.dtype = type.dtype, .shape = &type.shape});
    broadcast_into(shape, type.shape, op.name, at);
  }
  return make_spec({infer_pointwise(op, parts, at).result, shape}, at);
}

}  // namespace

Value TensorBuilder::apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) {
  std::vector<Tensor> list;
  for (const Value value : operands) list.push_back(tensors_[static_cast<size_t>(value.node)]);
  return add(std::any_of(list.begin(), list.end(), is_spec) ? applied_to_types(op, list, attrs, at_)
             : op.is_cast() ? cast_to(list[0], attrs.read().dtype(), at_)
                            : bind_op(op, std::span<const Tensor>(list), attrs, at_))
      .value;
}

Value TensorBuilder::constant(double number, const TensorType& type) {
  return add(repeated_number(number, type, at_)).value;
}

Tensor repeated_number(double number, const TensorType& type, Source at) {
  return broadcast_to(literal(type.dtype, number, static_cast<int64_t>(number), at), type.shape,
                      at);
}

namespace {

// The gradient of a result as a rule wants it: zeros where there is none, nothing where the result
// holds no floats.
Term gradient_term(TensorBuilder& builder, const Tensor& gradient, Term result) {
  if (gradient.has_value()) return builder.add(gradient);
  if (!is_float(result.dtype())) return {};
  return result.like(0);
}

}  // namespace

std::vector<Tensor> pull_back(const Application& application, std::span<const Tensor> gradients,
                              const std::vector<bool>& wanted) {
  const OpDef& op = application.op;
  if (op.grad == nullptr) {
    throw UserError(cat(op.name, " has no gradient: ", op.no_gradient), application.at,
                    "td::stop_gradient(x) takes its operand for a constant");
  }
  // What a rule makes belongs to the line of the op, whoever asked for the gradient.
  const UserCode user;
  const SourceScope charged(application.at);
  TensorBuilder builder(application.at);
  std::vector<Term> operands;
  for (const Tensor& operand : application.operands) operands.push_back(builder.add(operand));
  std::vector<Term> results, flowing;
  for (const Tensor& result : application.results) results.push_back(builder.add(result));
  for (size_t r = 0; r < results.size(); ++r)
    flowing.push_back(gradient_term(builder, gradients[r], results[r]));
  const GradContext context{flowing[0], operands, results[0], application.attrs, flowing, results};
  std::vector<Tensor> found(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const Term term = op.grad(op.self, context, static_cast<int>(i));
    if (term) found[i] = builder.tensor(term);
  }
  return found;
}

namespace {

uint32_t read_by_traced_rule(const OpDef& op, const Attrs& attrs,
                             std::span<const TensorType> operands,
                             std::span<const TensorType> results, const std::vector<bool>& wanted) {
  const Source at = Source::none();
  Trace trace("a gradient rule", at);
  const auto arguments = [&](std::span<const TensorType> types) {
    std::vector<Tensor> list;
    for (const TensorType& type : types) list.push_back(trace.argument(type, false, at));
    return list;
  };
  const std::vector<Tensor> gradients = arguments(results);
  const std::vector<Tensor> stand_ins = arguments(operands), wholes = arguments(results);
  const EnterScope entered(trace.body());
  const std::vector<Tensor> found =
      pull_back({op, attrs, stand_ins, wholes, at}, gradients, wanted);
  Graph& graph = trace.graph();
  for (const Tensor& each : found)
    if (each.has_value()) graph.body().results.push_back(value_of(each, at));
  passes::remove_dead(graph);
  const std::vector<int32_t> uses = count_uses(graph);
  uint32_t read = 0;
  for (size_t i = 0; i < operands.size() + results.size(); ++i) {
    const int32_t parameter = graph.body().parameters[i + results.size()].node;
    if (uses[static_cast<size_t>(parameter)] > 0) read |= uint32_t{1} << i;
  }
  return read;
}

// What rules read, by application of an op; bounded. One table of several, so that threads
// seldom meet. Never destroyed: destructors of users' thread_local and static objects may still use
// tapes.
class KnownReads {
 public:
  static KnownReads& of(const OpDef& op) {
    constexpr size_t kTables = 16;
    static constinit MadeOnce<KnownReads> tables[kTables];
    return tables[reinterpret_cast<uintptr_t>(&op) / alignof(OpDef) / 8 % kTables].get();
  }
  std::optional<uint32_t> find(const std::vector<int64_t>& key) {
    const std::lock_guard guard(lock_);
    const auto found = reads_.find(key);
    return found == reads_.end() ? std::nullopt : std::optional(found->second);
  }
  void add(std::vector<int64_t> key, uint32_t read) {
    constexpr size_t kMost = 1024;
    const std::lock_guard guard(lock_);
    if (reads_.size() >= kMost) reads_.clear();
    reads_.emplace(std::move(key), read);
  }

 private:
  Mutex lock_;
  std::map<std::vector<int64_t>, uint32_t> reads_;
};

}  // namespace

bool gives_rows(const OpDef& op, const Attrs& attrs) {
  return op.looks_up && attrs.read().integer() == 0;
}

uint32_t read_by_rule(const OpDef& op, const Attrs& attrs, std::span<const TensorType> operands,
                      std::span<const TensorType> results, const std::vector<bool>& wanted) {
  if (op.view != nullptr || op.grad == nullptr) return 0;
  // All that a rule sees: rules may look at sizes and attributes. The product of one element, for
  // one, has a gradient that reads nothing.
  std::vector<int64_t> key = {reinterpret_cast<intptr_t>(&op)};
  const auto add_sizes = [&key](std::span<const Dim> sizes) {
    key.push_back(std::ssize(sizes));
    for (const Dim size : sizes) key.push_back(static_cast<int64_t>(size.word()));
  };
  const auto add_type = [&](const TensorType& type) {
    key.push_back(static_cast<int64_t>(type.dtype));
    add_sizes(type.shape);
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    key.push_back(wanted[i] ? 1 : 0);
    add_type(operands[i]);
  }
  for (const TensorType& type : results) add_type(type);
  key.insert(key.end(), attrs.words().begin(), attrs.words().end());
  add_sizes(attrs.sizes());
  KnownReads& known = KnownReads::of(op);
  if (const std::optional<uint32_t> found = known.find(key)) return *found;
  const uint32_t read = read_by_traced_rule(op, attrs, operands, results, wanted);
  known.add(std::move(key), read);
  return read;
}

}  // namespace tidemark::detail
