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
std::string problem_of(const Plan& least, const OverBudget::Refused& refused) {
  const Bytes floor = least.peak();
  const bool alike = cat(floor) == cat(refused.budget);
  const auto text = [&](Bytes bytes) { return alike ? cat(bytes.count, " bytes") : cat(bytes); };
  std::string usual;
  if (refused.usual > floor) usual = cat(" (", text(refused.usual), " without a budget)");
  return cat(refused.subject, ": needs at least ", text(floor), usual, ", the budget is ",
             text(refused.budget));
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

// What stands at the peak, the largest first.
std::string what_stands(const Plan& least) {
  if (least.peak_step() < 0) return {};
  const PlanStep& step = least.timeline()[static_cast<size_t>(least.peak_step())];
  std::string text = cat("at the least, the most is in use at step ", least.peak_step(), " (",
                         step.name, ", ", step.line, "): ", by_class(least), "\n  ");
  const size_t listed = std::min<size_t>(5, least.at_peak().size());
  for (size_t i = 0; i < listed; ++i) {
    const PlanTensor& tensor = least.at_peak()[i];
    text +=
        cat(i == 0 ? "largest: " : "         ", tensor.type, ' ', tensor.bytes, ", ",
            tensor.held_for.empty() ? tensor.reason : tensor.held_for, " (", tensor.line, ")\n  ");
  }
  return text;
}

std::string what_to_know(const Plan& least, const OverBudget::Refused& refused) {
  std::string text = cat(what_stands(least), ".budget = ", literal_of(least.peak()), " fits");
  for (const std::string& remedy : refused.remedies) text += "; " + remedy;
  return text;
}

}  // namespace

OverBudget::OverBudget(const Plan& least, const Refused& refused, Source at)
    : UserError(problem_of(least, refused), at, what_to_know(least, refused)),
      budget_(refused.budget),
      floor_(least.peak()) {}

}  // namespace tidemark
