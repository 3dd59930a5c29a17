// What a plan does to stay within its budget, as sentences. Internal to the library.
#pragma once

#include <string>
#include <vector>

#include "tidemark/function/plan.h"

namespace tidemark::detail {

// "3.1 % more work"; "no more work" for a share of 0 or less.
std::string more_work_text(double share);

// One sentence for each layer, or for each line outside of layers, largest first:
//
//   recomputes gelu and two matmuls of block 3 (model.cc:41): frees 12.0 MiB meanwhile, 3.1 % more
//   work
//
// At most `most` of them, and then "and 5 more: ...".
std::vector<std::string> decision_sentences(const std::vector<PlanDecision>& decisions,
                                            size_t most);

}  // namespace tidemark::detail
