// The state of a Tensor, in the payload of a device cell. Internal to the library.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "tidemark/device/storage.h"
#include "tidemark/ir/term.h"
#include "tidemark/tensor/tensor.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::detail {

// The scope in which traced tensors are made: a function, a branch, the body of a loop. Each of
// them holds it, so that the error about a leaked tensor can name its origin.
struct TracePlace {
  TracePlace() = default;
  virtual ~TracePlace() = default;
  TracePlace(const TracePlace&) = delete;
  TracePlace& operator=(const TracePlace&) = delete;

  std::atomic<int32_t> references{1};
  std::string what;  // "function \"step\"", "the body of while_loop"
  Source at = Source::none();
  bool ended = false;
};
void retain(TracePlace* place);
void release(TracePlace* place);

struct TensorState {
  // concrete: has elements that the host can read. device: has elements in another memory, dense.
  // traced: a value of a trace. spec: only a type.
  enum class Kind : uint8_t { concrete, device, traced, spec };

  std::atomic<int32_t> references{1};
  Kind kind = Kind::concrete;
  bool weak = false;     // A plain number stored as a tensor: it takes the dtype of others.
  bool donated = false;  // spec: planned as a donated argument.
  union {
    double number = 0;     // A weak float as it was passed, before rounding to f32.
    uint64_t tape_id;      // concrete and not weak: its identity for tapes; 0: none.
    int64_t packed_value;  // traced: node and result.
  };
  ArrayRef array;
  union {
    device::Storage* storage = nullptr;  // Of this cell, or of the cell it is a view of.
    TracePlace* scope;                   // traced: the scope it was made in.
  };
  Source at = Source::none();

  bool has_bytes() const { return kind <= Kind::device; }
  // The number of the memory that its bytes lie in.
  int32_t memory() const { return kind == Kind::device ? storage->memory : 0; }
  Value value() const {
    return {static_cast<int32_t>(packed_value >> 16), static_cast<int16_t>(packed_value & 0xffff)};
  }

  static TensorState* of(const Tensor& tensor) { return tensor.state_; }
  static Tensor adopt(TensorState* state) {
    Tensor tensor;
    tensor.state_ = state;
    return tensor;
  }
  static TensorState* take(Tensor& tensor) {
    TensorState* state = tensor.state_;
    tensor.state_ = nullptr;
    return state;
  }
};
static_assert(sizeof(TensorState) <= device::kPayloadBytes);

// A UserError if the tensor is empty.
const TensorState& state_of(const Tensor& tensor, Source at);
// The tensor's memory, which the host may read; a UserError if it has none, being traced or a spec,
// or lies in another memory.
const ArrayRef& array_of(const Tensor& tensor, Source at);
// The same of a tensor in any memory.
const ArrayRef& placed_array_of(const Tensor& tensor, Source at);

// Dense, not initialised.
Tensor make_tensor(DType dtype, const Shape& shape, Source at,
                   ByteClass byte_class = ByteClass::temporaries);
// The same in the memory of this number.
Tensor make_tensor_in(int32_t memory, DType dtype, const Shape& shape, Source at,
                      ByteClass byte_class = ByteClass::temporaries);
// A view of `base`.
Tensor make_view(const Tensor& base, const ArrayRef& seen, Source at);
// Several of them, in one reservation: all or none.
struct TensorWish {
  DType dtype = DType::f32;
  const Shape* shape = nullptr;
  ByteClass byte_class = ByteClass::temporaries;
  int32_t memory = 0;
  Tensor made = {};
};
void make_tensors(std::span<TensorWish> wished, Source at);
// Over memory the caller owns.
Tensor make_borrowed(std::byte* data, DType dtype, const Shape& shape,
                     std::function<void()> release, Source at);

Tensor make_traced(const TensorType& type, Value value, TracePlace* place, bool weak, Source at);
Tensor make_spec(const TensorType& type, Source at);

// Whether its memory is not shared.
bool is_sole(const TensorState& state);
// Whether it is also dense, begins at the start of its storage, and uses all of its blocks.
bool owns_whole_storage(const TensorState& state);

TensorType type_of(const Tensor& tensor, Source at);

// Throws UserError: a traced tensor was used outside its scope.
[[noreturn]] void leaked(const TensorState& state, Source at);

}  // namespace tidemark::detail
