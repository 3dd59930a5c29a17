#include "tidemark/tensor/variable_state.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <ostream>
#include <utility>

#include "tidemark/base/lock.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/device/memory.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/mode.h"
#include "tidemark/tensor/placement.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace detail {
namespace {

using Guard = std::lock_guard<RecursiveMutex>;

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::string called(const VariableState& state) {
  return state.name.empty() ? std::string("the Variable") : cat("Variable \"", state.name, "\"");
}

// Makes the tensor's bytes those of a Variable.
Tensor adopted(Tensor tensor) {
  TensorState* state = TensorState::of(tensor);
  state->weak = false;
  state->tape_id = 0;  // To tapes, the Variable's value is not the tensor it came from.
  device::reclassify(*state->storage, ByteClass::variables);
  return tensor;
}

Tensor copied_for_variable(const Tensor& from, DType dtype, Source at) {
  const ArrayRef& array = placed_array_of(from, at);
  const int32_t memory = TensorState::of(from)->memory();
  Tensor copy = make_tensor_in(memory, dtype, array.shape, at, ByteClass::variables);
  copy_elements(from, copy, at);
  return copy;
}

// Memory that snapshots still hold is no longer charged to the Variable.
void disown(const Tensor& value) {
  if (!value.has_value() || is_sole(*TensorState::of(value))) return;
  device::reclassify(*TensorState::of(value)->storage, ByteClass::temporaries);
}

// Installs a value of the right type. Returns the old one, which the caller drops after unlocking.
Tensor replaced(const VariableState& state, Tensor value, Source at) {
  Tensor fresh = owns_whole_storage(*TensorState::of(value))
                     ? adopted(std::move(value))
                     : copied_for_variable(value, state.dtype, at);
  disown(state.value);
  return std::exchange(state.value, std::move(fresh));
}

// The initializer's result. It may read other Variables, but not this one.
Tensor initial_value(const VariableState& state) {
  struct Initializing {
    explicit Initializing(bool& now) : now(now) { now = true; }
    ~Initializing() { now = false; }
    bool& now;
  };
  const Initializing now(state.initializing);
  const SourceScope scope(state.at);  // Its bytes are charged to the line that declared it.
  const RunsInitializer draws;
  return tensor_of(state.initializer(state.shape, state.dtype), state.at, state.dtype);
}

// Under the lock: the value of a declared Variable, made now if it has none.
void initialize(const VariableState& state, Source at) {
  if (state.value.has_value()) return;
  if (state.initializing) {
    throw UserError(
        cat(called(state), " is read by its own initializer"), at,
        "an initializer gets a shape and a dtype, and must make its value from these alone");
  }
  FirstValues::expect();
  DrawsToKeep draws;
  Tensor made = initial_value(state);
  const TensorType type = type_of(made, state.at);
  if (type.shape != state.shape) {
    throw UserError(cat(called(state), " is ", state.type(), ", its initializer gave ", type), at,
                    "return a tensor of the shape and dtype that the initializer is given");
  }
  replaced(state, std::move(made), state.at);
  FirstValues::note(state);
  draws.keep();
  if (!FirstValues::are_recorded()) state.initializer = nullptr;
}

void check_type(const VariableState& state, const TensorType& type, const char* what,
                const char* gives, Source at) {
  if (type == state.type()) return;
  throw UserError(cat(what, ": ", called(state), " is ", state.type(), ", ", gives, " ", type), at,
                  type.dtype != state.dtype
                      ? "a Variable keeps its dtype: td::cast(x, variable.dtype())"
                      : "a Variable keeps its shape: reshape or broadcast the value first");
}

// A Variable keeps its memory as it keeps its type.
void check_memory(const VariableState& state, const Tensor& value, Source at) {
  if (!state.value.has_value()) return;
  const int32_t mine = TensorState::of(state.value)->memory(),
                its = TensorState::of(value)->memory();
  if (mine == its) return;
  throw UserError(cat("assign: ", called(state), " lies in ", device::memory_text(mine),
                      ", the value in ", device::memory_text(its)),
                  at,
                  cat("copy the value: td::transfer(x, ", mine,
                      "); or move the Variable: ", "variable.move_to(", its, ")"));
}

OperandType operand_type(const Operand& operand, Source at) {
  constexpr Weak kinds[] = {Weak::boolean, Weak::integer, Weak::floating, Weak::complex};
  if (operand.tensor() == nullptr) return {.weak = kinds[operand.kind()]};
  const TensorState& state = state_of(*operand.tensor(), at);
  OperandType type{.dtype = state.array.dtype, .shape = &state.array.shape};
  if (state.weak) {
    type.weak = type.dtype == DType::boolean ? Weak::boolean
                : type.dtype == DType::i32   ? Weak::integer
                                             : Weak::floating;
  }
  return type;
}

// The type of `variable op x`, which must be the Variable's own.
void check_pointwise(const VariableState& state, const BinaryOp& op, const Operand& x,
                     const char* what, Source at) {
  const OperandType types[] = {{.dtype = state.dtype, .shape = &state.shape}, operand_type(x, at)};
  const DType common = promote(types);
  TensorType type{is_complex(common) ? common : infer_pointwise(def_of(&op), types, at).result,
                  state.shape};
  if (types[1].shape != nullptr) broadcast_into(type.shape, *types[1].shape, what, at);
  check_type(state, type, what, "the result would be", at);
}

void assign_pointwise(VariableState& state, const BinaryOp& op, const Operand& x,
                      const char* what) {
  need_shape(state, x.at());
  check_pointwise(state, op, x, what, x.at());
  modify_variable(state, [&](const Operand& current) { return op(current, x, x.at()); }, x.at());
}

}  // namespace

VariableState::~VariableState() { disown(value); }

constinit thread_local bool RunsInitializer::now_ = false;
constinit thread_local VariableShadow* KeepVariables::current_ = nullptr;
constinit thread_local VariableShadow* ReplayVariables::current_ = nullptr;
constinit thread_local FirstValues* FirstValues::current_ = nullptr;
constinit thread_local MakeOnce* MakeOnce::current_ = nullptr;

std::shared_ptr<VariableState>* MakeOnce::next(Source at) {
  if (current_ == nullptr || (current_->where_ == Where::in_trace && !tracing())) return nullptr;
  const Source line = at.resolve();
  const int number = current_->counts_[{line.file, line.line}]++;
  return &current_->made_->table[{line.file, line.line, number}];
}

void FirstValues::forget() noexcept {
  for (; !made_.empty(); made_.pop_back()) {
    const VariableState& state = *made_.back();
    const Guard guard(state.lock);
    if (!state.value.has_value()) continue;
    // A value that another thread has read meanwhile stays, and so do its draws.
    if (is_sole(*TensorState::of(state.value)))
      state.value = {};
    else
      draws_.keep();
  }
}

void FirstValues::drop_initializers() const noexcept {
  for (const auto& state : made_) {
    Initializer dropped;  // After unlocking.
    const Guard guard(state->lock);
    if (state->value.has_value()) std::swap(dropped, state->initializer);
  }
}

void tell_tapes(const VariableState& state, const Tensor& value) {
  if (taping() && state.trainable && is_differentiable(state.dtype))
    interpreters.recorder->saw_read(state, value);
}

void need_shape(const VariableState& state, Source at) {
  if (state.shaped.load(std::memory_order_acquire)) return;
  throw UserError(cat(called(state), " has no shape yet"), at,
                  "its layer sets it at the first call: call the model, or td::nn::build(model, "
                  "td::spec({...}))");
}

std::optional<int32_t> memory_of(const VariableState& state) {
  const Guard guard(state.lock);
  if (!state.value.has_value()) return {};
  return TensorState::of(state.value)->memory();
}

namespace {

constinit std::atomic<int64_t> moves{0};

// Under the lock. The value that was is returned for the caller to drop when the lock is gone.
Tensor moved_to(const VariableState& state, int32_t memory, Source at) {
  if (TensorState::of(state.value)->memory() == memory) return {};
  Tensor there = copied_to(state.value, memory, at, ByteClass::variables);
  disown(state.value);
  moves.fetch_add(1, std::memory_order_relaxed);
  return std::exchange(state.value, std::move(there));
}

}  // namespace

int64_t variable_moves() { return moves.load(std::memory_order_relaxed); }

void make_first_value(const VariableState& state, int32_t memory, Source at) {
  need_shape(state, at);
  Tensor old;
  const Guard guard(state.lock);
  if (state.value.has_value()) return;
  initialize(state, at);
  old = moved_to(state, memory, at);
}

Tensor read_variable(const VariableState& state, Source at) {
  need_shape(state, at);
  if (tracing()) return interpreters.tracer->read(state, at);
  const Guard guard(state.lock);
  initialize(state, at);
  const Tensor* const shadow = ReplayVariables::standing_for(state);
  const Tensor& value = shadow != nullptr ? *shadow : state.value;
  KeepVariables::see(state, value);
  tell_tapes(state, value);
  return value;
}

void write_variable(VariableState& state, Tensor value, Source at) {
  const SourceScope scope(at);
  need_shape(state, at);
  if (tracing()) return interpreters.tracer->write(state, std::move(value));
  Tensor old;  // Dropped after unlocking.
  const Guard guard(state.lock);
  if (state.value.has_value()) KeepVariables::see(state, state.value);
  if (Tensor* const shadow = ReplayVariables::standing_for(state)) {
    *shadow = std::move(value);
    return;
  }
  check_memory(state, value, at);
  const bool in_place = state.value.has_value() && is_sole(*TensorState::of(state.value));
  if (in_place && !owns_whole_storage(*TensorState::of(value))) {
    copy_elements(value, state.value, at);
    TensorState::of(state.value)->tape_id = 0;
  } else {
    old = replaced(state, std::move(value), at);
  }
}

VariableWrite::VariableWrite(VariableState& state, const Tensor& value, Source at)
    : state_(&state), value_(copied_for_variable(value, state.dtype, at)) {
  const Guard guard(state.lock);
  check_memory(state, value, at);
  KeepVariables::see(state, state.value);
}

void VariableWrite::commit() noexcept {
  const Guard guard(state_->lock);
  if (Tensor* const shadow = ReplayVariables::standing_for(*state_)) {
    std::swap(*shadow, value_);
    return;
  }
  disown(state_->value);
  std::swap(state_->value, value_);
}

void modify_variable(VariableState& state, const std::function<Tensor(const Operand&)>& next,
                     Source at) {
  const SourceScope scope(at);
  need_shape(state, at);
  if (tracing()) {
    const Tensor current = read_variable(state, at);
    return write_variable(state, next(Operand(current, at)), at);
  }
  Tensor old;
  const Guard guard(state.lock);
  FirstValues first_value;
  initialize(state, at);
  KeepVariables::see(state, state.value);
  if (Tensor* const shadow = ReplayVariables::standing_for(state)) {
    *shadow = next(Operand(*shadow, at));
    return first_value.keep();
  }
  const NoTape unseen;  // The new value has no history.
  // An op that fails leaves its rvalue operand unchanged.
  if (is_sole(*TensorState::of(state.value)))
    state.value = adopted(next(Operand(std::move(state.value), at)));
  else
    old = replaced(state, next(Operand(state.value, at)), at);
  first_value.keep();
}

}  // namespace detail

using detail::VariableState;

namespace {

// A Variable that an earlier trace made is not made again; it must be wanted as it is.
void check_same(const VariableState& made, const TensorType& wanted, Source at) {
  const bool same = made.dtype == wanted.dtype && made.shape == wanted.shape;
  if (same || !made.shaped.load(std::memory_order_acquire)) return;
  throw UserError(cat(detail::called(made), " was made as ", made.type(),
                      " when the function was first traced, and would be ", wanted, " now"),
                  at, "make it outside of the function, or give it one shape in all traces");
}

std::shared_ptr<VariableState> declared(const VariableOptions& options, Source at) {
  auto state = std::make_shared<VariableState>();
  state->name = options.name;
  state->trainable = options.trainable;
  state->at = at.resolve();
  state->id = detail::next_id();
  return state;
}

}  // namespace

Variable::Variable(Tensor initial, VariableOptions options, Source at)
    : state_(declared(options, at)) {
  const SourceScope scope(at);
  const TensorType type = detail::type_of(initial, at);
  state_->shape = closed(type.shape);
  state_->dtype = options.dtype.value_or(type.dtype);
  if (state_->dtype != type.dtype)
    initial = detail::cast_to(Operand(std::move(initial), at), state_->dtype, at);
  if (detail::tracing()) {
    detail::Tracer& tracer = *detail::interpreters.tracer;
    std::shared_ptr<VariableState>* const once = detail::MakeOnce::next(at);
    if (once != nullptr && *once != nullptr) {
      check_same(**once, state_->type(), at);
      state_ = *once;
      return;
    }
    if (once == nullptr) tracer.check_declaration(detail::called(*state_), at);
    state_->initializer = [make = tracer.initial_value(initial, detail::called(*state_), at)](
                              const Shape&, DType) { return make(); };
    if (once != nullptr) *once = state_;
    return;
  }
  detail::write_variable(*state_, std::move(initial), at);
}

Variable::Variable(const Shape& shape, Initializer initializer, VariableOptions options, Source at)
    : state_(declared(options, at)) {
  std::shared_ptr<VariableState>* const once =
      options.made_once ? nullptr : detail::MakeOnce::next(at);
  if (once != nullptr && *once != nullptr) {
    check_same(**once, {options.dtype.value_or(DType::f32), closed(shape)}, at);
    state_ = *once;
    return;
  }
  if (detail::tracing() && !options.made_once && once == nullptr)
    detail::interpreters.tracer->check_declaration(detail::called(*state_), at);
  if (initializer == nullptr)
    throw UserError(cat(detail::called(*state_), " was declared without an initializer"), at,
                    "give a function that returns a tensor of a shape and a dtype");
  state_->shape = closed(shape);
  state_->dtype = options.dtype.value_or(DType::f32);
  state_->initializer = std::move(initializer);
  if (once != nullptr) *once = state_;
}

Variable Variable::unshaped(Initializer initializer, VariableOptions options, Source at) {
  if (std::shared_ptr<VariableState>* const once =
          options.made_once ? nullptr : detail::MakeOnce::next(at)) {
    if (*once == nullptr) {
      options.made_once = true;  // From here on it is.
      *once = VariableState::of(unshaped(std::move(initializer), std::move(options), at));
    }
    return VariableState::adopt(*once);
  }
  Variable variable(Shape{}, std::move(initializer), std::move(options), at);
  variable.state_->shaped.store(false, std::memory_order_release);
  return variable;
}

bool Variable::has_shape() const { return state_->shaped.load(std::memory_order_acquire); }

void Variable::set_shape(const Shape& shape, Source at) const {
  const Shape numbers = closed(shape);
  const detail::Guard guard(state_->lock);
  if (has_shape() && state_->shape != numbers) {
    throw UserError(
        cat("set_shape: ", detail::called(*state_), " is ", state_->type(), ", not ", numbers), at,
        "a Variable keeps its shape");
  }
  if (has_shape()) return;
  state_->shape = numbers;
  state_->shaped.store(true, std::memory_order_release);
}

void Variable::assign(const Operand& value) const {
  const Source at = value.at();
  const OperandType given = detail::operand_type(value, at);
  const OperandType types[] = {{.dtype = state_->dtype}, given};
  // A plain number takes the Variable's dtype, as it would in an op.
  const bool is_number = given.weak != Weak::no;
  const DType dtype = is_number ? promote(types) : given.dtype;
  const Shape shape = given.shape != nullptr ? *given.shape : Shape{};
  if (!has_shape() && dtype == state_->dtype) set_shape(shape, at);
  detail::check_type(*state_, {dtype, shape}, "assign", "the value", at);
  if (is_number)
    return detail::write_variable(*state_, detail::tensor_of(value, at, state_->dtype), at);
  const bool taken =
      value.is_dying() && detail::owns_whole_storage(*detail::TensorState::of(*value.tensor()));
  // The operand was passed as an rvalue, so its owner expects it to be emptied.
  Tensor handle =
      taken ? Tensor(std::move(const_cast<Tensor&>(*value.tensor()))) : Tensor(*value.tensor());
  detail::write_variable(*state_, std::move(handle), at);
}

void Variable::assign_add(const Operand& x) const {
  detail::assign_pointwise(*state_, add, x, "assign_add");
}

void Variable::assign_sub(const Operand& x) const {
  detail::assign_pointwise(*state_, subtract, x, "assign_sub");
}

void Variable::assign_slice(const Slices& place, const Operand& value) const {
  detail::modify_variable(
      *state_, [&](const Operand& current) { return update(current, place, value); }, place.at);
}

void Variable::scatter_update(const Operand& indices, const Operand& updates) const {
  const Source at = indices.at();
  detail::modify_variable(
      *state_,
      [&](const Operand& current) {
        const Tensor rest[] = {detail::tensor_of(indices, at),
                               detail::tensor_of(updates, at, current.tensor()->dtype())};
        return detail::bind_onto(def_of(&ops::put), current, rest, {}, at);
      },
      at);
}

// ---- several at one moment ----------------------------------------------------------------------

namespace detail {

namespace {

// Each once, in the global lock order.
std::vector<std::shared_ptr<VariableState>> in_lock_order(std::span<const Variable> variables) {
  std::vector<std::shared_ptr<VariableState>> states;
  states.reserve(variables.size());
  for (const Variable& variable : variables) states.push_back(VariableState::of(variable));
  std::sort(states.begin(), states.end(),
            [](const auto& a, const auto& b) { return a->id < b->id; });
  states.erase(std::unique(states.begin(), states.end()), states.end());
  return states;
}

}  // namespace

VariablesTogether::VariablesTogether(std::span<const Variable> variables)
    : locked_(in_lock_order(variables)) {
  for (const auto& state : locked_) state->lock.lock();
}

VariablesTogether::~VariablesTogether() {
  for (const auto& state : locked_) state->lock.unlock();
}

bool VariablesTogether::can_fill(const Variable& variable) const {
  const VariableState& state = *VariableState::of(variable);
  if (state.value.has_value()) (void)array_of(state.value, Source::none());  // The host writes it.
  return state.value.has_value() && is_sole(*TensorState::of(state.value));
}

std::span<std::byte> VariablesTogether::fill(const Variable& variable) const noexcept {
  TensorState& value = *TensorState::of(VariableState::of(variable)->value);
  value.tape_id = 0;
  const int64_t bytes = value.array.size() * size_of(value.array.dtype);
  return {value.array.data, static_cast<size_t>(bytes)};
}

void VariablesTogether::put(const Variable& variable, NextValue& next) const noexcept {
  VariableState& state = *VariableState::of(variable);
  if (!state.shaped.load(std::memory_order_acquire)) {
    state.shape = std::move(next.shape);
    state.shaped.store(true, std::memory_order_release);
  }
  disown(state.value);
  next.value = std::exchange(state.value, adopted(std::move(next.value)));
}

std::vector<Tensor> values_together(std::span<const Variable> variables,
                                    const std::function<void()>& meanwhile, Source at) {
  std::vector<Tensor> values;
  values.reserve(variables.size());
  // Initial values first: initializers run users' code, during which no other Variable may be
  // locked.
  for (const Variable& variable : variables) (void)read_variable(*VariableState::of(variable), at);
  const VariablesTogether together(variables);
  for (const Variable& variable : variables)
    values.push_back(read_variable(*VariableState::of(variable), at));
  meanwhile();
  return values;
}

void forget_shape(const Variable& variable) noexcept {
  VariableState& state = *VariableState::of(variable);
  const Guard guard(state.lock);
  if (!state.value.has_value()) state.shaped.store(false, std::memory_order_release);
}

}  // namespace detail

void Variable::move_to(int64_t memory, Source at) const {
  if (detail::tracing()) {
    throw UserError(cat("move_to: ", detail::called(*state_), " cannot move inside a function"), at,
                    "move it before the function is called");
  }
  const auto number = static_cast<int32_t>(memory);
  if (number != device::kHostMemory) (void)device::memory(number);
  detail::need_shape(*state_, at);
  Tensor old;
  const detail::Guard guard(state_->lock);
  detail::initialize(*state_, at);
  old = detail::moved_to(*state_, number, at);
}

namespace {

// What a read gives under an Autocast.
Tensor as_read(const VariableState& state, Tensor value, Source at) {
  const DType dtype = state.trainable ? detail::dtype_read(state.dtype) : state.dtype;
  return dtype == state.dtype ? value : detail::cast_to(Operand(value, at), dtype, at);
}

}  // namespace

Tensor Variable::value(Source at) const {
  return as_read(*state_, detail::read_variable(*state_, at), at);
}
// Only what is taken is converted; and the gradient of a lookup stays row-sparse.
Tensor Variable::operator[](const Slices& index) const {
  return as_read(*state_, detail::read_variable(*state_, index.at)[index], index.at);
}
Tensor detail::rows_read(const Variable& table, const std::function<Tensor(const Tensor&)>& take,
                         Source at) {
  const VariableState& state = *VariableState::of(table);
  return as_read(state, take(read_variable(state, at)), at);
}
const Shape& Variable::shape(Source at) const {
  detail::need_shape(*state_, at);
  return state_->shape;
}
DType Variable::dtype() const { return state_->dtype; }
const std::string& Variable::name() const { return state_->name; }
bool Variable::trainable() const { return state_->trainable; }
Source Variable::source() const { return state_->at; }

Variable Variable::clone(Source at) const {
  const SourceScope scope(at);
  const VariableOptions options{.name = name(), .trainable = trainable(), .dtype = dtype()};
  {
    const detail::Guard guard(state_->lock);
    if (!has_shape()) return unshaped(state_->initializer, options, at);
    if (!state_->value.has_value()) return Variable(shape(at), state_->initializer, options, at);
  }
  return Variable(value(at), options, at);
}

Tensor::Tensor(const Variable& variable, Source at) : Tensor(variable.value(at)) {}

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  const VariableState& state = *VariableState::of(variable);
  out << "Variable " << (state.name.empty() ? "" : cat(state.name, " "));
  if (!variable.has_shape()) return out << state.dtype << ", without a shape yet";
  out << state.type();
  const detail::Guard guard(state.lock);
  if (!state.value.has_value()) return out << ", declared";
  return out << '\n' << state.value;
}

}  // namespace tidemark
