// A program together with its gradient.
#pragma once

#include <optional>

#include "tests/programs/random_program.h"

namespace tidemark::testing {

// The results of a program, then the gradients of its float results (weighted by further
// parameters) by its float parameters. Nothing where it has none: no float flows from a parameter
// to a result, or through something that has no gradient.
std::optional<RandomProgram> differentiated(const RandomProgram& program);

// A program with its gradients and the gradients of these, asked for one after another as by nested
// tapes; and what `differentiate_again` makes of it.
struct DifferentiatedAgain {
  RandomProgram usual;     // As asked for.
  RandomProgram repeated;  // Made again with the same settings.
  RandomProgram least;     // Loops with Save::automatic keep the least that they can.
  size_t loops = 0;        // Such loops.
};
std::optional<DifferentiatedAgain> differentiated_again(const RandomProgram& program);

}  // namespace tidemark::testing
