#include "tidemark/passes/gradient/differentiate.h"

#include <algorithm>
#include <map>
#include <set>

#include "tidemark/base/error.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/gradient/dependence.h"
#include "tidemark/passes/gradient/pullback.h"

namespace tidemark::passes {
namespace {

class Backward {
 public:
  Backward(const Differentiation& asked, Source at)
      : asked_(asked),
        at_(at),
        graph_(*asked.scope->graph),
        into_(*asked.into, asked.settings->views) {
    for (const Value value : asked.leaves) leaves_.insert(key_of(value));
    // In the order in which they begin to be watched.
    std::vector<std::pair<int32_t, Value>> later;
    for (size_t i = 0; i < asked.watched.size(); ++i)
      later.emplace_back(i < asked.since.size() ? asked.since[i] : 0, asked.watched[i]);
    std::stable_sort(later.begin(), later.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t started = 0;
    const auto start_watching = [&](int32_t node) {
      for (; started < later.size() && later[started].first <= node; ++started)
        active_.insert(key_of(later[started].second));
    };
    // A copy: gradients may be appended to the same region.
    nodes_ = graph_.regions[static_cast<size_t>(asked.scope->region)].nodes;
    std::erase_if(nodes_, [&](int32_t node) { return !contain(asked.nodes, node); });
    for (const int32_t number : nodes_) {
      start_watching(number);
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      std::vector<bool>& inputs = wanted_[number] = active_inputs(node);
      const std::vector<bool> results = depending_results(graph_, node, inputs);
      for (size_t r = 0; r < results.size(); ++r)
        if (results[r]) active_.insert({number, static_cast<int32_t>(r)});
    }
    start_watching(INT32_MAX);
  }

  ValueGradients run() {
    for (const auto& [value, gradient] : asked_.seeds)
      if (active_.contains(key_of(value))) add(value, gradient);
    for (size_t i = nodes_.size(); i-- > 0;) step_back(nodes_[i]);
    ValueGradients found;
    for (const Value source : asked_.sources) found.push_back(sums_[key_of(source)]);
    return found;
  }

 private:
  std::vector<bool> active_inputs(const Node& node) const {
    std::vector<bool> inputs;
    for (const Value input : node.inputs)
      inputs.push_back(active_.contains(key_of(input)) &&
                       is_differentiable(graph_.type(input).dtype));
    return inputs;
  }

  void add(Value value, ScopedValue gradient) {
    ScopedValue& sum = sums_[key_of(value)].dense;
    sum = sum ? into_.add(sum, gradient, at_) : gradient;
  }

  void step_back(int32_t number) {
    if (leaves_.contains({number, 0})) return;
    const size_t first = graph_.nodes.size();
    go_back_over(number);
    // Nodes of an inner gradient are already marked.
    for (size_t made = first; made < graph_.nodes.size(); ++made)
      if (graph_.nodes[made].gradient_of == nullptr)
        graph_.nodes[made].gradient_of = graph_.nodes[static_cast<size_t>(number)].op;
  }

  void go_back_over(int32_t number) {
    const Node node = graph_.nodes[static_cast<size_t>(number)];
    ScopedValues gradients;
    bool any = false;
    for (size_t r = 0; r < node.results.size(); ++r) {
      const auto found = sums_.find({number, static_cast<int32_t>(r)});
      gradients.push_back(found == sums_.end() ? ScopedValue() : found->second.dense);
      any |= static_cast<bool>(gradients.back());
    }
    const std::vector<bool>& wanted = wanted_[number];
    if (!any || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    if (contain(asked_.own_gradients, number)) refuse_own_gradient(at_);
    // Memory is charged to the line of the op, not to that of the gradient() call.
    const UserCode user;
    const SourceScope charged(node.source.known() ? node.source : at_);
    if (!node.regions.empty()) {
      std::vector<bool> variables;
      for (const Value input : node.inputs) variables.push_back(leaves_.contains(key_of(input)));
      const ValueGradients found = control_gradient({.scope = asked_.scope,
                                                     .number = number,
                                                     .into = into_,
                                                     .settings = *asked_.settings,
                                                     .gradients = gradients,
                                                     .wanted = wanted,
                                                     .variables = variables,
                                                     .at = node.source});
      for (size_t i = 0; i < found.size(); ++i) {
        if (found[i].dense) add(node.inputs[i], found[i].dense);
        std::vector<ValueGradient::Rows>& rows = sums_[key_of(node.inputs[i])].rows;
        rows.insert(rows.end(), found[i].rows.begin(), found[i].rows.end());
      }
      return;
    }
    if (gives_rows(*node.op, node.attrs) && leaves_.contains(key_of(node.inputs[0]))) {
      sums_[key_of(node.inputs[0])].rows.push_back({{node.inputs[1], asked_.scope}, gradients[0]});
      return;
    }
    const ScopedValues found = pull_back(asked_.scope, number, into_, gradients, wanted);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i]) add(node.inputs[i], found[i]);
  }

  const Differentiation& asked_;
  Source at_;
  Graph& graph_;
  const ScopeBuilder into_;
  std::vector<int32_t> nodes_;
  std::set<ValueKey> active_, leaves_;
  std::map<int32_t, std::vector<bool>> wanted_;  // By node: the inputs that need gradients.
  std::map<ValueKey, ValueGradient> sums_;
};

}  // namespace

void refuse_own_gradient(Source at) {
  throw UserError(
      "gradient: the target depends on a gradient of this tape, and a tape does not record its own",
      at,
      "nest two tapes: the outer one records the inner one's gradient(); or make the gradient a "
      "constant: td::stop_gradient(g)");
}

ValueGradients differentiate(const Differentiation& asked, Source at) {
  return Backward(asked, at).run();
}

}  // namespace tidemark::passes