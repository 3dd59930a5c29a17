#include "tidemark/api/vectorize.h"

#include <algorithm>
#include <utility>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"

namespace tidemark::detail {
namespace {

struct CannotLift {
  std::string why;
};

class Lifting {
 public:
  Lifting(RegionId body, Dim count)
      : graph_(current_scope->trace->graph()),
        body_(body),
        into_(current_scope->region),
        count_(count) {}

  std::vector<Value> run(std::span<const Value> slices, std::span<const Value> captures) {
    const Region body = graph_.regions[static_cast<size_t>(body_)];
    for (size_t i = 0; i < body.parameters.size(); ++i) {
      const bool is_slice = i < slices.size();
      // A slice is a value of its own, not part of something that repeats: a sum would see that.
      if (is_slice && repeats(slices[i])) throw CannotLift{"what it walks repeats one element"};
      set(body.parameters[i],
          is_slice ? Lifted{slices[i], true} : Lifted{captures[i - slices.size()], false});
    }
    for (const int32_t number : body.nodes) lift(number);
    std::vector<Value> results;
    for (const Value result : body.results) {
      const Lifted given = at(result);
      if (!given.has_axis) throw CannotLift{"it gives the same for every slice"};
      if (repeats(given.value)) throw CannotLift{"what it gives repeats one element"};
      results.push_back(given.value);
    }
    return results;
  }

 private:
  struct Lifted {
    Value value;
    bool has_axis = false;
  };

  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  Lifted at(Value inner) const {
    Lifted found = lifted_[static_cast<size_t>(inner.node)];
    if (inner.result > 0) found.value.result = inner.result;  // Of a call.
    return found;
  }
  void set(Value inner, Lifted value) {
    if (lifted_.size() <= static_cast<size_t>(inner.node))
      lifted_.resize(static_cast<size_t>(inner.node) + 1);
    lifted_[static_cast<size_t>(inner.node)] = value;
  }

  Value add(const OpDef& op, std::span<const Value> inputs, const Attrs& attrs,
            const TensorType& type, Source at) {
    return graph_.add(into_, op, inputs, attrs, type, at);
  }
  Value view(const OpDef& op, Value x, const Shape& shape) {
    const TensorType type{graph_.type(x).dtype, shape};
    const AxisList words = words_of(shape);
    return add(op, {&x, 1}, Attrs().add(std::span<const int64_t>(words)), type,
               graph_.node(x).source);
  }
  // Whether it is a view that shows one element several times.
  bool repeats(Value x) const {
    for (const Node* made = &graph_.node(x); made->op != nullptr && made->op->view != nullptr;
         made = &graph_.node(made->inputs[0])) {
      if (made->op->self == &ops::broadcast_to) return true;
    }
    return false;
  }

  // With the axis, whatever it is.
  Value stretched(const Lifted& x) {
    if (x.has_axis) return x.value;
    Shape shape = graph_.type(x.value).shape;
    shape.insert(0, count_);
    return view(def_of(&ops::broadcast_to), x.value, shape);
  }
  // With so many axes behind the first one: ones are put in between.
  Value aligned(const Lifted& x, int64_t rank) {
    Shape shape = graph_.type(x.value).shape;
    if (!x.has_axis || shape.rank() == rank + 1) return x.value;
    while (shape.rank() < rank + 1) shape.insert(1, 1);
    return view(def_of(&ops::reshape), x.value, shape);
  }

  void lift(int32_t number) {
    const Node inner = node(number);  // The list grows meanwhile.
    if (inner.op->self == &ops::call) return lift_call(number, inner);
    const bool has_axis = std::any_of(inner.inputs.begin(), inner.inputs.end(),
                                      [&](Value input) { return at(input).has_axis; });
    if (!inner.regions.empty() || inner.op->family == Family::effect || inner.results.size() != 1)
      refuse(inner);
    TensorType type = inner.results[0];
    std::vector<Value> inputs;
    if (!has_axis) {
      for (const Value input : inner.inputs) inputs.push_back(at(input).value);
      return set({number, 0}, {add(*inner.op, inputs, inner.attrs, type, inner.source), false});
    }
    type.shape.insert(0, count_);
    inputs = inputs_of(inner);
    set({number, 0}, {add(*inner.op, inputs, attrs_of(inner), type, inner.source), true});
  }

  // A function with a gradient of its own, or one that is run again: its body and its gradient take
  // the axis, and so must all that they read, since inside nobody can tell what repeats.
  void lift_call(int32_t number, const Node& inner) {
    Node call = inner;
    for (Value& input : call.inputs) {
      if (!at(input).has_axis || repeats(at(input).value)) refuse(inner);
      input = at(input).value;
    }
    for (RegionId& region : call.regions) region = lifted_region(region, inner);
    for (TensorType& type : call.results) type.shape.insert(0, count_);
    set({number, 0}, {{graph_.add_node(into_, std::move(call)), 0}, true});
  }
  RegionId lifted_region(RegionId from, const Node& call) {
    const Region inner = graph_.regions[static_cast<size_t>(from)];
    const RegionId fresh = graph_.add_region();
    const RegionId outside = std::exchange(into_, fresh);
    for (const Value parameter : inner.parameters) {
      TensorType type = graph_.type(parameter);
      type.shape.insert(0, count_);
      set(parameter, {graph_.add_parameter(fresh, type, call.source), true});
    }
    for (const int32_t number : inner.nodes) lift(number);
    for (const Value result : inner.results) {
      if (!at(result).has_axis || repeats(at(result).value)) refuse(call);
      graph_.regions[static_cast<size_t>(fresh)].results.push_back(at(result).value);
    }
    into_ = outside;
    return fresh;
  }

  // Operands of one shape each broadcast against the result; of others the axis comes first.
  std::vector<Value> inputs_of(const Node& inner) {
    int64_t rank = 0;
    const bool broadcasts = inner.op->family == Family::pointwise ||
                            inner.op->self == &ops::matmul || inner.op->self == &ops::broadcast_to;
    for (const Value input : inner.inputs) rank = std::max(rank, graph_.type(input).shape.rank());
    if (inner.op->self == &ops::broadcast_to) rank = inner.results[0].shape.rank();
    const bool may_differ = broadcasts || inner.inputs.size() == 1;
    std::vector<Value> inputs;
    for (const Value input : inner.inputs)
      inputs.push_back(!may_differ  ? stretched(at(input))
                       : broadcasts ? aligned(at(input), rank)
                                    : at(input).value);
    return inputs;
  }

  [[noreturn]] static void refuse(const Node& inner) {
    throw CannotLift{cat(inner.op->name, " takes no axis more (", inner.source.text(), ")")};
  }

  // By the names of attributes, not of ops: each name means the same everywhere.
  Attrs attrs_of(const Node& inner) const {
    const Family family = inner.op->family;
    const bool known = family == Family::pointwise || family == Family::reduce ||
                       family == Family::row || family == Family::view || family == Family::piece ||
                       inner.op->self == &ops::cumsum || inner.op->self == &ops::matmul;
    if (!known) refuse(inner);
    Attrs attrs;
    Attrs::Reader read = inner.attrs.read();
    for (const AttrDef& attr : inner.op->attrs) {
      if (attr.kind != AttrKind::integers) {
        attrs.add(read.integer() + (attr.name == "axis" ? 1 : 0));
        continue;
      }
      AxisList list(read.integers());
      const bool counts_axes = attr.name == "axes" || attr.name == "order";
      if (counts_axes)
        for (int64_t& axis : list) ++axis;
      if (attr.name == "shape" || attr.name == "size")
        list.insert(0, count_.word());
      else if (attr.name != "axes")
        list.insert(0, attr.name == "step" ? 1 : 0);
      attrs.add(std::span<const int64_t>(list));
    }
    return attrs;
  }

  Graph& graph_;
  RegionId body_, into_;
  Dim count_;
  std::vector<Lifted> lifted_;  // By node of the body.
};

}  // namespace

std::optional<std::vector<Value>> vectorized(RegionId body, std::span<const Value> slices,
                                             std::span<const Value> captures, Dim count,
                                             std::string& why_not) {
  Graph& graph = current_scope->trace->graph();
  const auto own_nodes = [&]() -> std::vector<int32_t>& {
    return graph.regions[static_cast<size_t>(current_scope->region)].nodes;
  };
  const size_t before = own_nodes().size();
  try {
    return Lifting(body, count).run(slices, captures);
  } catch (const CannotLift& cannot) {
    own_nodes().resize(before);
    why_not = cannot.why;
    return std::nullopt;
  }
}

}  // namespace tidemark::detail
