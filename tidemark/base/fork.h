// Forks beside other threads.
//
// A forked child has the memory of all threads and runs only one of them: a lock that another held
// stays taken for ever, and what it guards may be half changed. So threads that change the
// library's state are inside a gate; a fork waits until no other thread is, and threads that come
// meanwhile wait until it is done.
//
// Nobody waits without an end: a thread that cannot enter goes in after a while, since those inside
// may be waiting for it, and the fork begins to wait again; a fork goes on after a minute.
#pragma once

#include <cstdint>

namespace tidemark {

namespace detail {
// How often the thread is inside; not counted where it is so for another.
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
  // On a thread that works for another which is inside and waits for it.
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

// What else runs around a fork, while the gate is closed: `before` ahead of it, `after` behind it
// on both sides, `in_child` in the child alone and ahead of `after`. One set, of device/.
struct ForkHandlers {
  void (*before)();
  void (*after)();
  void (*in_child)();
};
// Throws std::bad_alloc where the system cannot keep them.
void install_fork_handlers(const ForkHandlers& handlers);

}  // namespace tidemark
