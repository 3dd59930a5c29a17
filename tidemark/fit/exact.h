// The schedule with the least work within a number of bytes, for programs of a few steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tidemark/fit/region_model.h"

namespace tidemark::fit {

// Whether all schedules of a region can be searched: few values, no step that may run only once, no
// parameter that is overwritten.
bool is_searchable(const RegionModel& model);

// The steps in the order in which they run, some more than once, so that at most `limit` bytes are
// in use; no other order does less work. Nothing if there is none, or the search was cut off.
std::optional<std::vector<int32_t>> least_work(const RegionModel& model, int64_t limit);

}  // namespace tidemark::fit
