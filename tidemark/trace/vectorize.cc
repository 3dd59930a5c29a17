#include "tidemark/trace/vectorize.h"

#include <algorithm>
#include <utility>

#include "tidemark/ops/check_node.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/passes/slicing.h"

namespace tidemark::detail {
namespace {

struct CannotBatch {
  std::string why;
};

class Batcher {
 public:
  Batcher(RegionId body, Dim count)
      : graph_(current_scope()->trace->graph()),
        body_(body),
        into_(current_scope()->region),
        count_(count) {}

  std::vector<Value> run(std::span<const Value> slices, std::span<const Value> captures) {
    const Region body = graph_.regions[static_cast<size_t>(body_)];
    for (size_t i = 0; i < body.parameters.size(); ++i) {
      const bool is_slice = i < slices.size();
      // A slice has its own elements, and a sum over a broadcast array is computed as a product:
      // the bits would differ.
      if (is_slice && repeats(slices[i])) throw CannotBatch{"an input array repeats one element"};
      set(body.parameters[i], is_slice ? BatchedValue{slices[i], true}
                                       : BatchedValue{captures[i - slices.size()], false});
    }
    for (const int32_t number : body.nodes) batch(number);
    std::vector<Value> results;
    for (const Value result : body.results) {
      const BatchedValue given = at(result);
      if (!given.has_axis) throw CannotBatch{"a result is the same for every slice"};
      if (repeats(given.value)) throw CannotBatch{"a result repeats one element"};
      results.push_back(given.value);
    }
    return results;
  }

 private:
  struct BatchedValue {
    Value value;
    bool has_axis = false;
  };

  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  BatchedValue at(Value inner) const {
    BatchedValue found = batched_[static_cast<size_t>(inner.node)];
    if (inner.result > 0) found.value.result = inner.result;
    return found;
  }
  void set(Value inner, BatchedValue value) {
    if (batched_.size() <= static_cast<size_t>(inner.node))
      batched_.resize(static_cast<size_t>(inner.node) + 1);
    batched_[static_cast<size_t>(inner.node)] = value;
  }

  // Adds a node, typed by its op, and returns its first result. An op that refuses the types cannot
  // be batched.
  Value add(const OpDef& op, std::span<const Value> inputs, const Attrs& attrs, Source at) {
    Node node;
    node.op = &op;
    node.inputs = SmallVec<Value, 3>(inputs);
    node.attrs = attrs;
    node.source = at;
    try {
      node.results = check_node(graph_, node);
    } catch (const UserError&) {
      refuse(node);
    }
    return {graph_.add_node(into_, std::move(node)), 0};
  }
  Value view(const OpDef& op, Value x, const Shape& shape) {
    return add(op, {&x, 1}, Attrs().add(shape), graph_.node(x).source);
  }
  bool repeats(Value x) const { return passes::repeats(graph_, x); }

  // The value with the batch axis, broadcast along it if necessary.
  Value stretched(const BatchedValue& x) {
    if (x.has_axis) return x.value;
    Shape shape = graph_.type(x.value).shape;
    shape.insert(0, count_);
    return view(def_of(&ops::broadcast_to), x.value, shape);
  }
  // The value with this many axes after the first: axes of extent 1 are inserted.
  Value aligned(const BatchedValue& x, int64_t rank) {
    Shape shape = graph_.type(x.value).shape;
    if (!x.has_axis || shape.rank() == rank + 1) return x.value;
    while (shape.rank() < rank + 1) shape.insert(1, 1);
    return view(def_of(&ops::reshape), x.value, shape);
  }

  void batch(int32_t number) {
    const Node inner = node(number);  // A copy: the list of nodes grows.
    if (inner.op->flow == Flow::call) return batch_call(number, inner);
    const bool has_axis = std::any_of(inner.inputs.begin(), inner.inputs.end(),
                                      [&](Value input) { return at(input).has_axis; });
    if (!inner.regions.empty() || inner.op->effect != Effect::none) refuse(inner);
    if (!has_axis) {
      Node same = inner;
      for (Value& input : same.inputs) input = at(input).value;
      return set({number, 0}, {{graph_.add_node(into_, std::move(same)), 0}, false});
    }
    if (inner.op->batching == Batching::none) refuse(inner);
    std::vector<TensorType> types = inner.results;
    for (TensorType& type : types) type.shape.insert(0, count_);
    const Value all = add(*inner.op, inputs_of(inner), attrs_of(inner), inner.source);
    // Without the batch axis the type must be that of the body's node.
    if (graph_.node(all).results != types) refuse(inner);
    set({number, 0}, {all, true});
  }

  // A function with a custom gradient, or one that is recomputed: its body and its gradient get the
  // batch axis, and so do all values that they read, since inside it is not known which of them
  // repeat.
  void batch_call(int32_t number, const Node& inner) {
    Node call = inner;
    for (Value& input : call.inputs) {
      if (!at(input).has_axis || repeats(at(input).value)) refuse(inner);
      input = at(input).value;
    }
    for (RegionId& region : call.regions) region = batched_region(region, inner);
    for (TensorType& type : call.results) type.shape.insert(0, count_);
    set({number, 0}, {{graph_.add_node(into_, std::move(call)), 0}, true});
  }
  RegionId batched_region(RegionId from, const Node& call) {
    const Region inner = graph_.regions[static_cast<size_t>(from)];
    const RegionId fresh = graph_.add_region();
    const RegionId outside = std::exchange(into_, fresh);
    for (const Value parameter : inner.parameters) {
      TensorType type = graph_.type(parameter);
      type.shape.insert(0, count_);
      set(parameter, {graph_.add_parameter(fresh, type, call.source), true});
    }
    for (const int32_t number : inner.nodes) batch(number);
    for (const Value result : inner.results) {
      if (!at(result).has_axis || repeats(at(result).value)) refuse(call);
      graph_.regions[static_cast<size_t>(fresh)].results.push_back(at(result).value);
    }
    into_ = outside;
    return fresh;
  }

  std::vector<Value> inputs_of(const Node& inner) {
    int64_t rank = inner.results[0].shape.rank();
    for (const Value input : inner.inputs) rank = std::max(rank, graph_.type(input).shape.rank());
    std::vector<Value> inputs;
    for (const Value input : inner.inputs)
      inputs.push_back(inner.op->batching == Batching::broadcasts ? aligned(at(input), rank)
                                                                  : stretched(at(input)));
    return inputs;
  }

  [[noreturn]] static void refuse(const Node& inner) {
    throw CannotBatch{cat(inner.op->name, " cannot be batched (", inner.source.text(), ")")};
  }

  Attrs attrs_of(const Node& inner) const {
    Attrs attrs;
    inner.attrs.for_each(inner.op->attrs, [&](const AttrDef& attr, auto words) {
      using Item = std::remove_const_t<typename decltype(words)::element_type>;
      SmallVec<Item, 6> items(words);
      if (attr.numbers_axes())
        for (Item& axis : items) axis = axis + 1;
      if constexpr (std::is_same_v<Item, Dim>) {
        if (attr.is_per_axis())
          items.insert(0, attr.holds_sizes() ? count_ : Dim(attr.neutral_item()));
      } else if (attr.is_per_axis()) {
        items.insert(0, attr.neutral_item());
      }
      if (attr.is_list())
        attrs.add(std::span<const Item>(items));
      else
        attrs.add(items[0]);
    });
    return attrs;
  }

  Graph& graph_;
  RegionId body_, into_;
  Dim count_;
  std::vector<BatchedValue> batched_;  // By node of the body.
};

}  // namespace

std::optional<std::vector<Value>> vectorized(RegionId body, std::span<const Value> slices,
                                             std::span<const Value> captures, Dim count,
                                             std::string& why_not) {
  Graph& graph = current_scope()->trace->graph();
  const auto own_nodes = [&]() -> std::vector<int32_t>& {
    return graph.regions[static_cast<size_t>(current_scope()->region)].nodes;
  };
  const size_t before = own_nodes().size();
  try {
    return Batcher(body, count).run(slices, captures);
  } catch (const CannotBatch& cannot) {
    own_nodes().resize(before);
    why_not = cannot.why;
    return std::nullopt;
  }
}

}  // namespace tidemark::detail
