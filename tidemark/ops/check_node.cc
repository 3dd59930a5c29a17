#include "tidemark/ops/check_node.h"

#include <algorithm>

#include "tidemark/base/error.h"
#include "tidemark/ops/check_control.h"
#include "tidemark/ops/effect.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/typing.h"

namespace tidemark {
namespace {

// No machine addresses more bytes. With this bound the sums and products in the checks below fit
// into 64 bits.
constexpr int64_t kMostBytes = int64_t{1} << 47;

[[noreturn]] void refuse(const std::string& problem, std::string_view remedy) {
  throw UserError(problem, Source::none(), remedy);
}

class AttributeCheck {
 public:
  AttributeCheck(const Node& node, std::span<const TensorType> operands)
      : node_(node), operands_(operands) {}

  // Checks each attribute by its role.
  void run() {
    node_.attrs.for_each(node_.op->attrs,
                         [&](const AttrDef& attr, auto items) { check(attr, items); });
  }

 private:
  const TensorType& operand() const { return operands_[0]; }
  int64_t rank() const { return operand().shape.rank(); }
  const std::string_view op() const { return node_.op->name; }

  void check(const AttrDef& attr, std::span<const int64_t> items) const {
    switch (attr.role) {
      case AttrRole::axis:
        return check_axis(items[0]);
      case AttrRole::axes:
        return check_axes(items);
      case AttrRole::permutation:
        return check_order(items);
      case AttrRole::slice_step:
        return check_slice(check_length(attr.name, items, rank()));
      case AttrRole::padding:
        return check_extents(attr.name, check_length(attr.name, items, rank()));
      case AttrRole::window:
        return check_extents(attr.name, check_length(attr.name, items, rank() - 2));
      case AttrRole::groups:
        return check_groups(items[0]);
      default:
        return;
    }
  }
  void check(const AttrDef& attr, std::span<const Dim> items) {
    switch (attr.role) {
      case AttrRole::shape:
        return check_sizes(items);
      case AttrRole::slice_begin:
        begin_ = check_length(attr.name, items, rank());
        return;
      case AttrRole::slice_size:
        size_ = check_length(attr.name, items, rank());
        return;
      case AttrRole::padding:
        return check_extents(attr.name, check_length(attr.name, items, rank()));
      case AttrRole::window_padding:  // Below 0 it takes elements away.
        return check_extents(attr.name, check_length(attr.name, items, rank() - 2), -1);
      default:
        return;
    }
  }

  // More groups than outputs are always wrong; with this bound, sizes times groups do not overflow.
  void check_groups(int64_t count) const {
    if (count > kMostBytes / largest_size())
      refuse(cat(op(), ": groups = ", count, " is too many"),
             "write 1 for a single group of all channels");
  }

  void check_axis(int64_t axis) const {
    if (axis >= 0 && axis < rank()) return;
    refuse(cat(op(), ": ", operand(), " has no axis ", axis),
           rank() == 0 ? "it is a scalar" : cat("axes go from 0 to ", rank() - 1));
  }

  template <class Item>
  std::span<const Item> check_length(std::string_view name, std::span<const Item> list,
                                     int64_t wanted) const {
    if (std::ssize(list) == wanted) return list;
    refuse(cat(op(), ": ", name, " has ", list.size(), " items for ", operand()),
           cat("write ", wanted, " of them"));
  }

  void check_axes(std::span<const int64_t> axes) const {
    for (const int64_t axis : axes) check_axis(axis);
    if (std::adjacent_find(axes.begin(), axes.end(), std::greater_equal()) == axes.end()) return;
    refuse(cat(op(), ": axes are not in increasing order"), "name each axis once, the least first");
  }

  void check_order(std::span<const int64_t> order) const {
    std::vector<int64_t> sorted(order.begin(), order.end());
    std::sort(sorted.begin(), sorted.end());
    bool each_once = std::ssize(sorted) == rank();
    for (size_t i = 0; each_once && i < sorted.size(); ++i)
      each_once = sorted[i] == static_cast<int64_t>(i);
    if (!each_once)
      refuse(cat(op(), ": order does not name each axis of ", operand(), " once"),
             "write every axis from 0 on, in the order of the result");
  }

  // -1 is an open size, or one to be inferred.
  void check_sizes(std::span<const Dim> sizes) const {
    for (const Dim size : sizes)
      if (size.is_any() && size != open)
        refuse(cat(op(), ": a size cannot be ", written(size)), "sizes are at least 0");
    check_type({DType::u8, Shape(sizes)});
  }

  void check_slice(std::span<const int64_t> step) const {
    check_sizes(size_);
    for (size_t i = 0; i < step.size(); ++i) {
      const Dim whole = operand().shape[static_cast<int64_t>(i)];
      if (whole.is_open() || size_[i].is_traced() || begin_[i].is_traced() || size_[i] == 0)
        continue;
      const int64_t trips = size_[i].known_or(0) - 1;
      // Whether the last element lies within the axis; written as quotients, since products may
      // overflow.
      const bool starts = !size_[i].is_open() && !begin_[i].is_open() && begin_[i] < whole;
      const int64_t first = starts ? int64_t{begin_[i]} : 0;
      const int64_t room = step[i] < 0 ? first : int64_t{whole} - 1 - first;
      const bool ends = trips == 0 || (step[i] != 0 && step[i] > -kMostBytes &&
                                       step[i] < kMostBytes && trips <= room / std::abs(step[i]));
      if (starts && ends) continue;
      refuse(cat(op(), ": ", written(size_[i]), " elements from ", written(begin_[i]),
                 " by steps of ", step[i], " leave axis ", i, " of ", operand()),
             cat("its elements go from 0 to ", whole - 1));
    }
    // The update has the shape of the slice.
    const Shape place(size_);
    if (operands_.size() == 2 && operands_[1].shape != place)
      refuse(cat(op(), ": ", operands_[1], " does not fit the slice ", place),
             "give it the sizes of the slice");
  }

  // Padding and dilation, bounded such that sizes do not overflow.
  template <class Item>
  void check_extents(std::string_view name, std::span<const Item> list, int64_t least = 0) const {
    const int64_t most = kMostBytes / largest_size();
    for (const Dim item : list) {
      if (item.is_traced() || (item >= least * most && item <= most)) continue;
      refuse(cat(op(), ": ", name, " has ", written(item), " for ", operand()),
             "it is a number of elements, and the result must fit in memory");
    }
  }

  int64_t largest_size() const {
    int64_t largest = 1;
    for (const TensorType& type : operands_) {
      for (const Dim size : type.shape)
        if (!size.is_open()) largest = std::max(largest, int64_t{size});
    }
    return largest;
  }

  const Node& node_;
  std::span<const TensorType> operands_;
  std::span<const Dim> begin_, size_;
};

void check_arity(const Node& node) {
  const auto count = static_cast<int64_t>(node.inputs.size());
  if (node.op->arity >= 0 && count != node.op->arity) {
    refuse(cat(node.op->name, ": takes ", node.op->arity,
               node.op->arity == 1 ? " operand" : " operands", ", got ", count),
           node.op->brief);
  }
  if (node.op->arity < 0 && count == 0 && node.op->infer != nullptr)
    refuse(cat(node.op->name, ": takes one operand or more, got 0"), node.op->brief);
  if (node.op->family != Family::control && !node.regions.empty())
    refuse(cat(node.op->name, ": has no regions, got ", node.regions.size()), node.op->brief);
}

// In a program casts are explicit nodes: the operands of an op have one dtype.
void check_dtypes(const Node& node, std::span<const TensorType> computed) {
  for (const TensorType& type : computed) {
    if (type.dtype != computed[0].dtype) {
      refuse(cat(node.op->name, ": operands ", computed[0], " and ", type, " differ in dtype"),
             "programs do not promote dtypes: add a cast node for one of them");
    }
    if (!computes_in(*node.op, type.dtype)) {
      refuse(cat(node.op->name, ": does not compute in ", type.dtype),
             "programs do not promote dtypes: add a cast node for the operand");
    }
  }
}

TensorType pointwise_type(const Node& node, std::span<const TensorType> operands) {
  const auto conditions = static_cast<size_t>(has_condition(*node.op));
  if (conditions == 1 && operands[0].dtype != DType::boolean) {
    refuse(cat(node.op->name, ": the condition is ", operands[0], ", not bool"),
           "add a cast node or a comparison before it");
  }
  check_dtypes(node, operands.subspan(conditions));
  std::vector<OperandType> types;
  Shape shape;
  for (const TensorType& operand : operands) {
    types.push_back({operand.dtype, Weak::no, &operand.shape});
    broadcast_into(shape, operand.shape, node.op->name, Source::none());
  }
  return {infer_pointwise(*node.op, types, Source::none()).result, shape};
}

void check_axis_size(const Node& node) {
  Attrs::Reader read = node.attrs.read();
  read.integers();
  const Dim size = read.size();
  if (size.is_any())
    refuse(cat(node.op->name, ": a size cannot be ", written(size)), "sizes are at least 0");
}

void check_effect(const Node& node, std::span<const TensorType> operands) {
  const OpDef& op = *node.op;
  const std::span<const int64_t> text = node.attrs.read().integers();
  const auto places = std::count(text.begin(), text.end(), ops::kOperandHere);
  const bool shows = op.effect == Effect::print || op.effect == Effect::check_index;
  const int64_t wanted = shows ? std::ssize(operands) : 0;
  if (places != wanted)
    refuse(cat(op.name, ": its text has ", places, " places for operands, not ", wanted), op.brief);
  if (op.effect == Effect::assert_that && (operands.empty() || operands[0].dtype != DType::boolean))
    refuse(cat(op.name, ": its first operand is not a bool"), op.brief);
  if (op.effect == Effect::check_index && !is_integer(operands[0].dtype))
    refuse(cat(op.name, ": ", operands[0], " is not a tensor of integers"), op.brief);
  if (op.effect == Effect::check_index) check_axis_size(node);
  if (op.effect == Effect::check_numerics && !is_float(operands[0].dtype))
    refuse(cat(op.name, ": ", operands[0], " is not a tensor of floats"), op.brief);
}

// The total size of the operands must fit into 64 bits.
void check_total(const Node& node, std::span<const TensorType> operands) {
  int64_t total = 0;
  for (const TensorType& operand : operands) {
    for (const Dim size : operand.shape) total += size.is_open() ? 0 : int64_t{size};
    if (total > kMostBytes)
      refuse(cat(node.op->name, ": the total size of its operands is too large"),
             "use fewer of them");
  }
}

// The first operand of a draw is a key; a second one, of draws that have a shape, has a parameter
// for each element.
void check_keys(const Node& node, std::span<const TensorType> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0 && !node.op->attrs.empty()) {
      Attrs::Reader read = node.attrs.read();
      const TensorType wanted{DType::f64, Shape(read.sizes())};
      const DType dtype = read.dtype();
      if (operands[i] != wanted || dtype != DType::f64)
        refuse(cat(node.op->name, ": parameters are ", operands[i], " and draws ", dtype,
                   wanted.shape),
               "both are f64, of one shape");
    } else if (operands[i] != TensorType{DType::i64, {}}) {
      refuse(cat(node.op->name, ": ", operands[i], " is not a key"), "a key is an i64[]");
    }
  }
}

// Of the nodes that compute, only views have complex operands and results; the others read pairs.
void check_complex(const Node& node, std::span<const TensorType> types) {
  const bool is_seen = node.op->view != nullptr || node.op->transfers;
  for (const TensorType& type : types)
    if (is_complex(type.dtype) && !is_seen)
      refuse(cat(node.op->name, ": does not compute in ", type.dtype),
             "compute on pairs: view_as_real before it, view_as_complex behind it");
}

std::vector<TensorType> inferred_types(const Node& node, std::span<const TensorType> operands) {
  AttributeCheck(node, operands).run();
  check_total(node, operands);
  const Family family = node.op->family;
  if (family == Family::random) check_keys(node, operands);
  if (family == Family::index && operands.size() == 3 && operands[0].dtype != operands[2].dtype) {
    refuse(cat(node.op->name, ": operands ", operands[0], " and ", operands[2], " differ in dtype"),
           "programs do not promote dtypes: add a cast node for one of them");
  }
  if (family == Family::contract || family == Family::linalg || family == Family::piece ||
      family == Family::row)
    check_dtypes(node, operands);
  std::vector<TensorType> results = infer_results({*node.op, operands, node.attrs, Source::none()});
  if (family == Family::reduce)
    check_has_elements(*node.op, operands[0], results[0], node.attrs.read().integers(),
                       Source::none());
  check_complex(node, results);
  return results;
}

}  // namespace

void check_type(const TensorType& type) {
  int64_t bytes = size_of(type.dtype);
  for (const Dim size : type.shape) {
    // An empty tensor with huge sizes is refused too, since views multiply them.
    if (!size.is_open() && size > kMostBytes / bytes)
      refuse(cat(type, " has more bytes than a machine can address"),
             "make one of the sizes smaller");
    if (!size.is_open()) bytes *= std::max<int64_t>(1, size);
  }
}

std::vector<TensorType> check_node(const Graph& graph, const Node& node) {
  check_arity(node);
  if (node.op->family == Family::control) return check_control(graph, node);
  if (node.op->literal == Literal::number) {
    const TensorType type{node.attrs.read().dtype(), {}};
    check_complex(node, {&type, 1});
    return {type};
  }
  std::vector<TensorType> operands;
  for (const Value input : node.inputs) operands.push_back(graph.type(input));
  if (node.op->effect != Effect::none) {
    check_effect(node, operands);
    return {};
  }
  check_complex(node, operands);
  if (node.op->value != nullptr) return {pointwise_type(node, operands)};
  if (node.op->infer == nullptr) return node.results;
  // The rules compute with known sizes only.
  const bool open = std::any_of(operands.begin(), operands.end(),
                                [](const TensorType& type) { return type.shape.is_open(); });
  if (open) AttributeCheck(node, operands).run();
  if (open && std::ssize(node.results) == node.op->results) return node.results;
  return inferred_types(node, operands);
}

}  // namespace tidemark
