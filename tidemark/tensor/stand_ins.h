// Placeholder Variables: while a function is traced, they stand for tensors, which makes a model a
// function of its parameters. Internal to the library.
#pragma once

#include <unordered_map>
#include <vector>

#include "tidemark/tensor/variable.h"

namespace tidemark::detail {

// Replaces each Variable of a model by a placeholder, and remembers the originals.
class VariablePlaceholders {
 public:
  void replace(Variable& variable);
  // In the order of the model, each once.
  const std::vector<Variable>& list() const { return placeholders_; }

 private:
  std::unordered_map<const VariableState*, Variable> of_;
  std::vector<Variable> placeholders_;
};

// While it lives, reading a placeholder in a trace returns the tensor it stands for.
class StandIns {
 public:
  StandIns(const std::vector<Variable>& variables, const std::vector<Tensor>& tensors);
  ~StandIns();
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  // Whether a placeholder was assigned; the program would lose that assignment.
  bool written() const { return written_; }
  // The tensor that a Variable stands for, or null.
  static const Tensor* find(const VariableState& variable);
  // Whether the Variable is a placeholder; if so it now stands for `value`.
  static bool write(const VariableState& variable, const Tensor& value);

 private:
  static constinit thread_local StandIns* current_;
  std::unordered_map<const VariableState*, Tensor> tensors_;
  bool written_ = false;
  StandIns* outer_;
};

}  // namespace tidemark::detail
