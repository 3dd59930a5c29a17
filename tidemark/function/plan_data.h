// The data of a Plan. Internal to the library.
#pragma once

#include <functional>
#include <span>

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

struct Plan::Data {
  std::string title;
  std::shared_ptr<const detail::CompiledFunction> compiled;
  int64_t classes[kByteClasses] = {};
  std::vector<PlanStep> timeline;
  int64_t peak_step = -1;
  std::vector<PlanTensor> at_peak;
  // For each loop that stores trips: the bytes under other choices.
  std::vector<std::vector<run::KeptTrips>> other_choices;
  PlanNotes notes;
  std::vector<std::string> open_sizes;
  // The plan for these values of the open sizes.
  std::function<Plan(std::span<const int64_t> sizes, Source at)> at_sizes;
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
  static Plan with_other_choices(Plan plan, std::vector<std::vector<run::KeptTrips>> others);
  // The measurements of a run, step by step.
  static void add_seen(const run::Program& program, const run::Watch& watch, Profile& profile);
  static const std::shared_ptr<const CompiledFunction>& compiled(const Plan& plan) {
    return plan.data_->compiled;
  }
};

}  // namespace detail
}  // namespace tidemark
