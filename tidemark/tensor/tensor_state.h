// What a Tensor points at. Lives in the payload of a device cell; internal to the library.
#pragma once

#include <atomic>
#include <span>
#include <string_view>

#include "tidemark/device/storage.h"
#include "tidemark/ir/term.h"
#include "tidemark/tensor/tensor.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::detail {

struct TraceScope;

struct TensorState {
  // concrete: has bytes. traced: stands for a value of a trace. spec: a type and nothing else.
  enum class Kind : uint8_t { concrete, traced, spec };

  std::atomic<int32_t> references{1};
  Kind kind = Kind::concrete;
  bool weak = false;     // A plain number stored as a tensor: takes the dtype it meets.
  bool donated = false;  // spec: to be planned as an argument that is given away.
  union {
    double number = 0;     // A weak float as it was given, before f32 rounded it.
    uint64_t tape_id;      // concrete and not weak: by which tapes know its value; 0: by none.
    int64_t packed_value;  // traced: node and result.
  };
  ArrayRef array;
  union {
    device::Storage* storage = nullptr;  // Of this cell, or of the cell it is a view of.
    TraceScope* scope;                   // traced: where it was made.
  };
  Source at = Source::none();

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

// What the thread is tracing now; null in eager code. See trace.h.
extern constinit thread_local TraceScope* current_scope;
inline bool tracing() { return current_scope != nullptr; }

// A UserError if the tensor holds nothing.
const TensorState& state_of(const Tensor& tensor, Source at);
// The tensor's memory; a UserError if it has none, being traced or a spec.
const ArrayRef& array_of(const Tensor& tensor, Source at);

// Dense, not initialised.
Tensor make_tensor(DType dtype, const Shape& shape, Source at,
                   ByteClass byte_class = ByteClass::temporaries);
// The bytes of `base` seen otherwise.
Tensor make_view(const Tensor& base, const ArrayRef& seen, Source at);
// Several of them, in one reservation: all or none.
struct TensorWish {
  DType dtype = DType::f32;
  const Shape* shape = nullptr;
  ByteClass byte_class = ByteClass::temporaries;
  Tensor made = {};
};
void make_tensors(std::span<TensorWish> wished, Source at);
// Over memory the caller owns.
Tensor make_borrowed(std::byte* data, DType dtype, const Shape& shape,
                     std::function<void()> release, Source at);

Tensor make_traced(const TensorType& type, Value value, TraceScope* scope, bool weak, Source at);
Tensor make_spec(const TensorType& type, Source at);

// Whether nobody else holds its bytes.
bool is_sole(const TensorState& state);
// Whether besides it is dense, begins where its storage begins, and needs all of its blocks.
bool owns_whole_storage(const TensorState& state);

TensorType type_of(const Tensor& tensor, Source at);

// A UserError where a whole number does not fit the dtype it meets in an op.
void check_fits(int64_t number, DType dtype, std::string_view op, Source at);

// ---- running ops --------------------------------------------------------------------------------

// The operand as a tensor: a plain number becomes one of its default dtype, or of `dtype`.
Tensor tensor_of(const Operand& operand, Source at, std::optional<DType> dtype = {});
Tensor dense(const Tensor& tensor, Source at);

Tensor apply_pointwise(const OpDef& op, std::initializer_list<const Operand*> operands, Source at);
Tensor apply_cast(const Operand& x, DType dtype, Source at);
Tensor apply_reduce(const OpDef& op, const Tensor& x, const AxisList& axes, bool keep, Source at);
Tensor apply_row(const OpDef& op, const Operand& x, int64_t axis, Source at);
// A view where the op's index map allows, else a dense copy seen that way.
Tensor apply_view(const OpDef& op, const Tensor& x, const Attrs& attrs, Source at);
// Anything else: concat, pad, gather, matmul, ... Operands are tensors of the dtypes the op wants.
Tensor apply_op(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, Source at);
// The same of an op with several results: those whose bits `wanted` has, or more; the others are
// nothing.
std::vector<Tensor> apply_results(const OpDef& op, std::span<const Tensor> operands,
                                  const Attrs& attrs, uint32_t wanted, Source at);
// A print or a check.
void apply_effect(const OpDef& op, std::span<const Tensor> operands, const Attrs& attrs, Source at);
// The same for an op whose result has the type of its first operand and may take its bytes: in
// place where that operand is dying and nobody else holds it.
Tensor apply_onto(const OpDef& op, const Operand& first, std::span<const Tensor> rest,
                  const Attrs& attrs, Source at);

}  // namespace tidemark::detail
