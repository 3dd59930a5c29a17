#include "tidemark/compile/group.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tidemark/base/error.h"
#include "tidemark/base/heap.h"
#include "tidemark/compile/chunks.h"
#include "tidemark/compile/group_launch.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {
namespace {

using passes::Load;
using passes::Member;
using passes::Schedule;

// What was small enough to fuse is small enough to lower.
constexpr passes::GroupLimits kNoLimits = {.exprs = std::numeric_limits<int64_t>::max(),
                                           .buffers = std::numeric_limits<int64_t>::max(),
                                           .sweeps = 30,
                                           .row_bytes = std::numeric_limits<int64_t>::max()};

Schedule schedule_of(passes::Scheduler& scheduler, const Node& group) {
  const Region& region = scheduler.graph().regions[static_cast<size_t>(group.regions[0])];
  std::optional<Schedule> schedule = scheduler.run(region.nodes, region.results, kNoLimits);
  TIDEMARK_CHECK(schedule.has_value(), "a group of ", region.nodes.size(),
                 " nodes that is no kernel");
  return std::move(*schedule);
}

ArrayRef dense_like(const ArrayRef& array) { return dense_layout({array.dtype, array.shape}); }

// A copy to or from a dense place in the workspace, for an operand whose own layout the domain
// cannot see.
struct DenseCopy {
  int32_t operand = 0;
  ArrayRef layout, dense;
  int64_t offset = 0;
};

ArrayRef at(ArrayRef layout, std::byte* data) {
  layout.data = data;
  return layout;
}

// All that a group does and needs, before any kernel is made for it.
struct GroupPlan {
  struct Cells {
    Monoid monoid;
    ArrayRef partials, totals;
    int64_t partials_offset = 0, totals_offset = 0;
  };
  std::vector<DenseCopy> copies_in, copies_out;
  std::optional<GroupLaunch> main, finish;
  std::vector<Cells> cells;
  int64_t own = 0;  // Where the memory of workers begins.

  int64_t heap_bytes() const {
    return tidemark::heap_bytes(copies_in) + tidemark::heap_bytes(copies_out) +
           tidemark::heap_bytes(cells) + (main ? main->heap_bytes() : 0) +
           (finish ? finish->heap_bytes() : 0);
  }
};

class GroupTask final : public run::Task {
 public:
  GroupTask(const GroupPlan& plan, KernelBatch& batch) : plan_(plan) {
    plan_.main->make_kernel(batch);
    if (plan_.finish.has_value()) plan_.finish->make_kernel(batch);
    const WorkspacePart preparing;
    for (const DenseCopy& copy : plan_.copies_in) run_copy(copy.layout, copy.dense);
    for (const DenseCopy& copy : plan_.copies_out) run_copy(copy.dense, copy.layout);
  }

  void run(std::byte* const* operands, std::byte* workspace) const override {
    // Copies take no memory of their own.
    const WorkspacePart none(workspace != nullptr ? workspace : kNowhere, 0);
    for (const DenseCopy& copy : plan_.copies_in)
      run_copy(at(copy.layout, operands[copy.operand]), at(copy.dense, workspace + copy.offset));
    plan_.main->run(operands, workspace, workspace + plan_.own);
    if (plan_.finish.has_value()) {
      for (const GroupPlan::Cells& cell : plan_.cells) {
        combine_chunks(cell.monoid, at(cell.partials, workspace + cell.partials_offset),
                       at(cell.totals, workspace + cell.totals_offset));
      }
      plan_.finish->run(operands, workspace, workspace + plan_.own);
    }
    for (const DenseCopy& copy : plan_.copies_out)
      run_copy(at(copy.dense, workspace + copy.offset), at(copy.layout, operands[copy.operand]));
  }

  int64_t heap_bytes() const override {
    return static_cast<int64_t>(sizeof(*this)) + plan_.heap_bytes();
  }

 private:
  GroupPlan plan_;
};

class GroupPlanner {
 public:
  GroupPlanner(passes::Scheduler& scheduler, const Node& group, std::span<const ArrayRef> inputs,
               std::span<const ArrayRef> results, bool shared = false)
      : graph_(scheduler.graph()),
        region_(graph_.regions[static_cast<size_t>(group.regions[0])]),
        schedule_(schedule_of(scheduler, group)),
        inputs_(inputs),
        results_(results),
        axes_{schedule_.domain, schedule_.row_axes, schedule_.fold_axes, schedule_.index, shared} {}

  TaskPlan run() {
    place_loads();
    place_results();
    return made();
  }

  std::optional<TaskPlan> run(const TripAxis& trips) {
    place_loads();
    place_results();
    if (!plan_.copies_in.empty() || !plan_.copies_out.empty() || !add_axis(trips)) return {};
    return made();
  }

 private:
  TaskPlan made() {
    const Chunks chunks = choose_chunks();
    if (chunks.length > 0) {
      make_chunked(chunks);
    } else {
      GroupNest nest = group_nest(graph_, schedule_);
      std::vector<BufferPlace> places = places_of(nest);
      plan_.main.emplace(std::move(nest), axes_, std::move(places), Chunks{});
    }
    plan_.own = bytes_;
    bytes_ += workers_bytes();
    const int64_t held = static_cast<int64_t>(sizeof(GroupPlan)) + plan_.heap_bytes();
    auto make = [plan = std::move(plan_)](KernelBatch& batch) {
      return std::make_unique<GroupTask>(plan, batch);
    };
    return {bytes_, held, num_threads(), std::move(make)};
  }

  // The trips become the first axis, one of rows.
  bool add_axis(const TripAxis& trips) {
    using Index = Schedule::Index;
    const int64_t rank = axes_.domain.rank();
    if (axes_.index != Index::none && rank == 0) return false;
    if (axes_.index == Index::all) {
      if (rank > 1) return false;
      axes_.index = Index::column;
    }
    axes_.domain.insert(0, trips.trips);
    ++axes_.row_axes;
    for (std::vector<BufferPlace>* places : {&load_places_, &result_places_}) {
      for (BufferPlace& place : *places) {
        const int64_t stride = trips.strides[static_cast<size_t>(place.operand)];
        place.strides.insert(0, stride);
      }
    }
    return true;
  }

  int64_t workers_bytes() const {
    const int64_t finish = plan_.finish.has_value() ? plan_.finish->workspace_bytes() : 0;
    return std::max(finish, plan_.main->workspace_bytes());
  }

  int64_t take(int64_t bytes) {
    const int64_t offset = bytes_;
    bytes_ += granted_bytes(bytes);
    return offset;
  }

  // Where an array stands, as the domain sees it; from a dense copy where it cannot see the array.
  BufferPlace place_of(const ArrayRef& array, int32_t path, int32_t operand, bool is_result) {
    ArrayRef layout = array, seen;
    layout.data = kNowhere;
    BufferPlace place{.operand = operand, .offset = 0, .strides = {}};
    if (!schedule_.see(layout, path, seen) || !schedule_.folds_evenly(seen.strides)) {
      place.operand = -1;
      place.offset = dense_copy(layout, operand, is_result);
      const bool visible = schedule_.see(dense_like(layout), path, seen);
      TIDEMARK_CHECK(visible, "a dense operand can be viewed");
    }
    place.offset += seen.data - kNowhere;
    place.strides = seen.strides;
    for (int64_t& stride : place.strides) stride *= size_of(array.dtype);
    return place;
  }

  int64_t dense_copy(const ArrayRef& layout, int32_t operand, bool is_result) {
    std::vector<DenseCopy>& copies = is_result ? plan_.copies_out : plan_.copies_in;
    for (const DenseCopy& copy : copies) {
      if (copy.operand == operand) return copy.offset;
    }
    DenseCopy copy{operand, layout, dense_like(layout)};
    copy.offset = take(layout.size() * size_of(layout.dtype));
    copies.push_back(copy);
    return copy.offset;
  }

  void place_loads() {
    for (const Load& load : schedule_.loads) {
      const auto found =
          std::find(region_.parameters.begin(), region_.parameters.end(), load.value);
      TIDEMARK_CHECK(found != region_.parameters.end(), "a group reads node ", load.value.node,
                     " of another region");
      const auto input = static_cast<int32_t>(found - region_.parameters.begin());
      load_places_.push_back(
          place_of(inputs_[static_cast<size_t>(input)], load.path, input, false));
    }
  }

  void place_results() {
    result_places_.resize(results_.size());
    for (const Member& m : schedule_.members) {
      if (m.result < 0) continue;
      const auto result = static_cast<size_t>(m.result);
      const auto operand = static_cast<int32_t>(inputs_.size()) + m.result;
      result_places_[result] = place_of(results_[result], m.path, operand, true);
    }
  }

  std::vector<BufferPlace> places_of(const GroupNest& nest) const {
    std::vector<BufferPlace> places;
    for (const GroupBuffer& buffer : nest.buffers) {
      const auto index = static_cast<size_t>(buffer.index);
      switch (buffer.kind) {
        case GroupBuffer::Kind::load:
          places.push_back(load_places_[index]);
          break;
        case GroupBuffer::Kind::result:
          places.push_back(result_places_[index]);
          break;
        case GroupBuffer::Kind::kept:
        case GroupBuffer::Kind::cell:
          places.push_back({});
          // Kept in the order of the loops, whatever it is.
          places.back().strides.resize(static_cast<size_t>(axes_.domain.rank()), 0);
          break;
      }
    }
    return places;
  }

  // ---- Long folds with few results

  Chunks choose_chunks() {
    if (!schedule_.folds || schedule_.sweeps > 1) return {};
    const int64_t rank = axes_.domain.rank();
    const int64_t fold_end = axes_.row_axes + axes_.fold_axes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t extent = axes_.domain[axis];
      (axis < axes_.row_axes ? rows_ : axis < fold_end ? length_ : columns_) *= extent;
    }
    const int64_t length = chunk_length(schedule_.order, length_, rows_, columns_, num_threads());
    return length == 0 ? Chunks{} : Chunks{length, (length_ + length - 1) / length};
  }

  void make_chunked(const Chunks& chunks) {
    GroupNest first = chunk_nest(graph_, schedule_), last = finish_nest(graph_, schedule_);
    std::vector<BufferPlace> first_places = places_of(first), last_places = places_of(last);
    LaunchAxes kept = axes_;  // Without the folded ones.
    for (int64_t i = 0; i < axes_.fold_axes; ++i) kept.domain.erase(axes_.row_axes);
    kept.row_axes = kept.domain.rank();
    kept.fold_axes = 0;
    for (BufferPlace& place : last_places) {
      for (int64_t i = 0; i < axes_.fold_axes; ++i)
        place.strides.erase(static_cast<size_t>(axes_.row_axes));
    }
    for (size_t cell = 0; cell < first.monoids.size(); ++cell) {
      const DType dtype = first.cell_dtypes[cell];
      const Shape partial{rows_, chunks.count, columns_}, total{rows_, columns_};
      GroupPlan::Cells cells{first.monoids[cell],
                             {kNowhere, dtype, partial, contiguous_strides(partial)},
                             {kNowhere, dtype, total, contiguous_strides(total)}};
      cells.partials_offset = take(partial.size() * size_of(dtype));
      cells.totals_offset = take(total.size() * size_of(dtype));
      first_places[cell].offset = cells.partials_offset;
      last_places[cell].offset = cells.totals_offset;
      last_places[cell].strides = contiguous_strides(kept.domain);
      for (int64_t& stride : last_places[cell].strides) stride *= size_of(dtype);
      plan_.cells.push_back(std::move(cells));
    }
    plan_.main.emplace(std::move(first), axes_, std::move(first_places), chunks);
    plan_.finish.emplace(std::move(last), kept, std::move(last_places), Chunks{});
  }

  const Graph& graph_;
  const Region& region_;
  const Schedule schedule_;
  std::span<const ArrayRef> inputs_, results_;
  LaunchAxes axes_;
  GroupPlan plan_;
  std::vector<BufferPlace> load_places_, result_places_;
  int64_t rows_ = 1, length_ = 1, columns_ = 1;
  int64_t bytes_ = 0;
};

}  // namespace

TaskPlan group_task(passes::Scheduler& scheduler, const Node& group,
                    std::span<const ArrayRef> inputs, std::span<const ArrayRef> results,
                    bool shared) {
  return GroupPlanner(scheduler, group, inputs, results, shared).run();
}

std::optional<TaskPlan> mapped_group_task(passes::Scheduler& scheduler, const Node& group,
                                          std::span<const ArrayRef> inputs,
                                          std::span<const ArrayRef> results,
                                          const TripAxis& trips) {
  return GroupPlanner(scheduler, group, inputs, results).run(trips);
}

bool may_overwrite(passes::Scheduler& scheduler, const Node& group, int32_t input, int32_t result) {
  const Graph& graph = scheduler.graph();
  const Region& region = graph.regions[static_cast<size_t>(group.regions[0])];
  const Value read = region.parameters[static_cast<size_t>(input)];
  const Value written = region.results[static_cast<size_t>(result)];
  if (size_of(graph.type(read).dtype) != size_of(graph.type(written).dtype)) return false;
  const Schedule schedule = schedule_of(scheduler, group);
  const auto writer = std::find_if(schedule.members.begin(), schedule.members.end(),
                                   [&](const Member& m) { return m.result == result; });
  for (const Load& load : schedule.loads) {
    if (load.value != read) continue;
    if (load.map != writer->map || load.by_row != writer->by_row) return false;
    if ((load.needed >> schedule.first_write(*writer)) > 1) return false;
  }
  return graph.type(read).shape.size() == graph.type(written).shape.size();
}

}  // namespace tidemark::compile
