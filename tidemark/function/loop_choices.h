// What loops would keep for their gradients if they were told something else. Internal to the
// library.
#pragma once

#include <vector>

#include "tidemark/function/function_trace.h"
#include "tidemark/run/program.h"

namespace tidemark::detail {

// For each loop that a program keeps trips of, what it would keep if it were told to keep all, the
// root of its trips as slots, or each root-th: planned by tracing the function again with that
// choice. Loops of one line are told the same. Nothing where the trips have no bound, or the choice
// is that of the program itself.
std::vector<std::vector<run::KeptTrips>> other_choices(const UserFunction& function,
                                                       const FunctionTrace& trace,
                                                       const CompiledFunction& program, Source at);

}  // namespace tidemark::detail
