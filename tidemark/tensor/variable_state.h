// What a Variable points at; internal to the library. Every read and every write of a value goes
// through the three functions below.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/base/lock.h"
#include "tidemark/tensor/draws.h"
#include "tidemark/tensor/variable.h"

namespace tidemark::detail {

struct VariableState : std::enable_shared_from_this<VariableState> {
  VariableState() = default;
  VariableState(const VariableState&) = delete;
  VariableState& operator=(const VariableState&) = delete;
  ~VariableState();

  // Recursive, so that an initializer that reads its own Variable is told so.
  mutable RecursiveMutex lock;
  mutable Tensor value;  // Dense, of class `variables`. Nothing before the first use of a declared
                         // Variable.
  mutable bool initializing = false;
  Initializer initializer;
  Shape shape;  // Once `shaped`.
  std::atomic<bool> shaped = true;
  DType dtype = DType::f32;
  std::string name;
  bool trainable = true;
  Source at = Source::none();
  uint64_t id = 0;  // In the order of declaration, from 1.

  TensorType type() const { return {dtype, shape}; }

  static const std::shared_ptr<VariableState>& of(const Variable& variable) {
    return variable.state_;
  }
  static Variable adopt(std::shared_ptr<VariableState> state) { return Variable(std::move(state)); }
};

// What Variables were when a function first read or wrote them, so that it can be run again as if
// nothing had happened since. For eager code, on one thread.
using VariableShadow = std::map<const VariableState*, Tensor>;

// Keeps in its life what Variables are before they are touched.
class KeepVariables {
 public:
  explicit KeepVariables(VariableShadow& kept) : outer_(std::exchange(current_, &kept)) {}
  ~KeepVariables() { current_ = outer_; }
  KeepVariables(const KeepVariables&) = delete;
  KeepVariables& operator=(const KeepVariables&) = delete;
  // Before a Variable is read or written.
  static void see(const VariableState& variable, const Tensor& value) {
    if (current_ != nullptr) current_->try_emplace(&variable, value);
  }

 private:
  static constinit thread_local VariableShadow* current_;
  VariableShadow* outer_;
};

// In its life Variables that were kept are what they were, and writes to them are forgotten.
class ReplayVariables {
 public:
  explicit ReplayVariables(VariableShadow kept)
      : now_(std::move(kept)), outer_(std::exchange(current_, &now_)) {}
  ~ReplayVariables() { current_ = outer_; }
  ReplayVariables(const ReplayVariables&) = delete;
  ReplayVariables& operator=(const ReplayVariables&) = delete;
  // What stands for a Variable now; null where the Variable does itself.
  static Tensor* standing_for(const VariableState& variable) {
    if (current_ == nullptr) return nullptr;
    const auto found = current_->find(&variable);
    return found == current_->end() ? nullptr : &found->second;
  }

 private:
  static constinit thread_local VariableShadow* current_;
  VariableShadow now_;
  VariableShadow* outer_;
};

// In its life an initializer runs on this thread: what it draws comes from a sequence of its own.
class RunsInitializer {
 public:
  RunsInitializer() : outer_(std::exchange(now_, true)) {}
  ~RunsInitializer() { now_ = outer_; }
  RunsInitializer(const RunsInitializer&) = delete;
  RunsInitializer& operator=(const RunsInitializer&) = delete;
  static bool now() { return now_; }

 private:
  static constinit thread_local bool now_;
  bool outer_;
};

// In its life Variables that get their first value on this thread are noted. Unless they are kept
// they lose it again, and what their initializers drew is given back.
class FirstValues {
 public:
  FirstValues() : outer_(std::exchange(current_, this)) {}
  ~FirstValues() {
    current_ = outer_;
    if (!kept_) forget();
  }
  FirstValues(const FirstValues&) = delete;
  FirstValues& operator=(const FirstValues&) = delete;
  void keep() {
    kept_ = true;
    draws_.keep();
  }
  // Before one is made; throws where there is no memory to note it.
  static void expect() {
    for (FirstValues* each = current_; each != nullptr; each = each->outer_)
      each->made_.reserve(each->made_.size() + 1);
  }
  static void note(const VariableState& state) noexcept {
    for (FirstValues* each = current_; each != nullptr; each = each->outer_)
      each->made_.push_back(state.shared_from_this());
  }

 private:
  void forget() noexcept;

  static constinit thread_local FirstValues* current_;
  std::vector<std::shared_ptr<const VariableState>> made_;
  DrawsToKeep draws_;
  bool kept_ = false;
  FirstValues* outer_;
};

// A UserError where the Variable has no shape yet.
void need_shape(const VariableState& state, Source at);

// Tells the tapes of this thread that a Variable was read.
void tell_tapes(const VariableState& state, const Tensor& value);

// The value now: a handle that shares its bytes.
Tensor read_variable(const VariableState& state, Source at);
// The value has the Variable's type. Its bytes are adopted where it was moved in and nobody else
// holds them, else copied.
void write_variable(VariableState& state, Tensor value, Source at);
// A write in eager code, in two parts: the bytes are made now, and commit() cannot fail. The
// Variable has a value. What it had goes with the object.
class VariableWrite {
 public:
  VariableWrite(VariableState& state, const Tensor& value, Source at);
  void commit() noexcept;

 private:
  VariableState* state_;
  Tensor value_;
};
// Replaces the value by `next` of it, which has the same type. The operand that `next` gets is
// dying where nobody else holds the value, so that the op works in its place.
void modify_variable(VariableState& state, const std::function<Tensor(const Operand&)>& next,
                     Source at);

}  // namespace tidemark::detail
