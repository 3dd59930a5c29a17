// The Python functions that the records of tapes hold, as Python's garbage collector sees them.
//
// A custom gradient is one Held, and every tape that records the call has a copy of it. Each
// td.GradientTape and each Pullback among them refers to one Python object, which reports the
// reference (holds.h). Tapes that the library makes for itself may have copies too. They live on
// the stack of a call that was made while the others recorded, so that those are in use until it
// returns.
#pragma once

#include <thread>
#include <vector>

#include "bindings.h"
#include "held.h"
#include "tensor_tree.h"
#include "tidemark/grad/tape.h"

namespace tidemark::python {

// Those of one tape. All under the GIL.
class TapeHolds {
 public:
  TapeHolds() = default;
  ~TapeHolds() { stop(); }
  TapeHolds(const TapeHolds&) = delete;
  TapeHolds& operator=(const TapeHolds&) = delete;

  // Functions that the tape records from now on are added. It is the innermost one of this thread.
  void start();
  void stop();
  void clear() { list_.clear(); }
  int traverse(visitproc visit, void* arg) const;

 private:
  friend void held_by_tapes(const Held& function, const Tensors& results);

  detail::Tape* tape_ = nullptr;
  std::thread::id thread_;
  std::vector<nb::object> list_;
};

// After a call on this thread that made `results`: the tapes that recorded it hold the function.
void held_by_tapes(const Held& function, const Tensors& results);

}  // namespace tidemark::python
