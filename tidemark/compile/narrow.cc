#include "tidemark/compile/narrow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tidemark/compile/group_nest.h"

namespace tidemark::compile {
namespace {

// What a kernel may have, for the time that it takes to compile.
constexpr size_t kMostExprs = 512;
constexpr size_t kMostBuffers = 48;

ExprOp op_of(Monoid monoid) {
  switch (monoid) {
    case Monoid::sum:
      return ExprOp::add;
    case Monoid::product:
      return ExprOp::multiply;
    case Monoid::minimum:
      return ExprOp::minimum;
    case Monoid::maximum:
      break;
  }
  return ExprOp::maximum;
}

class NarrowNest {
 public:
  NarrowNest(const Nest& nest, std::span<const RowBuffer> buffers, int64_t columns)
      : from_(nest),
        buffers_(buffers),
        columns_(columns),
        columns_of_(columns_of_rows(buffers, columns)),
        made_(static_cast<size_t>(columns + 1), std::vector<int32_t>(nest.exprs.size(), -1)),
        cells_(static_cast<size_t>(nest.cells), -1) {}

  std::optional<Nest> run() {
    if (columns_of_.size() > kMostBuffers ||
        from_.exprs.size() * static_cast<size_t>(columns_) > kMostExprs)
      return {};
    for (const ColumnOf& each : columns_of_) {
      out_.buffers.push_back(from_.buffers[static_cast<size_t>(each.buffer)]);
      out_.buffers.back().columns = BufferRef::Columns::strided;
    }
    for (const Sweep& sweep : from_.sweeps) make_sweep(sweep);
    for (const Store& store : from_.finish) write(store.buffer, 0, value(store.expr, kRow));
    out_.sweeps.resize(1);
    for (const auto& [buffer, expr] : stored_)
      if (!buffers_[static_cast<size_t>(buffer.first)].kept)
        out_.sweeps[0].stores.push_back({number_of(buffer.first, buffer.second), expr});
    tidy(out_);
    if (reads_late()) return {};
    return std::move(out_);
  }

 private:
  // The place after all columns, where `finish` computes.
  static constexpr int64_t kRow = -1;

  int32_t append(const Expr& expr) {
    out_.exprs.push_back(expr);
    return static_cast<int32_t>(out_.exprs.size()) - 1;
  }

  int32_t number_of(int32_t buffer, int64_t column) const {
    const auto found = std::find_if(
        columns_of_.begin(), columns_of_.end(),
        [&](const ColumnOf& each) { return each.buffer == buffer && each.column == column; });
    return static_cast<int32_t>(found - columns_of_.begin());
  }

  // The value of an expression at a column.
  int32_t value(int32_t expr, int64_t column) {
    int32_t& made = made_[static_cast<size_t>(column + 1)][static_cast<size_t>(expr)];
    if (made < 0) made = make(from_.exprs[static_cast<size_t>(expr)], column);
    return made;
  }

  int32_t make(Expr expr, int64_t column) {
    switch (expr.op) {
      case ExprOp::load:
        return read(expr, column);
      case ExprOp::cell:
        return cells_[static_cast<size_t>(expr.ref)];
      case ExprOp::index:
        return append({.op = ExprOp::constant,
                       .dtype = expr.dtype,
                       .bits = static_cast<uint64_t>(std::max<int64_t>(column, 0))});
      default:
        break;
    }
    for (int32_t& in : expr.in) in = in < 0 ? in : value(in, column);
    return append(expr);
  }

  int32_t read(Expr load, int64_t column) {
    const bool by_row = buffers_[static_cast<size_t>(load.ref)].by_row;
    const int64_t at = by_row ? 0 : std::max<int64_t>(column, 0);
    const auto found = stored_.find({load.ref, at});
    if (found != stored_.end()) return found->second;
    load.ref = number_of(load.ref, at);
    return append(load);
  }

  void write(int32_t buffer, int64_t column, int32_t expr) {
    stored_.insert_or_assign({buffer, column}, expr);
  }

  void make_sweep(const Sweep& sweep) {
    // What a sweep before this one has stored is read from there.
    for (std::vector<int32_t>& column : made_) std::fill(column.begin(), column.end(), -1);
    std::vector<std::pair<int32_t, int32_t>> folded;
    for (const Fold& fold : sweep.folds) folded.emplace_back(fold.cell, total(fold));
    std::vector<std::pair<std::pair<int32_t, int64_t>, int32_t>> stores;
    for (const Store& store : sweep.stores)
      for (int64_t column = 0; column < columns_; ++column)
        stores.push_back({{store.buffer, column}, value(store.expr, column)});
    for (const auto& [cell, expr] : folded) cells_[static_cast<size_t>(cell)] = expr;
    for (const auto& [place, expr] : stores) write(place.first, place.second, expr);
    std::fill(made_[0].begin(), made_[0].end(), -1);
  }

  // Each column in a lane of its own, then lane j takes lane j + 32, j + 16, ...
  int32_t total(const Fold& fold) {
    const DType dtype = from_.exprs[static_cast<size_t>(fold.expr)].dtype;
    const ExprOp op = op_of(fold.monoid);
    const int32_t start =
        append({.op = ExprOp::constant, .dtype = dtype, .bits = identity_bits(fold.monoid, dtype)});
    std::vector<int32_t> lanes;
    for (int64_t column = 0; column < columns_; ++column)
      lanes.push_back(
          append({.op = op, .dtype = dtype, .in = {start, value(fold.expr, column), -1}}));
    for (size_t width = kLanes / 2; width > 0; width /= 2)
      for (size_t j = 0; j < width && j + width < lanes.size(); ++j)
        lanes[j] = append({.op = op, .dtype = dtype, .in = {lanes[j], lanes[j + width], -1}});
    return lanes[0];
  }

  // The column of a buffer of the new nest, or kRow.
  int64_t column_of(int32_t buffer) const {
    const ColumnOf& each = columns_of_[static_cast<size_t>(buffer)];
    return buffers_[static_cast<size_t>(each.buffer)].by_row ? kRow : each.column;
  }

  // Whether a store stands before the first read of an element that may be in the same place: one
  // of the same column.
  bool reads_late() const {
    std::vector<bool> seen(out_.exprs.size(), false);
    std::vector<int64_t> stored;
    for (const Store& store : out_.sweeps[0].stores) {
      if (reads_after(store.expr, stored, seen)) return true;
      stored.push_back(column_of(store.buffer));
    }
    return false;
  }
  bool reads_after(int32_t expr, std::span<const int64_t> stored, std::vector<bool>& seen) const {
    if (seen[static_cast<size_t>(expr)]) return false;
    seen[static_cast<size_t>(expr)] = true;
    const Expr& read = out_.exprs[static_cast<size_t>(expr)];
    if (read.op == ExprOp::load)
      return std::find(stored.begin(), stored.end(), column_of(read.ref)) != stored.end();
    return std::any_of(read.in.begin(), read.in.end(),
                       [&](int32_t in) { return in >= 0 && reads_after(in, stored, seen); });
  }

  const Nest& from_;
  const std::span<const RowBuffer> buffers_;
  const int64_t columns_;
  const ColumnList columns_of_;
  Nest out_;
  std::vector<std::vector<int32_t>> made_;  // By column and expression; kRow first.
  std::vector<int32_t> cells_;
  std::map<std::pair<int32_t, int64_t>, int32_t> stored_;  // By buffer and column.
};

}  // namespace

ColumnList columns_of_rows(std::span<const RowBuffer> buffers, int64_t columns) {
  ColumnList list;
  for (size_t b = 0; b < buffers.size(); ++b) {
    const int64_t count = buffers[b].kept ? 0 : buffers[b].by_row ? 1 : columns;
    for (int64_t column = 0; column < count; ++column)
      list.push_back({static_cast<int32_t>(b), column});
  }
  return list;
}

int32_t known_columns(const Nest& nest, int64_t columns, int64_t rows) {
  constexpr int64_t kLeastLanes = 8;  // Of a vector.
  const bool is_along = nest.order == Nest::Order::lanes && nest.cells > 0;
  const auto code = static_cast<int64_t>(nest.exprs.size()) * (columns / kLeastLanes);
  const bool is_worth = is_along && columns > 1 && columns <= kKnownRow && rows >= kManyRows &&
                        code <= static_cast<int64_t>(kMostExprs);
  return is_worth ? static_cast<int32_t>(columns) : 0;
}

std::optional<Nest> narrow_nest(const Nest& nest, std::span<const RowBuffer> buffers,
                                int64_t columns) {
  return NarrowNest(nest, buffers, columns).run();
}

}  // namespace tidemark::compile
