// Gradients of control flow, made of control flow.
//
// A branch and a map's body are run once more in their gradients, so that nothing of them is kept.
// Loops are in loop_gradient.cc.
#include <algorithm>

#include "tidemark/calls/ops.h"
#include "tidemark/grad/loop_gradient.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::detail {
namespace {

Tensors tensors_in(TraceScope* scope, std::span<const Value> values, Source at) {
  Tensors tensors;
  for (const Value value : values) tensors.push_back(tensor_in(scope, value, at));
  return tensors;
}

// Runs a region once more in the current scope and goes back over it: the gradients by the wanted
// parameters. `gradients` are those of the results. Parameters that are values of Variables may get
// rows.
std::vector<PartialGradient> found_in_region(RegionId region, const Tensors& parameters,
                                             const Tensors& gradients,
                                             const std::vector<bool>& wanted,
                                             const std::vector<bool>& variables, Source at) {
  Graph& graph = current_scope()->trace->graph();
  std::vector<Value> values;
  for (const Tensor& parameter : parameters)
    values.push_back(distinct_value(parameter, values, at));
  const auto first = static_cast<int32_t>(graph.nodes.size());
  const std::vector<Value> results =
      append_copy(graph, region, graph, current_scope()->region, values, is_effect);
  Differentiation asked;
  asked.scope = current_scope();
  asked.is_recorded = [first](int32_t node) { return node >= first; };
  for (size_t i = 0; i < values.size(); ++i)
    if (wanted[i]) asked.watched.push_back(values[i]);
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i]) asked.leaves.push_back(values[i]);
  asked.sources = asked.watched;
  for (size_t r = 0; r < results.size(); ++r)
    if (gradients[r].has_value()) asked.seeds.emplace_back(results[r], gradients[r]);
  return differentiate(asked, at);
}

// The same without rows, and zeros where there is none.
Tensors gradients_of_region(RegionId region, const Tensors& parameters, const Tensors& gradients,
                            const std::vector<bool>& wanted, Source at) {
  const std::vector<PartialGradient> found =
      found_in_region(region, parameters, gradients, wanted, {}, at);
  Tensors given;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const Tensor& dense = found[given.size()].dense;
    given.push_back(dense.has_value() ? dense : zeros_of(type_of(parameters[i], at), at));
  }
  return given;
}

// Results for the wanted ones, in their places among all.
Tensors spread(const Tensors& given, const std::vector<bool>& wanted) {
  Tensors all(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) all[i] = given[next++];
  return all;
}

const PathOf kNoPath = [](size_t number) { return cat("gradient[", number, "]"); };

// ---- cond ---------------------------------------------------------------------------------------

Tensors cond_gradient(TraceScope* scope, const Node& node, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at) {
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  const Tensors captures(inputs.begin() + 1, inputs.end());
  const std::vector<bool> by(wanted.begin() + 1, wanted.end());
  const auto branch = [&](size_t which) {
    return gradients_of_region(node.regions[which], captures, gradients, by, at);
  };
  const Tensors given =
      trace_cond(inputs[0], [&] { return branch(0); }, [&] { return branch(1); }, kNoPath, at);
  return spread(given, wanted);
}

// ---- map ----------------------------------------------------------------------------------------

// The same for the trips of a map. Rows that a Variable was looked up by are given trip by trip,
// stacked, behind the rest.
class MapGradient {
 public:
  MapGradient(TraceScope* scope, const Node& node, const Tensors& gradients,
              const std::vector<bool>& wanted, const std::vector<bool>& variables, Source at)
      : node_(node), gradients_(gradients), wanted_(wanted), variables_(variables), at_(at) {
    Attrs::Reader read = node.attrs.read();
    slices_ = static_cast<size_t>(read.integer());
    trips_ = read.size();
    alive_ = read.size();
    inputs_ = tensors_in(scope, node.inputs, at);
    walked_.assign(inputs_.begin(), inputs_.begin() + static_cast<int64_t>(slices_));
    for (const Tensor& gradient : gradients)
      if (gradient.has_value()) walked_.push_back(gradient);
  }

  // A map again where only slices have gradients. Those of captured values are sums over all trips,
  // which a loop carries.
  std::vector<PartialGradient> run() {
    const auto first = wanted_.begin() + static_cast<int64_t>(slices_);
    const auto captures = static_cast<size_t>(std::count(first, wanted_.end(), true));
    if (captures > 0) return in_a_loop();
    MapParts parts{.name = "the gradient of map_fn", .walked = walked_, .element_path = kNoPath};
    parts.body = [&](const Tensors& each) {
      find(each);
      return of_slices();
    };
    parts.trips = trips_;
    parts.alive = alive_;
    return all_dense(spread(run_map(parts, at_), wanted_));
  }

 private:
  // The gradients of one trip by the wanted slices, then by the wanted captures.
  void find(const Tensors& each) {
    Tensors parameters = inputs_;
    std::copy_n(each.begin(), slices_, parameters.begin());
    Tensors of_results(gradients_.size());
    size_t next = slices_;
    for (size_t r = 0; r < gradients_.size(); ++r)
      if (gradients_[r].has_value()) of_results[r] = each[next++];
    std::vector<PartialGradient> found =
        found_in_region(node_.regions[0], parameters, of_results, wanted_, variables_, at_);
    next = 0;
    found_.assign(wanted_.size(), {});
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      found_[i] = std::move(found[next++]);
      if (i < slices_ && !found_[i].dense.has_value())
        found_[i].dense = zeros_of(type_of(parameters[i], at_), at_);
    }
  }
  Tensors of_slices() const {
    Tensors given;
    for (size_t i = 0; i < slices_; ++i)
      if (wanted_[i]) given.push_back(found_[i].dense);
    return given;
  }

  std::vector<PartialGradient> in_a_loop() {
    LoopParts parts{.name = "the gradient of map_fn"};
    for (size_t i = slices_; i < wanted_.size(); ++i)
      if (wanted_[i]) parts.carries.push_back(zeros_of(type_of(inputs_[i], at_), at_));
    const size_t carries = parts.carries.size();
    parts.carry_path = parts.element_path = kNoPath;
    parts.walked = walked_;
    parts.trips = trips_;
    parts.body = [&](const Tensor&, Tensors sums, const Tensors& each) {
      find(each);
      size_t next = 0;
      for (size_t i = slices_; i < wanted_.size(); ++i) {
        if (!wanted_[i]) continue;
        Tensor& sum = sums[next++];
        if (found_[i].dense.has_value()) sum = add(sum, found_[i].dense, at_);
      }
      for (const Tensor& slice : of_slices()) sums.push_back(slice);
      for (const PartialGradient& found : found_) {
        for (const RowGradient& rows : found.rows) {
          sums.push_back(rows.indices);
          sums.push_back(rows.rows);
        }
      }
      return sums;
    };
    const Tensors given = run_loop(std::move(parts), at_);
    size_t sum = 0, element = carries;
    std::vector<PartialGradient> all(wanted_.size());
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      const Tensor& dense = given[i < slices_ ? element++ : sum++];
      if (found_[i].dense.has_value()) all[i].dense = dense;
    }
    for (size_t i = 0; i < wanted_.size(); ++i) {
      for (size_t row = 0; row < found_[i].rows.size(); ++row) {
        const Tensor& indices = given[element++];
        all[i].rows.push_back({indices, given[element++]});
      }
    }
    return all;
  }

  const Node& node_;
  const Tensors& gradients_;
  const std::vector<bool>& wanted_;
  const std::vector<bool>& variables_;
  Source at_;
  size_t slices_ = 0;
  Dim trips_ = 0, alive_ = 1;
  Tensors inputs_, walked_;
  std::vector<PartialGradient> found_;  // In the body.
};

// ---- call ---------------------------------------------------------------------------------------

// A map of one trip: what stands in its region is not taken for what ran before.
std::vector<PartialGradient> recomputed_gradient(const Node& node, const Tensors& inputs,
                                                 const Tensors& gradients,
                                                 const std::vector<bool>& wanted,
                                                 const std::vector<bool>& variables, Source at) {
  Trace& trace = *current_scope()->trace;
  trace.recomputed().push_back(node.source);
  std::vector<PartialGradient>
      found;  // Whose tensors come out of the map in the order of `tensors_in`.
  const auto tensors_in = [](std::vector<PartialGradient>& list) {
    std::vector<Tensor*> tensors;
    for (PartialGradient& each : list) {
      if (each.dense.has_value()) tensors.push_back(&each.dense);
      for (RowGradient& rows : each.rows) {
        tensors.push_back(&rows.indices);
        tensors.push_back(&rows.rows);
      }
    }
    return tensors;
  };
  MapParts parts{.name = "the gradient of recompute", .element_path = kNoPath, .trips = 1};
  parts.body = [&](const Tensors&) {
    found = found_in_region(node.regions[0], inputs, gradients, wanted, variables, at);
    Tensors given;
    for (const Tensor* each : tensors_in(found)) given.push_back(*each);
    return given;
  };
  const Tensors given = run_map(parts, at);
  const std::vector<Tensor*> places = tensors_in(found);
  for (size_t i = 0; i < places.size(); ++i) *places[i] = squeeze(given[i], 0, at);
  std::vector<PartialGradient> all(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) all[i] = std::move(found[next++]);
  return all;
}

// A gradient function says nothing of what its function reads besides arguments and Variables.
void check_captures(const Graph& graph, const Node& node, std::span<const int64_t> by,
                    const std::vector<bool>& wanted, Source at) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i] || std::find(by.begin(), by.end(), static_cast<int64_t>(i)) != by.end())
      continue;
    std::vector<bool> only(wanted.size());
    only[i] = true;
    const std::vector<bool> depending = depending_results(graph, node.regions[0], only);
    const auto end = depending.begin() + node.attrs.read().integer();
    if (std::find(depending.begin(), end, true) != end) refuse_capture(at);
  }
}

Tensors call_gradient(TraceScope* scope, int32_t number, const Node& node, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at) {
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  Attrs::Reader read = node.attrs.read();
  const auto outputs = static_cast<size_t>(read.integer());
  const std::span<const int64_t> saved = read.integers(), by = read.integers();
  check_captures(scope->trace->graph(), node, by, wanted, at);
  std::vector<Value> parameters;
  for (const int64_t each : saved) {
    const int64_t result = each - std::ssize(inputs);
    parameters.push_back(
        value_of(result < 0 ? inputs[static_cast<size_t>(each)]
                            : tensor_in(scope, {number, static_cast<int16_t>(result)}, at),
                 at));
  }
  for (size_t r = 0; r < outputs; ++r)
    parameters.push_back(
        value_of(gradients[r].has_value() ? gradients[r] : zeros_of(node.results[r], at), at));
  Graph& graph = scope->trace->graph();
  const std::vector<Value> own =
      append_copy(graph, node.regions[1], graph, current_scope()->region, parameters, is_effect);
  Tensors given(wanted.size());
  // What is only kept for the gradient function has the gradient of how it was made.
  Tensors of_kept = gradients;
  std::fill_n(of_kept.begin(), outputs, Tensor());
  if (std::any_of(of_kept.begin(), of_kept.end(), [](const Tensor& g) { return g.has_value(); }))
    given = spread(gradients_of_region(node.regions[0], inputs, of_kept, wanted, at), wanted);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto input = static_cast<size_t>(by[i]);
    if (!wanted[input]) continue;
    const Tensor gradient = traced_tensor(own[i], at);
    given[input] = given[input].has_value() ? add(given[input], gradient, at) : gradient;
  }
  return given;
}

}  // namespace

std::vector<PartialGradient> control_gradient(TraceScope* scope, int32_t number,
                                              const Tensors& gradients,
                                              const std::vector<bool>& wanted,
                                              const std::vector<bool>& variables, Source at) {
  const Node node = scope->trace->graph().nodes[static_cast<size_t>(number)];
  switch (node.op->flow) {
    case Flow::call:
      if (node.regions.size() == 1)
        return recomputed_gradient(node, tensors_in(scope, node.inputs, at), gradients, wanted,
                                   variables, at);
      return all_dense(call_gradient(scope, number, node, gradients, wanted, at));
    case Flow::cond:
      return all_dense(cond_gradient(scope, node, gradients, wanted, at));
    case Flow::map:
      return MapGradient(scope, node, gradients, wanted, variables, at).run();
    case Flow::reverse_loop:
      return all_dense(reverse_loop_gradient(scope, number, gradients, wanted, at));
    default:
      return loop_gradient({.scope = scope,
                            .number = number,
                            .gradients = gradients,
                            .wanted = wanted,
                            .variables = variables,
                            .at = at});
  }
}

}  // namespace tidemark::detail
