// Gradients of control flow, made of control flow.
//
// A branch and a map's body are run once more in their gradients, so that nothing of them is kept.
// A loop keeps, of each trip, what its body's gradient reads: the carries it starts with and what
// cannot be had from them for nothing. What stays the same in all trips is kept once.
#include <algorithm>
#include <array>

#include "tidemark/api/differentiate.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/pullback.h"
#include "tidemark/ops/program.h"

namespace tidemark::detail {
namespace {

bool is_effect(const Node& node) { return node.op->family == Family::effect; }

Tensor zeros_of(const TensorType& type, Source at) { return repeated_number(0, type, at); }

Tensors tensors_in(TraceScope* scope, std::span<const Value> values, Source at) {
  Tensors tensors;
  for (const Value value : values) tensors.push_back(tensor_in(scope, value, at));
  return tensors;
}

// Runs a region once more in the current scope and goes back over it: the gradients by the wanted
// parameters, zeros where there is none. `gradients` are those of the results.
Tensors gradients_of_region(RegionId region, const Tensors& parameters, const Tensors& gradients,
                            const std::vector<bool>& wanted, Source at) {
  Graph& graph = current_scope->trace->graph();
  std::vector<Value> values;
  for (const Tensor& parameter : parameters) values.push_back(value_of(parameter, at));
  const auto first = static_cast<int32_t>(graph.nodes.size());
  const std::vector<Value> results =
      append_copy(graph, region, graph, current_scope->region, values, is_effect);
  Differentiation asked;
  asked.scope = current_scope;
  asked.is_recorded = [first](int32_t node) { return node >= first; };
  for (size_t i = 0; i < values.size(); ++i)
    if (wanted[i]) asked.watched.push_back(values[i]);
  asked.sources = asked.watched;
  for (size_t r = 0; r < results.size(); ++r)
    if (gradients[r].has_value()) asked.seeds.emplace_back(results[r], gradients[r]);
  Tensors given;
  const std::vector<Found> found = differentiate(asked, at);
  for (size_t i = 0; i < found.size(); ++i)
    given.push_back(found[i].dense.has_value() ? found[i].dense
                                               : zeros_of(graph.type(asked.sources[i]), at));
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

// A map again where only slices have gradients. Those of captured values are sums over all trips,
// which a loop carries.
Tensors map_gradient(TraceScope* scope, const Node& node, const Tensors& gradients,
                     const std::vector<bool>& wanted, Source at) {
  Attrs::Reader read = node.attrs.read();
  const auto slices = static_cast<size_t>(read.integer());
  const int64_t trips = read.integer(), alive = read.integer();
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  Tensors walked(inputs.begin(), inputs.begin() + static_cast<int64_t>(slices));
  for (const Tensor& gradient : gradients)
    if (gradient.has_value()) walked.push_back(gradient);
  // The gradients of one trip by slices, then by captures.
  const auto body = [&](const Tensors& each) {
    Tensors parameters = inputs;
    std::copy_n(each.begin(), slices, parameters.begin());
    Tensors of_results(gradients.size());
    size_t next = slices;
    for (size_t r = 0; r < gradients.size(); ++r)
      if (gradients[r].has_value()) of_results[r] = each[next++];
    return gradients_of_region(node.regions[0], parameters, of_results, wanted, at);
  };
  const auto of_slices = static_cast<size_t>(
      std::count(wanted.begin(), wanted.begin() + static_cast<int64_t>(slices), true));
  const auto all = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
  if (of_slices == all) {
    MapParts parts{.name = "the gradient of map_fn", .walked = walked, .element_path = kNoPath};
    parts.body = [&](Tensors each) { return body(each); };
    parts.trips = trips;
    parts.alive = alive;
    return spread(run_map(parts, at), wanted);
  }
  LoopParts parts{.name = "the gradient of map_fn"};
  for (size_t i = slices; i < wanted.size(); ++i)
    if (wanted[i]) parts.carries.push_back(zeros_of(type_of(inputs[i], at), at));
  parts.carry_path = parts.element_path = kNoPath;
  parts.walked = walked;
  parts.trips = trips;
  parts.body = [&](const Tensor&, Tensors carries, Tensors each) {
    const Tensors given = body(each);
    for (size_t i = 0; i < carries.size(); ++i)
      carries[i] = add(carries[i], given[of_slices + i], at);
    carries.insert(carries.end(), given.begin(), given.begin() + static_cast<int64_t>(of_slices));
    return carries;
  };
  Tensors given = run_loop(std::move(parts), at);
  std::rotate(given.begin(), given.begin() + static_cast<int64_t>(all - of_slices), given.end());
  return spread(given, wanted);
}

// ---- call ---------------------------------------------------------------------------------------

// A map of one trip: what stands in its region is not taken for what ran before.
Tensors recomputed_gradient(const Node& node, const Tensors& inputs, const Tensors& gradients,
                            const std::vector<bool>& wanted, Source at) {
  MapParts parts{.name = "the gradient of recompute", .element_path = kNoPath, .trips = 1};
  parts.body = [&](const Tensors&) {
    return gradients_of_region(node.regions[0], inputs, gradients, wanted, at);
  };
  Tensors given = run_map(parts, at);
  for (Tensor& each : given) each = squeeze(each, 0, at);
  return spread(given, wanted);
}

Tensors call_gradient(TraceScope* scope, int32_t number, const Node& node, const Tensors& gradients,
                      const std::vector<bool>& wanted, Source at) {
  const Tensors inputs = tensors_in(scope, node.inputs, at);
  if (node.regions.size() == 1) return recomputed_gradient(node, inputs, gradients, wanted, at);
  Attrs::Reader read = node.attrs.read();
  const auto outputs = static_cast<size_t>(read.integer());
  const std::span<const int64_t> saved = read.integers(), by = read.integers();
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
      append_copy(graph, node.regions[1], graph, current_scope->region, parameters, is_effect);
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

// ---- loop ---------------------------------------------------------------------------------------

// The loop backwards. Its body goes back over the nodes of the loop's own body, in a scope inside
// that one, so that it shows which of that body's values are read:
// - a carry at the start of a trip, and anything made in between, is stacked by the loop itself,
//   which gets one more result for each;
// - a carry at the end of a trip is what the next trip started with, so the loop backwards carries
//   it along;
// - slices are walked again, captured values are captured.
class LoopGradient {
 public:
  LoopGradient(TraceScope* scope, int32_t number, const Tensors& gradients,
               const std::vector<bool>& wanted, Source at)
      : scope_(scope),
        number_(number),
        gradients_(gradients),
        wanted_(wanted),
        at_(at),
        graph_(scope->trace->graph()),
        node_(graph_.nodes[static_cast<size_t>(number)]),
        region_(node_.regions[0]) {
    Attrs::Reader read = node_.attrs.read();
    carries_ = static_cast<size_t>(read.integer());
    slices_ = static_cast<size_t>(read.integer());
    stacked_ = static_cast<size_t>(read.integer());
    trips_ = read.integer();
    reverse_ = read.boolean();
    is_counted_ = read.boolean();
    active_ = depending_carries(graph_, node_, wanted);
  }

  Tensors run() {
    if (is_counted_ || node_.regions.size() > 1) {
      throw UserError(
          "gradient: this loop's number of trips is not known when the function is traced", at_,
          "give fori_loop plain numbers for bounds");
    }
    // The loop's body as a scope again, inside the current one.
    retain(current_scope);
    auto* const body = new TraceScope;
    body->parent = current_scope;
    body->trace = scope_->trace;
    body->region = region_;
    body->what = "the body of a loop";
    body->at = at_;
    TraceScope* const outer = current_scope;
    Tensors given;
    {
      const EnterScope entered(body);
      InnerScope back("the gradient of a loop's body", at_);
      trace_body(body, back);
      const EnterScope behind(outer);
      given = finish(body, back);
    }
    body->ended = true;
    body->parameter_of.clear();
    detail::release(body);
    return given;
  }

 private:
  const std::vector<Value>& parameters() const {
    return graph_.regions[static_cast<size_t>(region_)].parameters;
  }
  Value parameter(size_t i) const { return parameters()[i]; }
  Value result(size_t i) const { return graph_.regions[static_cast<size_t>(region_)].results[i]; }
  bool is_capture(size_t i) const { return i >= 1 + carries_ + slices_; }
  // The node's input that a parameter of the body gets; there is none for the trip.
  Value input_of(size_t parameter) const { return node_.inputs[parameter - 1]; }

  void trace_body(TraceScope* body, InnerScope& back) {
    const auto& own = graph_.regions[static_cast<size_t>(region_)];
    declared_ = own.parameters.size();
    own_nodes_ = own.nodes.size();
    const std::vector<Value> inner = own.parameters, results = own.results;
    const Tensor trip = back.parameter({DType::i64, {}}, at_);
    trip_ = value_of(trip, at_);
    const Operand last =
        trips_.is_traced() ? Operand(trips_ - 1, at_) : Operand(trips_.word() - 1, at_);
    lend(back, inner[0], subtract(last, trip, at_));
    Differentiation asked;
    asked.scope = body;
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      of_carries_.push_back(back.parameter(graph_.type(inner[1 + j]), at_));
      asked.seeds.emplace_back(results[j], of_carries_.back());
      asked.watched.push_back(inner[1 + j]);
    }
    for (size_t e = 0; e < stacked_; ++e) {
      if (!gradients_[carries_ + e].has_value()) continue;
      of_elements_.push_back(back.parameter(graph_.type(results[carries_ + e]), at_));
      asked.seeds.emplace_back(results[carries_ + e], of_elements_.back());
    }
    for (size_t i = 1 + carries_; i < inner.size(); ++i) {
      if (!wanted_[i - 1]) continue;
      asked.watched.push_back(inner[i]);
      if (is_capture(i)) sums_.push_back(back.parameter(graph_.type(inner[i]), at_));
    }
    asked.sources = asked.watched;
    for (size_t j = 0; j < carries_; ++j) {
      // What the trip ended with, unless it is what another one had already.
      if (std::find(inner.begin(), inner.end(), results[j]) != inner.end()) continue;
      const std::pair key{results[j].node, results[j].result};
      if (back.scope()->parameter_of.contains(key)) continue;
      const Tensor next = back.parameter(graph_.type(results[j]), at_);
      lend(back, results[j], next);
      nexts_.push_back({j, value_of(next, at_)});
    }
    const std::vector<Found> found = differentiate(asked, at_);
    set_results(back, asked.sources, found);
  }

  static void lend(InnerScope& back, Value value, const Tensor& as) {
    back.scope()->parameter_of.emplace(std::pair{value.node, value.result},
                                       value_of(as, Source::none()));
  }

  void set_results(InnerScope& back, const std::vector<Value>& sources,
                   const std::vector<Found>& found) {
    const auto or_zeros = [&](size_t i) {
      return found[i].dense.has_value() ? found[i].dense : zeros_of(graph_.type(sources[i]), at_);
    };
    std::vector<Value> of_carries, of_slices, of_captures;
    size_t next = 0, capture = 0;
    for (; next < of_carries_.size(); ++next) of_carries.push_back(value_of(or_zeros(next), at_));
    for (size_t i = 1 + carries_; i < declared_; ++i) {
      if (!wanted_[i - 1]) continue;
      const size_t source = next++;
      if (!is_capture(i)) {
        of_slices.push_back(value_of(or_zeros(source), at_));
        continue;
      }
      const Tensor& sum = sums_[capture++];
      of_captures.push_back(value_of(
          found[source].dense.has_value() ? add(sum, found[source].dense, at_) : sum, at_));
    }
    std::vector<Value> results = of_carries;
    results.insert(results.end(), of_captures.begin(), of_captures.end());
    drop_unread(back, results, of_slices);
    for (const Next& each : nexts_)
      results.push_back(
          value_of(tensor_in(back.scope()->parent, parameter(1 + each.carry), at_), at_));
    results.insert(results.end(), of_slices.begin(), of_slices.end());
    graph_.regions[static_cast<size_t>(back.region())].results = std::move(results);
    slice_gradients_ = of_slices.size();
  }

  // A carry's end that no rule reads need not be carried along.
  void drop_unread(InnerScope& back, const std::vector<Value>& carried,
                   const std::vector<Value>& elements) {
    const std::vector<int32_t>& nodes = graph_.regions[static_cast<size_t>(back.region())].nodes;
    const auto has = [](const auto& list, Value value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    std::erase_if(nexts_, [&](const Next& each) {
      const bool is_read = std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
        return has(graph_.nodes[static_cast<size_t>(number)].inputs, each.value);
      });
      return !is_read && !has(carried, each.value) && !has(elements, each.value);
    });
  }

  // Where each value of the body that is read comes from, and the loop backwards.
  Tensors finish(TraceScope* body, InnerScope& back) {
    Node node;
    node.op = node_.op;
    std::vector<Value> carries = {trip_}, slices, captures;
    std::vector<Value> walked, captured;
    size_t carry = 0;
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      node.inputs.push_back(value_of(
          gradients_[j].has_value() ? gradients_[j] : zeros_of(node_.results[j], at_), at_));
      carries.push_back(TensorState::of(of_carries_[carry++])->value());
    }
    for (const Tensor& sum : sums_) {
      node.inputs.push_back(value_of(zeros_of(type_of(sum, at_), at_), at_));
      carries.push_back(TensorState::of(sum)->value());
    }
    for (const Next& each : nexts_) {
      node.inputs.push_back(here({number_, static_cast<int16_t>(each.carry)}));
      carries.push_back(each.value);
    }
    size_t element = 0;
    for (size_t e = 0; e < stacked_; ++e) {
      if (!gradients_[carries_ + e].has_value()) continue;
      walked.push_back(value_of(gradients_[carries_ + e], at_));
      slices.push_back(TensorState::of(of_elements_[element++])->value());
    }
    for (const Value value : back.scope()->captured) {
      const Value inside = back.scope()->parameter_of.at({value.node, value.result});
      const auto found = std::find(parameters().begin(), parameters().end(), value);
      const auto index = static_cast<size_t>(found - parameters().begin());
      if (found == parameters().end() || index <= carries_) {
        slices.push_back(inside);
        walked.push_back(stacked(value));
      } else if (index >= declared_) {
        captures.push_back(inside);
        captured.push_back(body->captured[index - declared_]);
      } else {
        (is_capture(index) ? captures : slices).push_back(inside);
        (is_capture(index) ? captured : walked).push_back(here(input_of(index)));
      }
    }
    // What came in through the body is not the body's.
    graph_.regions[static_cast<size_t>(region_)].parameters.resize(declared_);
    graph_.regions[static_cast<size_t>(region_)].nodes.resize(own_nodes_);
    return add_backward(std::move(node), back, {carries, slices, captures}, walked, captured);
  }

  // A value of the forward loop's scope in the current one.
  Value here(Value value) const { return value_of(tensor_in(scope_, value, at_), at_); }

  // All trips' values of something in the body: one more result of the loop.
  Value stacked(Value value) {
    Node& loop = graph_.nodes[static_cast<size_t>(number_)];
    TensorType type = graph_.type(value);
    type.shape.insert(0, trips_);
    loop.results.push_back(type);
    loop.attrs = Attrs()
                     .add(static_cast<int64_t>(carries_))
                     .add(static_cast<int64_t>(slices_))
                     .add(static_cast<int64_t>(loop.results.size() - carries_))
                     .add(trips_.word())
                     .add(reverse_)
                     .add(is_counted_);
    graph_.regions[static_cast<size_t>(region_)].results.push_back(value);
    return here({number_, static_cast<int16_t>(
                              graph_.nodes[static_cast<size_t>(number_)].results.size() - 1)});
  }

  Tensors add_backward(Node node, InnerScope& back, const std::array<std::vector<Value>, 3>& inner,
                       const std::vector<Value>& walked, const std::vector<Value>& captured) {
    const size_t carries = node.inputs.size();
    for (const Value value : walked) node.inputs.push_back(value);
    for (const Value value : captured) node.inputs.push_back(value);
    Region& region = graph_.regions[static_cast<size_t>(back.region())];
    region.parameters.clear();
    for (const std::vector<Value>& list : inner)
      region.parameters.insert(region.parameters.end(), list.begin(), list.end());
    for (size_t i = 0; i < region.results.size(); ++i) {
      TensorType type = graph_.type(region.results[i]);
      if (i >= carries) type.shape.insert(0, trips_);
      node.results.push_back(std::move(type));
    }
    node.regions = {back.region()};
    node.source = at_.resolve();
    node.attrs = Attrs()
                     .add(static_cast<int64_t>(carries))
                     .add(static_cast<int64_t>(walked.size()))
                     .add(static_cast<int64_t>(slice_gradients_))
                     .add(trips_.word())
                     .add(!reverse_)
                     .add(false);
    const int32_t number = graph_.add_node(current_scope->region, std::move(node));
    // By inputs: carries, slices, captures; the sums of captures stand behind the carries.
    Tensors given(wanted_.size());
    int16_t of_carry = 0, of_capture = static_cast<int16_t>(of_carries_.size()),
            of_slice = static_cast<int16_t>(carries);
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      if (wanted_[j]) given[j] = traced_tensor({number, of_carry}, at_);
      ++of_carry;
    }
    for (size_t i = carries_; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      int16_t& next = is_capture(i + 1) ? of_capture : of_slice;
      given[i] = traced_tensor({number, next++}, at_);
    }
    return given;
  }

  struct Next {
    size_t carry;
    Value value;  // In the loop backwards.
  };

  TraceScope* scope_;
  int32_t number_;
  const Tensors& gradients_;
  const std::vector<bool>& wanted_;
  Source at_;
  Graph& graph_;
  const Node node_;  // As it was.
  RegionId region_;
  size_t carries_ = 0, slices_ = 0, stacked_ = 0;
  Dim trips_ = 0;  // May be open.
  bool reverse_ = false, is_counted_ = false;
  std::vector<bool> active_;  // Of carries: those gradients flow through.
  size_t declared_ = 0;       // Parameters of the body.
  size_t own_nodes_ = 0;      // Nodes of the body.
  Value trip_;
  Tensors of_carries_, of_elements_, sums_;
  std::vector<Next> nexts_;
  size_t slice_gradients_ = 0;
};

}  // namespace

Tensors control_gradient(TraceScope* scope, int32_t number, const Tensors& gradients,
                         const std::vector<bool>& wanted, Source at) {
  const Node node = scope->trace->graph().nodes[static_cast<size_t>(number)];
  if (node.op->self == &ops::cond) return cond_gradient(scope, node, gradients, wanted, at);
  if (node.op->self == &ops::map) return map_gradient(scope, node, gradients, wanted, at);
  if (node.op->self == &ops::call) return call_gradient(scope, number, node, gradients, wanted, at);
  return LoopGradient(scope, number, gradients, wanted, at).run();
}

}  // namespace tidemark::detail
