#include "tidemark/compile/tasks.h"

#include <array>
#include <memory>

#include "tidemark/base/error.h"
#include "tidemark/base/heap.h"
#include "tidemark/compile/effects.h"
#include "tidemark/compile/library_ops.h"
#include "tidemark/compile/workspace.h"

namespace tidemark::compile {
namespace {

// Layouts with data, for the length of one run. They stand on the stack: a run takes no heap. Only
// prints and checks, which take heap for their text besides, have more operands than that holds.
class Placed {
 public:
  Placed(std::span<const ArrayRef> layouts, std::byte* const* places) {
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
  ~Placed() {
    if (wide_.empty()) std::destroy(arrays_.begin(), arrays_.end());
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
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
  ArrayTask(std::vector<ArrayRef> layouts, Call call)
      : layouts_(std::move(layouts)), call_(std::move(call)) {}
  void run(std::byte* const* places, std::byte* workspace) const override {
    // A program without an arena has no workspace either.
    const WorkspacePart part(workspace != nullptr ? workspace : kNowhere, workspace_bytes_);
    call_(Placed(layouts_, places));
  }
  int64_t heap_bytes() const override { return tidemark::heap_bytes(layouts_); }
  int64_t count_workspace() {
    const WorkspacePart counting;
    const std::vector<std::byte*> nowhere(layouts_.size(), kNowhere);
    call_(Placed(layouts_, nowhere.data()));
    return workspace_bytes_ = counting.most();
  }

 private:
  std::vector<ArrayRef> layouts_;
  Call call_;
  int64_t workspace_bytes_ = 0;
};

template <class Call>
MadeTask made(std::vector<ArrayRef> layouts, Call call) {
  auto task = std::make_unique<ArrayTask<Call>>(std::move(layouts), std::move(call));
  const int64_t workspace = task->count_workspace();
  return {std::move(task), workspace};
}

std::vector<ArrayRef> joined(std::span<const ArrayRef> operands, const ArrayRef& result) {
  std::vector<ArrayRef> all(operands.begin(), operands.end());
  all.push_back(result);
  return all;
}

}  // namespace

ArrayRef dense_layout(const TensorType& type) {
  return {kNowhere, type.dtype, type.shape, contiguous_strides(type.shape)};
}

MadeTask pointwise_task(const OpDef& op, std::span<const PointwiseOperand> operands,
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
  return made(std::move(layouts),
              [&op, type, inputs, is_number, count = operands.size()](const Placed& placed) {
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

MadeTask several_results_task(const OpDef& op, std::span<const ArrayRef> operands,
                              const Attrs& attrs, std::span<const ArrayRef> results, Source at) {
  TIDEMARK_CHECK(results.size() <= kMostResults, op.name, " has ", results.size(), " results");
  std::vector<ArrayRef> layouts(operands.begin(), operands.end());
  for (const ArrayRef& result : results)
    if (result.data != nullptr) layouts.push_back(result);
  return made(std::move(layouts), [&op, attrs, at, count = operands.size(),
                                   asked = std::vector(results.begin(), results.end())](
                                      const Placed& placed) {
    std::array<ArrayRef, kMostResults> given;
    size_t next = count;
    for (size_t r = 0; r < asked.size(); ++r)
      given[r] = asked[r].data != nullptr ? placed[next++] : asked[r];
    run_library(op, placed.all().first(count), attrs, std::span(given).first(asked.size()), at);
  });
}

}  // namespace

MadeTask op_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                 std::span<const ArrayRef> results, Source at) {
  if (results.size() > 1) return several_results_task(op, operands, attrs, results, at);
  std::vector<ArrayRef> layouts = joined(operands, results[0]);
  if (op.family == Family::reduce) {
    return made(std::move(layouts),
                [&op, axes = AxisList(attrs.read().integers())](const Placed& placed) {
                  run_reduce(op, placed[0], axes, placed.result());
                });
  }
  if (op.family == Family::row) {
    return made(std::move(layouts), [&op, axis = attrs.read().integer()](const Placed& placed) {
      run_row(op, placed[0], axis, placed.result());
    });
  }
  return made(std::move(layouts), [&op, attrs, at](const Placed& placed) {
    run_library(op, placed.operands(), attrs, {&placed.result(), 1}, at);
  });
}

MadeTask effect_task(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
                     Source at) {
  return made({operands.begin(), operands.end()}, [&op, attrs, at](const Placed& placed) {
    if (!WorkspacePart::counting()) run_effect(op, placed.all(), attrs, at);
  });
}

MadeTask copy_task(const ArrayRef& from, const ArrayRef& to) {
  return made({from, to}, [](const Placed& placed) {
    if (WorkspacePart::counting() || placed[0].data != placed[1].data)
      run_copy(placed[0], placed[1]);
  });
}

MadeTask fill_task(uint64_t number, const ArrayRef& to) {
  return made({to}, [number](const Placed& placed) { run_fill(number, placed.result()); });
}

}  // namespace tidemark::compile
