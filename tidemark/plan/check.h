// Verifies a placement, or names what is wrong with it. Shares no code with the planners, so that
// their mistakes cannot hide here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

struct Fault {
  enum Kind : uint8_t {
    count,      // Not one offset per buffer.
    negative,   // An offset below zero, or an end past what 64 bits hold.
    alignment,  // An offset that is not a multiple of the buffer's alignment.
    fixed,      // A fixed buffer that is elsewhere.
    overlap,    // Two buffers share a byte at some time and are not aliases.
    tidemark,   // The tidemark is not the highest byte in use plus one.
  };
  Kind kind = count;
  int64_t first = -1;   // The buffer at fault.
  int64_t second = -1;  // The other one of an overlap.

  std::string text() const;
};

std::optional<Fault> check_placement(const Problem& problem, const Placement& placement);

}  // namespace tidemark::plan
