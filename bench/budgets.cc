// budgets [model...]: the peak of training steps and gradients, the time of a call, and whether a
// call within the floor keeps to it and computes the same bits.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/budget_models.h"
#include "bench/interleave.h"

namespace tidemark::bench {
namespace {

double mib(Bytes bytes) { return static_cast<double>(bytes.count) / (1 << 20); }

// The shortest of a few calls of a model that was called before.
double best_call_s(const BudgetModel& model) {
  double best = 0;
  for (int call = 0; call < 3; ++call) {
    const double begin = now_s();
    model.call();
    const double taken = now_s() - begin;
    best = call == 0 ? taken : std::min(best, taken);
  }
  return best;
}

Outcome outcome_of(const BudgetModel& model) { return Outcome(model.call(), model); }

// Whether a call within the budget uses no more, and gives what `expected` has.
bool keeps(const BudgetModelCase& which, Bytes budget, const Outcome& expected) {
  const BudgetModel model = which.make({.name = which.name, .budget = budget});
  const auto [results, profile] = model.profile();
  return profile.planned <= budget && profile.touched <= budget &&
         Outcome(results, model) == expected;
}

// Whether its budget is kept.
bool measure(const BudgetModelCase& which) {
  const BudgetModel model = which.make({.name = which.name});
  const Plan plan = model.plan({});
  const Outcome expected = outcome_of(model);
  const bool is_kept = keeps(which, plan.floor(), expected);
  std::printf("%-16s peak %9.3f MiB, floor %9.3f MiB, %9.2f ms a call, %s\n", which.name,
              mib(plan.peak()), mib(plan.floor()), best_call_s(model) * 1e3,
              is_kept ? "kept" : "NOT KEPT");
  std::fflush(stdout);
  return is_kept;
}

int usage() {
  std::fprintf(stderr, "usage: budgets [model...]\nmodels:");
  for (const BudgetModelCase& each : budget_models()) std::fprintf(stderr, " %s", each.name);
  std::fprintf(stderr, "\n");
  return 2;
}

int run(const std::vector<std::string>& names) {
  std::vector<const BudgetModelCase*> chosen;
  for (const std::string& name : names) {
    chosen.push_back(find_budget_model(name));
    if (chosen.back() == nullptr) return usage();
  }
  if (chosen.empty())
    for (const BudgetModelCase& each : budget_models()) chosen.push_back(&each);
  int missed = 0;
  for (const BudgetModelCase* each : chosen) missed += measure(*each) ? 0 : 1;
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::run(std::vector<std::string>(argv + 1, argv + argc));
}
