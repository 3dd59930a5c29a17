#include "later.h"

#include <mutex>
#include <utility>
#include <vector>

#include "bindings.h"

namespace tidemark::python {
namespace {

std::mutex mutex;
std::vector<std::function<void()>> waiting;

int run_waiting(void*) {
  std::vector<std::function<void()>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(waiting);
  }
  for (const auto& release : taken) release();
  return 0;
}

}  // namespace

void release_with_gil(std::function<void()> release) {
  if (Py_IsInitialized() == 0) return;  // The process ends: its objects are gone.
  if (PyGILState_Check() != 0) return release();
  bool first = false;
  {
    const std::lock_guard lock(mutex);
    first = waiting.empty();
    waiting.push_back(std::move(release));
  }
  if (first) Py_AddPendingCall(run_waiting, nullptr);
}

}  // namespace tidemark::python
