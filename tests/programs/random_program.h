// Programs nobody thought of: random graphs over the whole catalogue, with nested control flow,
// Variables and donated arguments.
#pragma once

#include <cstdint>

#include "tidemark/ir/graph.h"
#include "tidemark/layout/layout.h"

namespace tidemark::testing {

struct RandomProgram {
  Graph graph;
  // The name of a parameter is the number its elements are drawn by, so that they stay what they
  // are while a program shrinks.
  compile::Interface interface;
};

RandomProgram random_program(uint64_t seed);

}  // namespace tidemark::testing
