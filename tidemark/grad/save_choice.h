// What a loop keeps for its gradient, where something else than the user's words decides. Internal
// to the library.
#pragma once

#include "tidemark/grad/loop_gradient.h"

namespace tidemark::detail {

// The choice that runs the fewest trips again of those that stay within so many bytes. Each is
// planned: the loop and its gradient as a program of their own, its inputs and the gradients of its
// results given. The sizes it has are read, and so are closed. Throws UserError where even the
// fewest checkpoints take more.
SaveChoice choose_within(const LoopQuestion& asked, int64_t bytes);

}  // namespace tidemark::detail
