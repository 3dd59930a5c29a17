#include "tidemark/compile/group.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tidemark/base/error.h"
#include "tidemark/compile/workspace.h"

namespace tidemark::compile {
namespace {

using passes::Load;
using passes::Member;
using passes::Schedule;

ArrayRef dense_like(const ArrayRef& array) { return dense_layout({array.dtype, array.shape}); }

// Finds the memory of a group's operands, with strides along the axes of its domain.
class GroupPlaces {
 public:
  GroupPlaces(passes::Scheduler& scheduler, const Node& group, std::span<const ArrayRef> inputs,
              std::span<const ArrayRef> results)
      : work_{.graph = scheduler.graph(), .schedule = scheduler.of_group(group)},
        region_(work_.graph.regions[static_cast<size_t>(scheduler.first_like(group))]),
        inputs_(inputs),
        results_(results) {
    const Schedule& schedule = work_.schedule;
    work_.axes = {schedule.domain, schedule.row_axes, schedule.fold_axes, schedule.index};
    place_loads();
    place_results();
  }

  GroupWork take() { return std::move(work_); }

  // Adds the trips as the first axis, which is one of rows.
  bool add_axis(const TripAxis& trips) {
    using Index = Schedule::Index;
    LaunchAxes& axes = work_.axes;
    if (!work_.copies_in.empty() || !work_.copies_out.empty()) return false;
    const int64_t rank = axes.domain.rank();
    if (axes.index != Index::none && rank == 0) return false;
    if (axes.index == Index::all) {
      if (rank > 1) return false;
      axes.index = Index::column;
    }
    axes.domain.insert(0, trips.trips);
    ++axes.row_axes;
    for (std::vector<BufferPlace>* places : {&work_.loads, &work_.results}) {
      for (BufferPlace& place : *places) {
        const int64_t stride = trips.strides[static_cast<size_t>(place.operand)];
        place.strides.insert(0, stride);
      }
    }
    return true;
  }

 private:
  // The memory of an array along the axes of the domain: its own, or a dense copy if the axes
  // cannot address it.
  BufferPlace place_of(const ArrayRef& array, int32_t path, int32_t operand, bool is_result) {
    ArrayRef layout = array, seen;
    layout.data = kNowhere;
    BufferPlace place{.operand = operand, .offset = 0, .strides = {}};
    if (!work_.schedule.see(layout, path, seen) || !work_.schedule.folds_evenly(seen.strides)) {
      place.operand = -1;
      place.offset = dense_copy(layout, operand, is_result);
      const bool visible = work_.schedule.see(dense_like(layout), path, seen);
      TIDEMARK_CHECK(visible, "a dense operand can be viewed");
    }
    place.offset += seen.data - kNowhere;
    place.strides = seen.strides;
    for (int64_t& stride : place.strides) stride *= size_of(array.dtype);
    return place;
  }

  int64_t dense_copy(const ArrayRef& layout, int32_t operand, bool is_result) {
    std::vector<DenseCopy>& copies = is_result ? work_.copies_out : work_.copies_in;
    for (const DenseCopy& copy : copies) {
      if (copy.operand == operand) return copy.offset;
    }
    const int64_t offset = work_.copy_bytes;
    work_.copy_bytes += granted_bytes(layout.size() * size_of(layout.dtype));
    copies.push_back({operand, layout, dense_like(layout), offset});
    return offset;
  }

  void place_loads() {
    for (const Load& load : work_.schedule.loads) {
      const auto found =
          std::find(region_.parameters.begin(), region_.parameters.end(), load.value);
      TIDEMARK_CHECK(found != region_.parameters.end(), "a group reads node ", load.value.node,
                     " of another region");
      const auto input = static_cast<int32_t>(found - region_.parameters.begin());
      work_.loads.push_back(place_of(inputs_[static_cast<size_t>(input)], load.path, input, false));
    }
  }

  void place_results() {
    work_.results.resize(results_.size());
    for (const Member& m : work_.schedule.members) {
      if (m.result < 0) continue;
      const auto result = static_cast<size_t>(m.result);
      const auto operand = static_cast<int32_t>(inputs_.size()) + m.result;
      work_.results[result] = place_of(results_[result], m.path, operand, true);
    }
  }

  GroupWork work_;
  const Region& region_;  // Whose nodes the schedule names.
  std::span<const ArrayRef> inputs_, results_;
};

}  // namespace

GroupWork group_work(passes::Scheduler& scheduler, const Node& group,
                     std::span<const ArrayRef> inputs, std::span<const ArrayRef> results) {
  return GroupPlaces(scheduler, group, inputs, results).take();
}

std::optional<GroupWork> mapped_group_work(passes::Scheduler& scheduler, const Node& group,
                                           std::span<const ArrayRef> inputs,
                                           std::span<const ArrayRef> results,
                                           const TripAxis& trips) {
  GroupPlaces places(scheduler, group, inputs, results);
  if (!places.add_axis(trips)) return {};
  return places.take();
}

bool may_overwrite(passes::Scheduler& scheduler, const Node& group, int32_t input, int32_t result) {
  const Graph& graph = scheduler.graph();
  const Region& region = graph.regions[static_cast<size_t>(scheduler.first_like(group))];
  const Value read = region.parameters[static_cast<size_t>(input)];
  const Value written = region.results[static_cast<size_t>(result)];
  if (size_of(graph.type(read).dtype) != size_of(graph.type(written).dtype)) return false;
  const Schedule& schedule = scheduler.of_group(group);
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
