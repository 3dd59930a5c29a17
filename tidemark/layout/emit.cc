#include "tidemark/layout/emit.h"

#include <memory>
#include <utility>
#include <vector>

#include "tidemark/compile/kernels.h"
#include "tidemark/device/threads.h"

namespace tidemark::compile {

void emit(Layout& layout) {
  KernelBatch batch;
  std::vector<std::unique_ptr<run::Task>> tasks;
  for (const TaskPlan& task : layout.tasks) {
    const device::ThreadsScope threads(task.threads);
    tasks.push_back(task.make(batch));
  }
  batch.compile();
  // Nothing fails from here on: it is emitted as a whole or not at all.
  layout.program->tasks = std::move(tasks);
  auto next = layout.program->tasks.begin();
  for (run::Step& step : layout.program->steps)
    if (step.kind == run::Step::Kind::run) step.task = next++->get();
  layout.tasks = {};
}

}  // namespace tidemark::compile
