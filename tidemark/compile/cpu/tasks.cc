#include "tidemark/compile/cpu/tasks.h"

#include <array>
#include <memory>

#include "tidemark/base/error.h"
#include "tidemark/base/heap.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/effects.h"
#include "tidemark/compile/cpu/library_ops.h"
#include "tidemark/compile/workspace.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {
namespace {

// Layouts with data, for the duration of one run. They are on the stack, so that a run allocates
// nothing. Only prints and checks may have more operands than that; they also allocate their text.
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
  // Makes its kernels, so that a run makes none.
  ArrayTask(std::vector<ArrayRef> layouts, Call call, int64_t workspace_bytes)
      : layouts_(std::move(layouts)), call_(std::move(call)) {
    const WorkspacePart preparing;
    const std::vector<std::byte*> nowhere(layouts_.size(), kNowhere);
    call_(PlacedArrays(layouts_, nowhere.data()));
    used_bytes_ = preparing.most();
    TIDEMARK_CHECK(used_bytes_ <= workspace_bytes, "a step takes ", used_bytes_,
                   " bytes of workspace, planned are ", workspace_bytes);
    unused_bytes_ = workspace_bytes - used_bytes_;
  }
  void run(std::byte* const* places, std::byte* workspace) const override {
    // A program without an arena has no workspace.
    const WorkspacePart part(workspace != nullptr ? workspace + unused_bytes_ : kNowhere,
                             used_bytes_);
    call_(PlacedArrays(layouts_, places));
  }
  int64_t heap_bytes() const override {
    return static_cast<int64_t>(sizeof(*this)) + tidemark::heap_bytes(layouts_);
  }

 private:
  std::vector<ArrayRef> layouts_;
  Call call_;
  // It uses the end of its workspace, so that a measured run touches the highest planned byte.
  int64_t used_bytes_ = 0, unused_bytes_ = 0;
};

template <class Call>
TaskPlan planned(std::vector<ArrayRef> layouts, Call call, int64_t workspace_bytes = 0) {
  const int64_t held = heap_bytes(layouts) + static_cast<int64_t>(sizeof(call));
  auto make = [layouts = std::move(layouts), call = std::move(call), workspace_bytes,
               count = num_threads()](TaskBatch&) {
    const device::ThreadsScope threads(count);
    return std::make_unique<ArrayTask<Call>>(layouts, call, workspace_bytes);
  };
  return {.workspace_bytes = workspace_bytes, .heap_bytes = held, .make = std::move(make)};
}

std::vector<ArrayRef> layouts_of(std::span<const OperandLayout> operands) {
  std::vector<ArrayRef> layouts;
  layouts.reserve(operands.size() + 1);
  for (const OperandLayout& operand : operands) layouts.push_back(operand.layout);
  return layouts;
}

// The dtype that each operand is computed in.
PointwiseType type_of(const OpWork& work) {
  std::array<OperandType, 3> types;
  for (size_t i = 0; i < work.operands.size(); ++i) types[i].dtype = work.operands[i].layout.dtype;
  if (work.op.is_cast()) return {.compute = {types[0].dtype}, .result = work.results[0].dtype};
  return infer_pointwise(work.op, std::span(types).first(work.operands.size()), work.at);
}

TaskPlan pointwise_task(const OpWork& work) {
  const ArrayRef& result = work.results[0];
  const size_t count = work.operands.size();
  std::vector<ArrayRef> layouts;
  std::array<Input, 3> inputs = {};
  std::array<bool, 3> is_number = {};
  for (size_t i = 0; i < count; ++i) {
    const OperandLayout& operand = work.operands[i];
    inputs[i].number = operand.number;
    is_number[i] = operand.is_number;
    if (!operand.is_number) layouts.push_back(stretched(operand.layout, result.shape));
  }
  layouts.push_back(result);
  const bool copies = work.op.is_cast() && !is_number[0] && layouts[0].dtype == result.dtype;
  return planned(std::move(layouts), [&op = work.op, type = type_of(work), inputs, is_number, count,
                                      copies](const PlacedArrays& placed) {
    if (copies && placed[0].data == placed[1].data && !WorkspacePart::preparing()) return;
    std::array<Input, 3> now = inputs;
    size_t next = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!is_number[i]) now[i].array = &placed[next++];
    }
    run_pointwise(op, std::span(now).first(count), type, placed.result());
  });
}

// A print or a check, run by the host.
TaskPlan effect_task(const OpWork& work) {
  return planned(layouts_of(work.operands),
                 [&op = work.op, attrs = work.attrs, at = work.at](const PlacedArrays& placed) {
                   if (!WorkspacePart::preparing()) run_effect(op, placed.all(), attrs, at);
                 });
}

constexpr size_t kMostResults = 4;

TaskPlan several_results_task(const OpWork& work) {
  const std::span<const ArrayRef> results = work.results;
  TIDEMARK_CHECK(results.size() <= kMostResults, work.op.name, " has ", results.size(), " results");
  std::vector<ArrayRef> layouts = layouts_of(work.operands);
  for (const ArrayRef& result : results)
    if (result.data != nullptr) layouts.push_back(result);
  const auto run = [&op = work.op, attrs = work.attrs, at = work.at, count = work.operands.size(),
                    asked =
                        std::vector(results.begin(), results.end())](const PlacedArrays& placed) {
    std::array<ArrayRef, kMostResults> given;
    size_t next = count;
    for (size_t r = 0; r < asked.size(); ++r)
      given[r] = asked[r].data != nullptr ? placed[next++] : asked[r];
    run_library(op, placed.all().first(count), attrs, std::span(given).first(asked.size()), at);
  };
  return planned(std::move(layouts), run, op_workspace(work));
}

}  // namespace

namespace {

int64_t workspace_now(const OpWork& work) {
  const auto& [op, operands, attrs, results, at, threads] = work;
  if (op.family == Family::reduce)
    return reduce_workspace(op, operands[0].layout, AxisList(attrs.read().integers()), results[0]);
  if (op.family == Family::row)
    return row_workspace(op, operands[0].layout, attrs.read().integer(), results[0]);
  return library_workspace(op, layouts_of(operands), attrs, results);
}

}  // namespace

int64_t op_workspace(const OpWork& work) {
  return most_with_fewer(num_threads(), [&](int count) {
    const device::ThreadsScope threads(count);
    return workspace_now(work);
  });
}

TaskPlan op_task(const OpWork& work) {
  const auto& [op, operands, attrs, results, at, threads] = work;
  if (op.family == Family::effect) return effect_task(work);
  if (op.family == Family::pointwise) return pointwise_task(work);
  if (results.size() > 1) return several_results_task(work);
  std::vector<ArrayRef> layouts = layouts_of(operands);
  layouts.push_back(results[0]);
  const int64_t workspace = op_workspace(work);
  if (op.family == Family::reduce) {
    const auto run = [&def = op,
                      axes = AxisList(attrs.read().integers())](const PlacedArrays& placed) {
      run_reduce(def, placed[0], axes, placed.result());
    };
    return planned(std::move(layouts), run, workspace);
  }
  if (op.family == Family::row) {
    const auto run = [&def = op, axis = attrs.read().integer()](const PlacedArrays& placed) {
      run_row(def, placed[0], axis, placed.result());
    };
    return planned(std::move(layouts), run, workspace);
  }
  const auto run = [&def = op, words = attrs, line = at](const PlacedArrays& placed) {
    run_library(def, placed.operands(), words, {&placed.result(), 1}, line);
  };
  return planned(std::move(layouts), run, workspace);
}

}  // namespace tidemark::compile
