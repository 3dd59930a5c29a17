// Chooses which values are dropped and computed again, so that a region needs fewer bytes.
#pragma once

#include "tidemark/fit/region_model.h"
#include "tidemark/fit/timeline.h"

namespace tidemark::fit {

// How drops are compared.
struct DropOrder {
  double relief_power = 1;  // A drop counts relief^power for a second of work.
  double nearly = 0.8;  // One that is at least this good, compared with the best known, is taken.
};

// Drops values where that relieves slots with more than `limit` bytes in use, the most bytes for
// the least work first. Returns whether no such slot is left.
bool rematerialize(const RegionModel& model, Timeline& timeline, int64_t limit,
                   const DropOrder& order = {});

}  // namespace tidemark::fit
