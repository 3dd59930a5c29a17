// What is behind a Plan. Internal to api/.
#pragma once

#include "tidemark/api/plan.h"
#include "tidemark/api/traced_function.h"

namespace tidemark {

struct Plan::Data {
  std::string title;
  std::shared_ptr<const detail::CompiledFunction> compiled;
  int64_t classes[kByteClasses] = {};
  std::vector<PlanStep> timeline;
  int64_t peak_step = -1;
  std::vector<PlanTensor> at_peak;
};

namespace detail {

// Of a memory's number, or that it is gone.
std::string memory_name(int32_t number);

struct PlanAccess {
  static Plan make(std::string title, std::shared_ptr<const CompiledFunction> compiled);
  static const std::shared_ptr<const CompiledFunction>& compiled(const Plan& plan) {
    return plan.data_->compiled;
  }
};

}  // namespace detail
}  // namespace tidemark
