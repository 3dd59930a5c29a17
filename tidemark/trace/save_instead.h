// What loops keep for their gradients, where somebody asks what another choice would take. Internal
// to the library.
#pragma once

#include "tidemark/base/source.h"
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

}  // namespace tidemark::detail
