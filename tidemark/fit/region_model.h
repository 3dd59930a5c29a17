// The nodes of a region as steps, and the values that they make: the facts that decide which bytes
// are alive when. Views and literals are not steps: reading a view counts as reading its value.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "tidemark/fit/cost.h"
#include "tidemark/ir/graph.h"
#include "tidemark/passes/passes.h"

namespace tidemark::fit {

inline constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

struct Inside {
  int64_t bytes = 0, least = 0;
};

using NumberList = SmallVec<int32_t, 2>;

struct ModelStep {
  int32_t node = -1;
  NumberList reads;       // Values of the region, each once.
  NumberList parameters;  // Parameters of the region that it reads, by number.
  // Values that a result can overwrite if this step is their last reader.
  NumberList overwrites;
  int32_t first_value = 0, values = 0;
  // Bytes that only exist while it runs: workspace, or what bodies of control flow have in use, and
  // the least that those could have.
  Inside inside;
  Cost cost;
  bool can_repeat = false;  // It has no effect, and its cost is known.
};

struct ModelValue {
  int32_t step = -1;
  int16_t result = 0;
  int64_t bytes = 0;
  bool is_given = false;  // A result of the region, or seen by one: its bytes are not the arena's.
};

struct RegionModel {
  std::vector<ModelStep> steps;
  std::vector<ModelValue> values;
  std::vector<int32_t> step_of;   // By node: its step, or -1.
  std::vector<int32_t> position;  // By step: its position among the nodes of the region.
  // By parameter: the last step before which it may be read. Later its bytes may hold another
  // value: a Variable is updated in place, a carry is replaced by the next one.
  std::vector<int32_t> readable_until;
  std::vector<int64_t> offset;  // By step: bytes that a layout had fewer than the steps say.
};

struct ModelOptions {
  // By parameter of the region: the result that replaces its bytes, or -1.
  std::vector<int32_t> replaced_by = {};
  // By parameter: its bytes may be reused once it was read for the last time.
  std::vector<bool> donated = {};
  std::function<Inside(const Graph& graph, const Node& node)> inside = {};
};

RegionModel model_of(const Graph& graph, RegionId region, const ModelOptions& options);

// Corrects the model by the bytes that a layout had in use at each step.
void calibrate(RegionModel& model, std::span<const int64_t> modelled,
               std::span<const int64_t> measured);

}  // namespace tidemark::fit
