// Draws a placement: time to the right, offset upward, one rectangle per buffer, and the load as a
// line.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// `names` has one name per buffer, shown when the pointer rests on it; `capacity_bytes`, if not
// zero, is drawn as a line.
void draw_svg(std::ostream& out, const Problem& problem, const Placement& placement,
              std::span<const std::string> names, int64_t capacity_bytes = 0);

}  // namespace tidemark::plan
