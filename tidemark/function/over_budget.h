// OverBudget: a function does not fit its budget.
#pragma once

#include <string>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"

namespace tidemark {

class Plan;

// A plan or a call would exceed its budget. Thrown before anything runs or is allocated; every
// remedy in its text works.
//
//   try {
//     step.plan(td::spec({4096, 784}), {.budget = 1_MiB});
//   } catch (const td::OverBudget& error) {
//     std::cout << error.what() << error.floor();
//   }
class OverBudget : public UserError {
 public:
  // `smaller` names sizes that fit: "argument 0, dimension 0 = 32 fits in 1.2 MiB"; it may be
  // empty.
  OverBudget(const Plan& plan, const std::string& subject, Bytes budget, const std::string& smaller,
             Source at);
  // For an excess that no plan can foresee.
  OverBudget(const std::string& problem, Source at, std::string_view remedy, Bytes budget,
             Bytes floor)
      : UserError(problem, at, remedy), budget_(budget), floor_(floor) {}

  Bytes budget() const { return budget_; }
  // The least budget that would fit.
  Bytes floor() const { return floor_; }

 private:
  Bytes budget_, floor_;
};

}  // namespace tidemark
