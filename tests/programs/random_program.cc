#include "tests/programs/random_program.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "tidemark/base/error.h"
#include "tidemark/ops/check_node.h"
#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/loop_attrs.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/passes.h"

namespace tidemark::testing {
namespace {

// Enough for rows of several vectors, little enough for the reference.
constexpr int64_t kMostElements = 2000;

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {
    for (const OpDef& op : catalogue()) {
      if (op.value != nullptr) pointwise_.push_back(&op);
      if (op.family == Family::reduce) reductions_.push_back(&op);
      if (op.family == Family::row) rows_.push_back(&op);
    }
  }

  RandomProgram write() {
    base_ = any_shape();
    Place body{Graph::kBody, {}};
    const int64_t parameters = 2 + below(3);
    for (int64_t i = 0; i < parameters; ++i) body.values.push_back(parameter());
    body.values.push_back(parameter({DType::i64, {}}));  // A key.
    fill(body, 5 + below(14), 0);
    choose_results(body);
    passes::remove_dead(program_.graph);
    program_.graph = compact(program_.graph);
    verify(program_.graph);
    return std::move(program_);
  }

 private:
  // A region, and what can be read there.
  struct Place {
    RegionId region;
    std::vector<Value> values;
  };
  using Made = std::optional<Value>;

  // ---- draws

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  DType any_dtype() {
    using enum DType;
    return one_of({f32, f32, f32, f32, f64, f16, bf16, i32, i64, u8, boolean, i8, u16, u64});
  }
  DType any_float() {
    using enum DType;
    return one_of({f32, f32, f64, f16, bf16});
  }
  Shape any_shape() {
    Shape shape;
    const int64_t rank = one_of<int64_t>({0, 1, 1, 2, 2, 2, 3, 3, 4});
    for (int64_t i = 0; i < rank; ++i) {
      const Dim size = one_in(60) ? Dim(0) : one_of<Dim>({1, 2, 3, 4, 5, 7, 8, 17, 40, 300});
      shape.push_back(shape.size() * int64_t{size} > kMostElements ? Dim(2) : size);
    }
    return shape;
  }
  // Mostly the program's own, with some sizes at 1, so that values go together.
  Shape related_shape() {
    if (one_in(4)) return any_shape();
    Shape shape = base_;
    for (int64_t axis = 0; axis < shape.rank(); ++axis)
      if (one_in(6)) shape.set(axis, 1);
    return shape;
  }
  Value any(const Place& place) {
    const auto count = static_cast<int64_t>(place.values.size());
    const int64_t from = one_in(3) ? 0 : std::max<int64_t>(0, count - 5);
    return place.values[static_cast<size_t>(from + below(count - from))];
  }

  // ---- making

  const TensorType& type(Value value) const { return program_.graph.type(value); }
  const Shape& shape(Value value) const { return type(value).shape; }

  Value parameter() { return parameter({any_dtype(), related_shape()}); }
  Value parameter(const TensorType& wanted) {
    program_.interface.parameters.push_back(
        {.donated = one_in(3), .name = cat(program_.interface.parameters.size())});
    return program_.graph.add_parameter(Graph::kBody, wanted, Source::none());
  }

  // Nothing where the op does not go with these operands, or gives too much.
  int32_t add_node(RegionId region, Node node) {
    try {
      node.results = check_node(program_.graph, node);
      int64_t elements = 0;
      for (const TensorType& result : node.results) {
        check_type(result);
        elements += result.shape.size();
      }
      if (elements > 4 * kMostElements) return -1;
    } catch (const UserError&) {
      return -1;
    }
    return program_.graph.add_node(region, std::move(node));
  }
  Made add(const Place& place, const OpDef& op, std::initializer_list<Value> inputs,
           const Attrs& attrs = {}) {
    return add(place, op, std::vector<Value>(inputs), attrs);
  }
  Made add(const Place& place, const OpDef& op, const std::vector<Value>& inputs,
           const Attrs& attrs) {
    Node node;
    node.op = &op;
    node.attrs = attrs;
    for (const Value input : inputs) node.inputs.push_back(input);
    const int32_t number = add_node(place.region, std::move(node));
    return number < 0 ? Made() : Made(Value{number, 0});
  }
  template <class Op>
  Made add(const Place& place, const Op& op, std::initializer_list<Value> inputs,
           const Attrs& attrs = {}) {
    return add(place, def_of(&op), inputs, attrs);
  }

  // What the rest of a node is made of; without it there is no node.
  struct Refused {};
  static Value sure(Made made) {
    if (!made) throw Refused();
    return *made;
  }

  Value constant(const Place& place, DType dtype, double real) {
    const int64_t whole = is_float(dtype) ? 0 : static_cast<int64_t>(real);
    return sure(add(place, ops::constant, {}, Attrs().add(dtype).add(real).add(whole)));
  }
  Value literal(const Place& place, DType dtype) {
    if (dtype == DType::boolean) return constant(place, dtype, static_cast<double>(below(2)));
    if (is_unsigned_integer(dtype)) return constant(place, dtype, static_cast<double>(below(5)));
    if (is_float(dtype) && one_in(4))
      return constant(place, dtype, one_of<double>({-0.0, INFINITY, NAN, 1e-40, 0.1}));
    return constant(place, dtype, static_cast<double>(below(7) - 3));
  }
  Value as(const Place& place, Value x, DType dtype) {
    if (type(x).dtype == dtype) return x;
    return sure(add(place, ops::cast, {x}, Attrs().add(dtype)));
  }

  // The same elements, or one made of all of them repeated, as another type.
  Value coerced(const Place& place, Value x, const TensorType& wanted) {
    if (shape(x) != wanted.shape && shape(x).size() == wanted.shape.size())
      x = sure(add(place, ops::reshape, {x}, Attrs().add(wanted.shape)));
    if (shape(x) != wanted.shape) {
      AxisList axes;
      for (int64_t i = 0; i < shape(x).rank(); ++i) axes.push_back(i);
      x = sure(add(place, sum, {x}, Attrs().add(axes).add(false)));
      x = sure(add(place, ops::broadcast_to, {x}, Attrs().add(wanted.shape)));
    }
    return as(place, x, wanted.dtype);
  }
  Value wanted_value(const Place& place, const TensorType& wanted) {
    return coerced(place, any(place), wanted);
  }
  // One whole number in [0, n).
  Value number_below(const Place& place, int64_t n, const Shape& wanted, DType dtype) {
    const Value drawn = wanted_value(place, {dtype, wanted});
    return sure(add(place, remainder, {drawn, constant(place, dtype, static_cast<double>(n))}));
  }

  // ---- nodes

  void fill(Place& place, int64_t count, int depth) {
    for (int64_t i = 0; i < count; ++i) {
      try {
        if (depth < 3 && one_in(depth == 0 ? 7 : 9)) {
          control(place, depth);
        } else if (const Made made = node(place)) {
          place.values.push_back(*made);
        }
      } catch (const Refused&) {
        // Something else then.
      }
    }
  }

  Made node(const Place& place) {
    const Value x = any(place);
    switch (below(24)) {
      case 0:
        return add(place, ops::cast, {x}, Attrs().add(any_dtype()));
      case 1:
      case 2:
      case 3:
        return view(place, x);
      case 4:
      case 5:
      case 6:
        return reduction(place, x);
      case 7:
        return shape(x).rank() == 0 ? Made()
                                    : add(place, *one_of(rows_), {as(place, x, any_float())},
                                          Attrs().add(below(shape(x).rank())));
      case 8:
      case 9:
        return piece(place, x);
      case 10:
      case 11:
        return indexed(place, x);
      case 12:
        return along_axis(place, x);
      case 13:
        return product(place, x);
      case 14:
        return convolution(place, x);
      case 15:
        return drawn(place, related_shape());
      case 16:
        return range(place);
      case 17:
        return literal(place, any_dtype());
      default:
        return pointwise(place, x);
    }
  }

  Made pointwise(const Place& place, Value x) {
    const OpDef& op = *one_of(pointwise_);
    DType dtype = type(x).dtype;
    for (int tries = 0; tries < 20 && !computes_in(op, dtype); ++tries) dtype = any_dtype();
    if (!computes_in(op, dtype)) return {};
    const auto conditions = static_cast<int>(has_condition(op));
    std::vector<Value> inputs;
    for (int i = 0; i < op.arity; ++i) {
      const DType wanted = i < conditions ? DType::boolean : dtype;
      if (i > 0 && one_in(4)) {
        inputs.push_back(literal(place, wanted));
        continue;
      }
      Value operand = i == 0 ? x : any(place);
      if (!broadcasts(shape(operand), shape(x))) operand = x;
      inputs.push_back(as(place, operand, wanted));
    }
    return add(place, op, inputs, {});
  }
  static bool broadcasts(const Shape& a, const Shape& b) {
    for (int64_t i = 1; i <= std::min(a.rank(), b.rank()); ++i)
      if (a[-i] != b[-i] && a[-i] != 1 && b[-i] != 1) return false;
    return true;
  }

  Made reduction(const Place& place, Value x) {
    AxisList axes;
    for (int64_t i = 0; i < shape(x).rank(); ++i)
      if (one_in(2)) axes.push_back(i);
    const OpDef& op = *one_of(reductions_);
    if (op.gives_index && axes.size() != 1) return {};
    // Of nothing there is no largest.
    if (shape(x).size() == 0 && op.self != &sum && op.self != &prod) return {};
    if (type(x).dtype == DType::boolean) x = as(place, x, one_of({DType::boolean, DType::i32}));
    return add(place, op, {x}, Attrs().add(axes).add(one_in(2)));
  }

  struct Slice {
    DimList begin, size;
    AxisList step;
    Attrs attrs() const { return Attrs().add(begin).add(size).add(step); }
  };
  Slice any_slice(const Shape& of) {
    Slice slice;
    for (const Dim dim : of) {
      const int64_t whole = dim, by = one_of<int64_t>({1, 1, 1, 2, 3, -1, -2});
      const int64_t first = whole == 0 ? 0 : one_in(2) ? (by < 0 ? whole - 1 : 0) : below(whole);
      const int64_t room = whole == 0 ? 0 : (by < 0 ? first : whole - 1 - first) / std::abs(by) + 1;
      slice.begin.push_back(first);
      slice.size.push_back(one_in(2) || room == 0 ? room : 1 + below(room));
      slice.step.push_back(by);
    }
    return slice;
  }

  Made view(const Place& place, Value x) {
    const Shape from = shape(x);
    switch (below(5)) {
      case 0: {
        AxisList order;
        for (int64_t i = 0; i < from.rank(); ++i) order.push_back(i);
        std::shuffle(order.begin(), order.end(), random_);
        return add(place, ops::transpose, {x}, Attrs().add(order));
      }
      case 1:
        return add(place, ops::slice, {x}, any_slice(from).attrs());
      case 2: {
        Shape wide = from;
        for (int64_t axis = 0; axis < wide.rank(); ++axis)
          if (wide[axis] == 1) wide.set(axis, 1 + below(9));
        if (one_in(2)) wide.insert(0, 1 + below(4));
        return add(place, ops::broadcast_to, {x}, Attrs().add(wide));
      }
      case 3:
        return one_in(4) ? add(place, ops::stop_gradient, {x})
                         : add(place, ops::reshape, {x}, Attrs().add(DimList{from.size()}));
      default: {
        Shape split = from;
        for (int64_t axis = 0; axis < split.rank(); ++axis) {
          if (split[axis] % 2 != 0 || one_in(3)) continue;
          split.set(axis, split[axis] / 2);
          split.insert(axis + below(2), 2);
          break;
        }
        if (one_in(3)) split.insert(below(split.rank() + 1), 1);
        return add(place, ops::reshape, {x}, Attrs().add(split));
      }
    }
  }

  Made piece(const Place& place, Value x) {
    const int64_t rank = shape(x).rank();
    if (rank == 0) return {};
    switch (below(3)) {
      case 0: {
        std::vector<Value> pieces = {x};
        const int64_t axis = below(rank);
        for (int64_t i = below(3); i >= 0; --i) {
          Shape like = shape(x);
          like.set(axis, 1 + below(4));
          pieces.push_back(wanted_value(place, {type(x).dtype, like}));
        }
        std::swap(pieces[0], pieces[static_cast<size_t>(below(std::ssize(pieces)))]);
        return add(place, def_of(&ops::concat), pieces, Attrs().add(axis));
      }
      case 1: {
        DimList low, high;
        AxisList inside;
        for (int64_t i = 0; i < rank; ++i) {
          low.push_back(below(3));
          high.push_back(below(3));
          inside.push_back(one_in(3) ? 1 : 0);
        }
        return add(place, ops::pad, {x},
                   Attrs().add(low).add(high).add(inside).add(-0.5).add(below(2)));
      }
      default: {
        const Slice slice = any_slice(shape(x));
        Shape like;
        for (const int64_t size : slice.size) like.push_back(size);
        const Value part = wanted_value(place, {type(x).dtype, like});
        return add(place, ops::update, {x, part}, slice.attrs());
      }
    }
  }

  // Of several results either may be read, or both.
  Made along_axis(const Place& place, Value x) {
    if (shape(x).rank() == 0) return {};
    const int64_t axis = below(shape(x).rank());
    const int kind = static_cast<int>(below(3));
    const Attrs attrs = Attrs().add(axis);
    if (kind == 0) return add(place, ops::cumsum, {x}, Attrs(attrs).add(one_in(2)));
    const Dim k = below(std::min<int64_t>(4, shape(x)[axis]) + 1);
    const Made values = kind == 1 ? add(place, ops::sort, {x}, Attrs(attrs).add(one_in(2)))
                                  : add(place, ops::top_k, {x}, Attrs(attrs).add(k));
    if (!values || one_in(3)) return values;
    const Value places{values->node, 1};
    if (one_in(2)) return places;
    return add(place, tidemark::add,
               {as(place, *values, DType::f64), as(place, places, DType::f64)});
  }

  Made indexed(const Place& place, Value x) {
    const Shape from = shape(x);
    if (from.rank() == 0) return {};
    const int64_t axis = below(from.rank());
    if (from[axis] == 0) return {};
    const DType dtype = one_of({DType::i32, DType::i64});
    const bool along = one_in(2);
    const int kind = static_cast<int>(below(3));
    Shape places;
    if (kind != 2 && along) {
      places = from;
      places.set(axis, 1 + below(6));
    } else {
      for (int64_t i = below(3); i > 0; --i) places.push_back(1 + below(4));
    }
    const int64_t size = kind == 2 ? from[0] : from[axis];
    if (size == 0) return {};
    Value indices = number_below(place, size, places, dtype);
    if (one_in(3))  // Counted from the end.
      indices =
          sure(add(place, subtract, {indices, constant(place, dtype, static_cast<double>(size))}));
    const OpDef& picked = def_of(along ? &ops::take_along_axis : &ops::gather);
    Attrs attrs = Attrs().add(axis);
    if (along) attrs.add(true);
    if (kind == 0) return add(place, picked, {x, indices}, attrs);
    Shape updates = places;
    if (kind == 2) {
      for (int64_t i = 1; i < from.rank(); ++i) updates.push_back(from[i]);
    } else if (!along) {
      updates = {};
      for (int64_t i = 0; i < axis; ++i) updates.push_back(from[i]);
      for (const Dim dim : places) updates.push_back(dim);
      for (int64_t i = axis + 1; i < from.rank(); ++i) updates.push_back(from[i]);
    }
    if (updates.size() > kMostElements) return {};
    if (kind == 1 && type(x).dtype == DType::boolean) x = as(place, x, DType::f32);
    const Value given = wanted_value(place, {type(x).dtype, updates});
    if (kind == 2) return add(place, ops::put, {x, indices, given});
    return add(place, ops::scatter_add, {x, indices, given}, Attrs().add(axis).add(along));
  }

  Made product(const Place& place, Value x) {
    if (shape(x).rank() < 2 || type(x).dtype == DType::boolean) return {};
    const Shape from = shape(x);
    Shape other = {from[-1], 1 + below(20)};
    if (one_in(3)) other.insert(0, from.rank() > 2 ? from[-3] : Dim(2));
    Value second = wanted_value(place, {type(x).dtype, other});
    if (one_in(2)) {
      if (const Made noise = drawn(place, other)) second = as(place, *noise, type(x).dtype);
    }
    return add(place, ops::matmul, {x, second});
  }

  Made convolution(const Place& place, Value x) {
    Shape image = {1 + below(2), 3 + below(4), 3 + below(4), one_of<Dim>({1, 2, 4})};
    const int64_t groups = image[3] == 4 && one_in(2) ? 2 : 1;
    const Shape kernel = {1 + below(3), 1 + below(3), image[3] / groups, groups * (1 + below(3))};
    const DType dtype = any_float();
    x = coerced(place, x, {dtype, image});
    ops::ConvSpec spec;
    for (int i = 0; i < 2; ++i) {
      spec.stride[i] = 1 + below(2);
      spec.dilation[i] = 1 + below(2);
      spec.pad_low[i] = below(2);
      spec.pad_high[i] = below(3);
    }
    spec.groups = groups;
    const Made w = drawn(place, kernel);
    if (!w) return {};
    return add(place, ops::conv2d, {x, as(place, *w, dtype)}, spec.attrs());
  }

  Value any_key(const Place& place) {
    const Value key = one_in(2) ? constant(place, DType::i64, static_cast<double>(below(1000)))
                                : wanted_value(place, {DType::i64, {}});
    if (one_in(2)) return key;
    return sure(add(place, ops::random_fold,
                    {key, constant(place, DType::i64, static_cast<double>(below(9)))}));
  }
  Made drawn(const Place& place, const Shape& wanted) {
    const Value key = any_key(place);
    const Attrs shaped = Attrs().add(wanted);
    switch (below(5)) {
      case 0:
        return add(place, ops::random_bernoulli, {key},
                   Attrs(shaped).add(DType::boolean).add(0.3).add(0.0));
      case 1:
        return add(place, ops::random_integers, {key},
                   Attrs(shaped)
                       .add(one_of({DType::i32, DType::i64, DType::u8}))
                       .add(int64_t{0})
                       .add(1 + below(200)));
      case 2:
        if (wanted.rank() == 1)
          return add(place, ops::random_permutation, {key},
                     Attrs(shaped).add(DType::i64).add(0.0).add(0.0));
        [[fallthrough]];
      case 3:
        return add(place, ops::random_normal, {key},
                   Attrs(shaped).add(any_float()).add(0.5).add(2.0));
      default:
        return add(place, ops::random_uniform, {key},
                   Attrs(shaped).add(any_float()).add(-1.0).add(2.0));
    }
  }
  Made range(const Place& place) {
    const DType dtype = any_dtype();
    if (dtype == DType::boolean) return {};
    const int64_t count = base_.rank() > 0 ? int64_t{base_[-1]} : 3;
    const bool whole = !is_float(dtype);
    return add(place, ops::arange, {},
               Attrs()
                   .add(DimList{count})
                   .add(dtype)
                   .add(whole ? 1.0 : 0.3)
                   .add(whole ? 2.0 : 0.1)
                   .add(whole)
                   .add(int64_t{1})
                   .add(int64_t{2}));
  }

  // ---- control flow

  Value test(const Place& place) {
    const Value x = as(place, any(place), DType::boolean);
    AxisList axes;
    for (int64_t i = 0; i < shape(x).rank(); ++i) axes.push_back(i);
    if (one_in(8)) return literal(place, DType::boolean);
    return sure(add(place, one_in(2) ? def_of(&tidemark::any) : def_of(&all), {x},
                    Attrs().add(axes).add(false)));
  }

  Place inner(const std::vector<TensorType>& parameters) {
    Place place{program_.graph.add_region(), {}};
    for (const TensorType& each : parameters)
      place.values.push_back(program_.graph.add_parameter(place.region, each, Source::none()));
    if (place.values.empty()) place.values.push_back(literal(place, any_dtype()));
    return place;
  }
  void give(const Place& place, Value value) {
    program_.graph.regions[static_cast<size_t>(place.region)].results.push_back(value);
  }
  void keep(Place& place, Node node) {
    const int32_t number = add_node(place.region, std::move(node));
    if (number < 0) return;
    const size_t results = program_.graph.nodes[static_cast<size_t>(number)].results.size();
    for (size_t r = 0; r < results; ++r) place.values.push_back({number, static_cast<int16_t>(r)});
  }
  // Sums over what a view repeats have a rule of their own, and a kernel does not see from inside a
  // region how what it captures lies: such views stay outside.
  bool repeats(Value value) const {
    for (;;) {
      const Node& node = program_.graph.node(value);
      if (node.op == nullptr || node.op->view == nullptr) return false;
      if (node.op->self == &ops::broadcast_to) return true;
      value = node.inputs[0];
    }
  }
  void capture(const Place& place, Node& node, std::vector<TensorType>& parameters) {
    for (int64_t i = below(3); i > 0; --i) {
      const Value value = any(place);
      if (repeats(value)) continue;
      node.inputs.push_back(value);
      parameters.push_back(type(value));
    }
  }

  void control(Place& place, int depth) {
    switch (below(3)) {
      case 0:
        return branch(place, depth);
      case 1:
        return loop(place, depth);
      default:
        return map(place, depth);
    }
  }

  void branch(Place& place, int depth) {
    Node node;
    node.op = &def_of(&ops::cond);
    node.inputs.push_back(test(place));
    std::vector<TensorType> parameters;
    capture(place, node, parameters);
    capture(place, node, parameters);
    std::vector<TensorType> results;
    for (int side = 0; side < 2; ++side) {
      Place region = inner(parameters);
      fill(region, below(5), depth + 1);
      if (side == 0) {
        for (int64_t i = below(3); i >= 0; --i) results.push_back(type(any(region)));
      }
      for (const TensorType& each : results) give(region, wanted_value(region, each));
      node.regions.push_back(region.region);
    }
    keep(place, std::move(node));
  }

  // Arrays that a trip takes a slice of each; their number of slices.
  int64_t walked(const Place& place, int64_t most, Node& node, std::vector<TensorType>& slices) {
    int64_t trips = 1 + below(5);
    const Value x = any(place);
    if (shape(x).rank() > 0 && shape(x)[0] <= 8) trips = shape(x)[0];
    for (int64_t i = below(most + 1); i > 0; --i) {
      Value array = one_in(2) ? x : any(place);
      if (shape(array).rank() == 0 || shape(array)[0] != trips) {
        Shape like = any_shape();
        like.insert(0, trips);
        if (like.size() > kMostElements) continue;
        array = wanted_value(place, {any_dtype(), like});
      }
      node.inputs.push_back(array);
      slices.push_back(type(array));
      slices.back().shape.erase(0);
    }
    return trips;
  }

  void loop(Place& place, int depth) {
    enum { exact, counted, tested } const kind = one_of({exact, counted, tested});
    Node arrays;
    std::vector<TensorType> slices;
    const int64_t trips = walked(place, 2, arrays, slices);
    Node node;
    node.op = &def_of(&ops::loop);
    if (kind == counted) node.inputs.push_back(number_below(place, trips + 1, {}, DType::i64));
    std::vector<TensorType> carried;
    for (int64_t i = below(4); i > 0; --i) {
      node.inputs.push_back(any(place));
      carried.push_back(type(node.inputs.back()));
    }
    if (kind == tested && carried.empty()) return;
    for (const Value array : arrays.inputs) node.inputs.push_back(array);
    std::vector<TensorType> captures;
    capture(place, node, captures);

    std::vector<TensorType> parameters = {{DType::i64, {}}};
    parameters.insert(parameters.end(), carried.begin(), carried.end());
    std::vector<TensorType> tests = parameters;
    parameters.insert(parameters.end(), slices.begin(), slices.end());
    parameters.insert(parameters.end(), captures.begin(), captures.end());
    tests.insert(tests.end(), captures.begin(), captures.end());
    Place body = inner(parameters);
    fill(body, 1 + below(5), depth + 1);
    for (const TensorType& each : carried) give(body, next_carry(body, each));
    // Trips that are not gone stack nothing.
    const int64_t stacked = kind == exact ? below(3) : 0;
    for (int64_t i = 0; i < stacked; ++i) give(body, of_a_trip(body));
    node.regions.push_back(body.region);
    if (kind == tested) {
      Place condition = inner(tests);
      fill(condition, below(3), depth + 1);
      give(condition, test(condition));
      node.regions.push_back(condition.region);
    }
    LoopAttrs attrs;
    attrs.carries = std::ssize(carried);
    attrs.slices = std::ssize(slices);
    attrs.stacked = stacked;
    attrs.trips = trips;
    attrs.reverse = one_in(3);
    attrs.counted = kind == counted;
    using Save = LoopAttrs::Save;
    attrs.save = one_of({Save::automatic, Save::all, Save::every, Save::slots});
    if (attrs.save == Save::every || attrs.save == Save::slots) attrs.amount = 1 + below(4);
    node.attrs = attrs.attrs();
    keep(place, std::move(node));
  }
  // What a trip leaves in its slot: a value, or the first elements of a larger one, which show
  // where the larger one is written.
  Value of_a_trip(Place& place) {
    const Value value = any(place);
    const Shape from = shape(value);
    if (from.rank() == 0 || from[0] < 2 || one_in(3)) return value;
    Slice first;
    for (const Dim dim : from) {
      first.begin.push_back(0);
      first.size.push_back(dim);
      first.step.push_back(1);
    }
    first.size[0] = 1 + below(from[0] - 1);
    return sure(add(place, ops::slice, {value}, first.attrs()));
  }
  // Of its type already where there is one: carries that change places are of interest.
  Value next_carry(const Place& place, const TensorType& wanted) {
    std::vector<Value> fitting;
    for (const Value value : place.values)
      if (type(value) == wanted) fitting.push_back(value);
    if (!fitting.empty() && one_in(2)) return one_of(fitting);
    return wanted_value(place, wanted);
  }

  void map(Place& place, int depth) {
    Node node;
    node.op = &def_of(&ops::map);
    std::vector<TensorType> parameters;
    const int64_t trips = walked(place, 3, node, parameters);
    const auto slices = static_cast<int64_t>(parameters.size());
    capture(place, node, parameters);
    Place body = inner(parameters);
    fill(body, 1 + below(5), depth + 1);
    for (int64_t i = below(3); i >= 0; --i) give(body, of_a_trip(body));
    node.regions.push_back(body.region);
    const int64_t alive = 1 + below(trips + 2);
    node.attrs = Attrs()
                     .add(slices)
                     .add(Dim(trips))
                     .add(alive == trips + 2 ? Dim(open) : Dim(alive))
                     .add(AxisList());
    keep(place, std::move(node));
  }

  // ---- the outside

  void choose_results(const Place& body) {
    for (int64_t i = 2 + below(5); i > 0; --i) {
      give(body, any(body));
      program_.interface.results.emplace_back();
    }
    // Some parameters are Variables; some of those get a new value.
    for (size_t i = 0; i < program_.interface.parameters.size(); ++i) {
      if (!one_in(3)) continue;
      compile::Interface::Parameter& variable = program_.interface.parameters[i];
      variable.byte_class = ByteClass::variables;
      variable.donated = false;
      if (one_in(4)) continue;
      give(body, next_carry(body, type(program_.graph.body().parameters[i])));
      program_.interface.results.push_back({.updates = static_cast<int32_t>(i), .name = ""});
    }
  }

  std::mt19937_64 random_;
  RandomProgram program_;
  Shape base_;
  std::vector<const OpDef*> pointwise_, reductions_, rows_;
};

}  // namespace

RandomProgram random_program(uint64_t seed) { return Writer(seed).write(); }

}  // namespace tidemark::testing
