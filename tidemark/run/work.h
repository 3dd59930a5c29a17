// The work of a program, before it runs.
#pragma once

#include "tidemark/run/program.h"

namespace tidemark::run {

// By the number of trips that the plan knows, or their bound; a loop without one counts as one
// trip, and a branch as the larger of its sides.
StepWork planned_work(const Program& program);

}  // namespace tidemark::run
