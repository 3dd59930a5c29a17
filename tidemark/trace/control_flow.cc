// Control flow in eager code, which runs bodies directly; and the checks that eager and traced code
// share.
#include <algorithm>

#include "tidemark/base/interrupt.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/ops/typing.h"
#include "tidemark/structure/structure.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/trace/control_flow_core.h"
#include "tidemark/trace/trace.h"

namespace tidemark::detail {

bool is_tracing() { return tracing(); }

// ---- checks -------------------------------------------------------------------------------------

namespace {

// A plain number stays a plain number.
Tensor held(const Operand& operand) {
  if (operand.tensor() != nullptr) return *operand.tensor();
  if (operand.kind() == 3)
    return Tensor(std::complex<float>(std::complex<double>(operand.real(), operand.imag())),
                  operand.at());
  if (operand.kind() == 0) return Tensor(operand.whole() != 0, operand.at());
  return operand.kind() == 1 ? Tensor(operand.whole(), operand.at())
                             : Tensor(operand.real(), operand.at());
}

}  // namespace

Tensor not_a_view(const Tensor& tensor, Source at) {
  return tensor.has_value() ? dense(tensor, at) : tensor;
}

Tensor condition_of(const Operand& chosen, std::string_view name, Source at) {
  const Tensor tensor = held(chosen);
  const TensorType type = type_of(tensor, at);
  if (type.dtype != DType::boolean || type.shape.rank() != 0) {
    throw UserError(cat(name, ": the condition must be one bool, got ", type), at,
                    type.dtype == DType::boolean
                        ? "reduce it with td::all or td::any, or choose by element with td::where"
                        : "compare it with something: x > 0");
  }
  return tensor;
}

Tensor index_of(const Operand& index, std::string_view name, Source at) {
  const Tensor tensor = held(index);
  const TensorType type = type_of(tensor, at);
  if (!is_integer(type.dtype) || type.shape.rank() != 0) {
    throw UserError(
        cat(name, ": expected one integer, got ", type), at,
        is_integer(type.dtype) ? "pick one element: x[0]" : "cast it: td::cast(x, td::i32)");
  }
  return tensor;
}

void structure_differs(std::string_view problem, std::string_view one, std::string_view other,
                       Source at) {
  throw UserError(cat(problem, ": ", key_change(one, other)), at,
                  "lengths, keys and sizes stay as they are; to collect results use "
                  "td::TensorArray or td::scan");
}

void check_count(std::string_view name, std::string_view option, int64_t count, int64_t least,
                 Source at) {
  if (count >= least) return;
  throw UserError(cat(name, ": ", option, " must be at least ", least, ", got ", count), at,
                  "leave it out for the default");
}

void chunk_is_automatic(std::string_view name, Source at) {
  throw UserError(cat(name, ": an automatic chunk beside parallel_iterations"), at,
                  "both say how many bodies run at once: leave one out");
}

Dim common_length(const Tensors& walked, const PathOf& path, std::string_view name, Source at) {
  if (walked.empty())
    throw UserError(cat(name, ": there is no tensor to take slices of"), at,
                    "give at least one; td::arange(n) gives the numbers of the trips");
  for (size_t i = 0; i < walked.size(); ++i) {
    const TensorType type = type_of(walked[i], at);
    if (type.shape.rank() == 0)
      throw UserError(
          cat(name, ": ", path(i), " is ", type, ", which has no axis to take slices of"), at,
          "capture it in the body if every trip uses it whole");
    const TensorType first = type_of(walked[0], at);
    if (type.shape[0] != first.shape[0])
      throw UserError(cat(name, ": ", path(0), " is ", first, " and ", path(i), " is ", type, " (",
                          first.shape[0], " and ", type.shape[0], " slices)"),
                      at, "each trip takes one slice of every tensor, so their first sizes agree");
  }
  return type_of(walked[0], at).shape[0];
}

bool is_within(const Shape& shape, const Shape& invariant) {
  return shape.rank() == invariant.rank() &&
         std::equal(shape.begin(), shape.end(), invariant.begin(),
                    [](Dim size, Dim allowed) { return allowed.is_open() || size == allowed; });
}

void check_invariants(const LoopParts& parts, Source at) {
  if (parts.invariants.empty()) return;
  if (parts.invariants.size() != parts.carries.size())
    throw UserError(cat(parts.name, ": ", parts.invariants.size(), " shape invariants for ",
                        parts.carries.size(), " tensors"),
                    at, "give one for each tensor carried, in order");
  for (size_t k = 0; k < parts.carries.size(); ++k) {
    if (!parts.carries[k].has_value()) continue;
    const TensorType type = type_of(parts.carries[k], at);
    if (!is_within(type.shape, parts.invariants[k]))
      throw UserError(cat(parts.name, ": ", parts.carry_path(k), " is ", type,
                          " at the start, its shape invariant is ", parts.invariants[k]),
                      at,
                      "an invariant allows the shape at the start; td::open leaves a size free");
  }
}

void carry_changed(const LoopParts& parts, size_t carry, const TensorType& before,
                   const TensorType& after, Source at) {
  const bool declared = carry < parts.invariants.size();
  const bool may_change = declared ? is_within(after.shape, parts.invariants[carry])
                                   : parts.shape_remedy.empty();  // In eager code.
  std::string remedy;
  if (before.dtype != after.dtype)
    remedy = cat("cast it in the body, td::cast(x, td::", name(before.dtype),
                 "), or start with the other dtype");
  else if (may_change && tracing())
    remedy =
        "in a function a carry has one size in all trips: collect in td::TensorArray, whose "
        "size or max_size is known";
  else
    remedy = declared ? cat("its shape invariant is ", parts.invariants[carry])
             : !parts.shape_remedy.empty()
                 ? std::string(parts.shape_remedy)
                 : std::string(
                       "give it the same shape, or declare which sizes may change: "
                       ".shape_invariants = {{td::open}}");
  throw UserError(cat(parts.name, ": ", parts.carry_path(carry), " is ", before,
                      " at the start of a trip and ", after, " at its end"),
                  at, remedy);
}

DType number_dtype_of(const LoopParts& parts, Source at) {
  const TensorState &lower = state_of(parts.lower, at), &upper = state_of(parts.upper, at);
  if (lower.weak && upper.weak) return DType::i32;
  if (lower.weak) return upper.array.dtype;
  return upper.weak ? lower.array.dtype : promote(lower.array.dtype, upper.array.dtype);
}

// ---- eager --------------------------------------------------------------------------------------

namespace {

// Slice number `number` along the first axis of each tensor.
Tensors slices_of(const Tensors& walked, int64_t number, Source at) {
  Tensors slices;
  slices.reserve(walked.size());
  for (const Tensor& array : walked) slices.push_back(dense(array[Slices(number, at)], at));
  return slices;
}

// The stacked results of trips. Each is written to its row of memory that is allocated once.
class Stacks {
 public:
  Stacks(std::string_view name, int64_t trips, const PathOf& path, Source at)
      : name_(name), trips_(trips), path_(path), at_(at) {}

  void put(int64_t trip, std::span<Tensor> elements) {
    for (size_t i = 0; i < elements.size(); ++i) {
      const Tensor element = tensor_of(elements[i], at_);
      const TensorType type = type_of(element, at_);
      if (stacks_.size() == i) start(type);
      if (type != types_[i]) differs(i, type);
      ArrayRef place = array_of(stacks_[i], at_);
      place.data += trip * type.shape.size() * size_of(type.dtype);
      place.shape = type.shape;
      place.strides = contiguous_strides(type.shape);
      compile::run_copy(array_of(element, at_), place);
      if (taping()) ids_[i][static_cast<size_t>(trip)] = tape_id_of(element);
    }
  }
  void start(const TensorType& type) {
    Shape shape = type.shape;
    shape.insert(0, trips_);
    types_.push_back(type);
    stacks_.push_back(make_tensor(type.dtype, shape, at_));
    ids_.emplace_back(taping() ? static_cast<size_t>(trips_) : 0);
  }
  Tensors take() {
    for (size_t i = 0; i < stacks_.size() && taping(); ++i)
      interpreters.recorder->record_pullback(std::move(ids_[i]), {stacks_[i]}, slices_back, {},
                                             at_);
    return std::move(stacks_);
  }

 private:
  [[noreturn]] void differs(size_t i, const TensorType& type) const {
    throw UserError(
        cat(name_, ": ", path_(i), " is ", types_[i], " for one slice and ", type, " for another"),
        at_, "all of them are stacked, so the body gives one type");
  }

  std::string_view name_;
  int64_t trips_;
  const PathOf& path_;
  Source at_;
  // The gradient of each element is its slice.
  static std::vector<PartialGradient> slices_back(const Tensors& gradients) {
    const Tensors slices = unstack(gradients[0]);
    return {slices.begin(), slices.end()};
  }

  std::vector<TensorType> types_;
  Tensors stacks_;
  std::vector<std::vector<TapeId>> ids_;  // The numbers by which tapes know the stacked elements.
};

// Traces a body that never runs, for the types of its results.
template <class Body>
void start_empty(Stacks& stacks, const Tensors& walked, std::string_view name, size_t carries,
                 const Body& body, Source at) {
  Trace trace(cat("the body of ", name), at);
  const EnterScope entered(trace.body());
  Tensors slices;
  for (const Tensor& array : walked) {
    TensorType type = type_of(array, at);
    type.shape.erase(0);
    slices.push_back(trace.argument(type, false, at));
  }
  const Tensors given = body(std::move(slices));
  for (size_t i = carries; i < given.size(); ++i) {
    const TensorType type = type_of(tensor_of(given[i], at), at);
    const NoTrace eager;
    stacks.start(type);
  }
}

void check_carries(const LoopParts& parts, const std::vector<std::optional<TensorType>>& before,
                   const Tensors& after, Source at) {
  for (size_t k = 0; k < before.size(); ++k) {
    if (!before[k]) continue;
    const TensorState& state = state_of(after[k], at);
    const TensorType type{state.array.dtype, state.array.shape};
    const bool same_shape = k < parts.invariants.size() ? is_within(type.shape, parts.invariants[k])
                                                        : type.shape == before[k]->shape;
    if (!same_shape || type.dtype != before[k]->dtype)
      carry_changed(parts, k, *before[k], type, at);
  }
}

class EagerLoop {
 public:
  EagerLoop(LoopParts parts, Source at)
      : parts_(std::move(parts)),
        at_(at),
        carries_(std::move(parts_.carries)),
        types_(carries_.size()),
        trips_(parts_.trips.known_or(-1)),
        stacks_(parts_.name, trips_, parts_.element_path, at) {}

  Tensors run() {
    if (parts_.lower.has_value()) {
      first_ = parts_.lower.item<int64_t>(at_);
      trips_ = std::max<int64_t>(0, parts_.upper.item<int64_t>(at_) - first_);
      dtype_ = number_dtype_of(parts_, at_);
    }
    for (int64_t trip = 0; trips_ < 0 || trip < trips_; ++trip) {
      poll_interrupt();
      if (parts_.condition && !parts_.condition(carries_).item<bool>(at_)) break;
      run_trip(trip);
    }
    if (trips_ == 0 && !parts_.walked.empty()) {
      const auto body = [&](Tensors slices) {
        return parts_.body(Tensor(), carries_, std::move(slices));
      };
      start_empty(stacks_, parts_.walked, parts_.name, carries_.size(), body, at_);
    }
    Tensors results;
    for (const Tensor& carry : carries_)
      results.push_back(carry.has_value() ? dense(tensor_of(carry, at_), at_) : Tensor());
    for (Tensor& stack : stacks_.take()) results.push_back(std::move(stack));
    return results;
  }

 private:
  void run_trip(int64_t trip) {
    // As in a function, carries are not broadcasts, and each has its own identity on tapes.
    for (size_t k = 0; k < carries_.size(); ++k) {
      if (!carries_[k].has_value()) continue;
      carries_[k] = dense(carries_[k], at_);
      if (!is_of_last_trip(k)) carries_[k] = own_handle(std::move(carries_[k]), at_);
    }
    last_id_ = last_tape_id();
    // The type of a plain number or an empty tensor is determined by the body.
    for (size_t k = 0; k < carries_.size(); ++k) {
      const TensorState* state = TensorState::of(carries_[k]);
      if (state == nullptr || state->weak)
        types_[k] = {};
      else
        types_[k] = {state->array.dtype, state->array.shape};
    }
    const Tensor number =
        parts_.lower.has_value() ? tensor_of(Operand(first_ + trip, at_), at_, dtype_) : Tensor();
    const int64_t slice = parts_.reverse ? trips_ - 1 - trip : trip;
    Tensors given = parts_.body(number, std::move(carries_), slices_of(parts_.walked, slice, at_));
    check_carries(parts_, types_, given, at_);
    const size_t carries = types_.size();
    stacks_.put(slice, std::span(given).subspan(carries));
    given.resize(carries);
    carries_ = std::move(given);
  }

  // Whether the last trip computed it, and only as this carry: then only tapes may hold it.
  bool is_of_last_trip(size_t k) const {
    const bool is_new = last_id_ > 0 && tape_id_of(carries_[k]) > last_id_;
    return is_new && std::none_of(carries_.begin(), carries_.begin() + static_cast<int64_t>(k),
                                  [&](const Tensor& other) {
                                    return TensorState::of(other) == TensorState::of(carries_[k]);
                                  });
  }

  LoopParts parts_;
  Source at_;
  Tensors carries_;
  // The latest number before the last trip; 0 if there was no trip or no tape has ever run.
  TapeId last_id_ = 0;
  std::vector<std::optional<TensorType>> types_;
  int64_t trips_;  // -1 if not known.
  Stacks stacks_;
  int64_t first_ = 0;
  DType dtype_ = DType::i32;
};

}  // namespace

Tensors run_loop(LoopParts parts, Source at) {
  const SourceScope scope(at);
  check_invariants(parts, at);
  if (tracing()) return trace_loop(parts, at);
  return EagerLoop(std::move(parts), at).run();
}

Tensors run_map(const MapParts& parts, Source at) {
  const SourceScope scope(at);
  if (tracing()) return trace_map(parts, at);
  const int64_t trips = parts.trips;
  Stacks stacks(parts.name, trips, parts.element_path, at);
  for (int64_t trip = 0; trip < trips; ++trip) {
    poll_interrupt();
    Tensors given = parts.body(slices_of(parts.walked, trip, at));
    stacks.put(trip, given);
  }
  if (trips == 0) start_empty(stacks, parts.walked, parts.name, 0, parts.body, at);
  return stacks.take();
}

}  // namespace tidemark::detail
