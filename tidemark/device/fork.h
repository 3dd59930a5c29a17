// The locks of this folder around a fork (base/fork.h): they are taken before a fork and released
// after it in both processes. The child starts its own workers when it first needs some.
#pragma once

namespace tidemark::device {

// Called before a lock is first used; cheap after the first call.
void install_fork_handlers();

// Adds the locks of other folders: `before` runs before a fork; `after` runs after it, in both
// processes; `in_child` runs only in the child, before every `after`. Call it before such a lock is
// first taken; adding the same `before` twice has no effect. Code that holds these locks may take
// the locks below, except that of the workers.
void add_fork_hook(void (*before)(), void (*after)(), void (*in_child)() = nullptr);

// One pair for the lock of each source file.
void lock_slabs();
void unlock_slabs();
void lock_workers();
void unlock_workers();
void forget_workers();  // In the child, which has no worker threads.

}  // namespace tidemark::device
