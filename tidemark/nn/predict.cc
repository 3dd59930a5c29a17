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

ModelProgram program_of(ModelOfStandIns parts, Source at) {
  return ModelProgram(
      [parts = std::move(parts), at](const std::vector<Tensor>& values, const Tensor& x) {
        const StandIns stand_ins(parts.variables, values);
        Tensor result = parts.model(x, at);
        if (stand_ins.written()) throw AssignsVariables();
        return result;
      },
      {.name = "predict"}, at);
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

}  // namespace

Tensor predicted_eagerly(const nn::AnyLayer& model, const Tensor& x, Source at) {
  const nn::Training off(false);
  const SourceScope scope(at);
  return model(x, at);
}

Tensor predicted(const std::string& key, const std::vector<Variable>& variables,
                 const nn::AnyLayer& model, const std::function<ModelOfStandIns()>& make,
                 const Tensor& x, Source at) {
  // Inside a trace, or before the model has its shapes, the model itself is called.
  if (is_tracing() || !all_have_shapes(variables)) return predicted_eagerly(model, x, at);
  const nn::Training off(false);
  std::shared_ptr<Prediction> prediction = predictions().find(key);
  if (prediction == nullptr) {
    prediction = std::make_shared<Prediction>(key, program_of(make(), at));
    predictions().add(prediction);
  }
  if (prediction->is_none) return predicted_eagerly(model, x, at);
  std::vector<Tensor> values;
  values.reserve(variables.size());
  for (const Variable& variable : variables) values.push_back(variable.value(at));
  try {
    return prediction->program(std::move(values), x, at);
  } catch (const AssignsVariables&) {
    prediction->is_none = true;
    return predicted_eagerly(model, x, at);
  }
}

}  // namespace tidemark::detail
