#include "tidemark/nn/predict.h"

#include <atomic>
#include <list>
#include <mutex>
#include <utility>

#include "tidemark/api/extend.h"
#include "tidemark/api/function.h"
#include "tidemark/api/mode.h"
#include "tidemark/base/error.h"
#include "tidemark/base/lock.h"
#include "tidemark/base/made_once.h"
#include "tidemark/base/text.h"

namespace tidemark::detail {
namespace {

using ModelProgram = Function<Tensor(std::vector<Tensor>, Tensor)>;

// A model as a function of its parameters.
struct Prediction {
  std::string key;
  ModelProgram program;
  std::atomic<bool> is_none = false;

  Prediction(std::string key, ModelProgram program)
      : key(std::move(key)), program(std::move(program)) {}
};
// A model that assigns Variables in evaluation mode is not a function of them.
struct AssignsVariables {};

ModelProgram program_of(ModelOfStandIns parts, const PredictCall& call) {
  return ModelProgram(
      [parts = std::move(parts), at = call.at](const std::vector<Tensor>& values, const Tensor& x) {
        const StandIns stand_ins(parts.variables, values);
        Tensor result = parts.model(x, at);
        if (stand_ins.written()) throw AssignsVariables();
        return result;
      },
      {.name = "predict", .budget = call.options.budget}, call.at);
}

// The most recently used models. Each entry holds the programs of one model, bounded by its
// function's cache.
class Predictions {
 public:
  std::shared_ptr<Prediction> find(const std::string& key) {
    const std::lock_guard guard(lock_);
    for (auto each = list_.begin(); each != list_.end(); ++each) {
      if ((*each)->key != key) continue;
      list_.splice(list_.begin(), list_, each);
      return list_.front();
    }
    return nullptr;
  }
  void add(std::shared_ptr<Prediction> prediction) {
    constexpr size_t most = 16;
    const std::lock_guard guard(lock_);
    list_.push_front(std::move(prediction));
    if (list_.size() > most) list_.pop_back();
  }

 private:
  Mutex lock_;
  std::list<std::shared_ptr<Prediction>> list_;
};

Predictions& predictions() {
  static constinit MadeOnce<Predictions> all;  // Other threads may still run programs at exit.
  return all.get();
}

bool all_have_shapes(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables)
    if (!variable.has_shape()) return false;
  return true;
}

// Programs within different budgets differ.
void add_budget(std::string& key, const std::optional<Budget>& budget) {
  if (budget) key += budget->is_available() ? "available" : cat(budget->bytes().count);
}

Tensor called_eagerly(const nn::AnyLayer& model, const PredictCall& call) {
  const nn::Training off(false);
  const SourceScope scope(call.at);
  return model(call.x, call.at);
}

}  // namespace

Tensor predicted_eagerly(const nn::AnyLayer& model, const PredictCall& call, const char* reason) {
  if (call.options.budget)
    throw UserError(cat("predict: the model runs eagerly, without a plan, because ", reason,
                        "; so it cannot be held to a budget"),
                    call.at,
                    "leave out .budget, or give td::function a budget and call the model there");
  return called_eagerly(model, call);
}

Tensor predicted(std::string key, const std::vector<Variable>& variables, const nn::AnyLayer& model,
                 const std::function<ModelOfStandIns()>& make, const PredictCall& call) {
  // Inside a trace the model is part of the function's program and of its budget.
  if (is_tracing()) return called_eagerly(model, call);
  if (!all_have_shapes(variables))
    return predicted_eagerly(model, call, "its Variables have no shapes yet");
  const nn::Training off(false);
  add_budget(key, call.options.budget);
  std::shared_ptr<Prediction> prediction = predictions().find(key);
  if (prediction == nullptr) {
    prediction = std::make_shared<Prediction>(key, program_of(make(), call));
    predictions().add(prediction);
  }
  constexpr const char* kAssigns = "it assigns Variables";
  if (prediction->is_none) return predicted_eagerly(model, call, kAssigns);
  std::vector<Tensor> values;
  values.reserve(variables.size());
  for (const Variable& variable : variables) values.push_back(variable.value(call.at));
  try {
    return prediction->program(std::move(values), call.x, call.at);
  } catch (const AssignsVariables&) {
    prediction->is_none = true;
    return predicted_eagerly(model, call, kAssigns);
  }
}

}  // namespace tidemark::detail
