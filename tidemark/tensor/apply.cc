// The one path from a call to a result: types are inferred, bytes are taken or reused, kernels run.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tidemark/base/made_once.h"
#include "tidemark/compile/eager.h"
#include "tidemark/compile/library_ops.h"
#include "tidemark/device/threads.h"
#include "tidemark/grad/tape.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/structure.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/trace/trace.h"

namespace tidemark {
namespace detail {
namespace {

// ---- operands -----------------------------------------------------------------------------------

// A number as it came: from a plain C++ number, or from a tensor that holds one.
struct Number {
  Weak weak = Weak::no;
  int64_t whole = 0;
  double real = 0;
};

Number number_of(const Operand& operand, Source at) {
  constexpr Weak kinds[] = {Weak::boolean, Weak::integer, Weak::floating};
  if (operand.tensor() == nullptr) return {kinds[operand.kind()], operand.whole(), operand.real()};
  const TensorState& state = state_of(*operand.tensor(), at);
  if (!state.weak) return {};
  if (state.kind == TensorState::Kind::traced) {
    // A number that a function is given: its kind is known, its value is not.
    return {state.array.dtype == DType::boolean ? Weak::boolean
            : state.array.dtype == DType::i32   ? Weak::integer
                                                : Weak::floating,
            0, 0};
  }
  switch (state.array.dtype) {
    case DType::boolean:
      return {Weak::boolean, operand.tensor()->item<int64_t>(), 0};
    case DType::i32:
      return {Weak::integer, operand.tensor()->item<int64_t>(), 0};
    default:
      return {Weak::floating, 0, state.number};
  }
}

// The number in the dtype it meets, or a UserError where it does not fit.
uint64_t fitted(const Number& number, DType dtype, std::string_view op, Source at) {
  const bool real = number.weak == Weak::floating;
  if (!real) check_fits(number.whole, dtype, op, at);
  return number_bits(number.real, number.whole, real, dtype);
}

// ---- reuse --------------------------------------------------------------------------------------

// A dying operand whose bytes the result may take: dense, of the result's size, held by nobody
// else. A small part of large bytes is not taken: the result would keep all of them.
bool can_take(const Operand& operand, DType dtype, const Shape& shape) {
  if (!operand.is_dying() || operand.tensor() == nullptr || tracing()) return false;
  const TensorState* state = TensorState::of(*operand.tensor());
  return state != nullptr && is_sole(*state) && size_of(state->array.dtype) == size_of(dtype) &&
         state->array.shape == shape && state->array.is_contiguous() &&
         state->storage->bytes <= 2 * granted_bytes(state->array.size() * size_of(dtype));
}

// Where the result of such an operand goes. The operand keeps its bytes until the op is done: one
// that fails for want of memory changes nothing.
ArrayRef place_of(const Operand& operand, DType dtype) {
  ArrayRef place = TensorState::of(*operand.tensor())->array;
  place.dtype = dtype;
  return place;
}

Tensor take_over(const Operand& operand, DType dtype, Source at) {
  // A dying operand was given as an rvalue: emptying it is what its owner asked for.
  TensorState* state = TensorState::take(const_cast<Tensor&>(*operand.tensor()));
  state->array.dtype = dtype;
  state->weak = false;
  state->tape_id = 0;
  state->at = at.resolve();
  return TensorState::adopt(state);
}

// ---- the tiny path ------------------------------------------------------------------------------

// Few enough elements that nothing but the elements should cost time. No thread is worth waking for
// them, and no kernel runs one step faster.
constexpr int64_t kTinyElements = 4096;
// Numbers and operands that repeat are written out, this many elements at a time.
constexpr int64_t kTinyBlock = 256;

struct TinyEntry {
  compile::TinyStep step;
  DType result = DType::f32;
};

class TinyTable {
 public:
  TinyTable() : entries_(catalogue().size()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const OpDef& op = catalogue()[i];
      for (int d = 0; d < kDTypes; ++d) {
        const auto dtype = static_cast<DType>(d);
        if (op.family != Family::pointwise || op.value == nullptr || !computes_in(op, dtype))
          continue;
        if (op.arity == 3) continue;
        const std::array<OperandType, 2> types = {OperandType{dtype}, OperandType{dtype}};
        const std::span operands = std::span(types).first(static_cast<size_t>(op.arity));
        entries_[i][static_cast<size_t>(d)] = {
            compile::tiny_step(op, dtype), infer_pointwise(op, operands, Source::none()).result};
      }
    }
  }
  const TinyEntry& of(const OpDef& op, DType dtype) const {
    return entries_[static_cast<size_t>(&op - catalogue().data())][static_cast<size_t>(dtype)];
  }

 private:
  std::vector<std::array<TinyEntry, kDTypes>> entries_;
};

// Repeats the first `bytes` at `from` until `end` bytes are filled, twice as many each time.
void fill(std::byte* to, const void* from, size_t bytes, size_t end) {
  size_t filled = std::min(bytes, end);
  std::memcpy(to, from, filled);
  for (; filled < end; filled *= 2) std::memcpy(to + filled, to, std::min(filled, end - filled));
}

// A plain number in the dtype of the tensor it meets, `count` times; false where the number's kind
// is the higher one, so that the tensor would be promoted.
bool spread(const Operand& operand, DType dtype, int64_t count, std::string_view op, Source at,
            std::byte* to) {
  const Number number = number_of(operand, at);
  const OperandType types[] = {{dtype}, {dtype, number.weak}};
  if (is_low_precision(dtype) || promote(types) != dtype) return false;
  const uint64_t bits = fitted(number, dtype, op, at);
  const auto bytes = static_cast<size_t>(size_of(dtype));
  fill(to, &bits, bytes, static_cast<size_t>(count) * bytes);
  return true;
}

// A dense array written out over the shape it repeats along the first axes of.
bool repeat(const ArrayRef& array, const Shape& shape, std::byte* to) {
  const int64_t shift = shape.rank() - array.rank();
  if (shift < 0 || !std::equal(array.shape.begin(), array.shape.end(), shape.begin() + shift))
    return false;
  const auto bytes = static_cast<size_t>(array.size() * size_of(array.dtype));
  if (bytes == 0) return false;
  const auto end = static_cast<size_t>(shape.size() * size_of(array.dtype));
  fill(to, array.data, bytes, end);
  return true;
}

// Dense tensors of one dtype and shape, or with a number or with rows that repeat beside one; few
// elements, one step: straight to the elements.
bool apply_tiny(const OpDef& op, std::initializer_list<const Operand*> operands, Source at,
                Tensor& result) {
  static constinit MadeOnce<TinyTable> made;
  const TinyTable& table = made.get();
  if (operands.size() > 2) return false;
  const TensorState* states[2] = {};
  const TensorState* widest = nullptr;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor* tensor = operands.begin()[i]->tensor();
    if (tensor == nullptr) continue;
    const TensorState* state = TensorState::of(*tensor);
    if (state == nullptr || state->weak || state->kind != TensorState::Kind::concrete ||
        !state->array.is_contiguous())
      return false;
    if (widest != nullptr && state->array.dtype != widest->array.dtype) return false;
    states[i] = state;
    if (widest == nullptr || state->array.rank() > widest->array.rank()) widest = state;
  }
  if (widest == nullptr) return false;
  const ArrayRef& whole = widest->array;
  const int64_t size = whole.size();
  const TinyEntry& entry = table.of(op, whole.dtype);
  if (size > kTinyElements || entry.step.function == nullptr) return false;

  const device::FloatEnvironment ieee;  // Numbers are rounded to their dtype here.
  const int64_t element = size_of(whole.dtype);
  alignas(64) std::byte written_out[2][kTinyBlock * 8];
  const std::byte* in[2] = {};
  int64_t movement[2] = {element, element};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (states[i] == nullptr) {
      const int64_t count = std::min(size, kTinyBlock);
      if (!spread(*operands.begin()[i], whole.dtype, count, op.name, at, written_out[i]))
        return false;
      in[i] = written_out[i];
      movement[i] = 0;
    } else if (states[i] == widest || states[i]->array.shape == whole.shape) {
      in[i] = states[i]->array.data;
    } else {
      if (size > kTinyBlock || !repeat(states[i]->array, whole.shape, written_out[i])) return false;
      in[i] = written_out[i];
    }
  }
  const bool by_blocks = movement[0] == 0 || movement[1] == 0;
  const int64_t block = by_blocks ? kTinyBlock : std::max<int64_t>(1, size);
  for (size_t i = 0; i < operands.size() && !result.has_value(); ++i) {
    const Operand& operand = *operands.begin()[i];
    if (can_take(operand, entry.result, whole.shape)) result = take_over(operand, entry.result, at);
  }
  if (!result.has_value()) result = make_tensor(entry.result, whole.shape, at);
  std::byte* const out = TensorState::of(result)->array.data;
  for (int64_t first = 0; first < size; first += block) {
    const void* ordered[3];
    for (size_t i = 0; i < 3; ++i) {
      const auto operand = static_cast<size_t>(entry.step.operands[i]);
      ordered[i] = in[operand] + first * movement[operand];
    }
    entry.step.function(ordered, out + first * size_of(entry.result),
                        std::min(block, size - first));
  }
  return true;
}

// ---- tracing ------------------------------------------------------------------------------------

// A whole number that the function is given meets a dtype that does not hold all such numbers: each
// call sees to it.
void note_meeting(const Tensor& number, DType dtype, std::string_view op, Source at) {
  if (dtype != DType::u8) return;
  const TensorState& state = state_of(number, at);
  std::vector<Trace::Meeting>& known = current_scope->trace->meetings();
  const auto same = [&](const Trace::Meeting& other) {
    return other.number == state.value() && other.dtype == dtype;
  };
  if (std::none_of(known.begin(), known.end(), same))
    known.push_back({state.value(), dtype, std::string(op), at.resolve()});
}

// An operand in the dtype an op computes in, as a value of the trace. A plain number is a literal.
Value traced_operand(const Operand& operand, const Number& number, DType dtype, std::string_view op,
                     Source at) {
  const bool is_literal = number.weak != Weak::no &&
                          (operand.tensor() == nullptr ||
                           state_of(*operand.tensor(), at).kind == TensorState::Kind::concrete);
  if (!is_literal) {
    if (number.weak == Weak::integer) note_meeting(*operand.tensor(), dtype, op, at);
    return value_as(*operand.tensor(), dtype, at);
  }
  const bool real = number.weak == Weak::floating;
  fitted(number, dtype, op, at);  // Refuses what does not fit.
  current_scope->trace->numbers().push_back(
      {at.resolve(), real ? number.real : static_cast<double>(number.whole)});
  // A whole number is rounded to a float dtype once.
  const double value = real ? number.real
                       : dtype == DType::f64
                           ? static_cast<double>(number.whole)
                           : static_cast<double>(static_cast<float>(number.whole));
  return record_constant(dtype, value, number.whole, at);
}

// ---- tapes --------------------------------------------------------------------------------------

// Runs an op that a tape wants to know of; `run` does what would be done without one.
template <class Run>
std::vector<Tensor> recorded_results(const OpDef& op, const Attrs& attrs,
                                     std::span<const Tensor* const> operands,
                                     std::span<const TensorType> types, Source at, const Run& run) {
  Recording recording(op, attrs, operands, types, at);
  std::vector<Tensor> made;
  {
    const NoTape unseen;
    made = run();
  }
  recording.finish(made);
  return made;
}
template <class Run>
Tensor recorded(const OpDef& op, const Attrs& attrs, std::vector<const Tensor*> operands,
                const TensorType& result, Source at, const Run& run) {
  return recorded_results(op, attrs, operands, {&result, 1}, at,
                          [&] { return std::vector<Tensor>{run()}; })[0];
}

bool any_watched(std::initializer_list<const Operand*> operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const Operand* operand) { return is_watched({operand->tensor()}); });
}

// The rule sees operands of the dtypes the op computes in: casts are ops of their own.
Tensor recorded_pointwise(const OpDef& op, std::initializer_list<const Operand*> operands,
                          Source at) {
  const size_t count = operands.size();
  std::array<OperandType, 3> types;
  Shape shape;
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *operands.begin()[i];
    types[i].weak = number_of(operand, at).weak;
    if (operand.tensor() == nullptr) continue;
    const ArrayRef& array = state_of(*operand.tensor(), at).array;
    types[i].dtype = array.dtype;
    types[i].shape = &array.shape;
    broadcast_into(shape, array.shape, op.name, at);
  }
  const PointwiseType type = infer_pointwise(op, std::span(types).first(count), at);
  std::array<Tensor, 3> converted;
  std::array<const Tensor*, 3> tensors = {};
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *operands.begin()[i];
    const bool as_it_is = types[i].weak == Weak::no && types[i].dtype == type.compute[i];
    // The op itself still reads the operand, dying or not: what is converted is a copy.
    if (!as_it_is)
      converted[i] =
          tensor_of(operand.tensor() != nullptr ? Operand(*operand.tensor(), at) : operand, at,
                    type.compute[i]);
    tensors[i] = as_it_is ? operand.tensor() : &converted[i];
  }
  return recorded(op, {}, {tensors.begin(), tensors.begin() + count}, {type.result, shape}, at,
                  [&] { return apply_pointwise(op, operands, at); });
}

}  // namespace

void check_fits(int64_t number, DType dtype, std::string_view op, Source at) {
  const bool fits = dtype == DType::i32  ? number >= INT32_MIN && number <= INT32_MAX
                    : dtype == DType::u8 ? number >= 0 && number <= 255
                                         : true;
  if (fits) return;
  throw UserError(cat(op, ": ", number, " does not fit ", dtype), at,
                  "cast the tensor to a wider dtype first");
}

// ---- families -----------------------------------------------------------------------------------

Tensor apply_pointwise(const OpDef& op, std::initializer_list<const Operand*> operands, Source at) {
  if (taping() && !tracing() && any_watched(operands)) [[unlikely]]
    return recorded_pointwise(op, operands, at);
  Tensor tiny;
  if (!tracing() && apply_tiny(op, operands, at, tiny)) return tiny;
  const SourceScope scope(at);          // Scratch is charged to the line too.
  const device::FloatEnvironment ieee;  // Numbers are rounded to their dtype here.

  const size_t count = operands.size();
  std::array<OperandType, 3> types;
  std::array<Number, 3> numbers;
  Shape shape;
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *operands.begin()[i];
    numbers[i] = number_of(operand, at);
    types[i].weak = numbers[i].weak;
    if (operand.tensor() == nullptr) continue;
    const ArrayRef& array = state_of(*operand.tensor(), at).array;
    types[i].dtype = array.dtype;
    types[i].shape = &array.shape;
    broadcast_into(shape, array.shape, op.name, at);
  }
  const PointwiseType type = infer_pointwise(op, std::span(types).first(count), at);
  if (tracing()) {
    SmallVec<Value, 3> inputs;
    for (size_t i = 0; i < count; ++i)
      inputs.push_back(
          traced_operand(*operands.begin()[i], numbers[i], type.compute[i], op.name, at));
    return record(op, inputs, {}, {type.result, shape}, at);
  }

  std::array<ArrayRef, 3> arrays;
  std::array<compile::Input, 3> inputs;
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *operands.begin()[i];
    if (types[i].weak != Weak::no) {
      inputs[i].number = fitted(numbers[i], type.compute[i], op.name, at);
    } else {
      arrays[i] = compile::stretched(array_of(*operand.tensor(), at), shape);
      inputs[i].array = &arrays[i];
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *operands.begin()[i];
    if (types[i].weak != Weak::no || !can_take(operand, type.result, shape)) continue;
    compile::run_pointwise(op, std::span(inputs).first(count), type,
                           place_of(operand, type.result));
    return take_over(operand, type.result, at);
  }
  Tensor result = make_tensor(type.result, shape, at);
  compile::run_pointwise(op, std::span(inputs).first(count), type, TensorState::of(result)->array);
  return result;
}

Tensor apply_cast(const Operand& x, DType dtype, Source at) {
  const SourceScope scope(at);
  if (x.tensor() == nullptr) return tensor_of(x, at, dtype);
  const TensorState& state = state_of(*x.tensor(), at);
  if (state.array.dtype == dtype && !state.weak) return *x.tensor();
  if (tracing()) {
    return state.weak ? tensor_of(x, at, dtype)
                      : traced_tensor(value_as(*x.tensor(), dtype, at), at.resolve());
  }
  const ArrayRef array = array_of(*x.tensor(), at);
  if (is_watched({x.tensor()})) {
    return recorded(def_of(&ops::cast), Attrs().add(dtype), {x.tensor()}, {dtype, array.shape}, at,
                    [&] { return apply_cast(x, dtype, at); });
  }
  if (can_take(x, dtype, array.shape)) {
    compile::run_copy(array, place_of(x, dtype));
    return take_over(x, dtype, at);
  }
  Tensor result = make_tensor(dtype, array.shape, at);
  compile::run_copy(array, TensorState::of(result)->array);
  return result;
}

Tensor apply_reduce(const OpDef& op, const Tensor& x, const AxisList& axes, bool keep, Source at) {
  const SourceScope scope(at);
  const ArrayRef& array = state_of(x, at).array;
  const TensorType type{array.dtype, array.shape};
  const Attrs attrs = Attrs().add(axes).add(keep);
  const TensorType wanted = op.infer({op, {&type, 1}, attrs, at});
  check_has_elements(op, type, wanted, axes, at);
  if (tracing()) return record(op, {{value_of(x, at)}}, attrs, wanted, at);
  if (is_watched({&x})) {
    return recorded(op, attrs, {&x}, wanted, at,
                    [&] { return apply_reduce(op, x, axes, keep, at); });
  }
  Tensor result = make_tensor(wanted.dtype, wanted.shape, at);
  compile::run_reduce(op, array_of(x, at), axes, TensorState::of(result)->array);
  return result;
}

Tensor apply_row(const OpDef& op, const Operand& x, int64_t axis, Source at) {
  const SourceScope scope(at);
  Tensor operand = tensor_of(x, at);
  const TensorType type = type_of(operand, at);
  const int64_t plain = plain_axis(axis, type.shape.rank(), op.name, type, at);
  const DType wanted = admit(op, type.dtype, at);
  if (wanted != type.dtype) operand = apply_cast(operand, wanted, at);
  if (tracing()) {
    return record(op, {{value_of(operand, at)}}, Attrs().add(plain), {wanted, type.shape}, at);
  }
  if (is_watched({&operand})) {
    return recorded(op, Attrs().add(plain), {&operand}, {wanted, type.shape}, at,
                    [&] { return apply_row(op, Operand(operand, at), plain, at); });
  }
  const ArrayRef array = array_of(operand, at);
  if (wanted == type.dtype && x.tensor() != nullptr) {
    operand = {};  // The caller's handle, if it is dying, must be the only one.
    if (can_take(x, wanted, array.shape)) {
      compile::run_row(op, array, plain, place_of(x, wanted));
      return take_over(x, wanted, at);
    }
  }
  Tensor result = make_tensor(wanted, array.shape, at);
  compile::run_row(op, array, plain, TensorState::of(result)->array);
  return result;
}

Tensor apply_view(const OpDef& op, const Tensor& x, const Attrs& attrs, Source at) {
  const TensorType type = type_of(x, at);
  ArrayRef seen;
  seen.dtype = type.dtype;
  seen.shape = op.infer({op, {&type, 1}, attrs, at}).shape;
  if (tracing()) return record(op, {{value_of(x, at)}}, attrs, {type.dtype, seen.shape}, at);
  if (is_watched({&x})) {
    return recorded(op, attrs, {&x}, {type.dtype, seen.shape}, at,
                    [&] { return apply_view(op, x, attrs, at); });
  }
  if (op.view(array_of(x, at), attrs, seen)) return make_view(x, seen, at);
  const Tensor packed = dense(x, at);
  TIDEMARK_CHECK(op.view(array_of(packed, at), attrs, seen), op.name,
                 " of a dense tensor is a view");
  return make_view(packed, seen, at);
}

Tensor apply_op(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, Source at) {
  const SourceScope scope(at);
  if (op.view != nullptr) return apply_view(op, operands[0], attrs, at);
  return apply_results(op, operands, attrs, 1, at)[0];
}

std::vector<Tensor> apply_results(const OpDef& op, std::span<const Tensor> operands,
                                  const Attrs& attrs, uint32_t wanted, Source at) {
  const SourceScope scope(at);
  std::vector<TensorType> types;
  std::vector<ArrayRef> arrays;
  for (const Tensor& operand : operands) types.push_back(type_of(operand, at));
  types = infer_results({op, types, attrs, at});
  if (tracing()) {
    SmallVec<Value, 3> inputs;
    for (const Tensor& operand : operands) inputs.push_back(value_of(operand, at));
    return record_results(op, inputs, attrs, std::move(types), at);
  }
  if (taping()) {
    std::vector<const Tensor*> list;
    bool watched = false;
    for (const Tensor& operand : operands) {
      list.push_back(&operand);
      watched |= is_watched({&operand});
    }
    bool flows = false;
    for (size_t r = 0; r < types.size(); ++r)
      flows |= (wanted >> r & 1) != 0 && is_float(types[r].dtype);
    if (watched && flows) {
      // Rules may read results that the caller does not want.
      return recorded_results(op, attrs, list, types, at,
                              [&] { return apply_results(op, operands, attrs, ~uint32_t{0}, at); });
    }
  }
  for (const Tensor& operand : operands) arrays.push_back(array_of(operand, at));
  std::vector<Tensor> results(types.size());
  std::vector<ArrayRef> places;
  for (size_t r = 0; r < types.size(); ++r) {
    const bool is_wanted = (wanted >> r & 1) != 0;
    if (is_wanted) results[r] = make_tensor(types[r].dtype, types[r].shape, at);
    places.push_back(is_wanted ? TensorState::of(results[r])->array
                               : ArrayRef{.dtype = types[r].dtype,
                                          .shape = types[r].shape,
                                          .strides = contiguous_strides(types[r].shape)});
  }
  const device::FloatEnvironment ieee;
  compile::run_library(op, arrays, attrs, places, at);
  return results;
}

Tensor apply_onto(const OpDef& op, const Operand& first, std::span<const Tensor> rest,
                  const Attrs& attrs, Source at) {
  const TensorType type = first.tensor() != nullptr ? type_of(*first.tensor(), at) : TensorType{};
  std::vector<Tensor> operands;
  const bool watched =
      std::any_of(rest.begin(), rest.end(), [](const Tensor& each) { return is_watched({&each}); });
  if (watched || is_watched({first.tensor()}) || !can_take(first, type.dtype, type.shape)) {
    operands.push_back(tensor_of(first, at));
    operands.insert(operands.end(), rest.begin(), rest.end());
    return apply_op(op, operands, attrs, at);
  }
  const SourceScope scope(at);
  std::vector<TensorType> types = {type};
  std::vector<ArrayRef> arrays = {array_of(*first.tensor(), at)};
  for (const Tensor& operand : rest) {
    types.push_back(type_of(operand, at));
    arrays.push_back(array_of(operand, at));
  }
  op.infer({op, types, attrs, at});
  const device::FloatEnvironment ieee;
  compile::run_library(op, arrays, attrs, {&arrays[0], 1}, at);
  return take_over(first, type.dtype, at);
}

// ---- conversions --------------------------------------------------------------------------------

Tensor tensor_of(const Operand& operand, Source at, std::optional<DType> dtype) {
  const Number number = number_of(operand, at);
  if (number.weak == Weak::no) {
    return !dtype || operand.tensor()->dtype() == *dtype ? *operand.tensor()
                                                         : apply_cast(operand, *dtype, at);
  }
  const DType wanted = dtype.value_or(default_dtype(number.weak));
  const device::FloatEnvironment ieee;
  if (tracing() && (number.weak != Weak::floating || is_float(wanted)))
    return traced_tensor(traced_operand(operand, number, wanted, "constant", at), at.resolve());
  if (tracing() && operand.tensor() != nullptr &&
      state_of(*operand.tensor(), at).kind == TensorState::Kind::traced)
    return traced_tensor(value_as(*operand.tensor(), wanted, at), at.resolve());
  Tensor result = make_tensor(wanted, {}, at);
  if (number.weak == Weak::floating && !is_float(wanted)) {
    visit_dtype(wanted, [&](auto value) {
      using T = decltype(value);
      if constexpr (std::is_arithmetic_v<T>) {
        value = converted<T>(number.real);
        std::memcpy(TensorState::of(result)->array.data, &value, sizeof(value));
      }
    });
    return result;
  }
  compile::run_fill(fitted(number, wanted, "constant", at), TensorState::of(result)->array);
  return result;
}

Tensor dense(const Tensor& tensor, Source at) {
  if (tracing()) return tensor;
  const ArrayRef& array = array_of(tensor, at);
  if (array.is_contiguous()) return tensor;
  if (is_watched({&tensor})) return identity(tensor, at);
  Tensor result = make_tensor(array.dtype, array.shape, at);
  compile::run_copy(array, TensorState::of(result)->array);
  return result;
}

}  // namespace detail

// ---- the call operators of the families ---------------------------------------------------------

Tensor UnaryOp::operator()(const Operand& x, Source at) const {
  return detail::apply_pointwise(def_of(this), {&x}, at);
}

Tensor BinaryOp::operator()(const Operand& a, const Operand& b, Source at) const {
  return detail::apply_pointwise(def_of(this), {&a, &b}, at);
}

Tensor TernaryOp::operator()(const Operand& a, const Operand& b, const Operand& c,
                             Source at) const {
  return detail::apply_pointwise(def_of(this), {&a, &b, &c}, at);
}

Tensor ReduceOp::operator()(const Operand& x, const Axes& axes, Keep keep, Source at) const {
  const bool is_tensor = x.tensor() != nullptr && !detail::state_of(*x.tensor(), at).weak;
  const Tensor made = is_tensor ? Tensor() : detail::tensor_of(x, at);
  const Tensor& operand = is_tensor ? *x.tensor() : made;
  const TensorType type = detail::type_of(operand, at);
  const AxisList list = plain_axes(axes, name, type, at);
  if (gives_index && list.size() != 1 && !axes.every()) {
    throw UserError(cat(name, ": takes one axis or none, got ", list.size()), at,
                    "reshape the axes into one first");
  }
  return detail::apply_reduce(def_of(this), operand, list, keep == Keep::yes, at);
}

Tensor RowOp::operator()(const Operand& x, int64_t axis, Source at) const {
  return detail::apply_row(def_of(this), x, axis, at);
}

}  // namespace tidemark
