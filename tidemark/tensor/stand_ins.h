// Variables without values that stand for tensors while a function is traced: a model whose
// Variables they are is a function of its parameters. Internal to the library.
#pragma once

#include <unordered_map>
#include <vector>

#include "tidemark/tensor/variable.h"

namespace tidemark::detail {

// Gives each Variable of a model another without a value in its place, and remembers them.
class VariablePlaceholders {
 public:
  void replace(Variable& variable);
  // In the order in which the model has them, each once.
  const std::vector<Variable>& list() const { return placeholders_; }

 private:
  std::unordered_map<const VariableState*, Variable> of_;
  std::vector<Variable> placeholders_;
};

// In its life reading such a Variable in a trace gives the tensor it stands for.
class StandIns {
 public:
  StandIns(const std::vector<Variable>& variables, const std::vector<Tensor>& tensors);
  ~StandIns();
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  // Whether one was assigned: the program would lose that.
  bool written() const { return written_; }
  // What a Variable stands for, or null.
  static const Tensor* find(const VariableState& variable);
  // Whether the Variable is one; it stands for the value then.
  static bool write(const VariableState& variable, const Tensor& value);

 private:
  static constinit thread_local StandIns* current_;
  std::unordered_map<const VariableState*, Tensor> tensors_;
  bool written_ = false;
  StandIns* outer_;
};

}  // namespace tidemark::detail
