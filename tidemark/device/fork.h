// The locks of this folder around a fork (base/fork.h): they are taken before it and free after it
// on both sides, and the child starts workers of its own when it first needs some.
#pragma once

namespace tidemark::device {

// Called by whoever first makes a lock matter; cheap from the second time on.
void install_fork_handlers();

// Locks of other parts: `before` runs ahead of a fork and `after` behind it, on both sides;
// `in_child` runs in the child alone, ahead of all that is `after`. Called before such a lock is
// first taken; a `before` that is there already is not added again. What runs under these locks may
// use the locks below but the workers'.
void add_fork_hook(void (*before)(), void (*after)(), void (*in_child)() = nullptr);

// The parts: each is the lock of one file.
void lock_slabs();
void unlock_slabs();
void lock_workers();
void unlock_workers();
void forget_workers();  // In the child: they are not there.

}  // namespace tidemark::device
