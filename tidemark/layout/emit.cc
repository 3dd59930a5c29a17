#include "tidemark/layout/emit.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tidemark/base/interrupt.h"

namespace tidemark::compile {

void emit(Layout& layout) {
  std::map<const Backend*, std::unique_ptr<TaskBatch>> batches;
  std::vector<std::unique_ptr<run::Task>> tasks;
  for (const TaskPlan& task : layout.tasks) {
    detail::poll_interrupt();
    std::unique_ptr<TaskBatch>& batch = batches[task.backend];
    if (batch == nullptr) batch = task.backend->new_batch();
    tasks.push_back(task.make(*batch));
  }
  for (const auto& [backend, batch] : batches) batch->compile();
  // Nothing fails from here on: the program is emitted completely or not at all.
  layout.program->tasks = std::move(tasks);
  auto next = layout.program->tasks.begin();
  for (run::Step& step : layout.program->steps)
    if (step.kind == run::Step::Kind::run) step.task = next++->get();
  std::vector<TaskPlan>().swap(layout.tasks);  // `= {}` would keep its memory.
}

}  // namespace tidemark::compile
