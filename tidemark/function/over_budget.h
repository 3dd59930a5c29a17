// OverBudget: a function does not fit its budget.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
  // The plan is of the program that needs the fewest bytes; `usual` is the peak without a budget.
  // Each remedy names something that fits: "argument 0, dimension 0 = 32 fits in 1.2 MiB".
  struct Refused {
    std::string subject;
    Bytes budget, usual;
    std::vector<std::string> remedies;
  };
  OverBudget(const Plan& least, const Refused& refused, Source at);
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
