#include "tidemark/compile/cpu/group_task.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/base/heap.h"
#include "tidemark/compile/cpu/chunks.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/group_launch.h"
#include "tidemark/compile/narrow.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {
namespace {

ArrayRef at(ArrayRef layout, std::byte* data) {
  layout.data = data;
  return layout;
}

// The kernels and the memory of a group, before any kernel is made.
struct GroupPlan {
  struct Cells {
    Monoid monoid;
    ArrayRef partials, totals;
    int64_t partials_offset = 0, totals_offset = 0;
  };
  std::vector<DenseCopy> copies_in, copies_out;
  std::optional<GroupLaunch> main;
  std::vector<GroupLaunch> finish;  // One, of a chunked fold, or none: few groups have it.
  std::vector<Cells> cells;
  int64_t end = 0;  // The end of the workers' memory; they use the last bytes of it.

  int64_t heap_bytes() const {
    return tidemark::heap_bytes(copies_in) + tidemark::heap_bytes(copies_out) +
           tidemark::heap_bytes(cells) + (main ? main->heap_bytes() : 0) +
           tidemark::heap_bytes(finish, [](const GroupLaunch& each) { return each.heap_bytes(); });
  }
};

class GroupTask final : public run::Task {
 public:
  GroupTask(const GroupPlan& plan, KernelBatch& batch) : plan_(plan) {
    plan_.main->make_kernel(batch);
    for (GroupLaunch& finish : plan_.finish) finish.make_kernel(batch);
    const WorkspacePart preparing;
    for (const DenseCopy& copy : plan_.copies_in) run_copy(copy.layout, copy.dense);
    for (const DenseCopy& copy : plan_.copies_out) run_copy(copy.dense, copy.layout);
  }

  void run(std::byte* const* operands, std::byte* workspace) const override {
    // Copies need no workspace.
    const WorkspacePart none(workspace != nullptr ? workspace : kNowhere, 0);
    for (const DenseCopy& copy : plan_.copies_in)
      run_copy(at(copy.layout, operands[copy.operand]), at(copy.dense, workspace + copy.offset));
    run(*plan_.main, operands, workspace);
    if (!plan_.finish.empty()) {
      for (const GroupPlan::Cells& cell : plan_.cells) {
        combine_chunks(cell.monoid, at(cell.partials, workspace + cell.partials_offset),
                       at(cell.totals, workspace + cell.totals_offset));
      }
      run(plan_.finish[0], operands, workspace);
    }
    for (const DenseCopy& copy : plan_.copies_out)
      run_copy(at(copy.dense, workspace + copy.offset), at(copy.layout, operands[copy.operand]));
  }

  int64_t heap_bytes() const override {
    return static_cast<int64_t>(sizeof(*this)) + plan_.heap_bytes();
  }

 private:
  void run(const GroupLaunch& launch, std::byte* const* operands, std::byte* workspace) const {
    launch.run(operands, workspace, workspace + (plan_.end - launch.used_bytes()));
  }

  GroupPlan plan_;
};

class GroupPlanner {
 public:
  explicit GroupPlanner(GroupWork work) : work_(std::move(work)), bytes_(work_.copy_bytes) {
    plan_.copies_in = std::move(work_.copies_in);
    plan_.copies_out = std::move(work_.copies_out);
    const int64_t fold_end = work_.axes.row_axes + work_.axes.fold_axes;
    for (int64_t axis = 0; axis < work_.axes.domain.rank(); ++axis) {
      const int64_t extent = work_.axes.domain[axis];
      (axis < work_.axes.row_axes ? rows_ : axis < fold_end ? length_ : columns_) *= extent;
    }
  }

  TaskPlan run() {
    const int64_t copies = bytes_;
    const Chunks chunks = choose_chunks(num_threads());
    if (chunks.length > 0)
      make_chunked(chunks);
    else
      plan_.main.emplace(make_main());
    bytes_ += workers_bytes();
    if (chunks.length > 0) bytes_ = std::max(bytes_, copies + whole_bytes());
    plan_.end = bytes_;
    const int64_t held = static_cast<int64_t>(sizeof(GroupPlan)) + plan_.heap_bytes();
    auto make = [plan = std::make_shared<const GroupPlan>(std::move(plan_)),
                 count = num_threads()](TaskBatch& batch) {
      const device::ThreadsScope threads(count);
      return std::make_unique<GroupTask>(*plan, static_cast<KernelBatch&>(batch));
    };
    return {.workspace_bytes = bytes_, .heap_bytes = held, .make = std::move(make)};
  }

 private:
  int64_t workers_bytes() const {
    const int64_t finish = plan_.finish.empty() ? 0 : plan_.finish[0].workspace_bytes();
    return std::max(finish, plan_.main->workspace_bytes());
  }

  int64_t take(int64_t bytes) {
    const int64_t offset = bytes_;
    bytes_ += granted_bytes(bytes);
    return offset;
  }

  std::vector<BufferPlace> places_of(const GroupNest& nest) const {
    std::vector<BufferPlace> places;
    for (const GroupBuffer& buffer : nest.buffers) {
      const auto index = static_cast<size_t>(buffer.index);
      switch (buffer.kind) {
        case GroupBuffer::Kind::load:
          places.push_back(work_.loads[index]);
          break;
        case GroupBuffer::Kind::result:
          places.push_back(work_.results[index]);
          break;
        case GroupBuffer::Kind::kept:
        case GroupBuffer::Kind::cell:
          places.push_back({});
          // Kept elements are stored in the order of the loops.
          places.back().strides.resize(static_cast<size_t>(work_.axes.domain.rank()), 0);
          break;
      }
    }
    return places;
  }

  GroupLaunch make_whole() const {
    GroupNest nest = group_nest(work_.graph, work_.schedule);
    std::vector<BufferPlace> places = places_of(nest);
    return {std::move(nest), work_.axes, std::move(places), Cutting{.shared = work_.shared}};
  }

  // ---- Short rows

  GroupLaunch make_main() const {
    if (!work_.schedule.folds || work_.schedule.order != Nest::Order::lanes ||
        length_ > (work_.schedule.sweeps > 1 ? kShortRow : kShortFold) || rows_ < kManyRows)
      return make_whole();
    GroupNest group = group_nest(work_.graph, work_.schedule);
    std::vector<RowBuffer> rows;
    for (const GroupBuffer& buffer : group.buffers)
      rows.push_back({buffer.by_row, buffer.kind == GroupBuffer::Kind::kept});
    std::optional<Nest> narrow = narrow_nest(group.nest, rows, length_);
    return narrow ? make_narrow(std::move(group), std::move(*narrow), rows) : make_whole();
  }

  GroupLaunch make_narrow(GroupNest group, Nest nest, std::span<const RowBuffer> rows) const {
    const std::vector<BufferPlace> row_places = places_of(group);
    std::vector<GroupBuffer> buffers;
    std::vector<BufferPlace> places;
    for (const ColumnOf& each : columns_of_rows(rows, length_)) {
      buffers.push_back(group.buffers[static_cast<size_t>(each.buffer)]);
      places.push_back(column_place(row_places[static_cast<size_t>(each.buffer)], each.column));
    }
    group.nest = std::move(nest);
    group.buffers = std::move(buffers);
    return {std::move(group), without_folds(), std::move(places), Cutting{.shared = work_.shared}};
  }

  // The axes without the folded ones.
  LaunchAxes without_folds() const {
    LaunchAxes kept = work_.axes;
    for (int64_t i = 0; i < work_.axes.fold_axes; ++i) kept.domain.erase(work_.axes.row_axes);
    kept.row_axes = kept.domain.rank();
    kept.fold_axes = 0;
    kept.index = passes::Schedule::Index::none;
    return kept;
  }

  // One column of the rows, which are the last axes.
  BufferPlace column_place(BufferPlace place, int64_t column) const {
    for (int64_t axis = work_.axes.domain.rank() - 1; axis >= work_.axes.row_axes; --axis) {
      const int64_t extent = work_.axes.domain[axis];
      place.offset += column % extent * place.strides.back();
      column /= extent;
      place.strides.pop_back();
    }
    return place;
  }

  // ---- Long reductions with few results

  // The bytes that workers need if so few take part that the fold is not cut.
  int64_t whole_bytes() {
    int fewer = num_threads() - 1;
    while (fewer > 1 && choose_chunks(fewer).length > 0) --fewer;
    const device::ThreadsScope threads(fewer);
    return make_whole().workspace_bytes();
  }

  Chunks choose_chunks(int threads) const {
    if (!work_.schedule.folds || work_.schedule.sweeps > 1) return {};
    const int64_t length = chunk_length(work_.schedule.order, length_, rows_, columns_, threads);
    return length == 0 ? Chunks{} : Chunks{length, (length_ + length - 1) / length};
  }

  void make_chunked(const Chunks& chunks) {
    GroupNest first = chunk_nest(work_.graph, work_.schedule),
              last = finish_nest(work_.graph, work_.schedule);
    std::vector<BufferPlace> first_places = places_of(first), last_places = places_of(last);
    const LaunchAxes kept = without_folds();
    for (BufferPlace& place : last_places) {
      for (int64_t i = 0; i < work_.axes.fold_axes; ++i)
        place.strides.erase(static_cast<size_t>(work_.axes.row_axes));
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
    plan_.main.emplace(std::move(first), work_.axes, std::move(first_places),
                       Cutting{chunks, work_.shared});
    plan_.finish.emplace_back(std::move(last), kept, std::move(last_places),
                              Cutting{.shared = work_.shared});
  }

  GroupWork work_;
  GroupPlan plan_;
  int64_t rows_ = 1, length_ = 1, columns_ = 1;
  int64_t bytes_ = 0;
};

}  // namespace

TaskPlan group_task(GroupWork work) { return GroupPlanner(std::move(work)).run(); }

}  // namespace tidemark::compile
