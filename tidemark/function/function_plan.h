// Plans of a function's programs, and the refusal of one that is over its budget. Internal to the
// library.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tidemark/function/function_trace.h"
#include "tidemark/function/plan_data.h"

namespace tidemark::detail {

// Holds all that plans for other values of open sizes are made from: the function need not be
// there.
struct PlanMaker {
  std::string name, title;  // Of the function: "step", "function \"step\"".
  std::shared_ptr<FunctionTrace> trace;
  int64_t limit_bytes = 0;  // Of programs that the trace keeps.
  std::optional<Bytes> budget = {};

  PlanMaker(const UserFunction& function, std::shared_ptr<FunctionTrace> of);

  // Traces the function again without each td::recompute, so that plans can say what it saves.
  void trace_without_recompute(const UserFunction& function, Source at);
  // Throws OverBudget where a call of the program would need more than the budget.
  void check(const std::shared_ptr<const CompiledFunction>& program, Source at) const;
  // The plan, checked.
  Plan make(std::shared_ptr<const CompiledFunction> program, Source at) const;

 private:
  struct Alternative {
    Source at = Source::none();  // Of the td::recompute that is left out.
    int64_t times = 0;
    std::shared_ptr<FunctionTrace> trace;
  };

  std::vector<std::string> open_names() const;
  PlanNotes notes_of(const CompiledFunction& program) const;
  Plan at_sizes(const ProgramKey& key, std::span<const int64_t> sizes, Source at) const;
  std::string smaller_that_fits(const CompiledFunction& program) const;
  std::shared_ptr<const CompiledFunction> program_at(ProgramKey key,
                                                     std::span<const int64_t> sizes) const;

  std::vector<Alternative> alternatives_;
};

}  // namespace tidemark::detail
