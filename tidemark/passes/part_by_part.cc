#include "tidemark/passes/part_by_part.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tidemark/ops/check_node.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/graph_builder.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/passes/passes.h"
#include "tidemark/passes/residuals.h"

namespace tidemark::passes {
namespace {

using Place = std::pair<int32_t, int16_t>;  // A value, to be found in a map.
Place place(Value value) { return {value.node, value.result}; }

// Appends nodes that move elements, and sums, to a region.
class Writer {
 public:
  Writer(Graph& graph, RegionId region, Source at) : build_(graph, region, at) {}

  Value repeated(double number, const TensorType& type) { return build_.constant(number, type); }
  Value reshape(Value x, const Shape& shape) { return term::reshape(build_.term(x), shape).value; }
  Value slice(Value x, int64_t axis, int64_t begin, int64_t size, int64_t step = 1) {
    Shape shape = build_.type(x).shape;
    const auto rank = static_cast<size_t>(shape.rank()), at = static_cast<size_t>(axis);
    shape.set(axis, size);
    DimList begins(rank);
    AxisList steps(rank, 1);
    begins[at] = begin;
    steps[at] = step;
    return build_.apply(def_of(&ops::slice), {{x}}, Attrs().add(begins).add(shape).add(steps));
  }
  // With an axis moved to another place.
  Value move_axis(Value x, int64_t from, int64_t to) {
    AxisList order;
    for (int64_t axis = 0; axis < build_.type(x).shape.rank(); ++axis)
      if (axis != from) order.push_back(axis);
    order.insert(static_cast<size_t>(to), from);
    return transpose(x, order);
  }
  Value transpose(Value x, const AxisList& order) {
    return build_.apply(def_of(&ops::transpose), {{x}}, Attrs().add(order));
  }
  Value copy(Value x) { return build_.apply(def_of(&tidemark::identity), {{x}}, {}); }
  Value concat(Value a, Value b, int64_t axis) {
    return build_.apply(def_of(&ops::concat), {{a, b}}, Attrs().add(axis));
  }
  Value cast(Value x, DType dtype) {
    if (build_.type(x).dtype == dtype) return x;
    return build_.apply(def_of(&ops::cast), {{x}}, Attrs().add(dtype));
  }
  Value add(Value a, Value b) { return build_.apply(def_of(&tidemark::add), {{a, b}}, {}); }

 private:
  GraphBuilder build_;
};

// The dtype of a sum while it is added up: 16-bit floats round once, at the end.
DType added_in(DType dtype) { return is_low_precision(dtype) ? DType::f32 : dtype; }

AxisList order_of_transpose(const Node& node) { return AxisList(node.attrs.read().integers()); }

AxisList inverse(const AxisList& order) {
  AxisList back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return back;
}

bool is_only_ones(const Shape& shape, int64_t end) {
  for (int64_t axis = 0; axis < end; ++axis)
    if (shape[axis] != 1) return false;
  return true;
}

class PartByPart {
 public:
  PartByPart(Graph& graph, const RegionFacts& facts, const CutSet& cut, const Parts& parts,
             int32_t of)
      : graph_(graph),
        facts_(facts),
        cut_(cut),
        parts_(parts),
        of_(of),
        at_(graph.nodes[static_cast<size_t>(of)].source),
        write_(graph, facts.region, at_) {}

  bool run() {
    collect();
    // Inside a part it would be a separate value.
    if (std::any_of(walked_.begin(), walked_.end(),
                    [&](const SlicedInput& walked) { return repeats(graph_, walked.value); }))
      return false;
    std::vector<int32_t> before, after;
    if (!sort(before, after)) return false;
    here().nodes = std::move(before);
    const std::vector<Value> values = write();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto turned = turned_.find(outputs_[i].node);
      if (turned != turned_.end()) std::erase(after, turned->second);
      replace(turned == turned_.end() ? outputs_[i] : Value{turned->second}, values[i], after);
    }
    here().nodes.insert(here().nodes.end(), after.begin(), after.end());
    return true;
  }

 private:
  Region& here() { return graph_.regions[static_cast<size_t>(facts_.region)]; }
  const Node& node(int32_t number) const { return graph_.nodes[static_cast<size_t>(number)]; }
  const Slicing& slicing(int32_t number) const { return cut_.members().at(number); }

  // An outside value that is sliced into parts along an axis.
  struct SlicedInput {
    Value value;
    int64_t axis = 0;
    friend bool operator==(const SlicedInput&, const SlicedInput&) = default;
  };

  void collect() {
    for (const int32_t number : here().nodes) {
      if (!cut_.members().contains(number)) continue;
      members_.push_back(number);
      if (!cut_.computes(number)) continue;
      for (size_t r = 0; r < node(number).results.size(); ++r) {
        const Value value{number, static_cast<int16_t>(r)};
        if (!is_read_outside(value)) continue;
        (slicing(number).sums == Slicing::Sums::products ? sums_ : outputs_).push_back(value);
      }
    }
    for (const Value sum : sums_)
      if (const int32_t reader = result_of(sum); reader >= 0) turned_[sum.node] = reader;
    // The sums that a loop carries are its first results.
    outputs_.insert(outputs_.begin(), sums_.begin(), sums_.end());
    for (const int32_t number : members_) {
      for (size_t i = 0; i < node(number).inputs.size(); ++i) {
        const Value input = node(number).inputs[i];
        const SlicedInput walked{input, slicing(number).operands[i]};
        if (walked.axis == Slicing::kWhole) {
          capture(input);
        } else if (!cut_.is_made_inside(slicing(number), i, input) &&
                   std::find(walked_.begin(), walked_.end(), walked) == walked_.end()) {
          walked_.push_back(walked);
        }
      }
    }
  }
  bool is_read_outside(Value value) {
    const std::vector<Value>& results = here().results;
    if (std::find(results.begin(), results.end(), value) != results.end()) return true;
    const std::vector<RegionFacts::Read>& readers = facts_.readers(value.node);
    return std::any_of(readers.begin(), readers.end(), [&](const RegionFacts::Read& read) {
      return node(read.node).inputs[read.operand] == value && !cut_.members().contains(read.node);
    });
  }
  // The transpose that is all that reads a sum, and a result; -1 if there is none.
  int32_t result_of(Value sum) {
    const auto at = static_cast<size_t>(sum.node);
    const std::vector<RegionFacts::Read>& readers = facts_.readers(sum.node);
    if (!parts_.carries_results || parts_.rest() > 0) return -1;
    if (facts_.is_result[at] || readers.size() != 1) return -1;
    const int32_t reader = readers[0].node;
    const bool is_transpose = node(reader).op == &def_of(&ops::transpose);
    return is_transpose && facts_.is_result[static_cast<size_t>(reader)] ? reader : -1;
  }
  // What a loop carries.
  TensorType type_of_carry(Value sum) const {
    const auto turned = turned_.find(sum.node);
    const TensorType& type = graph_.type(turned == turned_.end() ? sum : Value{turned->second});
    return {added_in(type.dtype), type.shape};
  }
  Value as_sum(RegionId body, Value carry, int32_t sum) {
    const auto turned = turned_.find(sum);
    if (turned == turned_.end()) return carry;
    return Writer(graph_, body, at_)
        .transpose(carry, inverse(order_of_transpose(node(turned->second))));
  }
  Value as_carry(RegionId body, Value value, int32_t sum) {
    const auto turned = turned_.find(sum);
    if (turned == turned_.end()) return value;
    Writer write(graph_, body, at_);
    return write.copy(write.transpose(value, order_of_transpose(node(turned->second))));
  }
  // Views and literals are created inside, so that kernels see them. So are weights in another
  // float type: made outside, those of all layers would exist while the parts run.
  bool is_made_in_part(Value value) const {
    const Node& maker = graph_.node(value);
    if (maker.op == nullptr) return false;
    return maker.op->view != nullptr || maker.op->family == Family::source ||
           maker.op->routine == Routine::arange ||
           is_converted_parameter(graph_, graph_.regions[static_cast<size_t>(facts_.region)],
                                  value);
  }
  void capture(Value value) {
    if (is_made_in_part(value)) {
      for (const Value input : graph_.node(value).inputs) capture(input);
    } else if (std::find(captured_.begin(), captured_.end(), value) == captured_.end()) {
      captured_.push_back(value);
    }
  }

  // Divides the other nodes of the region: those that can run before the parts, and those that must
  // come after.
  bool sort(std::vector<int32_t>& before, std::vector<int32_t>& after) {
    const int32_t last = members_.back();
    bool is_behind = false, defers_effect = false, has_effect_later = false;
    for (const int32_t number : here().nodes) {
      if (number == last) is_behind = true;
      if (cut_.members().contains(number) && cut_.computes(number)) continue;
      const bool is_later = is_behind || cut_.depends(number);
      const bool effect = has_effect(graph_, node(number));
      has_effect_later |= effect && !is_later && defers_effect;
      defers_effect |= effect && is_later;
      (is_later ? after : before).push_back(number);
    }
    return !has_effect_later;
  }

  int64_t size_of_part(const Shape& shape, int64_t axis, int64_t units) const {
    return size_along(shape, axis, parts_.all) / parts_.all * units;
  }
  // The shape with the cut axes merged.
  Shape with_one_axis(const Shape& shape, int64_t axis) const {
    return shape_of_part(shape, axis, parts_.all, size_along(shape, axis, parts_.all));
  }

  // Copies the members into a region, for a part of this many units. `from` maps outside values.
  struct Outside {
    std::map<std::pair<Place, int64_t>, Value> walked;
    std::map<Place, Value> captured;
    std::map<int32_t, Value> carried;  // Sums so far, by member.
    bool is_new_region = true;
  };
  std::vector<Value> copy_members(RegionId into, int64_t units, Outside& from) {
    std::map<int32_t, int32_t> made;  // By member, its copy.
    for (const int32_t number : members_) {
      Node copy = node(number);
      const Slicing& own = slicing(number);
      for (size_t i = 0; i < copy.inputs.size(); ++i) {
        const Value input = copy.inputs[i];
        copy.inputs[i] = own.operands[i] == Slicing::kWhole ? whole(into, input, from)
                         : cut_.is_made_inside(own, i, input)
                             ? Value{made.at(input.node), input.result}
                             : from.walked.at({place(input), own.operands[i]});
      }
      const Shape shape = copy.results[0].shape;
      const bool is_part = own.result != Slicing::kWhole;
      const int64_t size = is_part ? size_of_part(shape, own.result, units) : 0;
      copy.attrs = attrs_of_part(graph_, node(number), own, parts_.all, size);
      if (copy.op->cutting == Cutting::broadcast && is_part) {
        const int64_t rank = shape_of_part(shape, own.result, parts_.all, size).rank();
        for (Value& input : copy.inputs) input = without_ones(into, input, rank);
      }
      if (own.sums != Slicing::Sums::no)
        for (Value& input : copy.inputs)
          input = Writer(graph_, into, at_).cast(input, added_in(copy.results[0].dtype));
      if (own.sums == Slicing::Sums::products) {
        copy.op = copy.op->cutting == Cutting::convolution ? &def_of(&ops::accumulate_conv2d)
                                                           : &def_of(&ops::accumulate);
        copy.inputs.insert(0, from.carried.at(number));
      }
      copy.results = check_node(graph_, copy);
      made[number] = graph_.add_node(into, std::move(copy));
    }
    std::vector<Value> results;
    for (const Value output : outputs_)
      results.push_back(as_carry(into, {made.at(output.node), output.result}, output.node));
    return results;
  }
  // Uncut operands may have axes of size 1 where axes were merged.
  Value without_ones(RegionId into, Value value, int64_t rank) {
    Shape shape = graph_.type(value).shape;
    while (shape.rank() > rank) shape.erase(0);
    return Writer(graph_, into, at_).reshape(value, shape);
  }
  Value whole(RegionId into, Value value, Outside& from) {
    if (!from.is_new_region) return value;
    if (const auto found = from.captured.find(place(value)); found != from.captured.end())
      return found->second;
    Node copy = graph_.node(value);
    for (Value& input : copy.inputs) input = whole(into, input, from);
    return from.captured[place(value)] = {graph_.add_node(into, std::move(copy)), value.result};
  }

  // Reshapes [..., size, ...] to [parts, ..., size of a part, ...], without the remainder.
  Value in_parts(const SlicedInput& walked) {
    const int64_t axis = walked.axis;
    const Shape shape = with_one_axis(graph_.type(walked.value).shape, axis);
    const int64_t size = size_of_part(shape, axis, parts_.units);
    Value x = write_.reshape(walked.value, shape);
    if (parts_.rest() > 0) x = write_.slice(x, axis, 0, size * parts_.count());
    Shape apart = shape;
    apart.set(axis, size);
    if (is_only_ones(shape, axis)) {
      apart.insert(0, parts_.count());
      return write_.reshape(x, apart);
    }
    apart.insert(axis, parts_.count());
    return write_.move_axis(write_.reshape(x, apart), axis, 0);
  }
  Value rest_of(const SlicedInput& walked) {
    const Shape shape = with_one_axis(graph_.type(walked.value).shape, walked.axis);
    const int64_t begin = size_of_part(shape, walked.axis, parts_.units) * parts_.count();
    const Value x = write_.reshape(walked.value, shape);
    return write_.slice(x, walked.axis, begin, shape[walked.axis] - begin);
  }
  // The inverse.
  Value from_parts(Value stacked, int64_t axis, const Shape& shape) {
    Shape joined = shape;
    joined.set(axis, size_of_part(shape, axis, parts_.units) * parts_.count());
    if (!is_only_ones(shape, axis)) stacked = write_.move_axis(stacked, 0, axis);
    return write_.reshape(stacked, joined);
  }

  // Combines block results as pairwise.h does: neighbours, level by level; the unpaired ones at the
  // end, from the right.
  Value combined(Value blocks, const Shape& shape) {
    Value right;
    bool has_right = false;
    for (int64_t count = graph_.type(blocks).shape[0];; count /= 2) {
      if (count % 2 == 1) {
        const Value last = count == 1 ? blocks : write_.slice(blocks, 0, count - 1, 1);
        right = has_right ? write_.add(last, right) : last;
        has_right = true;
      }
      if (count == 1) return write_.reshape(right, shape);
      const Value left = write_.slice(blocks, 0, 0, count / 2, 2);
      blocks = write_.add(left, write_.slice(blocks, 0, 1, count / 2, 2));
    }
  }

  std::vector<Value> write() {
    std::vector<Value> inputs;
    for (const Value sum : sums_) inputs.push_back(write_.repeated(-0.0, type_of_carry(sum)));
    for (const SlicedInput& walked : walked_) inputs.push_back(in_parts(walked));
    inputs.insert(inputs.end(), captured_.begin(), captured_.end());
    const int32_t control = write_control(inputs);

    std::vector<Value> rest;
    if (parts_.rest() > 0) {
      Outside from;
      from.is_new_region = false;
      for (const SlicedInput& walked : walked_)
        from.walked[{place(walked.value), walked.axis}] = rest_of(walked);
      for (size_t i = 0; i < sums_.size(); ++i)
        from.carried[sums_[i].node] = {control, static_cast<int16_t>(i)};
      rest = copy_members(facts_.region, parts_.rest(), from);
    }
    std::vector<Value> values;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Value value = joined(outputs_[i], {control, static_cast<int16_t>(i)},
                                 rest.empty() ? nullptr : &rest[i]);
      values.push_back(write_.cast(value, graph_.type(outputs_[i]).dtype));
    }
    return values;
  }

  // An output, assembled from the results of the parts and of the remainder, if there is one.
  Value joined(Value output, Value given, const Value* rest) {
    const Slicing& own = slicing(output.node);
    const Shape shape = graph_.type(output).shape;
    if (own.sums == Slicing::Sums::products) return rest != nullptr ? *rest : given;
    if (own.sums == Slicing::Sums::columns) {
      if (rest == nullptr) return combined(given, shape);
      Shape one = graph_.type(*rest).shape;
      one.insert(0, 1);
      return combined(write_.concat(given, write_.reshape(*rest, one), 0), shape);
    }
    const Value most = from_parts(given, own.result, with_one_axis(shape, own.result));
    const Value all = rest == nullptr ? most : write_.concat(most, *rest, own.result);
    return write_.reshape(all, shape);
  }

  int32_t write_control(const std::vector<Value>& inputs) {
    const bool loops = !sums_.empty();
    const RegionId body = graph_.add_region();
    if (loops) graph_.add_parameter(body, {DType::i64, {}}, at_);
    Outside from;
    size_t next = 0;
    const auto parameter = [&](bool is_slice) {
      TensorType type = graph_.type(inputs[next++]);
      if (is_slice) type.shape.erase(0);
      return graph_.add_parameter(body, type, at_);
    };
    std::vector<Value> carries;
    for (size_t i = 0; i < sums_.size(); ++i) carries.push_back(parameter(false));
    for (const SlicedInput& walked : walked_)
      from.walked[{place(walked.value), walked.axis}] = parameter(true);
    for (const Value captured : captured_) from.captured[place(captured)] = parameter(false);
    for (size_t i = 0; i < sums_.size(); ++i)
      from.carried[sums_[i].node] = as_sum(body, carries[i], sums_[i].node);
    const std::vector<Value> results = copy_members(body, parts_.units, from);
    graph_.regions[static_cast<size_t>(body)].results = results;

    Node control;
    control.op = &def_of(loops ? &ops::loop : &ops::map);
    control.inputs = SmallVec<Value, 3>(std::span<const Value>(inputs));
    control.regions.push_back(body);
    control.source = at_;
    const auto slices = static_cast<int64_t>(walked_.size());
    if (loops) {
      LoopAttrs attrs;
      attrs.carries = static_cast<int64_t>(sums_.size());
      attrs.slices = slices;
      attrs.stacked = static_cast<int64_t>(results.size() - sums_.size());
      attrs.trips = parts_.count();
      control.attrs = attrs.attrs();
    } else {
      const Dim trips = parts_.count(), for_each_thread = 0;
      control.attrs = Attrs().add(slices).add(trips).add(for_each_thread).add(AxisList());
    }
    control.results = check_node(graph_, control);
    if (!facts_.is_forward[static_cast<size_t>(of_)]) control.gradient_of = node(of_).gradient_of;
    return graph_.add_node(facts_.region, std::move(control));
  }

  void replace(Value old, Value by, const std::vector<int32_t>& readers) {
    for (const int32_t reader : readers)
      for (Value& input : graph_.nodes[static_cast<size_t>(reader)].inputs)
        if (input == old) input = by;
    for (Value& result : here().results)
      if (result == old) result = by;
  }

  Graph& graph_;
  const RegionFacts& facts_;
  const CutSet& cut_;
  const Parts parts_;
  const int32_t of_;
  const Source at_;
  Writer write_;
  std::vector<int32_t> members_;       // In order.
  std::vector<Value> outputs_;         // Values that are read outside; the sums first.
  std::vector<Value> sums_;            // The sums that a loop carries.
  std::map<int32_t, int32_t> turned_;  // By sum: the transpose that is carried in its place.
  std::vector<SlicedInput> walked_;
  std::vector<Value> captured_;
};

}  // namespace

bool compute_part_by_part(Graph& graph, const RegionFacts& facts, const CutSet& cut,
                          const Parts& parts, int32_t of) {
  return PartByPart(graph, facts, cut, parts, of).run();
}

}  // namespace tidemark::passes
