// The state of a Variable; internal to the library. Every read and write of a value goes through
// the three functions at the end.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
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

  // Recursive, so that an initializer that reads its own Variable gets an error and not a deadlock.
  mutable RecursiveMutex lock;
  mutable Tensor value;  // Dense, of class `variables`; empty before a declared one is first used.
  mutable bool initializing = false;
  // Dropped, with what it captures, once there is a value that stays.
  mutable Initializer initializer;
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

// The values of Variables from before a function first touched them, so that the function can be
// run again with them. For eager code, on one thread.
using VariableShadow = std::map<const VariableState*, Tensor>;

// While it lives, it records the value of each Variable before it is touched.
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

// While it lives, recorded Variables have their old values, and writes to them are discarded.
class ReplayVariables {
 public:
  explicit ReplayVariables(VariableShadow kept)
      : now_(std::move(kept)), outer_(std::exchange(current_, &now_)) {}
  ~ReplayVariables() { current_ = outer_; }
  ReplayVariables(const ReplayVariables&) = delete;
  ReplayVariables& operator=(const ReplayVariables&) = delete;
  // The state that currently replaces a Variable's; null if none does.
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

// While it lives, an initializer runs on this thread: its random draws come from a separate
// sequence.
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

// The Variables that a function makes while it is traced, by the line that makes them and how often
// that line has made one in this trace. A later trace gets the same ones again. A function that
// runs as it is, without a trace, is like one that is traced by every call.
class VariablesMade {
 public:
  using Place = std::tuple<std::string, unsigned, int>;
  std::map<Place, std::shared_ptr<VariableState>> table;
};

// While it lives, Variables that are made in the trace of this thread (or outside of traces too)
// are those of the table, or become so.
class MakeOnce {
 public:
  enum class Where : uint8_t { in_trace, anywhere };
  explicit MakeOnce(VariablesMade& made, Where where = Where::in_trace)
      : made_(&made), where_(where), outer_(std::exchange(current_, this)) {}
  ~MakeOnce() { current_ = outer_; }
  MakeOnce(const MakeOnce&) = delete;
  MakeOnce& operator=(const MakeOnce&) = delete;

  // The entry for the next Variable of a line, empty before it is made; null if it has none.
  static std::shared_ptr<VariableState>* next(Source at);

 private:
  static constinit thread_local MakeOnce* current_;
  VariablesMade* made_;
  Where where_;
  std::map<std::pair<std::string, unsigned>, int> counts_;
  MakeOnce* outer_;
};

// While it lives, it records the Variables that get their initial value on this thread. Unless
// keep() is called, they lose it again, and the draws of their initializers are returned.
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
    if (outer_ == nullptr) drop_initializers();
  }
  // Whether a value that is made now may be forgotten.
  static bool are_recorded() { return current_ != nullptr; }
  // Called before a value is made; throws if there is no memory to record it.
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
  void drop_initializers() const noexcept;

  static constinit thread_local FirstValues* current_;
  std::vector<std::shared_ptr<const VariableState>> made_;
  DrawsToKeep draws_;
  bool kept_ = false;
  FirstValues* outer_;
};

// A UserError if the Variable has no shape yet.
void need_shape(const VariableState& state, Source at);

// Tells the tapes of this thread that a Variable was read.
void tell_tapes(const VariableState& state, const Tensor& value);

// The number of the memory that its value lies in, or nothing before it has one.
std::optional<int32_t> memory_of(const VariableState& state);
// How often a Variable came to lie in another memory, so far in this process.
int64_t variable_moves();
// Makes the first value of a Variable that has none, in the memory of this number.
void make_first_value(const VariableState& state, int32_t memory, Source at);

// The current value: a handle that shares its memory.
Tensor read_variable(const VariableState& state, Source at);
// Assigns a value of the Variable's type. Its memory is adopted if it was moved in and is not
// shared, else copied.
void write_variable(VariableState& state, Tensor value, Source at);
// A write in eager code, in two parts: the constructor allocates and computes, and commit() cannot
// fail. The Variable must have a value. The object holds the old value after commit().
class VariableWrite {
 public:
  VariableWrite(VariableState& state, const Tensor& value, Source at);
  void commit() noexcept;

 private:
  VariableState* state_;
  Tensor value_;
};
// Replaces the value by `next(value)`, which must have the same type. If the value is not shared,
// `next` gets it as an rvalue and can work in place.
void modify_variable(VariableState& state, const std::function<Tensor(const Operand&)>& next,
                     Source at);

}  // namespace tidemark::detail
