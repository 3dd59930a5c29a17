// What a loop keeps for its gradient, where something else than the user's words decides. Internal
// to the library.
#pragma once

#include "tidemark/grad/loop_gradient.h"
#include "tidemark/ops/loop_attrs.h"

namespace tidemark::detail {

// While it lives, loops that this thread makes at this line keep this, whatever they are told to.
// So plans are made of choices that nobody has written down yet.
class SaveInstead {
 public:
  SaveInstead(Source at, SaveChoice choice);
  ~SaveInstead();
  SaveInstead(const SaveInstead&) = delete;
  SaveInstead& operator=(const SaveInstead&) = delete;

  // What a loop at this line keeps.
  static SaveChoice chosen(Source at, SaveChoice told);

 private:
  Source at_;
  SaveChoice choice_;
  const SaveInstead* outer_;
};

bool is_same_line(Source a, Source b);

// The choice that runs the fewest trips again of those that stay within so many bytes. Each is
// planned: the loop and its gradient as a program of their own, its inputs and the gradients of its
// results given. The sizes it has are read, and so are closed. Throws UserError where even the
// fewest checkpoints take more.
SaveChoice choose_within(const LoopQuestion& asked, int64_t bytes);

}  // namespace tidemark::detail
