// fork() in a program with several threads.
//
// A forked child has the memory of all threads but runs only one of them: a lock that another
// thread held stays locked for ever, and the data it guards may be half changed. So a thread that
// changes the library's state enters a gate. A fork waits until no other thread is inside, and
// threads that arrive meanwhile wait until the fork is done.
//
// Every wait is bounded. A thread that cannot enter goes in after about 50 ms, since threads inside
// may be waiting for it, and the fork starts to wait again. A fork proceeds after a minute.
#pragma once

#include <cstdint>

namespace tidemark {

namespace detail {
// How many times this thread has entered; a thread inside on behalf of another is not counted.
extern constinit thread_local int gate_depth __attribute__((tls_model("initial-exec")));
}  // namespace detail

class ForkGate {
 public:
  // Nest. Neither throws.
  static void enter() noexcept {
    if (detail::gate_depth++ == 0) enter_first();
  }
  static void leave() noexcept {
    if (--detail::gate_depth == 0) leave_last();
  }
  // How many forks this process comes from, counted since the library was first used.
  static uint64_t generation() noexcept;
  // An address that no other thread has; the same one in a child that the thread forks.
  static const void* this_thread() noexcept { return &detail::gate_depth; }

  class Inside {
   public:
    Inside() { enter(); }
    ~Inside() { leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
  // For a thread that works on behalf of one that is inside and waits for it.
  class InsideForAnother {
   public:
    InsideForAnother() { ++detail::gate_depth; }
    ~InsideForAnother() { --detail::gate_depth; }
    InsideForAnother(const InsideForAnother&) = delete;
    InsideForAnother& operator=(const InsideForAnother&) = delete;
  };

 private:
  static void enter_first() noexcept;
  static void leave_last() noexcept;
};

// Handlers that run around a fork, while the gate is closed: `before` it, `after` it in both
// processes, and `in_child` in the child only, ahead of `after`. There is one set, installed by
// device/.
struct ForkHandlers {
  void (*before)();
  void (*after)();
  void (*in_child)();
};
// Throws std::bad_alloc if the system cannot store them.
void install_fork_handlers(const ForkHandlers& handlers);

}  // namespace tidemark
