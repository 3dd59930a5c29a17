#include "tidemark/run/work.h"

#include <algorithm>
#include <utility>

#include "tidemark/run/treeverse.h"

namespace tidemark::run {
namespace {

double times(int64_t trips) { return static_cast<double>(trips < 0 ? 1 : trips); }

class PlannedWork {
 public:
  explicit PlannedWork(const Program& program) : program_(program) {}

  StepWork between(int32_t begin, int32_t end) const {
    StepWork sum;
    for (int32_t i = begin; i < end;) {
      const Step& step = program_.steps[static_cast<size_t>(i)];
      sum += of(step, i);
      i = std::max(i + 1, step.end);
    }
    return sum;
  }

 private:
  StepWork of(const Step& step, int32_t i) const {
    const auto control = static_cast<size_t>(step.control);
    switch (step.kind) {
      case Step::Kind::branch: {
        const StepWork yes = between(i + 1, step.middle), no = between(step.middle, step.end);
        return std::pair(yes.flop, yes.bytes_moved) < std::pair(no.flop, no.bytes_moved) ? no : yes;
      }
      case Step::Kind::loop:
        return between(i + 1, step.end) * times(program_.loops[control].trips);
      case Step::Kind::map:
        return between(i + 1, step.end) * times(program_.maps[control].trips);
      case Step::Kind::reverse: {
        const Reverse& reverse = program_.reverses[control];
        const int64_t again = reverse.online
                                  ? repeated_trips_online(reverse.trips, reverse.slots)
                                  : repeated_trips(reverse.trips, reverse.slots, reverse.every);
        StepWork sum = between(i + 1, step.middle) * static_cast<double>(again);
        return sum += between(step.middle, step.end) * times(reverse.trips);
      }
      default:
        return step.work;
    }
  }

  const Program& program_;
};

}  // namespace

StepWork planned_work(const Program& program) {
  return PlannedWork(program).between(0, static_cast<int32_t>(program.steps.size()));
}

}  // namespace tidemark::run
