#include "tidemark/compile/geometry.h"

#include <algorithm>
#include <utility>

#include "tidemark/compile/frame.h"

namespace tidemark::compile {
namespace {

using Columns = BufferRef::Columns;

int64_t product(std::span<const int64_t> extents) {
  int64_t size = 1;
  for (const int64_t extent : extents) size *= extent;
  return size;
}

}  // namespace

LaunchGeometry::LaunchGeometry(GroupNest& group, const LaunchAxes& axes,
                               std::vector<BufferPlace> buffers)
    : folds(group.nest.cells > 0),
      lanes(group.nest.order == Nest::Order::lanes),
      places(std::move(buffers)) {
  set_axes(axes);
  set_columns(group);
}

void LaunchGeometry::set_axes(const LaunchAxes& axes) {
  using Index = passes::Schedule::Index;
  AxisList extents;
  for (const Dim dim : axes.domain) extents.push_back(dim);
  std::vector<Strides> strides;
  for (const BufferPlace& place : places) strides.push_back(place.strides);
  const auto rank = static_cast<int64_t>(extents.size());
  const auto moved = [&](int64_t from, int64_t to) {
    const auto rotate = [&](AxisList& list) {
      std::rotate(list.begin() + to, list.begin() + from, list.begin() + from + 1);
    };
    rotate(extents);
    for (Strides& list : strides) rotate(list);
  };
  movements.resize(places.size());
  const auto take_last = [&](int64_t Movement::* way) {
    if (extents.empty()) return int64_t{1};
    for (size_t b = 0; b < places.size(); ++b) {
      movements[b].*way = strides[b].back();
      strides[b].pop_back();
    }
    const int64_t extent = extents.back();
    extents.pop_back();
    return extent;
  };
  if (!folds) {
    index_all = axes.index == Index::all;
    collapse_axes(extents, strides, 0, axes.index == Index::column ? rank - 1 : rank);
    columns = take_last(&Movement::column);
    rows = take_last(&Movement::row);
  } else if (lanes) {
    collapse_axes(extents, strides, axes.row_axes, rank);
    collapse_axes(extents, strides, 0, axes.row_axes);
    columns = take_last(&Movement::column);
    rows = take_last(&Movement::row);
  } else {
    collapse_axes(extents, strides, axes.row_axes + axes.fold_axes, rank);
    int64_t fold = axes.row_axes;
    collapse_axes(extents, strides, fold, fold + axes.fold_axes);
    // If the columns are not evenly spaced, the axes in front of the last one become rows.
    while (fold + 2 < static_cast<int64_t>(extents.size())) moved(fold + 1, fold), ++fold;
    collapse_axes(extents, strides, 0, fold);
    columns = take_last(&Movement::column);
    steps = take_last(&Movement::step);
  }
  outer = extents;
  outers = product(outer);
  for (size_t b = 0; b < places.size(); ++b) places[b].strides = strides[b];
}

void LaunchGeometry::set_columns(GroupNest& group) {
  for (size_t b = 0; b < places.size(); ++b) {
    BufferRef& ref = group.nest.buffers[b];
    const GroupBuffer& buffer = group.buffers[b];
    const int64_t size = size_of(ref.dtype);
    if (folds && buffer.kind == GroupBuffer::Kind::cell) movements[b] = {0, 0, size};
    // A single element is a row of one.
    if (columns == 1) movements[b].column = size;
    const int64_t stride = movements[b].column;
    // A value that is stored once per row is stored at column 0.
    const bool once = lanes && folds && buffer.by_row && ref.written;
    ref.columns = stride == size || once || buffer.kind == GroupBuffer::Kind::kept ? Columns::unit
                  : stride == 0                                                    ? Columns::repeat
                                : Columns::strided;
  }
}

}  // namespace tidemark::compile
