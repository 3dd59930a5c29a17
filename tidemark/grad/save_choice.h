// What a loop keeps for its gradient where the user gives a number of bytes (td::Save::bytes).
// Internal to the library.
#pragma once

#include "tidemark/passes/gradient/differentiate.h"
#include "tidemark/types/size.h"

namespace tidemark::detail {

// The choice that runs the fewest trips again of those that stay within so many bytes. Each is
// planned: the loop and its gradient as a program of their own, its inputs and the gradients of its
// results given. It reads the sizes that the loop has, which fixes them for this trace. It throws a
// UserError where even the fewest checkpoints take more.
using ChooseWithin = decltype(passes::GradientSettings::choose_within);
ChooseWithin choice_by_plans(SizeTable& sizes, bool fuse);

}  // namespace tidemark::detail
