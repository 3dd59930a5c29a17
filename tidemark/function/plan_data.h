// The data of a Plan. Internal to the library.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "tidemark/function/compile_function.h"
#include "tidemark/function/compiled_function.h"
#include "tidemark/function/plan.h"

namespace tidemark {

namespace run {
class Watch;
}

// The parts of a plan that do not come from the program.
struct PlanNotes {
  int64_t unmade_bytes = 0;  // Of Variables without a value.
  std::vector<PlanRecompute> recomputes;
};

// The lists of a plan that consist of text, made when one of them is first read: most plans are
// made for a number of bytes.
class PlanLists {
 public:
  struct Made {
    std::vector<PlanStep> timeline;
    std::vector<PlanTensor> at_peak;
  };
  const Made& of(const run::Program& program, int64_t peak_step);

 private:
  std::once_flag once_;
  Made made_;
};

struct Plan::Data {
  const std::vector<PlanStep>& timeline() const { return made_lists().timeline; }
  const std::vector<PlanTensor>& at_peak() const { return made_lists().at_peak; }

  std::string title;
  std::shared_ptr<const detail::CompiledFunction> compiled;
  int64_t classes[kByteClasses] = {};
  int64_t peak_step = -1;
  // For each loop that stores trips: the bytes under other choices.
  std::vector<std::vector<run::KeptTrips>> other_choices;
  PlanNotes notes;
  std::vector<std::string> open_sizes;
  // The plan for these values of the open sizes.
  std::function<Plan(std::span<const int64_t> sizes, Source at)> at_sizes;
  // The other programs of the same call. Null for a plan inside an error.
  std::function<std::shared_ptr<detail::ProgramFrontier>()> frontier;
  std::function<Plan(Bytes budget, Source at)> within;

 private:
  const PlanLists::Made& made_lists() const { return lists_->of(*compiled->program, peak_step); }
  std::shared_ptr<PlanLists> lists_ = std::make_shared<PlanLists>();
};

namespace detail {

// The name of a memory, or a note that it no longer exists.
std::string memory_name(int32_t number);

struct PlanAccess {
  static Plan make(std::string title, std::shared_ptr<const CompiledFunction> compiled,
                   PlanNotes notes = {});
  // For a function with open sizes.
  static Plan make_open(Plan plan, std::vector<std::string> open_sizes,
                        std::function<Plan(std::span<const int64_t>, Source)> at_sizes);
  static Plan with_budgets(Plan plan, std::function<std::shared_ptr<ProgramFrontier>()> frontier,
                           std::function<Plan(Bytes, Source)> within);
  static Plan with_other_choices(Plan plan, std::vector<std::vector<run::KeptTrips>> others);
  // The measurements of a run, step by step.
  static void add_seen(const run::Program& program, const run::Watch& watch, Profile& profile);
  static const std::shared_ptr<const CompiledFunction>& compiled(const Plan& plan) {
    return plan.data_->compiled;
  }
};

}  // namespace detail
}  // namespace tidemark
