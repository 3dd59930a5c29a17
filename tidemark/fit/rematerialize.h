// Chooses which values are dropped and computed again, so that a region needs fewer bytes.
#pragma once

#include "tidemark/fit/region_model.h"
#include "tidemark/fit/timeline.h"

namespace tidemark::fit {

// Drops values where that relieves slots with more than `limit` bytes in use, the most bytes for
// the least work first. Returns whether no such slot is left.
bool rematerialize(const RegionModel& model, Timeline& timeline, int64_t limit);

}  // namespace tidemark::fit
