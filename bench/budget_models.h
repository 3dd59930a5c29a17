// The models that budgets are measured on: training steps and gradients whose memory lies in
// different places, in activations, skips, loops, branches and second derivatives.
//
// Two models of one name compute the same bits, whatever their options.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tidemark/tidemark.h>

namespace tidemark::bench {

// A function with its arguments, made and not yet traced.
struct BudgetModel {
  // A call gives the loss first, where there is one, then gradients if they are not applied to
  // Variables.
  std::function<std::vector<Tensor>()> call;
  std::function<std::pair<std::vector<Tensor>, Profile>()> profile;
  // Of specs: nothing is allocated.
  std::function<Plan(const PlanOptions& options)> plan;
  // All that a call changes: parameters and the state of optimizers. Empty before the first call
  // where an optimizer makes its state then.
  std::function<std::vector<Variable>()> variables;
};

// The model that is measured, or one of the same kind that takes little time.
enum class ModelSize { whole, small };

struct BudgetModelCase {
  const char* name;
  BudgetModel (*of)(const FunctionOptions& options, ModelSize size);

  BudgetModel make(const FunctionOptions& options) const { return of(options, ModelSize::whole); }
  BudgetModel make_small(const FunctionOptions& options) const {
    return of(options, ModelSize::small);
  }
};
std::span<const BudgetModelCase> budget_models();
// Null where there is none of this name.
const BudgetModelCase* find_budget_model(std::string_view name);

// Everything a model has computed, as bytes. Holds no tensor: one that shares the memory of a
// Variable would make the next call copy it.
class Outcome {
 public:
  // Of calls that gave these results.
  Outcome(const std::vector<Tensor>& results, const BudgetModel& model);
  friend bool operator==(const Outcome&, const Outcome&) = default;

 private:
  void add(const Tensor& tensor);
  std::vector<std::vector<std::byte>> values_;
};

}  // namespace tidemark::bench
