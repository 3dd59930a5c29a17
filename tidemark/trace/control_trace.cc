// Control flow in a trace: each body runs once to make a region, and a node refers to the regions.
//
// A body may assign Variables: their new values are additional results of a branch, or additional
// carries of a loop. The Variables that a loop's body assigns, and the dtypes that it gives to
// plain numbers, are known only after it was traced. So it is traced again, with these as carries,
// until nothing changes. Regions of earlier attempts belong to no node and are dropped.
#include <algorithm>
#include <set>

#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/passes.h"
#include "tidemark/tensor/variable_state.h"
#include "tidemark/trace/control_flow_core.h"
#include "tidemark/trace/trace.h"
#include "tidemark/trace/vectorize.h"

namespace tidemark::detail {
namespace {

using Variables = std::vector<std::shared_ptr<VariableState>>;

Weak weak_kind(const TensorState& state) {
  if (!state.weak) return Weak::no;
  return state.array.dtype == DType::boolean ? Weak::boolean
         : state.array.dtype == DType::i32   ? Weak::integer
                                             : Weak::floating;
}

void add_new(Variables& variables, const TraceScope& scope) {
  std::set<const VariableState*> known;
  for (const auto& variable : variables) known.insert(variable.get());
  for (const auto& [variable, value] : scope.written)
    if (known.insert(variable.get()).second) variables.push_back(variable);
}

// Sets the results of a region: these tensors, then the values of the Variables.
void set_results(TraceScope* scope, const Tensors& tensors, std::span<const DType> dtypes,
                 const Variables& variables, Source at) {
  const EnterScope entered(scope);
  std::vector<Value> results;
  for (size_t i = 0; i < tensors.size(); ++i)
    results.push_back(value_of(tensor_of(tensors[i], at, dtypes[i]), at));
  for (const auto& variable : variables)
    results.push_back(value_of(scope->trace->handed_on(*variable, at), at));
  scope->trace->graph().regions[static_cast<size_t>(scope->region)].results = std::move(results);
}

std::vector<TensorType> result_types(const Graph& graph, RegionId region) {
  std::vector<TensorType> types;
  for (const Value result : graph.regions[static_cast<size_t>(region)].results)
    types.push_back(graph.type(result));
  return types;
}

// Adds the node to the current scope and returns its results.
Tensors add_control(Node node, Source at) {
  const auto count = static_cast<int16_t>(node.results.size());
  const int32_t number = tidemark::add_control(*current_scope(), std::move(node), at);
  Tensors results;
  for (int16_t r = 0; r < count; ++r) results.push_back(traced_tensor({number, r}, at.resolve()));
  return results;
}

// Takes the last results, which are the new values of the Variables.
void write_variables(const Variables& variables, Tensors& results) {
  const size_t first = results.size() - variables.size();
  for (size_t i = 0; i < variables.size(); ++i)
    current_scope()->trace->write(*variables[i], std::move(results[first + i]));
  results.resize(first);
}

// The common type of two branches; a plain number takes the dtype of the other branch, and what one
// branch does not set, the type of the other.
TensorType common_type(const Tensor& one, const Tensor& other, const BranchParts& parts, size_t i,
                       Source at) {
  if (!one.has_value() || !other.has_value()) return type_of(one.has_value() ? one : other, at);
  const TensorState &a = state_of(one, at), &b = state_of(other, at);
  const OperandType types[] = {{.dtype = a.array.dtype, .weak = weak_kind(a)},
                               {.dtype = b.array.dtype, .weak = weak_kind(b)}};
  const DType dtype = promote(types);
  const bool fits = (a.weak || a.array.dtype == dtype) && (b.weak || b.array.dtype == dtype);
  if (!fits || a.array.shape != b.array.shape)
    throw UserError(cat(parts.name, ": ", parts.path(i), " is ", type_of(one, at),
                        " in the first branch and ", type_of(other, at), " in the second"),
                    at, "both branches must give the same dtype and shape");
  return {dtype, type_of(one, at).shape};
}

// Zeros for what the branch does not set.
Tensors filled_up(TraceScope* scope, Tensors tensors, std::span<const TensorType> types,
                  Source at) {
  const EnterScope entered(scope);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].has_value()) tensors[i] = zeros(types[i].shape, types[i].dtype, at);
  return tensors;
}

}  // namespace

Tensors trace_branch(const Tensor& chosen, const BranchParts& parts, Source at) {
  TraceScope* const outer = current_scope();
  Graph& graph = outer->trace->graph();
  const Value test = value_of(chosen, at);
  InnerScope yes(cat("the first branch of ", parts.name), at);
  parts.if_true();
  const EnterScope between(outer);
  InnerScope no(cat("the second branch of ", parts.name), at);
  parts.if_false();
  const EnterScope behind(outer);

  const auto [from_yes, from_no] = parts.results();
  std::vector<TensorType> types;
  std::vector<DType> dtypes;
  for (size_t i = 0; i < from_yes.size(); ++i) {
    types.push_back(common_type(from_yes[i], from_no[i], parts, i, at));
    dtypes.push_back(types.back().dtype);
  }
  Variables variables;
  add_new(variables, *yes.scope());
  add_new(variables, *no.scope());
  set_results(yes.scope(), filled_up(yes.scope(), from_yes, types, at), dtypes, variables, at);
  set_results(no.scope(), filled_up(no.scope(), from_no, types, at), dtypes, variables, at);

  Node node;
  node.op = &def_of(&ops::cond);
  node.inputs.push_back(test);
  for (const Value value : unify_captures({{yes.scope(), 0}, {no.scope(), 0}}))
    node.inputs.push_back(value);
  node.regions = {yes.region(), no.region()};
  node.results = result_types(graph, yes.region());
  Tensors results = add_control(std::move(node), at);
  write_variables(variables, results);
  return results;
}

Tensors trace_cond(const Tensor& chosen, const std::function<Tensors()>& if_true,
                   const std::function<Tensors()>& if_false, const PathOf& path, Source at) {
  std::pair<Tensors, Tensors> both;
  return trace_branch(chosen,
                      {.name = "cond",
                       .if_true = [&] { both.first = if_true(); },
                       .if_false = [&] { both.second = if_false(); },
                       .results = [&] { return std::move(both); },
                       .path = path},
                      at);
}

// ---- loops --------------------------------------------------------------------------------------

namespace {

class LoopTrace {
 public:
  LoopTrace(const LoopParts& parts, Source at)
      : parts_(parts), at_(at), outer_(current_scope()), trace_(*current_scope()->trace) {
    for (const Tensor& carry : parts.carries) {
      const TensorState* state = TensorState::of(carry);
      Carry& made = carries_.emplace_back();
      made.is_known = state != nullptr && !state->weak;
      if (state != nullptr) made.type = type_of(carry, at);
    }
  }

  Tensors run() {
    for (;;) {
      const size_t numbers = trace_.numbers().size();
      Tensors results;
      if (attempt(results)) return results;
      trace_.numbers().erase(trace_.numbers().begin() + static_cast<int64_t>(numbers),
                             trace_.numbers().end());
    }
  }

 private:
  struct Carry {
    TensorType type;
    bool is_known = false;  // Otherwise a plain number or empty: the body determines its type.
  };

  // Traces the body. Returns false if that showed that it has more or other carries.
  bool attempt(Tensors& results) {
    InnerScope body(cat("the body of ", parts_.name), at_);
    const Tensor trip = body.parameter({DType::i64, {}}, at_);
    Tensors carried = carried_in(body);
    Tensors slices;
    for (const Tensor& array : parts_.walked) {
      TensorType type = type_of(array, at_);
      type.shape.erase(0);
      slices.push_back(body.parameter(type, at_));
    }
    Tensors given = parts_.body(number_of(trip), std::move(carried), std::move(slices));
    if (learns(given, *body.scope())) return false;
    const EnterScope behind(outer_);
    results = finish(body, given);
    return true;
  }

  // The parameters for the carries, then for the Variables, whose value they are in the region.
  Tensors carried_in(InnerScope& region) {
    Tensors carried;
    for (size_t k = 0; k < carries_.size(); ++k) {
      if (carries_[k].is_known) {
        carried.push_back(region.parameter(carries_[k].type, at_));
      } else if (!parts_.carries[k].has_value()) {
        carried.emplace_back();
      } else {
        const DType dtype = carries_[k].type.dtype == DType::f32   ? DType::f64
                            : carries_[k].type.dtype == DType::i32 ? DType::i64
                                                                   : DType::boolean;
        carried.push_back(traced_tensor(
            trace_.graph().add_parameter(region.region(), {dtype, {}}, at_), at_, true));
      }
    }
    for (const auto& variable : variables_)
      region.scope()->note_written(variable, region.parameter(variable->type(), at_));
    return carried;
  }

  // Whether it is a plain number, which is a constant of the program.
  bool is_literal(const Tensor& bound) const {
    const TensorState& state = state_of(bound, at_);
    return state.weak && state.kind == TensorState::Kind::concrete;
  }

  // The number that fori_loop passes to the body in this trip.
  Tensor number_of(const Tensor& trip) const {
    if (!parts_.lower.has_value()) return {};
    const bool from_zero = is_literal(parts_.lower) && parts_.lower.item<int64_t>(at_) == 0;
    if (from_zero) trace_.numbers().push_back({at_.resolve(), 0});
    return cast(from_zero ? trip : add(trip, parts_.lower, at_), number_dtype_of(parts_, at_), at_);
  }

  bool learns(const Tensors& given, const TraceScope& scope) {
    const size_t known = variables_.size();
    add_new(variables_, scope);
    bool is_new = variables_.size() != known;
    for (size_t k = 0; k < carries_.size(); ++k) is_new |= learns(k, given[k]);
    return is_new;
  }

  // Sets the type of a carry from the body's result, and returns true if that is new. Throws a
  // UserError if the carry has another type already.
  bool learns(size_t k, const Tensor& given) {
    Carry& carry = carries_[k];
    if (!given.has_value())
      throw UserError(cat(parts_.name, ": ", parts_.carry_path(k), " holds nothing"), at_,
                      "a TensorArray that a loop carries needs .element_shape, or a write in the "
                      "body");
    TensorType type = type_of(given, at_);
    if (parts_.carries[k].has_value()) {
      const TensorState& first = state_of(parts_.carries[k], at_);
      const OperandType types[] = {
          {.dtype = carry.type.dtype, .weak = carry.is_known ? Weak::no : weak_kind(first)},
          {.dtype = type.dtype, .weak = weak_kind(state_of(given, at_))}};
      if (types[0].weak != Weak::no || types[1].weak != Weak::no) type.dtype = promote(types);
      const bool same_dtype = !carry.is_known || type.dtype == carry.type.dtype;
      if (!same_dtype || type.shape != carry.type.shape)
        carry_changed(parts_, k, carry.type, type, at_);
    } else if (carry.is_known && type != carry.type) {
      carry_changed(parts_, k, carry.type, type, at_);
    }
    const bool is_new = !carry.is_known;
    carry = {type, true};
    return is_new;
  }

  // Traces the condition, if there is one.
  void trace_condition(InnerScope& region) {
    region.parameter({DType::i64, {}}, at_);
    const Tensors carried = carried_in(region);
    const auto before = region.scope()->written;
    const Tensor test = parts_.condition(carried);
    const auto& after = region.scope()->written;
    for (size_t i = 0; i < after.size(); ++i) {
      if (i < before.size() &&
          TensorState::of(before[i].second) == TensorState::of(after[i].second))
        continue;
      throw UserError(
          cat(parts_.name, ": the condition assigns Variable \"", after[i].first->name, "\""), at_,
          "a condition only reads; assign it in the body");
    }
    const DType boolean[] = {DType::boolean};
    set_results(region.scope(), {test}, boolean, {}, at_);
  }

  Tensors finish(InnerScope& body, const Tensors& given) {
    Graph& graph = trace_.graph();
    const size_t carries = carries_.size() + variables_.size();
    const Tensors carried(given.begin(), given.begin() + static_cast<int64_t>(carries_.size()));
    const Tensors elements(given.begin() + static_cast<int64_t>(carries_.size()), given.end());
    std::vector<DType> dtypes;
    for (const Carry& carry : carries_) dtypes.push_back(carry.type.dtype);
    set_results(body.scope(), carried, dtypes, variables_, at_);
    append_elements(body, elements);

    std::optional<InnerScope> condition;
    if (parts_.condition) {
      condition.emplace(cat("the condition of ", parts_.name), at_);
      trace_condition(*condition);
    }
    const EnterScope behind(outer_);
    Node node;
    node.op = &def_of(&ops::loop);
    Dim trips = parts_.trips;
    const bool counted = count_input(node, trips);
    for (size_t k = 0; k < carries_.size(); ++k) node.inputs.push_back(initial(k));
    for (const auto& variable : variables_)
      node.inputs.push_back(value_of(trace_.handed_on(*variable, at_), at_));
    for (const Tensor& array : parts_.walked) node.inputs.push_back(value_of(array, at_));
    const size_t slices = parts_.walked.size();
    const std::pair<RegionScope*, size_t> of_body = {body.scope(), 1 + carries + slices};
    const std::vector<Value> captures =
        condition ? unify_captures({of_body, {condition->scope(), 1 + carries}})
                  : unify_captures({of_body});
    for (const Value value : captures) node.inputs.push_back(value);
    node.regions.push_back(body.region());
    if (condition) node.regions.push_back(condition->region());
    node.results = result_types(graph, body.region());
    for (size_t i = carries; i < node.results.size(); ++i) node.results[i].shape.insert(0, trips);
    LoopAttrs attrs;
    attrs.carries = static_cast<int64_t>(carries);
    attrs.slices = static_cast<int64_t>(slices);
    attrs.stacked = static_cast<int64_t>(elements.size());
    attrs.trips = trips;
    attrs.reverse = parts_.reverse;
    attrs.counted = counted;
    attrs.save = parts_.save;
    attrs.amount = parts_.save_amount;
    node.attrs = attrs.attrs();
    Tensors results = add_control(std::move(node), at_);
    // The Variables are between the carries and the stacked results.
    std::rotate(results.begin() + static_cast<int64_t>(carries_.size()),
                results.begin() + static_cast<int64_t>(carries), results.end());
    write_variables(variables_, results);
    return results;
  }

  void append_elements(InnerScope& body, const Tensors& elements) {
    const EnterScope entered(body.scope());
    for (const Tensor& element : elements) {
      const Value value = value_of(tensor_of(element, at_), at_);
      trace_.graph().regions[static_cast<size_t>(body.region())].results.push_back(value);
    }
  }

  Value initial(size_t k) const {
    const Tensor& carry = parts_.carries[k];
    const TensorType& type = carries_[k].type;
    return value_of(
        carry.has_value() ? tensor_of(carry, at_, type.dtype) : zeros(type.shape, type.dtype, at_),
        at_);
  }

  // A bound that is known at layout time: a plain number, which may be negative, or an open size.
  struct Bound {
    int64_t number = 0;
    Dim size = 0;
    bool is_open() const { return size.is_traced(); }
    Dim as_size() const { return is_open() ? size : Dim(number); }
    // The number of trips from `begin` to this bound.
    Dim behind(const Bound& begin) const {
      if (!is_open() && !begin.is_open()) return std::max<int64_t>(0, number - begin.number);
      return larger(as_size() - begin.as_size(), 0);
    }
  };
  std::optional<Bound> bound_of(const Tensor& bound) const {
    if (is_literal(bound)) return Bound{.number = bound.item<int64_t>(at_)};
    const std::optional<Dim> size = open_size_of(Operand(bound, at_));
    return size ? std::optional(Bound{.size = *size}) : std::nullopt;
  }

  // The number of trips between the bounds: known if both are numbers or sizes, else an input of
  // the node.
  bool count_input(Node& node, Dim& trips) {
    if (!parts_.lower.has_value()) return false;
    const std::optional<Bound> begins = bound_of(parts_.lower), ends = bound_of(parts_.upper);
    if (begins && ends) {
      if (!ends->is_open())
        trace_.numbers().push_back({at_.resolve(), static_cast<double>(ends->number)});
      trips = ends->behind(*begins);
      return false;
    }
    const Tensor first = cast(parts_.lower, DType::i64, at_);
    const Tensor end = cast(parts_.upper, DType::i64, at_);
    node.inputs.push_back(value_of(maximum(subtract(end, first, at_), Operand(0, at_), at_), at_));
    return true;
  }

  const LoopParts& parts_;
  Source at_;
  TraceScope* outer_;
  Trace& trace_;
  std::vector<Carry> carries_;
  Variables variables_;
};

bool has_effect(const Graph& graph, RegionId region) {
  const std::vector<int32_t>& nodes = graph.regions[static_cast<size_t>(region)].nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](int32_t number) {
    return passes::has_effect(graph, graph.nodes[static_cast<size_t>(number)]);
  });
}

std::vector<int64_t> codes_of(std::string_view text) { return {text.begin(), text.end()}; }

// The map as a loop: for bodies whose effects must happen in order.
Tensors trace_map_in_order(const MapParts& parts, Source at) {
  LoopParts loop{.name = parts.name};
  loop.body = [&parts](const Tensor&, const Tensors&, Tensors slices) {
    return parts.body(std::move(slices));
  };
  loop.element_path = parts.element_path;
  loop.trips = parts.trips;
  loop.walked = parts.walked;
  return trace_loop(loop, at);
}

}  // namespace

Tensors trace_loop(const LoopParts& parts, Source at) { return LoopTrace(parts, at).run(); }

Tensors trace_map(const MapParts& parts, Source at) {
  TraceScope* const outer = current_scope();
  Trace& trace = *outer->trace;
  const size_t numbers = trace.numbers().size();
  {
    InnerScope body(cat("the body of ", parts.name), at);
    Tensors slices;
    for (const Tensor& array : parts.walked) {
      TensorType type = type_of(array, at);
      type.shape.erase(0);
      slices.push_back(body.parameter(type, at));
    }
    const Tensors given = parts.body(std::move(slices));
    std::vector<DType> dtypes;
    for (const Tensor& tensor : given) dtypes.push_back(tensor_of(tensor, at).dtype());
    set_results(body.scope(), given, dtypes, {}, at);
    if (body.scope()->written.empty() && !has_effect(trace.graph(), body.region())) {
      const EnterScope behind(outer);
      std::vector<Value> walked;
      for (const Tensor& array : parts.walked) walked.push_back(value_of(array, at));
      const std::vector<Value> captures = unify_captures({{body.scope(), parts.walked.size()}});
      std::string why_not;
      if (parts.all_at_once) {
        if (const auto all = vectorized(body.region(), walked, captures, parts.trips, why_not)) {
          Tensors results;
          for (const Value value : *all) results.push_back(traced_tensor(value, at.resolve()));
          return results;
        }
      }
      Node node;
      node.op = &def_of(&ops::map);
      for (const Value value : walked) node.inputs.push_back(value);
      for (const Value value : captures) node.inputs.push_back(value);
      node.regions = {body.region()};
      node.results = result_types(trace.graph(), body.region());
      for (TensorType& type : node.results) type.shape.insert(0, parts.trips);
      node.attrs = Attrs()
                       .add(static_cast<int64_t>(parts.walked.size()))
                       .add(parts.trips)
                       .add(parts.alive.is_any() ? parts.alive
                                                 : smaller(parts.alive, larger(parts.trips, 1)))
                       .add(std::span<const int64_t>(codes_of(why_not)));
      return add_control(std::move(node), at);
    }
  }
  trace.numbers().erase(trace.numbers().begin() + static_cast<int64_t>(numbers),
                        trace.numbers().end());
  return trace_map_in_order(parts, at);
}

}  // namespace tidemark::detail
