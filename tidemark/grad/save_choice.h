// Chooses what a loop keeps for its gradient within a number of bytes (td::Save::bytes). Internal
// to the library.
#pragma once

#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/types/size.h"

namespace tidemark::detail {

// Of the choices that fit into the bytes, the one that repeats the fewest trips. Each choice is
// planned: the loop and its gradient as a separate program, whose inputs and output gradients are
// given. It reads the sizes of the loop, which fixes them for this trace. Throws a UserError if
// even the fewest checkpoints do not fit.
using ChooseWithin = decltype(passes::GradientSettings::choose_within);
ChooseWithin choice_by_plans(SizeTable& sizes, bool fuse);

}  // namespace tidemark::detail
