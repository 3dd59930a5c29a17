#include "tidemark/compile/group_nest.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tidemark/ops/lower.h"
#include "tidemark/ops/program.h"
#include "tidemark/ops/typing.h"

namespace tidemark::compile {
namespace {

using passes::Load;
using passes::Member;
using passes::MemberInput;
using passes::RangeRead;
using passes::Schedule;

// The part of a group that a nest computes: see the header.
enum class Part : uint8_t { whole, chunk, finish };

class NestMaker {
 public:
  NestMaker(const Graph& graph, const Schedule& schedule, Part part)
      : graph_(graph), s_(schedule), part_(part) {}

  GroupNest run() {
    out_.nest.order = part_ == Part::finish ? Nest::Order::lanes : s_.order;
    load_buffers_.assign(s_.loads.size(), -1);
    kept_buffers_.assign(s_.members.size(), -1);
    cells_.assign(s_.members.size(), -1);
    by_row_.assign(s_.members.size(), -1);
    if (part_ != Part::whole) {
      for (const Member& m : s_.members) {
        if (m.kind == Member::Kind::reduce) new_cell(m);
      }
    }
    if (part_ != Part::finish) {
      for (int32_t sweep = 0; sweep < s_.sweeps; ++sweep) make_sweep(sweep);
    }
    make_results();
    std::erase_if(out_.nest.sweeps,
                  [](const Sweep& sweep) { return sweep.stores.empty() && sweep.folds.empty(); });
    out_.nest.exprs = std::move(recipe_.exprs);
    out_.nest.cells = part_ == Part::finish ? 0 : static_cast<int32_t>(out_.monoids.size());
    tidy(out_.nest);
    return std::move(out_);
  }

 private:
  const Node& node(const Member& m) const { return graph_.nodes[static_cast<size_t>(m.node)]; }
  size_t number(const Member& m) const { return static_cast<size_t>(&m - s_.members.data()); }

  Scalar leaf(ExprOp op, DType dtype, int32_t ref = 0) {
    return {recipe_, append(recipe_, {.op = op, .dtype = dtype, .ref = ref})};
  }

  int32_t new_buffer(GroupBuffer::Kind kind, int32_t index, DType dtype, bool by_row,
                     bool written) {
    out_.buffers.push_back({kind, index, dtype, by_row});
    out_.nest.buffers.push_back({.dtype = dtype, .written = written});
    return static_cast<int32_t>(out_.buffers.size()) - 1;
  }

  Scalar scalar(DType dtype, uint64_t bits) {
    out_.scalars.push_back(bits);
    return leaf(ExprOp::scalar, dtype, static_cast<int32_t>(out_.scalars.size()) - 1);
  }

  // ---- Operands of members

  Scalar read(const MemberInput& operand, int32_t sweep) {
    switch (operand.kind) {
      case MemberInput::Kind::load:
        return read_load(operand.index);
      case MemberInput::Kind::number:
        return read_number(operand.index);
      case MemberInput::Kind::range:
        return read_range(operand.index);
      case MemberInput::Kind::member:
        break;
    }
    return value(s_.members[static_cast<size_t>(operand.index)], sweep);
  }

  Scalar read_load(int32_t index) {
    const Load& load = s_.loads[static_cast<size_t>(index)];
    int32_t& buffer = load_buffers_[static_cast<size_t>(index)];
    const DType dtype = graph_.type(load.value).dtype;
    if (buffer < 0) buffer = new_buffer(GroupBuffer::Kind::load, index, dtype, load.by_row, false);
    return leaf(ExprOp::load, dtype, buffer);
  }

  Scalar read_number(int32_t index) {
    const auto found = numbers_.find(index);
    if (found != numbers_.end()) return {recipe_, found->second};
    Attrs::Reader attrs =
        graph_.nodes[static_cast<size_t>(s_.numbers[static_cast<size_t>(index)])].attrs.read();
    const DType dtype = attrs.dtype();
    const double real = attrs.number();
    const int64_t whole = attrs.integer();
    const Scalar made =
        scalar(compute_dtype(dtype), number_bits(real, whole, is_float(dtype), dtype));
    numbers_.emplace(index, made.id());
    return made;
  }

  // The range of range_nest in ops/lower.h, at the position that the index maps to.
  Scalar read_range(int32_t index) {
    const auto found = ranges_.find(index);
    if (found != ranges_.end()) return {recipe_, found->second};
    const RangeRead& range = s_.ranges[static_cast<size_t>(index)];
    Attrs::Reader attrs = graph_.nodes[static_cast<size_t>(range.node)].attrs.read();
    attrs.sizes();
    const DType dtype = attrs.dtype();
    const double start = attrs.number(), step = attrs.number();
    const bool whole = attrs.boolean();
    const int64_t whole_start = attrs.integer(), whole_step = attrs.integer();
    const DType wide = whole ? DType::i64 : DType::f64;
    const Scalar at = index_at(index_stride(range.map), range.map.offset);
    const Scalar first = scalar(wide, number_bits(start, whole_start, !whole, wide));
    const Scalar by = scalar(wide, number_bits(step, whole_step, !whole, wide));
    const Scalar made = converted(first + converted(at, wide) * by, dtype);
    ranges_.emplace(index, made.id());
    return made;
  }

  Scalar index_at(int64_t stride, int64_t offset) {
    if (stride == 0) return scalar(DType::i64, static_cast<uint64_t>(offset));
    Scalar at = leaf(ExprOp::index, DType::i64);
    if (stride != 1) at = at * scalar(DType::i64, static_cast<uint64_t>(stride));
    if (offset != 0) at = at + scalar(DType::i64, static_cast<uint64_t>(offset));
    return at;
  }

  int64_t index_stride(const passes::IndexMap& map) const {
    if (map.strides.empty()) return 0;
    return s_.folds ? map.strides[static_cast<size_t>(s_.row_axes + s_.fold_axes - 1)]
                    : map.strides.back();
  }

  // ---- Values of members

  // The value of a member in sweep number `sweep`; `finish` computes values after all sweeps.
  Scalar value(const Member& m, int32_t sweep) {
    const size_t at = number(m);
    if (m.by_row) {
      if (by_row_[at] < 0) by_row_[at] = compute(m, sweep).id();
      return {recipe_, by_row_[at]};
    }
    if (m.kept && sweep > m.sweep)
      return leaf(ExprOp::load, node(m).results[0].dtype, kept_buffers_[at]);
    const auto found = elements_.find({sweep, m.node});
    if (found != elements_.end()) return {recipe_, found->second};
    const Scalar made = compute(m, sweep);
    elements_.emplace(std::pair(sweep, m.node), made.id());
    return made;
  }

  Scalar compute(const Member& m, int32_t sweep) {
    const Node& n = node(m);
    const DType result = n.results[0].dtype;
    if (m.kind == Member::Kind::reduce) return finished(m);
    std::vector<Scalar> operands;
    for (const int32_t k : m.operands)
      operands.push_back(read(s_.operands[static_cast<size_t>(k)], sweep));
    if (n.op->family == Family::pointwise) return applied(recipe_, *n.op, operands, result);
    return m.repeats > 1 ? repeated(operands[0], count_of(m), result)
                         : converted(operands[0], result);
  }

  Scalar count_of(const Member& m) {
    const DType wide = repeated_dtype(node(m).results[0].dtype);
    return scalar(wide,
                  number_bits(static_cast<double>(m.repeats), m.repeats, is_float(wide), wide));
  }

  Scalar finished(const Member& m) {
    const DType result = node(m).results[0].dtype;
    const int32_t cell = cells_[number(m)];
    const DType dtype = out_.cell_dtypes[static_cast<size_t>(cell)];
    const Scalar total =
        part_ == Part::finish ? leaf(ExprOp::load, dtype, cell) : leaf(ExprOp::cell, dtype, cell);
    return m.repeats > 1 ? repeated(total, count_of(m), result) : converted(total, result);
  }

  // ---- Sweeps

  int32_t new_cell(const Member& m) {
    const Node& n = node(m);
    const DType operand = graph_.type(n.inputs[0]).dtype;
    return new_cell(m, partial_dtype(*n.op, operand, n.results[0].dtype), n.op->monoid);
  }
  int32_t new_cell(const Member& m, DType dtype, Monoid monoid) {
    const auto cell = static_cast<int32_t>(out_.monoids.size());
    out_.monoids.push_back(monoid);
    out_.cell_dtypes.push_back(dtype);
    cells_[number(m)] = cell;
    // Cells with buffers come first, so that a cell and its buffer have the same number.
    if (part_ != Part::whole)
      new_buffer(GroupBuffer::Kind::cell, cell, dtype, true, part_ == Part::chunk);
    return cell;
  }

  void fold(const Member& m, int32_t number) {
    const Node& n = node(m);
    const MemberInput& operand = s_.operands[static_cast<size_t>(m.operands[0])];
    const Scalar x = read(operand, number);
    Sweep& sweep = out_.nest.sweeps[static_cast<size_t>(number)];
    if (!n.op->gives_index) {
      const int32_t cell = part_ == Part::whole ? new_cell(m) : cells_[this->number(m)];
      const Scalar folded = converted(x, out_.cell_dtypes[static_cast<size_t>(cell)]);
      sweep.folds.push_back({cell, folded.id(), n.op->monoid});
      return;
    }
    // The extremum; then, in the next sweep, the smallest position that attains it.
    const Scalar held = converted(x, compute_dtype(x.dtype()));
    if (number == m.sweep) {
      const int32_t cell = new_cell(m, held.dtype(), n.op->monoid);
      sweep.folds.push_back({cell, held.id(), n.op->monoid});
      return;
    }
    const Scalar extremum = leaf(ExprOp::cell, held.dtype(), cells_[this->number(m)]);
    const Scalar position = position_of(recipe_, held, extremum);
    const int32_t cell = new_cell(m, DType::i64, Monoid::minimum);
    sweep.folds.push_back({cell, position.id(), Monoid::minimum});
  }

  void make_sweep(int32_t number) {
    out_.nest.sweeps.emplace_back();
    for (const Member& m : s_.members) {
      if (m.kind != Member::Kind::reduce) continue;
      if (m.sweep == number || (node(m).op->gives_index && m.sweep + 1 == number)) fold(m, number);
    }
    for (const Member& m : s_.members) {
      if (!m.kept || m.sweep != number) continue;
      const Scalar made = value(m, number);
      int32_t& buffer = kept_buffers_[this->number(m)];
      buffer = m.kept_in >= 0
                   ? result_buffer(m.kept_in, made.dtype(), false)
                   : new_buffer(GroupBuffer::Kind::kept, static_cast<int32_t>(this->number(m)),
                                made.dtype(), false, true);
      out_.nest.sweeps.back().stores.push_back({buffer, made.id()});
    }
  }

  int32_t result_buffer(int32_t result, DType dtype, bool by_row) {
    const auto [found, fresh] = result_buffers_.try_emplace(result, -1);
    if (fresh) found->second = new_buffer(GroupBuffer::Kind::result, result, dtype, by_row, true);
    return found->second;
  }

  void store(std::vector<Store>& stores, const Member& m, int32_t sweep) {
    const Scalar made = value(m, sweep);
    stores.push_back({result_buffer(m.result, made.dtype(), m.by_row), made.id()});
  }

  void make_results() {
    if (part_ == Part::chunk) {
      for (size_t cell = 0; cell < out_.monoids.size(); ++cell) {
        const auto number = static_cast<int32_t>(cell);
        out_.nest.finish.push_back(
            {number, leaf(ExprOp::cell, out_.cell_dtypes[cell], number).id()});
      }
    }
    if (part_ == Part::finish) out_.nest.sweeps.emplace_back();
    for (const Member& m : s_.members) {
      if (m.result < 0) continue;
      if (m.by_row) {
        if (part_ == Part::whole) store(out_.nest.finish, m, s_.sweeps);
        if (part_ == Part::finish) store(out_.nest.sweeps[0].stores, m, 0);
      } else if (part_ != Part::finish) {
        store(out_.nest.sweeps[static_cast<size_t>(m.sweep)].stores, m, m.sweep);
      }
    }
  }

  const Graph& graph_;
  const Schedule& s_;
  const Part part_;
  Recipe recipe_;
  GroupNest out_;
  std::vector<int32_t> load_buffers_, kept_buffers_, cells_, by_row_;
  std::map<int32_t, int32_t> numbers_, ranges_, result_buffers_;
  std::map<std::pair<int32_t, int32_t>, int32_t> elements_;  // By sweep and node.
};

}  // namespace

void tidy(Nest& nest) {
  const auto for_each_root = [&](auto visit) {
    for (Sweep& sweep : nest.sweeps) {
      for (Store& store : sweep.stores) visit(store.expr);
      for (Fold& fold : sweep.folds) visit(fold.expr);
    }
    for (Store& store : nest.finish) visit(store.expr);
  };
  std::vector<bool> read(nest.exprs.size());
  for_each_root([&](int32_t expr) { read[static_cast<size_t>(expr)] = true; });
  for (size_t i = nest.exprs.size(); i-- > 0;) {
    if (!read[i]) continue;
    for (const int32_t in : nest.exprs[i].in) {
      if (in >= 0) read[static_cast<size_t>(in)] = true;
    }
  }
  using Key = std::tuple<ExprOp, DType, std::array<int32_t, 3>, int32_t, uint64_t>;
  std::map<Key, int32_t> known;
  std::vector<int32_t> number(nest.exprs.size(), -1);
  std::vector<Expr> kept;
  for (size_t i = 0; i < nest.exprs.size(); ++i) {
    if (!read[i]) continue;
    Expr expr = nest.exprs[i];
    for (int32_t& in : expr.in) in = in < 0 ? in : number[static_cast<size_t>(in)];
    const auto [found, fresh] = known.try_emplace(
        Key{expr.op, expr.dtype, expr.in, expr.ref, expr.bits}, static_cast<int32_t>(kept.size()));
    if (fresh) kept.push_back(expr);
    number[i] = found->second;
  }
  nest.exprs = std::move(kept);
  for_each_root([&](int32_t& expr) { expr = number[static_cast<size_t>(expr)]; });
}

GroupNest group_nest(const Graph& graph, const Schedule& schedule) {
  return NestMaker(graph, schedule, Part::whole).run();
}
GroupNest chunk_nest(const Graph& graph, const Schedule& schedule) {
  return NestMaker(graph, schedule, Part::chunk).run();
}
GroupNest finish_nest(const Graph& graph, const Schedule& schedule) {
  return NestMaker(graph, schedule, Part::finish).run();
}

}  // namespace tidemark::compile
