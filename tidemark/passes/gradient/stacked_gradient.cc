// The gradient of a loop that keeps the residuals of all trips, stacked.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tidemark/base/error.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/passes/gradient/pullback.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {

std::set<ValueKey> values_read(const Graph& graph, const Region& region) {
  std::set<ValueKey> read;
  for (const Value result : region.results) read.insert(key_of(result));
  for (const int32_t number : region.nodes)
    for (const Value input : graph.nodes[static_cast<size_t>(number)].inputs)
      read.insert(key_of(input));
  return read;
}

namespace {

// The nodes of a loop's body, and its parameters, whose values differ between trips.
std::set<int32_t> varying_nodes(const Graph& graph, const Node& loop) {
  const LoopAttrs attrs(loop);
  const Region& body = graph.regions[static_cast<size_t>(loop.regions[0])];
  std::set<int32_t> varying;
  for (size_t i = 0; i < static_cast<size_t>(1 + attrs.carries + attrs.slices); ++i)
    varying.insert(body.parameters[i].node);
  for (const int32_t number : body.nodes) {
    const SmallVec<Value, 3>& inputs = graph.nodes[static_cast<size_t>(number)].inputs;
    if (std::any_of(inputs.begin(), inputs.end(),
                    [&](Value input) { return varying.contains(input.node); }))
      varying.insert(number);
  }
  return varying;
}

// Whether a node contains a loop that only its condition ends.
bool may_go_on(const Graph& graph, const Node& node) {
  if (node.op->flow == Flow::loop && node.regions.size() == 2 && LoopAttrs(node).trips.is_any())
    return true;
  return std::any_of(node.regions.begin(), node.regions.end(), [&](RegionId id) {
    const std::vector<int32_t>& nodes = graph.regions[static_cast<size_t>(id)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
      return may_go_on(graph, graph.nodes[static_cast<size_t>(number)]);
    });
  });
}

// The loop-invariant nodes of a body that can be hoisted: they have the same results in all trips,
// and do no harm if there is no trip at all.
std::set<int32_t> nodes_to_run_once(const Graph& graph, const Node& loop) {
  const LoopAttrs attrs(loop);
  const bool has_trips = !attrs.counted && loop.regions.size() == 1 && attrs.trips.known_or(0) > 0;
  const std::set<int32_t> varying = varying_nodes(graph, loop);
  std::set<int32_t> once;
  for (const int32_t number : graph.regions[static_cast<size_t>(loop.regions[0])].nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (varying.contains(number)) continue;
    if (!has_trips && (passes::can_fail(graph, node) || may_go_on(graph, node))) continue;
    if (std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
          return graph.node(input).op == nullptr || once.contains(input.node);
        }))
      once.insert(number);
  }
  return once;
}

}  // namespace

std::vector<TensorType> residuals_of_trip(const Graph& graph, const Node& loop) {
  const LoopAttrs attrs(loop);
  const Region& body = graph.regions[static_cast<size_t>(loop.regions[0])];
  const std::set<int32_t> varying = varying_nodes(graph, loop);
  std::set<ValueKey> read;
  for (const int32_t number : body.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (!node.regions.empty()) {
      for (const Value input : node.inputs) read.insert(key_of(input));
      continue;
    }
    if (std::none_of(node.results.begin(), node.results.end(),
                     [](const TensorType& type) { return is_differentiable(type.dtype); }))
      continue;
    std::vector<TensorType> types;
    std::vector<bool> wanted;
    for (const Value input : node.inputs) {
      types.push_back(graph.type(input));
      wanted.push_back(is_differentiable(types.back().dtype));
    }
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
    const uint32_t bits = form_of_rule(*node.op, node.attrs, types, node.results, wanted).read;
    const size_t inputs = types.size();
    for (size_t i = 0; i < inputs + node.results.size(); ++i)
      if ((bits >> i & 1) != 0)
        read.insert(i < inputs ? key_of(node.inputs[i])
                               : ValueKey{number, static_cast<int32_t>(i - inputs)});
  }
  for (int64_t j = 0; j < attrs.carries; ++j) {
    // The end state of a trip is the initial state of the next.
    const Value end = body.results[static_cast<size_t>(j)];
    if (read.erase(key_of(end)) > 0)
      read.insert(key_of(body.parameters[static_cast<size_t>(1 + j)]));
  }
  std::vector<TensorType> residuals;
  for (const ValueKey& key : read) {
    const Value value{key.first, static_cast<int16_t>(key.second)};
    const auto slice = body.parameters.begin() + 1 + attrs.carries;
    const bool is_slice = std::find(slice, body.parameters.end(), value) != body.parameters.end();
    const Node& node = graph.node(value);
    const bool is_view = node.op != nullptr && node.op->view != nullptr;
    if (varying.contains(value.node) && !is_slice && !is_view)
      residuals.push_back(graph.type(value));
  }
  return residuals;
}

namespace {

// The reverse loop. Its body is the gradient of the loop's body, built in a scope inside that body,
// so that the values of the body that it reads are known:
// - the carries at the start of a trip, and values computed in it, are stacked by the loop, as
//   additional results;
// - the carries at the end of a trip are those at the start of the next, so the reverse loop
// carries
//   them along;
// - slices are scanned again, and captures are captured again;
// - loop-invariant values are computed once, before the reverse loop, and views are repeated.
class LoopGradient : LoopBackwards {
 public:
  explicit LoopGradient(const ControlQuestion& asked) : LoopBackwards(asked) {}

  ValueGradients run() {
    if (attrs_.counted) {
      count_ = {node_.inputs[0], scope_};
    } else if (node_.regions.size() > 1) {
      // The marks of checkpoints, if an earlier gradient added some, also begin with the number of
      // trips.
      const ScopedValue marked{{number_, marks()}, scope_};
      count_ = marked.type().shape[0] == 1 ? into_.reshape(marked, {}, at_)
                                           : into_.first_element(marked, at_);
    }
    RegionScope body{.graph = &graph_, .outer = &into_.scope(), .region = body_};
    RegionScope back = inner_scope(body);
    trace_body(body, back);
    return finish(body, back);
  }

 private:
  const std::vector<Value>& parameters() const {
    return graph_.regions[static_cast<size_t>(body_)].parameters;
  }
  Value parameter(size_t i) const { return parameters()[i]; }
  ScopedValue gradient_of_stacked(size_t e) const { return gradients_[attrs_.stacked_result(e)]; }

  // The result that holds the number of trips.
  int16_t marks() {
    if (attrs_.marks == 0) {
      Node& loop = graph_.nodes[static_cast<size_t>(number_)];
      attrs_.marks = std::ssize(loop.results);
      loop.results.push_back({DType::i64, {1}});
      loop.attrs = attrs_.attrs();
    }
    return static_cast<int16_t>(attrs_.marks);
  }

  void trace_body(RegionScope& body, RegionScope& back) {
    const ScopeBuilder inner = into_.inside(back);
    const auto& own = graph_.regions[static_cast<size_t>(body_)];
    declared_ = own.parameters.size();
    own_nodes_ = own.nodes.size();
    const std::vector<Value> starts = own.parameters, ends = own.results;
    const ScopedValue trip = inner.parameter({DType::i64, {}}, at_);
    trip_ = trip.value;
    lend(inner, starts[0], trip_of(inner, trip));
    Differentiation asked{.scope = &body, .into = &back, .settings = &asked_.settings};
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      of_carries_.push_back(inner.parameter(graph_.type(starts[1 + j]), at_));
      asked.seeds.emplace_back(ends[j], of_carries_.back());
      asked.watched.push_back(starts[1 + j]);
    }
    for (size_t e = 0; e < stacked_; ++e) {
      if (!gradient_of_stacked(e)) continue;
      of_elements_.push_back(inner.parameter(graph_.type(ends[carries_ + e]), at_));
      asked.seeds.emplace_back(ends[carries_ + e], of_elements_.back());
    }
    for (size_t i = 1 + carries_; i < starts.size(); ++i) {
      if (!is_wanted(i)) continue;
      asked.watched.push_back(starts[i]);
      if (is_capture(i)) sums_.push_back(inner.parameter(graph_.type(starts[i]), at_));
      // Trips that did not run have no rows.
      if (is_capture(i) && !count_ && variables_[input_of(i)]) asked.leaves.push_back(starts[i]);
    }
    asked.sources = asked.watched;
    for (size_t j = 0; j < carries_; ++j) {
      // The end state of the trip, unless it is one of the start values.
      if (std::find(starts.begin(), starts.end(), ends[j]) != starts.end()) continue;
      if (back.parameter_of.contains(key_of(ends[j]))) continue;
      const ScopedValue next = inner.parameter(graph_.type(ends[j]), at_);
      lend(inner, ends[j], next);
      nexts_.push_back({j, next.value});
    }
    set_results(inner, asked.sources, differentiate(asked, at_));
  }

  // The number of the trip that a trip of the reverse loop differentiates.
  ScopedValue trip_of(const ScopeBuilder& inner, ScopedValue trip) const {
    return inner.subtract(inner.last_trip(count_, attrs_.trips, at_), trip, at_);
  }

  static void lend(const ScopeBuilder& inner, Value value, ScopedValue as) {
    inner.scope().parameter_of.emplace(key_of(value), as.value);
  }

  void set_results(const ScopeBuilder& inner, const std::vector<Value>& sources,
                   const ValueGradients& found) {
    const auto or_zeros = [&](size_t i) {
      return inner.value_of(found[i].dense ? found[i].dense
                                           : inner.zeros(graph_.type(sources[i]), at_));
    };
    std::vector<Value> of_carries, of_slices, of_captures, of_rows;
    ScopedValues sums;
    size_t next = 0, capture = 0;
    for (; next < of_carries_.size(); ++next) of_carries.push_back(or_zeros(next));
    for (size_t i = 1 + carries_; i < declared_; ++i) {
      if (!is_wanted(i)) continue;
      const size_t source = next++;
      if (!is_capture(i)) {
        of_slices.push_back(or_zeros(source));
        continue;
      }
      const ScopedValue sum = sums_[capture++];
      const ScopedValue dense = found[source].dense;
      has_dense_.push_back(bool{dense});
      rows_.add(i, found[source].rows, inner, of_rows);
      if (!dense) continue;
      sums.push_back(sum);
      of_captures.push_back(inner.add(sum, dense, at_).value);
    }
    sums_ = sums;
    of_slices.insert(of_slices.end(), of_rows.begin(), of_rows.end());
    std::vector<Value> results = of_carries;
    results.insert(results.end(), of_captures.begin(), of_captures.end());
    drop_unread(inner, results, of_slices);
    for (const Next& each : nexts_)
      results.push_back(inner.value_of({parameter(1 + each.carry), inner.scope().outer}));
    results.insert(results.end(), of_slices.begin(), of_slices.end());
    inner.region().results = std::move(results);
    slice_gradients_ = of_slices.size();
  }

  // A carry's end state is not carried along if no rule reads it.
  void drop_unread(const ScopeBuilder& inner, const std::vector<Value>& carried,
                   const std::vector<Value>& elements) {
    std::set<ValueKey> read = values_read(graph_, inner.region());
    for (const std::vector<Value>* const list : {&carried, &elements})
      for (const Value value : *list) read.insert(key_of(value));
    std::erase_if(nexts_, [&](const Next& each) { return !read.contains(key_of(each.value)); });
  }

  // Finds the source of each value of the body that is read, and adds the reverse loop.
  ValueGradients finish(const RegionScope& body, const RegionScope& back) {
    run_once_ = nodes_to_run_once(graph_, node_);
    Node node;
    node.op = node_.op;
    if (count_) node.inputs.push_back(into_.value_of(count_));
    std::vector<Value> carries = {trip_}, slices, captures;
    std::vector<Value> walked, captured;
    size_t carry = 0;
    for (size_t j = 0; j < carries_; ++j) {
      if (!active_[j]) continue;
      node.inputs.push_back(into_.value_of(gradient_or_zeros(j)));
      carries.push_back(of_carries_[carry++].value);
    }
    for (const ScopedValue sum : sums_) {
      node.inputs.push_back(into_.zeros(sum.type(), at_).value);
      carries.push_back(sum.value);
    }
    for (const Next& each : nexts_) {
      node.inputs.push_back(here({number_, static_cast<int16_t>(each.carry)}));
      carries.push_back(each.value);
    }
    size_t element = 0;
    for (size_t e = 0; e < stacked_; ++e) {
      if (!gradient_of_stacked(e)) continue;
      walked.push_back(into_.value_of(gradient_of_stacked(e)));
      slices.push_back(of_elements_[element++].value);
    }
    for (const Value value : back.captured) {
      const Value inside = back.parameter_of.at(key_of(value));
      const auto found = std::find(parameters().begin(), parameters().end(), value);
      const auto index = static_cast<size_t>(found - parameters().begin());
      if (run_once_.contains(value.node)) {
        captures.push_back(inside);
        captured.push_back(outside(body, value));
      } else if (found == parameters().end() || index <= carries_) {
        slices.push_back(inside);
        walked.push_back(stacked(value));
      } else if (index >= declared_) {
        captures.push_back(inside);
        captured.push_back(body.captured[index - declared_]);
      } else {
        (is_capture(index) ? captures : slices).push_back(inside);
        (is_capture(index) ? captured : walked).push_back(here(node_.inputs[input_of(index)]));
      }
    }
    // Undo the captures that differentiating the body added to it.
    graph_.regions[static_cast<size_t>(body_)].parameters.resize(declared_);
    graph_.regions[static_cast<size_t>(body_)].nodes.resize(own_nodes_);
    return add_backward(std::move(node), back.region, {carries, slices, captures}, walked,
                        captured);
  }

  // The value of a hoisted node, computed outside of the loop.
  Value outside(const RegionScope& body, Value value) {
    const auto found = std::find(parameters().begin(), parameters().end(), value);
    if (found != parameters().end()) {
      const auto index = static_cast<size_t>(found - parameters().begin());
      return index >= declared_ ? body.captured[index - declared_]
                                : here(node_.inputs[input_of(index)]);
    }
    const auto [at, is_new] = made_outside_.try_emplace(value.node, -1);
    if (is_new) {
      Node node = graph_.node(value);
      for (Value& input : node.inputs) input = outside(body, input);
      for (RegionId& region : node.regions) region = copy_region(graph_, region, is_effect);
      made_outside_[value.node] = graph_.add_node(into_.scope().region, std::move(node));
    }
    return {made_outside_[value.node], value.result};
  }

  // Stacks a value of the body over all trips, as an additional result of the loop.
  Value stacked(Value value) {
    Node& loop = graph_.nodes[static_cast<size_t>(number_)];
    TensorType type = graph_.type(value);
    type.shape.insert(0, attrs_.trips);
    loop.results.push_back(type);
    ++attrs_.stacked;
    ++attrs_.saved;
    attrs_.save = LoopAttrs::Save::all;
    loop.attrs = attrs_.attrs();
    graph_.regions[static_cast<size_t>(body_)].results.push_back(value);
    return here({number_, static_cast<int16_t>(loop.results.size() - 1)});
  }

  ValueGradients add_backward(Node node, RegionId back,
                              const std::array<std::vector<Value>, 3>& inner,
                              const std::vector<Value>& walked,
                              const std::vector<Value>& captured) {
    const size_t first = count_ ? 1 : 0;
    const size_t carries = node.inputs.size() - first;
    for (const Value value : walked) node.inputs.push_back(value);
    for (const Value value : captured) node.inputs.push_back(value);
    Region& region = graph_.regions[static_cast<size_t>(back)];
    region.parameters.clear();
    for (const std::vector<Value>& list : inner)
      region.parameters.insert(region.parameters.end(), list.begin(), list.end());
    for (size_t i = 0; i < region.results.size(); ++i) {
      TensorType type = graph_.type(region.results[i]);
      if (i >= carries) type.shape.insert(0, attrs_.trips);
      node.results.push_back(std::move(type));
    }
    node.regions = {back};
    LoopAttrs attrs;
    attrs.carries = static_cast<int64_t>(carries);
    attrs.slices = std::ssize(walked);
    attrs.stacked = static_cast<int64_t>(slice_gradients_);
    attrs.trips = attrs_.trips;
    attrs.reverse = !attrs_.reverse;
    attrs.counted = bool{count_};
    node.attrs = attrs.attrs();
    const int32_t number = add_control(into_.scope(), std::move(node), at_);
    return gradients_from(number, declared_, static_cast<int16_t>(carries),
                          [&](ScopedValue gradient) {
                            return count_ ? into_.zeros_behind(gradient, count_, at_) : gradient;
                          });
  }

  struct Next {
    size_t carry;
    Value value;  // In the reverse loop.
  };

  const size_t stacked_ = static_cast<size_t>(attrs_.stacked);
  ScopedValue count_;     // The number of trips, if it is a value.
  size_t declared_ = 0;   // The number of parameters of the body.
  size_t own_nodes_ = 0;  // The number of nodes of the body.
  Value trip_;
  ScopedValues of_carries_, of_elements_;
  ScopedValues sums_;  // The sums for captures; at the end without those that are only row-sparse.
  std::vector<Next> nexts_;
  size_t slice_gradients_ = 0;               // Including rows.
  std::set<int32_t> run_once_;               // Nodes of the body.
  std::map<int32_t, int32_t> made_outside_;  // By node of the body.
};

}  // namespace

void StackedRows::add(size_t parameter, const std::vector<ValueGradient::Rows>& rows,
                      const ScopeBuilder& body, std::vector<Value>& results) {
  for (const ValueGradient::Rows& each : rows) {
    parameters_.push_back(parameter);
    results.push_back(body.value_of(each.indices));
    results.push_back(body.value_of(each.rows));
  }
}

void StackedRows::give(int32_t node, int16_t first, const ScopeBuilder& into,
                       const std::function<ValueGradient&(size_t parameter)>& to) const {
  for (const size_t parameter : parameters_) {
    const ScopedValue indices = into.own({node, first++});
    to(parameter).rows.push_back({indices, into.own({node, first++})});
  }
}

ValueGradients stacked_gradient(const ControlQuestion& asked) { return LoopGradient(asked).run(); }

}  // namespace tidemark::passes
