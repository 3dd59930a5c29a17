// The bytes that loops would store for their gradients under other `save` choices. Internal to the
// library.
#pragma once

#include <vector>

#include "tidemark/function/compiled_function.h"
#include "tidemark/run/program.h"

namespace tidemark::detail {

// For each loop that stores trips: the bytes it would store with Save::all, with √n slots, or with
// every √n-th trip, planned with the gradients made again by that choice. Loops of one line get the
// same choice. Empty if the number of trips has no bound, or if the choice is the program's own.
std::vector<std::vector<run::KeptTrips>> other_choices(const TracedGraph& traced,
                                                       const CompiledFunction& program);

}  // namespace tidemark::detail
