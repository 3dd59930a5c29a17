// Chooses which values are dropped and computed again, so that a region needs fewer bytes.
#pragma once

#include "tidemark/fit/region_model.h"
#include "tidemark/fit/timeline.h"

namespace tidemark::fit {

// Drops values where that relieves slots with more than `limit` bytes in use, the most bytes for
// the least work first. Returns whether no such slot is left.
bool rematerialize(const RegionModel& model, Timeline& timeline, int64_t limit);

// Looks for a schedule with less work within the limit, or one closer to it, for a bounded number
// of transactions: drops of a part of the schedule are taken back, and others are chosen there,
// partly at random. The same schedule always gives the same one. In regions of more steps that
// would take too long.
inline constexpr size_t kMostToImprove = 1000;
void improve(const RegionModel& model, Timeline& timeline);

}  // namespace tidemark::fit
