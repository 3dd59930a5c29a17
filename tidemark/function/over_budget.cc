#include "tidemark/function/over_budget.h"

#include <algorithm>

#include "tidemark/function/plan.h"

namespace tidemark {
namespace {

// As a literal that can be pasted into a program; a rounded number might not fit.
std::string literal_of(Bytes bytes) {
  constexpr const char* units[] = {"_B", "_KiB", "_MiB", "_GiB"};
  int64_t count = bytes.count;
  int unit = 0;
  for (; unit < 3 && count > 0 && count % 1024 == 0; ++unit) count /= 1024;
  return cat(count, units[unit]);
}

// Two figures that would print alike are printed in bytes.
std::string problem_of(const Plan& plan, const std::string& subject, Bytes budget) {
  const bool alike = cat(plan.peak()) == cat(budget);
  const auto text = [&](Bytes bytes) { return alike ? cat(bytes.count, " bytes") : cat(bytes); };
  return cat(subject, ": needs ", text(plan.peak()), " at once, the budget is ", text(budget),
             ", the least that would fit is ", text(plan.floor()));
}

std::string by_class(const Plan& plan) {
  std::string text;
  for (const ByteClass each : {ByteClass::outputs, ByteClass::saved, ByteClass::temporaries,
                               ByteClass::workspace, ByteClass::shadow}) {
    if (plan.of(each).count > 0)
      text += cat(text.empty() ? "" : ", ", name(each), ' ', plan.of(each));
  }
  return text;
}

std::string what_to_know(const Plan& plan, const std::string& smaller) {
  std::string text;
  if (plan.peak_step() >= 0) {
    const PlanStep& step = plan.timeline()[static_cast<size_t>(plan.peak_step())];
    text = cat("the most is in use at step ", plan.peak_step(), " (", step.name, ", ", step.line,
               "): ", by_class(plan), "\n  ");
  }
  const size_t listed = std::min<size_t>(5, plan.at_peak().size());
  for (size_t i = 0; i < listed; ++i) {
    const PlanTensor& tensor = plan.at_peak()[i];
    text += cat(i == 0 ? "largest: " : "         ", tensor.type, ' ', tensor.bytes, ", ",
                tensor.reason, " (", tensor.line, ")\n  ");
  }
  text += cat(".budget = ", literal_of(plan.floor()), " fits");
  return smaller.empty() ? text : cat(text, "; ", smaller);
}

}  // namespace

OverBudget::OverBudget(const Plan& plan, const std::string& subject, Bytes budget,
                       const std::string& smaller, Source at)
    : UserError(problem_of(plan, subject, budget), at, what_to_know(plan, smaller)),
      budget_(budget),
      floor_(plan.floor()) {}

}  // namespace tidemark
