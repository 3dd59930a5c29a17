// Running a user's function once on tensors that stand for values: every op becomes a node.
//
// A scope is what is being traced: a function, a branch, a loop's body. Scopes nest, each with a
// region of the one graph. Regions are closed, so a value of an outer scope comes in as a parameter
// of every region between; a concrete tensor becomes a parameter of the whole function, a hidden
// argument that points at its bytes.
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

  Trace* trace = nullptr;        // Null once the trace has ended.
  TraceScope* parent = nullptr;  // The same as `outer`.
  // What Variables were given in this scope, in order; inner scopes read through it.
  std::vector<std::pair<std::shared_ptr<VariableState>, Tensor>> written;
  std::unordered_map<const VariableState*, size_t> written_at;  // Where in `written`.
  void note_written(std::shared_ptr<VariableState> variable, Tensor value);
  // Null where it was given nothing here.
  const Tensor* written_to(const VariableState& variable) const;

  // Calls become nodes of the region; the scope is the current one.
  Tensor bind(const OpCall& call) override;
  Tensors bind_results(const OpCall& call, uint32_t wanted) override;
  bool observes(const Tensor&) const override { return true; }
  Tensor as_one_op(Tensors operands, const std::function<Tensor(const Tensors&)>& f,
                   Source at) override;
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

// What the thread is tracing now; null in eager code.
inline TraceScope* current_scope() { return static_cast<TraceScope*>(interpreters.tracer); }

// A plain number met while tracing: frozen into the program.
struct NumberMet {
  Source at = Source::none();
  double value = 0;
};

class Trace {
 public:
  Trace(std::string what, Source at);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // A parameter of the whole function. Where it repeats one element along axes (bits of `repeats`),
  // the parameter has one element there, and the tensor is a broadcast of it.
  Tensor argument(const TensorType& type, bool weak, Source at, uint64_t repeats = 0);
  Graph& graph() { return graph_; }
  SizeTable& sizes() { return sizes_; }
  // What each parameter of the body is: the arguments, and in the order they were met, concrete
  // tensors and Variables.
  struct Parameter {
    Tensor capture = {};
    std::shared_ptr<VariableState> variable = {};
    Value value = {};   // As the function sees it: the parameter, or a broadcast of it.
    bool weak = false;  // An argument that is a plain number.
    bool is_argument() const { return !capture.has_value() && variable == nullptr; }
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Which of them a Variable is, or -1.
  int32_t parameter_of(const VariableState& variable) const;
  std::vector<NumberMet>& numbers() { return numbers_; }
  // A whole number that the function is given, and the dtype it meets.
  struct Meeting {
    Value number;
    DType dtype = DType::u8;
    std::string op;
    Source at = Source::none();
  };
  std::vector<Meeting>& meetings() { return meetings_; }
  // The lines of functions that gradients run again, one for each time.
  std::vector<Source>& recomputed() { return recomputed_; }
  // The gradients that were made in it.
  passes::GradientHistory& gradients() { return gradients_; }
  TraceScope* body() { return body_; }
  // How a traced tensor that depends on no argument and no Variable becomes something that computes
  // it when it is first wanted: the initial value of a Variable made inside a trace.
  using Freeze = std::function<Tensor()> (*)(const Tensor& value, const std::string& variable,
                                             Source at);
  Freeze freeze = nullptr;  // Null where no Variable can be made.
  bool fuses = true;        // Whether the program made of it is fused.
  // Why the function is traced though it has been before. Variables are made in first traces only.
  void set_retraced(std::string reason) { retraced_ = std::move(reason); }
  const std::string& retraced() const { return retraced_; }

  Value capture(const Tensor& tensor, Source at);
  // The value a Variable has here, and a new one. Writes take effect when the call has succeeded.
  // What was assigned is read as a value of its own: its history is not that of what was assigned.
  Tensor read(const VariableState& variable, Source at);
  void write(VariableState& variable, Tensor value);
  // The same with its history: for regions that hand it on.
  Tensor handed_on(const VariableState& variable, Source at);
  // The value that a Variable has as the function begins.
  Tensor at_start(const VariableState& variable, Source at);
  // What Variables were assigned in the body and read again: a view of its own each, so that
  // gradients tell it from what was assigned. In branches and loops it is a call, whose gradient is
  // one by the Variable.
  struct ReadBack {
    int32_t parameter = -1;  // The Variable's.
    Value assigned = {};
    Value value = {};
  };
  const std::vector<ReadBack>& read_back() const { return read_back_; }

 private:
  Value add_parameter(const TensorType& type, uint64_t repeats, Source at);
  // What it was given in the innermost scope that did so; null where none did.
  std::pair<const TraceScope*, const Tensor*> assigned_to(const VariableState& variable) const;
  Tensor read_assigned(const VariableState& variable, const Tensor& assigned, Source at);
  Tensor read_inside(const VariableState& variable, const Tensor& assigned, Source at);

  Graph graph_;
  SizeTable sizes_;
  TraceScope* body_;
  std::vector<Parameter> parameters_;
  std::unordered_map<const VariableState*, int32_t> variables_;  // Of parameters_.
  std::unordered_multimap<const std::byte*, size_t> captures_;   // Likewise, by their bytes.
  std::vector<NumberMet> numbers_;
  std::vector<Meeting> meetings_;
  std::vector<ReadBack> read_back_;
  std::map<std::tuple<int32_t, int32_t, int16_t>, size_t> read_back_at_;  // By Variable and value.
  std::vector<Source> recomputed_;
  passes::GradientHistory gradients_;
  std::string retraced_;
};

// A node for the value that a Variable was assigned: without the history of that value, and with a
// gradient that is one by the Variable.
Node without_history(Graph& graph, Value assigned, Value variable, Source at);

// Makes a scope current for its life.
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

// A branch or a body: a region of its own inside the current scope.
class InnerScope {
 public:
  InnerScope(std::string what, Source at);
  // A region that was made before, as a scope again.
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

// The current scope's value of a tensor: a concrete one is captured; one of an outer scope is
// handed in; one that has left its function, loop or branch is a UserError.
Value value_of(const Tensor& tensor, Source at);
// How views and literals of outer scopes come in now.
inline Views views_now() { return taping() ? Views::handed_in : Views::made_again; }
Tensor traced_tensor(Value value, Source at, bool weak = false);
// A node of the current scope.
Tensor record(const OpDef& op, std::span<const Value> inputs, const Attrs& attrs,
              const TensorType& type, Source at);
// The same of an op with several results.
std::vector<Tensor> record_results(const OpDef& op, std::span<const Value> inputs,
                                   const Attrs& attrs, std::vector<TensorType> types, Source at);
// A literal of rank 0. `real` counts where the dtype is a float, else `whole`.
Value record_constant(DType dtype, double real, int64_t whole, Source at);

// Axes of more than one element that repeat one; bit k is axis k.
uint64_t repeated_axes(const ArrayRef& array);
// With one element along those axes.
Shape shown_once(const Shape& shape, uint64_t repeats);

}  // namespace tidemark::detail
