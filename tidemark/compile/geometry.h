// Launch geometry: how a kernel moves over memory, as a function of shapes and layouts alone. Each
// backend cuts the work in its own way; the CPU does so for threads and caches, in cpu/launch.h and
// cpu/group_launch.h.
#pragma once

#include <vector>

#include "tidemark/compile/group_nest.h"
#include "tidemark/device/kernel.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::compile {

// The memory of a nest's buffer: an operand of the step, or its workspace.
struct BufferPlace {
  int32_t operand = -1;  // -1: the workspace.
  int64_t offset = 0;    // In bytes.
  Strides strides;       // In bytes, along the axes of the domain.
};

// The axes of a launch: those of rows, folded ones, and columns.
struct LaunchAxes {
  Shape domain;
  int64_t row_axes = 0, fold_axes = 0;
  passes::Schedule::Index index = passes::Schedule::Index::none;
};

struct LaunchGeometry {
  // `buffers` has one entry per buffer of the nest. Sets in `group` how they move along columns.
  LaunchGeometry(GroupNest& group, const LaunchAxes& axes, std::vector<BufferPlace> buffers);

  // Without folds it is pointwise; folds run along lanes or along columns.
  bool folds = false, lanes = true;
  bool index_all = false;  // Indices count over all elements, not along columns.
  AxisList outer;          // Extents of the axes before rows (pointwise, lanes) or steps (columns).
  int64_t outers = 1, rows = 1, steps = 1, columns = 1;
  std::vector<BufferPlace> places;  // With strides along the outer axes.
  std::vector<Movement> movements;  // The distance of each buffer between rows, steps and columns.

 private:
  void set_axes(const LaunchAxes& axes);
  void set_columns(GroupNest& group);
};

}  // namespace tidemark::compile
