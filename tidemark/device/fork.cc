#include "tidemark/device/fork.h"

#include <mutex>

#include "tidemark/base/error.h"
#include "tidemark/base/fork.h"
#include "tidemark/base/lock.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/pool.h"
#include "tidemark/device/thread_record.h"

namespace tidemark::device {
namespace {

struct Hook {
  void (*before)();
  void (*after)();
  void (*in_child)();
};

// Constant-initialised, so there is no order of construction and no guard that a fork could find
// held.
struct Hooks {
  Lock lock;
  int count = 0;
  Hook list[8] = {};
};
constinit Hooks hooks;

// In the order in which the locks nest elsewhere; the lock of mappings is innermost.
void before() {
  lock_workers();
  hooks.lock.lock();
  for (int i = 0; i < hooks.count; ++i) hooks.list[i].before();
  lock_pool();
  lock_slabs();
  lock_records();
  lock_mappings();
}

void after() {
  unlock_mappings();
  unlock_records();
  unlock_slabs();
  unlock_pool();
  for (int i = hooks.count - 1; i >= 0; --i) hooks.list[i].after();
  hooks.lock.unlock();
  unlock_workers();
}

void in_child() {
  forget_workers();
  for (int i = 0; i < hooks.count; ++i) {
    if (hooks.list[i].in_child != nullptr) hooks.list[i].in_child();
  }
}

}  // namespace

void install_fork_handlers() {
  static constexpr ForkHandlers kHandlers{.before = before, .after = after, .in_child = in_child};
  tidemark::install_fork_handlers(kHandlers);
}

void add_fork_hook(void (*before)(), void (*after)(), void (*in_child)()) {
  install_fork_handlers();
  const std::lock_guard guard(hooks.lock);
  for (int i = 0; i < hooks.count; ++i) {
    if (hooks.list[i].before == before) return;
  }
  TIDEMARK_CHECK(hooks.count < static_cast<int>(std::size(hooks.list)), "no room for a fork hook");
  hooks.list[hooks.count++] = {before, after, in_child};
}

}  // namespace tidemark::device
