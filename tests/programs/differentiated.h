// A program together with its gradient.
#pragma once

#include <optional>

#include "tests/programs/random_program.h"

namespace tidemark::testing {

// The results of a program, then the gradients of its float results (weighted by further
// parameters) by its float parameters. Nothing where it has none: no float flows from a parameter
// to a result, or through something that has no gradient.
std::optional<RandomProgram> differentiated(const RandomProgram& program);

}  // namespace tidemark::testing
