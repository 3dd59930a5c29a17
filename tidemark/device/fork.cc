#include "tidemark/device/fork.h"

#include <pthread.h>

#include <new>

#include "tidemark/device/mapping.h"
#include "tidemark/device/pool.h"
#include "tidemark/device/thread_record.h"

namespace tidemark::device {
namespace {

// The order in which the locks nest elsewhere: mapping is innermost.
void before() {
  lock_workers();
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
  unlock_workers();
}

void in_child() {
  forget_workers();
  after();
}

}  // namespace

void install_fork_handlers() {
  static const int failed = pthread_atfork(before, after, in_child);
  if (failed != 0) throw std::bad_alloc();
}

}  // namespace tidemark::device
