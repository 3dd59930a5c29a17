// Makes a program that fails small.
#pragma once

#include <functional>

#include "tests/programs/random_program.h"

namespace tidemark::testing {

// Drops results, and puts parameters or zeros in place of nodes, for as long as the rest fails.
RandomProgram shrunk(RandomProgram program, const std::function<bool(const RandomProgram&)>& fails);

}  // namespace tidemark::testing
