// Trace: runs a user's function once on placeholder tensors and records every op as a node.
//
// A scope is a part of the program that is being traced: a function, a branch, a loop's body.
// Scopes nest, each with its own region of the graph. Regions are closed, so a value of an outer
// scope becomes a parameter of every region in between. A concrete tensor becomes a parameter of
// the whole function: a hidden argument that points at its bytes.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tidemark/passes/gradient/gradient_history.h"
#include "tidemark/passes/region_scope.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark::detail {

class Trace;
struct VariableState;

struct TraceScope final : TracePlace, Tracer, RegionScope {
  ~TraceScope() override;

  Trace* trace = nullptr;        // Null after the trace has ended.
  TraceScope* parent = nullptr;  // The same as `outer`.
  // The Variables that this scope assigned, with their values, in order; inner scopes read them.
  std::vector<std::pair<std::shared_ptr<VariableState>, Tensor>> written;
  std::unordered_map<const VariableState*, size_t> written_at;  // Indices in `written`.
  void note_written(std::shared_ptr<VariableState> variable, Tensor value);
  // Null if this scope has not assigned the Variable.
  const Tensor* written_to(const VariableState& variable) const;

  // Calls become nodes of the region; the scope is the current one.
  Tensor bind(const OpCall& call) override;
  Tensors bind_results(const OpCall& call, uint32_t wanted) override;
  bool observes(const Tensor&) const override { return true; }
  Tensor as_one_op(const Composition& what, Tensors operands,
                   const std::function<Tensor(const Tensors&)>& f, Source at) override;
  Tensor constant(DType dtype, double real, int64_t whole, Source at) override;
  Tensor number(const Operand& operand, const PlainNumber& number, DType dtype, Source at) override;
  Tensor size_number(Dim size, Source at) override;
  std::optional<Dim> open_size(const TensorState& state) const override;
  Tensor read(const VariableState& variable, Source at) override;
  void write(VariableState& variable, Tensor value) override;
  void check_declaration(const std::string& title, Source at) const override;
  std::function<Tensor()> initial_value(const Tensor& value, const std::string& title,
                                        Source at) override;
};

// The scope that the thread is tracing; null in eager code.
inline TraceScope* current_scope() { return static_cast<TraceScope*>(interpreters.tracer); }

// A plain number that was used while tracing: it is a constant of the program.
struct FrozenNumber {
  Source at = Source::none();
  double value = 0;
};

class Trace {
 public:
  Trace(std::string what, Source at);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // A parameter of the whole function. If the argument repeats one element along axes (bits of
  // `repeats`), the parameter has one element there, and the tensor is a broadcast of it.
  Tensor argument(const TensorType& type, bool weak, Source at, uint64_t repeats = 0);
  Graph& graph() { return graph_; }
  SizeTable& sizes() { return sizes_; }
  // The meaning of each parameter of the body: first the arguments, then concrete tensors and
  // Variables in the order of their first use.
  struct Parameter {
    Tensor capture = {};
    std::shared_ptr<VariableState> variable = {};
    Value value = {};   // As the function sees it: the parameter, or a broadcast of it.
    bool weak = false;  // An argument that is a plain number.
    bool is_argument() const { return !capture.has_value() && variable == nullptr; }
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // The parameter that holds the value of a Variable, or -1.
  int32_t parameter_of(const VariableState& variable) const;
  std::vector<FrozenNumber>& numbers() { return numbers_; }
  // A whole number that is passed at each call and used in a dtype that cannot hold all whole
  // numbers.
  struct NumberUse {
    Value number;
    DType dtype = DType::u8;
    std::string op;
    Source at = Source::none();
  };
  std::vector<NumberUse>& number_uses() { return number_uses_; }
  // The lines of functions that gradients recompute, one entry for each time.
  std::vector<Source>& recomputed() { return recomputed_; }
  // The gradients that were made in this trace.
  passes::GradientHistory& gradients() { return gradients_; }
  TraceScope* body() { return body_; }
  // Turns a traced tensor that depends on no argument and no Variable into a function that computes
  // it when it is first read: the initial value of a Variable that is made inside a trace.
  using Freeze = std::function<Tensor()> (*)(const Tensor& value, const std::string& variable,
                                             Source at);
  Freeze freeze = nullptr;  // Null if Variables cannot be made.
  bool fuses = true;        // Whether the program is fused.
  // Why the function is traced again. Variables can be made only in the first trace.
  void set_retraced(std::string reason) { retraced_ = std::move(reason); }
  const std::string& retraced() const { return retraced_; }

  Value capture(const Tensor& tensor, Source at);
  // The value of a Variable at this point, and a new one. Writes take effect after the call has
  // succeeded. An assigned value is read without its history: gradients treat it as the Variable's.
  Tensor read(const VariableState& variable, Source at);
  void write(VariableState& variable, Tensor value);
  // The same with the history, for regions that pass it on.
  Tensor handed_on(const VariableState& variable, Source at);
  // The value of a Variable at the start of the function.
  Tensor at_start(const VariableState& variable, Source at);
  // Values that the body assigned to Variables and read again. Each is a separate view, so that
  // gradients distinguish it from the value that was assigned. In branches and loops it is a call
  // node with an identity gradient for the Variable.
  struct ReadBack {
    int32_t parameter = -1;  // That of the Variable.
    Value assigned = {};
    Value value = {};
  };
  const std::vector<ReadBack>& read_back() const { return read_back_; }

 private:
  Value add_parameter(const TensorType& type, uint64_t repeats, Source at);
  // The value assigned in the innermost scope that did so; null if there is none.
  std::pair<const TraceScope*, const Tensor*> assigned_to(const VariableState& variable) const;
  Tensor read_assigned(const VariableState& variable, const Tensor& assigned, Source at);
  Tensor read_inside(const VariableState& variable, const Tensor& assigned, Source at);

  Graph graph_;
  SizeTable sizes_;
  TraceScope* body_;
  std::vector<Parameter> parameters_;
  std::unordered_map<const VariableState*, int32_t> variables_;  // Indices of parameters_.
  // Likewise, by the address of their bytes.
  std::unordered_multimap<const std::byte*, size_t> captures_;
  std::vector<FrozenNumber> numbers_;
  std::vector<NumberUse> number_uses_;
  std::vector<ReadBack> read_back_;
  std::map<std::tuple<int32_t, int32_t, int16_t>, size_t> read_back_at_;  // By Variable and value.
  std::vector<Source> recomputed_;
  passes::GradientHistory gradients_;
  std::string retraced_;
};

// A node for a value that was assigned to a Variable: without the history of the value, and with an
// identity gradient for the Variable.
Node without_history(Graph& graph, Value assigned, Value variable, Source at);

// Makes a scope current for the lifetime of this object.
class EnterScope {
 public:
  explicit EnterScope(TraceScope* scope)
      : previous_(std::exchange(interpreters.tracer, static_cast<Tracer*>(scope))) {}
  ~EnterScope() { interpreters.tracer = previous_; }
  EnterScope(const EnterScope&) = delete;
  EnterScope& operator=(const EnterScope&) = delete;

 private:
  Tracer* previous_;
};

// A branch or a body: a new region inside the current scope.
class InnerScope {
 public:
  InnerScope(std::string what, Source at);
  // Enters a region that was made before.
  InnerScope(std::string what, RegionId region, Source at);
  ~InnerScope();
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

  Tensor parameter(const TensorType& type, Source at);
  TraceScope* scope() { return scope_; }
  RegionId region() const { return scope_->region; }

 private:
  TraceScope* scope_;
  EnterScope entered_;
};

// The current scope's value of a tensor. A concrete tensor is captured, and a value of an outer
// scope is passed in. Throws a UserError if the tensor has left its function, loop or branch.
Value value_of(const Tensor& tensor, Source at);
// How views and literals of outer scopes are passed into the current one.
inline Views views_now() { return taping() ? Views::handed_in : Views::made_again; }
Tensor traced_tensor(Value value, Source at, bool weak = false);
// Adds a node to the current scope.
Tensor record(const OpDef& op, std::span<const Value> inputs, const Attrs& attrs,
              const TensorType& type, Source at);
// The same for an op with several results.
std::vector<Tensor> record_results(const OpDef& op, std::span<const Value> inputs,
                                   const Attrs& attrs, std::vector<TensorType> types, Source at);
// A literal of rank 0. `real` is its value if the dtype is a float, else `whole`.
Value record_constant(DType dtype, double real, int64_t whole, Source at);

// The axes of more than one element that repeat one element; bit k is axis k.
uint64_t repeated_axes(const ArrayRef& array);
// The shape with one element along those axes.
Shape shown_once(const Shape& shape, uint64_t repeats);

}  // namespace tidemark::detail
