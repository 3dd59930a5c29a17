// Every op of the catalogue with one more axis, or cut along one of its own: what stands around it
// (map_fn, vectorized_map, scan, the parts that `split` makes) must give what the op gives for each
// slice by itself, whatever is lifted or cut and whatever runs slice by slice. Which ops can be
// batched, and how, is stated by each op: here it is tried.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/sweep/cases.h"
#include "tests/sweep/compare.h"
#include "tidemark/ops/check_node.h"
#include "tidemark/ops/typing.h"
#include "tidemark/passes/slicing.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/tidemark.h"
#include "tidemark/trace/trace.h"

namespace tidemark::sweep {
namespace {

constexpr int64_t kSlices = 3;
constexpr int kShown = 3;

std::byte* bytes_of(const Tensor& x) { return detail::array_of(x, Source::none()).data; }
int64_t element_count(const Tensor& x) { return x.size(); }

// The elements moved on by `by` places; a key, which is one number, is another one.
Tensor rolled(const OpDef& op, const Tensor& x, int64_t by) {
  Tensor moved = dense_copy(x);
  const int64_t count = element_count(x), size = size_of(x.dtype());
  if (op.family == Family::random && count == 1) {
    auto& key = *reinterpret_cast<int64_t*>(bytes_of(moved));
    key += by;
    return moved;
  }
  const Tensor from = dense_copy(x);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(bytes_of(moved) + (i + by) % count * size, bytes_of(from) + i * size,
                static_cast<size_t>(size));
  return moved;
}

// The slices one after another, along a first axis.
Tensor batch_of(const std::vector<Tensor>& slices, int64_t count) {
  Shape shape = slices[0].shape();
  shape.insert(0, count);
  Tensor all = zeros(shape, slices[0].dtype());
  const int64_t bytes = element_count(slices[0]) * size_of(slices[0].dtype());
  for (int64_t i = 0; i < count; ++i)
    if (bytes > 0)
      std::memcpy(bytes_of(all) + i * bytes, bytes_of(slices[static_cast<size_t>(i)]),
                  static_cast<size_t>(bytes));
  return all;
}

// Which axes a case names, in words.
std::string axes_of(const Case& c) {
  std::string text;
  c.attrs.for_each(c.op->attrs, [&](const AttrDef& attr, auto items) {
    if (!attr.numbers_axes()) return;
    for (const auto item : items) text += cat(' ', item);
    text += cat(" of ", c.operands[0].rank());
  });
  return text;
}

// Small ones, of a float, an integer and a bool, spread over all there are; and one for each axis
// of each rank.
std::vector<Case> chosen_cases(const OpDef& op, size_t most_of_sample) {
  std::vector<Case> fit;
  for (Case& c : cases_of(op)) {
    bool fits = !c.operands.empty();
    for (const Tensor& operand : c.operands)
      fits = fits && element_count(operand) <= 140 &&
             (operand.dtype() == DType::f32 || operand.dtype() == DType::i32 ||
              operand.dtype() == DType::i64 || operand.dtype() == DType::boolean ||
              op.family == Family::random);  // Whose parameters are f64.
    if (fits) fit.push_back(std::move(c));
  }
  const size_t most = full_counts() ? fit.size() : most_of_sample;
  std::vector<Case> chosen;
  std::set<std::string> axes;
  const size_t count = std::min(most, fit.size());
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(fit[i * fit.size() / count]);
    axes.insert(axes_of(chosen.back()));
  }
  for (const Case& c : fit)
    if (axes.insert(axes_of(c)).second) chosen.push_back(c);
  return chosen;
}

// A case with slices of some operands; the others are the same for every slice.
struct Batch {
  const Case* c = nullptr;
  std::vector<bool> walked;                 // By operand.
  std::vector<std::vector<Tensor>> slices;  // Of each slice, its operands.

  Batch(const Case& of, std::vector<bool> which) : c(&of), walked(std::move(which)) {
    for (int64_t i = 0; i < kSlices; ++i) {
      std::vector<Tensor> operands;
      for (size_t k = 0; k < c->operands.size(); ++k)
        operands.push_back(rolled(*c->op, c->operands[k], walked[k] ? i : 0));
      slices.push_back(std::move(operands));
    }
  }
  std::vector<Tensor> elems(int64_t count) const {
    std::vector<Tensor> list;
    for (size_t k = 0; k < walked.size(); ++k) {
      if (!walked[k]) continue;
      std::vector<Tensor> each;
      for (const auto& operands : slices) each.push_back(operands[k]);
      list.push_back(batch_of(each, count));
    }
    return list;
  }
  // The op on slices of the walked operands.
  Tensor body(const std::vector<Tensor>& given) const {
    std::vector<Tensor> operands;
    size_t next = 0;
    for (size_t k = 0; k < walked.size(); ++k)
      operands.push_back(walked[k] ? given[next++] : slices[0][k]);
    return run(*c->op, operands, c->attrs, c->result);
  }
};

std::vector<Batch> batches_of(const Case& c) {
  const size_t count = c.operands.size();
  std::vector<Batch> list = {Batch(c, std::vector<bool>(count, true))};
  for (size_t alone = 0; count > 1 && alone < count; ++alone) {
    std::vector<bool> walked(count, false);
    walked[alone] = true;
    list.emplace_back(c, std::move(walked));
  }
  return list;
}

using Elems = std::vector<Tensor>;

class Batched : public testing::TestWithParam<const OpDef*> {
 protected:
  void expect_slices(const Batch& batch, const char* who, const Tensor& got, int64_t count) {
    ASSERT_EQ(got.shape()[0], count) << described(*batch.c) << ' ' << who;
    for (int64_t i = 0; i < count && failures_ < kShown; ++i) {
      const Tensor want =
          run(*batch.c->op, batch.slices[static_cast<size_t>(i)], batch.c->attrs, batch.c->result);
      const Tensor slice = dense_copy(got[i]);
      const std::string why = slice.shape() == want.shape()
                                  ? bit_difference(*batch.c, slice, want)
                                  : cat("shape ", slice.shape(), ", not ", want.shape());
      if (why.empty()) continue;
      ++failures_;
      std::string walked;
      for (const bool each : batch.walked) walked += each ? " walked" : " captured";
      ADD_FAILURE() << described(*batch.c) << ";" << walked << "\n  slice " << i << " by " << who
                    << ": " << why;
    }
  }
  int failures_ = 0;
};

TEST_P(Batched, GivesWhatItGivesForEachSlice) {
  const auto mapped = [](const Batch& batch, const Elems& elems) {
    return map_fn([&](const Elems& slice) { return batch.body(slice); }, elems);
  };
  const auto vectorized = [](const Batch& batch, const Elems& elems) {
    return vectorized_map([&](const Elems& slice) { return batch.body(slice); }, elems);
  };
  const auto scanned = [](const Batch& batch, const Elems& elems) {
    const auto body = [&](const Tensor& trip, const Elems& slice) {
      return std::pair(trip + 1, batch.body(slice));
    };
    return scan(body, constant(0, i32), elems).second;
  };
  const size_t most = GetParam()->family == Family::pointwise ? 4 : 24;
  const std::vector<Case> cases = chosen_cases(*GetParam(), most);
  // Only an op without operands has nothing to be given slice by slice.
  ASSERT_EQ(cases.empty(), GetParam()->arity == 0) << "the sweep has no table of attributes for it";
  for (const Case& c : cases) {
    SCOPED_TRACE(described(c));
    const std::vector<Batch> batches = batches_of(c);
    for (const Batch& batch : batches) {
      const Elems elems = batch.elems(kSlices);
      expect_slices(batch, "map_fn", mapped(batch, elems), kSlices);
      expect_slices(batch, "vectorized_map", vectorized(batch, elems), kSlices);
      expect_slices(batch, "scan", scanned(batch, elems), kSlices);
      const auto in_function = function([&](const Elems& given) {
        return std::vector<Tensor>{mapped(batch, given), vectorized(batch, given),
                                   scanned(batch, given)};
      });
      // The second number of slices leaves it open.
      for (const int64_t count : {kSlices, int64_t{2}}) {
        const std::vector<Tensor> given = in_function(batch.elems(count));
        expect_slices(batch, "map_fn in a function", given[0], count);
        expect_slices(batch, "vectorized_map in a function", given[1], count);
        expect_slices(batch, "scan in a function", given[2], count);
      }
    }
  }
}

// Whether what a trace is about to give comes of a map, whose bodies run slice by slice.
bool comes_of_map(const Tensor& x) {
  const Graph& graph = detail::current_scope()->trace->graph();
  return graph.node(detail::value_of(x, Source::none())).op->flow == Flow::map;
}

TEST_P(Batched, IsBatchedWhereItSaysSo) {
  for (const Case& c : chosen_cases(*GetParam(), 6)) {
    const Batch batch(c, std::vector<bool>(c.operands.size(), true));
    bool is_map = false;
    // A copy of its result: what shows one element several times stays a map.
    const auto body = [&](const Elems& slice) { return identity(batch.body(slice)); };
    function([&](const Elems& given) {
      Tensor all = vectorized_map(body, given);
      is_map = comes_of_map(all);
      return all;
    })(batch.elems(kSlices));
    EXPECT_EQ(is_map, GetParam()->batching == Batching::none) << described(c);
  }
}

// ---- parts --------------------------------------------------------------------------------------

// Units [begin, begin + count) of so many, along an axis and those that are one with it.
Tensor part_of(const Tensor& x, int64_t axis, int64_t units, int64_t unit) {
  const int64_t all = passes::size_along(x.shape(), axis, units), size = all / units;
  const Tensor merged = reshape(x, passes::shape_of_part(x.shape(), axis, units, all));
  std::vector<Tensor> parts =
      split(merged, std::vector<int64_t>{unit * size, size, all - (unit + 1) * size}, axis);
  return parts[1];
}

void expect_parts(const Case& c, int64_t axis, int64_t units, int& cut) {
  Graph graph;
  Node node;
  node.op = c.op;
  node.attrs = c.attrs;
  for (const Tensor& operand : c.operands)
    node.inputs.push_back(
        graph.add_parameter(Graph::kBody, {operand.dtype(), operand.shape()}, Source::none()));
  try {
    node.results = check_node(graph, node);
  } catch (const UserError&) {
    return;  // Programs promote nothing by themselves.
  }
  const Shape& shape = node.results[static_cast<size_t>(c.result)].shape;
  const auto slicing = passes::slicing_of_result(graph, node, axis, units);
  if (!slicing) return;
  ++cut;
  const Tensor whole = run_case(c);
  const int64_t size = passes::size_along(shape, axis, units) / units;
  const Attrs attrs = passes::attrs_of_part(graph, node, *slicing, units, size);
  for (int64_t unit = 0; unit < units; ++unit) {
    std::vector<Tensor> operands;
    for (size_t k = 0; k < c.operands.size(); ++k)
      operands.push_back(slicing->operands[k] == passes::Slicing::kWhole
                             ? c.operands[k]
                             : part_of(c.operands[k], slicing->operands[k], units, unit));
    const Tensor got = dense_copy(run(*c.op, operands, attrs, c.result));
    const Tensor want = dense_copy(part_of(whole, axis, units, unit));
    ASSERT_EQ(got.shape(), want.shape()) << described(c) << ", axis " << axis;
    EXPECT_EQ(bit_difference(c, got, want), "")
        << described(c) << ", unit " << unit << " of " << units << " along axis " << axis;
  }
}

TEST_P(Batched, GivesPartsOfItsResultForPartsOfItsOperands) {
  int cut = 0;
  for (const Case& c : chosen_cases(*GetParam(), 200)) {
    const Tensor whole = run_case(c);
    for (int64_t axis = 0; axis < whole.rank(); ++axis) {
      const int64_t size = whole.shape()[axis];
      for (int64_t units = 2; units <= size && units <= 7; ++units)
        if (size % units == 0) expect_parts(c, axis, units, cut);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(cut > 0, GetParam()->cutting != Cutting::none);
}

// ---- around a table -----------------------------------------------------------------------------

// Sizes of an array with another one along an axis.
Shape with_size(Shape shape, int64_t axis, int64_t size) {
  shape.set(axis, size);
  return shape;
}

// Attributes that the op may have for a table, by their roles: an op that is added has them too.
Attrs attrs_around(const OpDef& op, const Shape& table, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  Attrs attrs;
  for (const AttrDef& attr : op.attrs) {
    DimList some(2);
    some[at] = 1;
    if (attr.role == AttrRole::axis)
      attrs.add(axis);
    else if (attr.role == AttrRole::axes)
      attrs.add(AxisList{axis});
    else if (attr.role == AttrRole::permutation)
      attrs.add(AxisList{1, 0});
    else if (attr.role == AttrRole::shape && op.cutting == Cutting::broadcast)
      attrs.add(Shape{2, table[0], table[1]});
    else if (attr.role == AttrRole::shape)
      attrs.add(axis == 0 ? Shape{table[0] / 2, 2, table[1]} : Shape{table[0], 2, table[1] / 2});
    else if (attr.role == AttrRole::slice_size)
      attrs.add(with_size(table, axis, int64_t{table[axis]} - 2));
    else if (attr.kind == AttrKind::sizes)
      attrs.add(some);
    else if (attr.kind == AttrKind::integers)
      attrs.add(AxisList(2, attr.neutral_item()));
    else if (attr.kind == AttrKind::size)
      attrs.add(Dim(3));
    else if (attr.kind == AttrKind::number)
      attrs.add(0.5);
    else if (attr.kind == AttrKind::dtype)
      attrs.add(DType::f64);
    else
      attrs.add(int64_t{attr.kind == AttrKind::boolean});
  }
  return attrs;
}

std::vector<Tensor> operands_around(const OpDef& op, const Tensor& table, int64_t axis) {
  const Tensor row = cast(arange(0, table.shape()[1]), f32) * 0.25;
  const Shape four = with_size(table.shape(), axis, 4);
  if (op.arity == 1) return {table};
  if (op.family == Family::pointwise && op.arity == 2) return {table, row};
  if (op.family == Family::pointwise) {
    if (has_condition(op)) return {table > 0, table, row};
    return {table, row, row + 1};
  }
  if (op.arity < 0) return {table, table * 2};
  switch (op.routine) {
    case Routine::matmul:
      return {table, ones({table.shape()[1], 4})};
    case Routine::linear_scan:
      return {table * 0.5, table};
    case Routine::scatter_add:
    case Routine::scatter_max:
    case Routine::scatter_min:
    case Routine::scatter_mul:
      return {table, ones(four, i64), ones(four)};
    case Routine::take_along_axis:
      return {table, ones(four, i64)};
    case Routine::update:
      return {table, ones(with_size(table.shape(), axis, int64_t{table.shape()[axis]} - 2))};
    default:
      ADD_FAILURE() << op.name << ": say what it takes beside a table";
      return {table};
  }
}

// A large result would have to be whole; rows of it that are weighted and summed need not be.
Tensor rows_of(const Tensor& x) {
  if (x.rank() == 0) return x;
  const Tensor weights = cast(arange(0, x.shape()[-1]), f32) * 0.125 + 1;
  return sum(cast(x, f32) * weights, -1);
}

bool has_no_buffer_of(const Plan& plan, int64_t bytes) {
  const std::vector<PlanBuffer> buffers = plan.buffers();
  return std::none_of(buffers.begin(), buffers.end(), [&](const PlanBuffer& buffer) {
    return buffer.bytes.count >= bytes && buffer.name != "map bodies";
  });
}

// The sign of a NaN is not specified: in a sum of two it depends on the order of the operands.
Tensor with_one_nan(const Tensor& x) {
  if (!is_float(x.dtype())) return x;
  return where(isnan(x), cast(std::numeric_limits<double>::quiet_NaN(), x.dtype()), x);
}

TEST_P(Batched, GivesTheSameAroundATableThatGoesPartByPart) {
  const OpDef& op = *GetParam();
  if (op.cutting == Cutting::none || !computes_in(op, DType::f32)) return;
  // Images have four axes; micro_batches_test cuts them.
  if (op.routine == Routine::conv) return;
  const Tensor x = drawn(DType::f32, {1024, 4}, {-1, 1}, 1);
  const Tensor w = drawn(DType::f32, {4, 1024}, {-1, 1}, 2);
  int in_parts = 0;
  for (int64_t axis = 0; axis < 2; ++axis) {
    for (const bool whole : {false, true}) {
      const auto around = [&](const Tensor& rows, const Tensor& columns) {
        const Tensor table = matmul(rows, columns);
        const Attrs attrs = attrs_around(op, table.shape(), axis);
        std::vector<Tensor> results;
        for (int r = 0; r < op.results; ++r) {
          const Tensor result = run(op, operands_around(op, table, axis), attrs, r);
          results.push_back(whole ? result : rows_of(result));
        }
        return results;
      };
      const std::vector<Tensor> want = around(x, w);
      const auto compiled = function(
          [&](const Tensor& rows, const Tensor& columns) { return around(rows, columns); });
      const std::vector<Tensor> got = compiled(x, w);
      in_parts += has_no_buffer_of(compiled.plan(x, w), int64_t{1024} * 1024 * 4);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(identical(with_one_nan(got[i]), with_one_nan(want[i])))
            << op.name << ", axis " << axis << ", result " << i;
    }
  }
  EXPECT_GT(in_parts, 0) << op.name << " keeps the table whole";
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> list;
  for (const OpDef& op : catalogue()) list.push_back(&op);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Batched, testing::ValuesIn(all_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Vectorized, ListsOfWholeNumbersHaveTheirOwnFirsts) {
  const Tensor lists = constant({{7, 3, 7}, {3, 7, 7}}, i64);
  const auto firsts = [](const Tensor& x) {
    return vectorized_map([](const Tensor& list) { return first_equal(list); }, x);
  };
  const std::vector<int64_t> want = {0, 1, 0, 0, 1, 1};
  EXPECT_EQ(firsts(lists).to_vector<int64_t>(), want);
  const auto compiled = function([&](const Tensor& x) { return firsts(x); });
  EXPECT_EQ(compiled(lists).to_vector<int64_t>(), want);
}

}  // namespace
}  // namespace tidemark::sweep
