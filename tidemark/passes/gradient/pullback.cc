#include "tidemark/passes/gradient/pullback.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/ops/graph_builder.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

// The gradient of a result as a rule expects it: zeros if there is none, and empty if the result is
// not a float.
Term gradient_term(Term gradient, Term result) {
  if (gradient) return gradient;
  if (!is_differentiable(result.dtype())) return {};
  return result.like(0);
}

}  // namespace

std::vector<Term> apply_rule(const RuleApplication& application, std::vector<Term> gradients,
                             const std::vector<bool>& wanted) {
  const OpDef& op = application.op;
  TIDEMARK_CHECK(op.grad != nullptr, op.name, " has no gradient: ", op.no_gradient);
  const std::span<const Term> results = application.results;
  for (size_t r = 0; r < results.size(); ++r)
    gradients[r] = gradient_term(gradients[r], results[r]);
  const GradContext context{
      gradients[0], application.operands, results[0], application.attrs, gradients, results};
  std::vector<Term> found(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) found[i] = op.grad(op.self, context, static_cast<int>(i));
  return found;
}

namespace {

// An operand that lies in the memory where the node computes. Results of control flow lie in the
// program's memory, and literals where they are read.
std::optional<Value> in_the_same_memory(const Graph& graph, const Node& node) {
  if (node.op == nullptr || !node.regions.empty()) return {};
  if (node.op->transfers && node.inputs.size() == 1) return {};
  const auto is_literal = [&](Value value) {
    const Node* maker = &graph.node(value);
    while (maker->op != nullptr && maker->op->view != nullptr)
      maker = &graph.node(maker->inputs[0]);
    return maker->op != nullptr && maker->op->literal != Literal::none;
  };
  const auto found = std::find_if_not(node.inputs.begin() + (node.op->transfers ? 1 : 0),
                                      node.inputs.end(), is_literal);
  return found == node.inputs.end() ? std::nullopt : std::optional(*found);
}

// The earliest value of its region that lies in the same memory, a parameter at best: a gradient
// that goes back there reads it and so keeps it alive.
ScopedValue earliest_in_memory(ScopedValue value) {
  const Graph& graph = *value.scope->graph;
  while (const std::optional<Value> earlier = in_the_same_memory(graph, graph.node(value.value)))
    value.value = *earlier;
  return value;
}

// Builds Terms that are values of regions. Nodes have the line of the op that the rule belongs to.
class RuleBuilder : public Builder {
 public:
  RuleBuilder(const ScopeBuilder& into, Source at) : into_(into), at_(at) {}

  Term add(ScopedValue value) {
    if (!value) return {};
    values_.push_back(value);
    return {this, {.node = static_cast<int32_t>(values_.size()) - 1}};
  }
  ScopedValue value(Term term) const { return term ? at(term.value) : ScopedValue(); }

  Value apply(const OpDef& op, std::span<const Value> operands, const Attrs& attrs) override {
    ScopedValues list;
    for (const Value each : operands) list.push_back(at(each));
    if (op.transfers && list.size() == 2) return transferred_back(op, list[0], list[1]);
    const bool is_same = op.is_cast() && attrs.read().dtype() == list[0].type().dtype;
    return is_same ? operands[0] : add(into_.apply(op, list, attrs, at_)).value;
  }
  Value constant(double number, const TensorType& type) override {
    return add(into_.repeated_number(number, type, at_)).value;
  }
  const TensorType& type(Value value) const override { return at(value).type(); }

 private:
  // Behind a transfer, the memory is a known number.
  Value transferred_back(const OpDef& op, ScopedValue gradient, ScopedValue target) {
    target = earliest_in_memory(target);
    const Node& maker = target.scope->graph->node(target.value);
    if (maker.op == nullptr || !maker.op->transfers)
      return add(into_.apply(op, {{gradient, target}}, {}, at_)).value;
    return add(into_.apply(*maker.op, {{gradient}}, Attrs(maker.attrs), at_)).value;
  }
  const ScopedValue& at(Value value) const { return values_[static_cast<size_t>(value.node)]; }

  const ScopeBuilder& into_;
  const Source at_;
  std::vector<ScopedValue> values_;
};

}  // namespace

ScopedValues pull_back(RegionScope* scope, int32_t number, const ScopeBuilder& into,
                       const ScopedValues& gradients, const std::vector<bool>& wanted) {
  const Node node = into.graph().nodes[static_cast<size_t>(number)];
  RuleBuilder builder(into, node.source);
  std::vector<Term> operands, results, flowing;
  for (const Value input : node.inputs) operands.push_back(builder.add({input, scope}));
  for (size_t r = 0; r < node.results.size(); ++r)
    results.push_back(builder.add({{number, static_cast<int16_t>(r)}, scope}));
  for (const ScopedValue gradient : gradients) flowing.push_back(builder.add(gradient));
  ScopedValues found;
  for (const Term term : apply_rule({*node.op, node.attrs, operands, results, node.source},
                                    std::move(flowing), wanted))
    found.push_back(builder.value(term));
  return found;
}

namespace {

bool is_chain(const Graph& graph) {
  int steps = 0;
  for (const int32_t number : graph.body().nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op == nullptr) return false;
    const Family family = node.op->family;
    if (family == Family::pointwise || family == Family::reduce || family == Family::row)
      ++steps;
    else if (family != Family::view && family != Family::source)
      return false;
  }
  return steps > 1;
}

RuleForm form_on_graph(const OpDef& op, const Attrs& attrs, std::span<const TensorType> operands,
                       std::span<const TensorType> results, const std::vector<bool>& wanted) {
  Graph graph;
  GraphBuilder builder(graph, Graph::kBody, Source::none());
  const auto parameters = [&](std::span<const TensorType> types) {
    std::vector<Term> list;
    for (const TensorType& type : types)
      list.push_back(builder.term(graph.add_parameter(Graph::kBody, type, Source::none())));
    return list;
  };
  std::vector<Term> gradients = parameters(results);
  const std::vector<Term> stand_ins = parameters(operands), wholes = parameters(results);
  for (const Term found :
       apply_rule({op, attrs, stand_ins, wholes, Source::none()}, std::move(gradients), wanted))
    if (found) graph.body().results.push_back(found.value);
  remove_dead(graph);
  const std::vector<int32_t> uses = count_uses(graph);
  RuleForm form{.is_chain = is_chain(graph)};
  for (size_t i = 0; i < operands.size() + results.size(); ++i) {
    const int32_t parameter = graph.body().parameters[i + results.size()].node;
    if (uses[static_cast<size_t>(parameter)] > 0) form.read |= uint32_t{1} << i;
  }
  return form;
}

// A bounded cache of the forms of rules, by call of an op. There are several tables, to reduce
// contention between threads. Never destroyed: destructors of users' thread_local and static
// objects may still use tapes.
class KnownForms {
 public:
  static KnownForms& of(const OpDef& op) {
    constexpr size_t kTables = 16;
    static constinit MadeOnce<KnownForms> tables[kTables];
    return tables[reinterpret_cast<uintptr_t>(&op) / alignof(OpDef) / 8 % kTables].get();
  }
  std::optional<RuleForm> find(const std::vector<int64_t>& key) {
    const std::lock_guard guard(lock_);
    const auto found = forms_.find(key);
    return found == forms_.end() ? std::nullopt : std::optional(found->second);
  }
  void add(std::vector<int64_t> key, const RuleForm& form) {
    constexpr size_t kMost = 1024;
    const std::lock_guard guard(lock_);
    if (forms_.size() >= kMost) forms_.clear();
    forms_.emplace(std::move(key), form);
  }

 private:
  Mutex lock_;
  std::map<std::vector<int64_t>, RuleForm> forms_;
};

}  // namespace

bool gives_rows(const OpDef& op, const Attrs& attrs) {
  return op.looks_up && attrs.read().integer() == 0;
}

RuleForm form_of_rule(const OpDef& op, const Attrs& attrs, std::span<const TensorType> operands,
                      std::span<const TensorType> results, const std::vector<bool>& wanted) {
  if (op.view != nullptr || op.grad == nullptr) return {};
  // Everything that a rule can depend on, including sizes and attributes. For example, the gradient
  // of a product of one element reads nothing.
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
  KnownForms& known = KnownForms::of(op);
  if (const std::optional<RuleForm> found = known.find(key)) return *found;
  const RuleForm form = form_on_graph(op, attrs, operands, results, wanted);
  known.add(std::move(key), form);
  return form;
}

}  // namespace tidemark::passes
