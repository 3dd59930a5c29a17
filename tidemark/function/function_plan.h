// Makes the plans of a function's programs, and refuses programs over budget. Internal to the
// library.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/function/function_trace.h"
#include "tidemark/function/plan_data.h"

namespace tidemark::detail {

// Holds everything needed to plan for other values of open sizes, so that the function need not be
// alive.
struct PlanMaker {
  std::string name, title;  // Of the function: "step", "function \"step\"".
  std::shared_ptr<FunctionTrace> trace;
  int64_t limit_bytes = 0;  // The limit on programs that the trace caches.
  std::optional<Budget> budget = {};

  PlanMaker(const UserFunction& function, std::shared_ptr<FunctionTrace> of);

  // The program, or one that needs fewer bytes if Budget::available has become less than it needs.
  std::shared_ptr<const CompiledFunction> within_budget(
      std::shared_ptr<const CompiledFunction> program) const;
  // Throws OverBudget if a call of the program would need more than the budget.
  void check(const std::shared_ptr<const CompiledFunction>& program, Source at) const;
  // The plan, checked against the budget.
  Plan make(std::shared_ptr<const CompiledFunction> program, Source at) const;
  // The program of a key under the budget, which may not be that of the function.
  std::shared_ptr<const CompiledFunction> program_for(const ProgramKey& key) const;
  // The largest first open size, with all sizes equal to it, for which a program fits the budget.
  int64_t largest(const ProgramKey& key, Source at) const;

 private:
  std::vector<std::string> open_names() const;
  PlanNotes notes_of(const CompiledFunction& program) const;
  Plan at_sizes(const ProgramKey& key, std::span<const int64_t> sizes, Source at) const;
  std::vector<std::string> remedies_for(const CompiledFunction& program) const;
  std::string smaller_that_fits(const CompiledFunction& program) const;
  std::shared_ptr<const CompiledFunction> program_at(ProgramKey key,
                                                     std::span<const int64_t> sizes) const;
  Plan with_budgets(Plan plan, const ProgramKey& key) const;
  std::string fewer_threads_that_fit(const CompiledFunction& program) const;
  std::string fewer_slots_that_fit(const CompiledFunction& program) const;
  std::string recomputed_layer_that_fits(const CompiledFunction& program) const;
  std::string bf16_that_fits(const CompiledFunction& program) const;
  void check_serves(const char* call, std::span<const int64_t> sizes, Source at) const;
  SizeList sizes_with(const ProgramKey& key, int64_t first) const;
  bool fits_at(const ProgramKey& key, int64_t first) const;
  int64_t largest_from(const ProgramKey& key, int64_t below, int64_t above) const;
  std::optional<int64_t> next_of_equal_parts(const ProgramKey& key, int64_t size) const;
};

}  // namespace tidemark::detail
