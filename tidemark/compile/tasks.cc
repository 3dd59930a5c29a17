#include "tidemark/compile/tasks.h"

#include <array>
#include <memory>

#include "tidemark/base/error.h"
#include "tidemark/base/heap.h"
#include "tidemark/compile/effects.h"
#include "tidemark/compile/library_ops.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {
namespace {

// Layouts with data, for the length of one run. They stand on the stack: a run takes no heap. Only
// prints and checks, which take heap for their text besides, have more operands than that holds.
class PlacedArrays {
 public:
  PlacedArrays(std::span<const ArrayRef> layouts, std::byte* const* places) {
    if (layouts.size() > run::kMostOperands) {
      wide_.assign(layouts.begin(), layouts.end());
      arrays_ = wide_;
    } else {
      auto* const room = reinterpret_cast<ArrayRef*>(room_);
      std::uninitialized_copy(layouts.begin(), layouts.end(), room);
      arrays_ = {room, layouts.size()};
    }
    for (size_t i = 0; i < layouts.size(); ++i) arrays_[i].data = places[i];
  }
  ~PlacedArrays() {
    if (wide_.empty()) std::destroy(arrays_.begin(), arrays_.end());
  }
  PlacedArrays(const PlacedArrays&) = delete;
  PlacedArrays& operator=(const PlacedArrays&) = delete;
  const ArrayRef& operator[](size_t i) const { return arrays_[i]; }
  std::span<const ArrayRef> operands() const { return arrays_.first(arrays_.size() - 1); }
  std::span<const ArrayRef> all() const { return arrays_; }
  const ArrayRef& result() const { return arrays_.back(); }

 private:
  alignas(ArrayRef) std::byte room_[run::kMostOperands * sizeof(ArrayRef)];
  std::vector<ArrayRef> wide_;
  std::span<ArrayRef> arrays_;
};

// Runs `call` on the placed layouts: operands, then the result.
template <class Call>
class ArrayTask final : public run::Task {
 public:
  // Makes its kernels: a run makes nothing.
  ArrayTask(std::vector<ArrayRef> layouts, Call call, int64_t workspace_bytes)
      : layouts_(std::move(layouts)), call_(std::move(call)), workspace_bytes_(workspace_bytes) {
    const WorkspacePart preparing;
    const std::vector<std::byte*> nowhere(layouts_.size(), kNowhere);
    call_(PlacedArrays(layouts_, nowhere.data()));
    TIDEMARK_CHECK(preparing.most() == workspace_bytes, "a step takes ", preparing.most(),
                   " bytes of workspace, planned are ", workspace_bytes);
  }
  void run(std::byte* const* places, std::byte* workspace) const override {
    // A program without an arena has no workspace either.
    const WorkspacePart part(workspace != nullptr ? workspace : kNowhere, workspace_bytes_);
    call_(PlacedArrays(layouts_, places));
  }
  int64_t heap_bytes() const override {
    return static_cast<int64_t>(sizeof(*this)) + tidemark::heap_bytes(layouts_);
  }

 private:
  std::vector<ArrayRef> layouts_;
  Call call_;
  int64_t workspace_bytes_;
};

template <class Call>
TaskPlan planned(std::vector<ArrayRef> layouts, Call call, int64_t workspace_bytes = 0) {
  const int64_t held = heap_bytes(layouts) + static_cast<int64_t>(sizeof(call));
  auto make = [layouts = std::move(layouts), call = std::move(call),
               workspace_bytes](KernelBatch&) {
    return std::make_unique<ArrayTask<Call>>(layouts, call, workspace_bytes);
  };
  return {workspace_bytes, held, num_threads(), std::move(make)};
}

std::vector<ArrayRef> joined(std::span<const ArrayRef> operands, const ArrayRef& result) {
  std::vector<ArrayRef> all(operands.begin(), operands.end());
  all.push_back(result);
  return all;
}

}  // namespace

TaskPlan pointwise_task(const OpDef& op, std::span<const PointwiseOperand> operands,
                        const PointwiseType& type, const ArrayRef& result) {
  std::vector<ArrayRef> layouts;
  std::array<Input, 3> inputs = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs[i].number = operands[i].number;
    if (!operands[i].is_number) layouts.push_back(operands[i].layout);
  }
  std::array<bool, 3> is_number = {};
  for (size_t i = 0; i < operands.size(); ++i) is_number[i] = operands[i].is_number;
  layouts.push_back(result);
  return planned(std::move(layouts), [&op, type, inputs, is_number,
                                      count = operands.size()](const PlacedArrays& placed) {
    std::array<Input, 3> now = inputs;
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!is_number[i]) now[i].array = &placed[next++];
    }
    run_pointwise(op, std::span(now).first(count), type, placed.result());
  });
}

namespace {

constexpr size_t kMostResults = 4;

TaskPlan several_results_task(const OpDef& op, std::span<const ArrayRef> operands,
                              const Attrs& attrs, std::span<const ArrayRef> results, Source at) {
  TIDEMARK_CHECK(results.size() <= kMostResults, op.name, " has ", results.size(), " results");
  std::vector<ArrayRef> layouts(operands.begin(), operands.end());
  for (const ArrayRef& result : results)
    if (result.data != nullptr) layouts.push_back(result);
  const auto run = [&op, attrs, at, count = operands.size(),
                    asked =
                        std::vector(results.begin(), results.end())](const PlacedArrays& placed) {
    std::array<ArrayRef, kMostResults> given;
    size_t next = count;
    for (size_t r = 0; r < asked.size(); ++r)
      given[r] = asked[r].data != nullptr ? placed[next++] : asked[r];
    run_library(op, placed.all().first(count), attrs, std::span(given).first(asked.size()), at);
  };
  return planned(std::move(layouts), run, op_workspace(op, operands, attrs, results));
}

}  // namespace

int64_t op_workspace(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                     std::span<const ArrayRef> results) {
  if (op.family == Family::reduce)
    return reduce_workspace(op, operands[0], AxisList(attrs.read().integers()), results[0]);
  if (op.family == Family::row)
    return row_workspace(op, operands[0], attrs.read().integer(), results[0]);
  return library_workspace(op, operands, attrs, results);
}

TaskPlan op_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at) {
  if (results.size() > 1) return several_results_task(op, operands, attrs, results, at);
  std::vector<ArrayRef> layouts = joined(operands, results[0]);
  const int64_t workspace = op_workspace(op, operands, attrs, results);
  if (op.family == Family::reduce) {
    const auto run = [&op, axes = AxisList(attrs.read().integers())](const PlacedArrays& placed) {
      run_reduce(op, placed[0], axes, placed.result());
    };
    return planned(std::move(layouts), run, workspace);
  }
  if (op.family == Family::row) {
    const auto run = [&op, axis = attrs.read().integer()](const PlacedArrays& placed) {
      run_row(op, placed[0], axis, placed.result());
    };
    return planned(std::move(layouts), run, workspace);
  }
  const auto run = [&op, attrs, at](const PlacedArrays& placed) {
    run_library(op, placed.operands(), attrs, {&placed.result(), 1}, at);
  };
  return planned(std::move(layouts), run, workspace);
}

TaskPlan effect_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                     Source at) {
  return planned({operands.begin(), operands.end()}, [&op, attrs, at](const PlacedArrays& placed) {
    if (!WorkspacePart::preparing()) run_effect(op, placed.all(), attrs, at);
  });
}

TaskPlan copy_task(const ArrayRef& from, const ArrayRef& to) {
  return planned({from, to}, [](const PlacedArrays& placed) {
    if (WorkspacePart::preparing() || placed[0].data != placed[1].data)
      run_copy(placed[0], placed[1]);
  });
}

TaskPlan fill_task(uint64_t number, const ArrayRef& to) {
  return planned({to}, [number](const PlacedArrays& placed) { run_fill(number, placed.result()); });
}

}  // namespace tidemark::compile
