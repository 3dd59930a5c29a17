#include "tidemark/compile/cpu/eager.h"

#include <algorithm>

#include "tidemark/compile/cpu/copy.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/cpu/launch.h"
#include "tidemark/compile/frame.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/structure.h"

namespace tidemark::compile {
namespace {

using Columns = BufferRef::Columns;

// How buffer b of a frame moves along the last axis.
Columns columns_of(const Frame& frame, int b, DType dtype) {
  if (frame.axes() == 0) return Columns::unit;
  const int64_t stride = frame.strides[static_cast<size_t>(b)].back();
  return stride == size_of(dtype) ? Columns::unit
         : stride == 0            ? Columns::repeat
                                  : Columns::strided;
}

// Packs the layout part of a key, a few bits at a time.
class Packer {
 public:
  Packer& add(auto value, int bits) {
    word_ = word_ << bits | static_cast<uint64_t>(value);
    return *this;
  }
  uint64_t word() const { return word_; }

 private:
  uint64_t word_ = 0;
};

// Whether the result of a pointwise frame, its last buffer, is written by non-temporal stores.
bool wants_streaming(const Frame& frame, const ArrayRef& result) {
  if (frame.axes() != 1 || columns_of(frame, frame.buffers - 1, result.dtype) != Columns::unit)
    return false;
  if (reinterpret_cast<uintptr_t>(result.data) % 64 != 0) return false;
  const auto data = std::span(frame.data).first(static_cast<size_t>(frame.buffers));
  int64_t touched = 0;
  for (size_t b = 0; b < data.size(); ++b) {
    const bool is_new = std::find(data.begin(), data.begin() + b, data[b]) == data.begin() + b;
    // In place this does not pay: the cache line was read anyway.
    if (!is_new && b + 1 == data.size()) return false;
    if (is_new) touched += std::abs(frame.strides[b][0]) * frame.extents[0];
  }
  return outgrows_caches(touched, result.size() * size_of(result.dtype));
}

bool is_copy(const OpDef& op, std::span<const Input> operands, const ArrayRef& result) {
  return (op.self == def_of(&ops::cast).self || op.self == def_of(&identity).self) &&
         operands[0].array != nullptr && operands[0].array->dtype == result.dtype;
}

}  // namespace

ArrayRef stretched(const ArrayRef& array, const Shape& shape) {
  if (array.shape == shape) return array;
  ArrayRef wide = array;
  wide.shape = shape;
  wide.strides.clear();
  const int64_t shift = shape.rank() - array.rank();
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    const bool repeats = axis < shift || array.shape[axis - shift] != shape[axis];
    wide.strides.push_back(repeats ? 0 : array.strides[static_cast<size_t>(axis - shift)]);
  }
  return wide;
}

void run_pointwise(const OpDef& op, std::span<const Input> operands, const PointwiseType& type,
                   const ArrayRef& result) {
  Frame frame;
  for (const Dim dim : result.shape) frame.extents.push_back(dim);
  std::array<uint64_t, 3> scalars = {};
  size_t numbers = 0;
  for (const Input& operand : operands) {
    if (operand.array != nullptr)
      frame.add(*operand.array);
    else
      scalars[numbers++] = operand.number;
  }
  frame.add(result);
  frame.collapse();
  if (is_copy(op, operands, result) && copy_in_other_order(frame, size_of(result.dtype))) return;

  std::array<OperandForm, 3> forms;
  Packer form;
  int buffer = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    OperandForm& f = forms[i];
    f.compute = type.compute[i];
    f.is_number = operands[i].array == nullptr;
    f.dtype = f.is_number ? f.compute : operands[i].array->dtype;
    if (!f.is_number) f.columns = columns_of(frame, buffer++, f.dtype);
    form.add(f.dtype, 4).add(f.compute, 4).add(f.is_number, 1).add(f.columns, 2);
  }
  const Columns out = columns_of(frame, buffer, result.dtype);
  const bool streaming = wants_streaming(frame, result);
  form.add(result.dtype, 4).add(out, 2).add(streaming, 1);
  CachedKernel& kernel = cached_kernel({op.self, form.word()}, [&] {
    return pointwise_nest(op, std::span(forms).first(operands.size()), result.dtype, out,
                          streaming);
  });
  launch_pointwise(kernel, frame, std::span(scalars).first(numbers));
}

void run_copy(const ArrayRef& from, const ArrayRef& to) {
  if (is_complex(to.dtype)) {
    if (is_complex(from.dtype)) return run_copy(pairs_of(from), pairs_of(to));
    run_copy(from, parts_of(to, 0));
    return run_fill(0, parts_of(to, 1));
  }
  const Input input{.array = &from};
  run_pointwise(def_of(&ops::cast), {&input, 1}, {.compute = {from.dtype}, .result = to.dtype}, to);
}

void run_fill(uint64_t number, const ArrayRef& to) {
  TIDEMARK_CHECK(!is_complex(to.dtype), "complex numbers are filled in part by part");
  const Input input{.number = number};
  run_pointwise(def_of(&ops::cast), {&input, 1}, {.compute = {to.dtype}, .result = to.dtype}, to);
}

namespace {

// A row op that is ready to run. If its axis is the last one, rows are folded along lanes;
// otherwise along columns, which are the last axis.
struct RowWork {
  RowWork(const OpDef& def, const ArrayRef& operand, int64_t axis, const ArrayRef& result)
      : op(def),
        dtype(operand.dtype),
        order(axis == operand.rank() - 1 ? Nest::Order::lanes : Nest::Order::columns) {
    for (const Dim dim : operand.shape) frame.extents.push_back(dim);
    frame.add(operand);
    frame.add(result);
    if (order == Nest::Order::lanes)
      frame.collapse(0, axis);
    else
      move_columns_behind(axis, operand.rank());
    in = columns_of(frame, 0, dtype);
    out = columns_of(frame, 1, result.dtype);
  }

  void move_columns_behind(int64_t axis, int64_t rank) {
    frame.collapse(axis + 1, rank);
    if (frame.axes() == axis + 1) {  // All later axes had extent 1.
      frame.extents.push_back(1);
      for (int b = 0; b < 2; ++b) frame.strides[static_cast<size_t>(b)].push_back(size_of(dtype));
    }
    // With several axes after this one, those before the last become rows.
    while (axis + 2 < frame.axes()) {
      const auto move = [&](AxisList& list) {
        std::rotate(list.begin() + axis, list.begin() + axis + 1, list.begin() + axis + 2);
      };
      move(frame.extents);
      for (int b = 0; b < 2; ++b) move(frame.strides[static_cast<size_t>(b)]);
      ++axis;
    }
  }

  Nest nest() const {
    Nest made = op.sweeps(dtype, order);
    made.buffers[0].columns = in;
    made.buffers[1].columns = out;
    return made;
  }

  const OpDef& op;
  DType dtype;
  Nest::Order order;
  Frame frame;
  Columns in = Columns::unit, out = Columns::unit;
};

void run_short_rows(const RowWork& work, uint64_t form) {
  constexpr RowBuffer kBuffers[2] = {};
  const int64_t columns = work.frame.extents.back();
  CachedKernel& kernel =
      cached_kernel({work.op.self, static_cast<uint64_t>(columns) << 32 | form},
                    [&] { return narrow_nest(work.nest(), kBuffers, columns).value(); });
  launch_narrow(kernel, work.frame, kBuffers);
}

}  // namespace

int64_t row_workspace(const OpDef& op, const ArrayRef& operand, int64_t axis,
                      const ArrayRef& result) {
  if (result.size() == 0 || axis == operand.rank() - 1) return 0;
  const RowWork work(op, operand, axis, result);
  return column_workspace(work.nest(), work.frame, num_threads());
}

void run_row(const OpDef& op, const ArrayRef& operand, int64_t axis, const ArrayRef& result) {
  if (result.size() == 0) return;
  const RowWork work(op, operand, axis, result);
  const uint64_t form = Packer()
                            .add(operand.dtype, 4)
                            .add(result.dtype, 4)
                            .add(work.order, 1)
                            .add(work.in, 2)
                            .add(work.out, 2)
                            .word();
  if (work.order == Nest::Order::lanes && has_short_rows(work.frame, kShortRow))
    return run_short_rows(work, form);
  const int32_t known = work.order == Nest::Order::lanes ? known_row(work.frame) : 0;
  CachedKernel& kernel = cached_kernel(
      {op.self, static_cast<uint64_t>(known) << 32 | form}, [&] { return work.nest(); }, known);
  if (work.order == Nest::Order::lanes)
    launch_lanes(kernel, work.frame);
  else
    launch_columns(kernel, work.frame);
}

namespace {

void run_range_in(DType compute, std::span<const uint64_t> scalars, const ArrayRef& result) {
  static const char tag = 0;
  Frame frame;
  for (const Dim dim : result.shape) frame.extents.push_back(dim);
  frame.add(result);
  frame.collapse();
  const uint64_t form = Packer().add(result.dtype, 4).add(compute, 4).word();
  CachedKernel& kernel =
      cached_kernel({&tag, form}, [&] { return range_nest(compute, result.dtype); });
  launch_pointwise(kernel, frame, scalars);
}

}  // namespace

void run_range(double start, double step, const ArrayRef& result) {
  const uint64_t scalars[] = {bits_of(start, DType::f64), bits_of(step, DType::f64)};
  run_range_in(DType::f64, scalars, result);
}

void run_range(int64_t start, int64_t step, const ArrayRef& result) {
  const uint64_t scalars[] = {bits_of(start, DType::i64), bits_of(step, DType::i64)};
  run_range_in(DType::i64, scalars, result);
}

TinyStep tiny_step(const OpDef& op, DType dtype) {
  if (op.family != Family::pointwise || op.value == nullptr || is_low_precision(dtype)) return {};
  const std::array<DType, 3> dtypes = {dtype, dtype, dtype};
  const Recipe recipe = record(op, std::span(dtypes).first(static_cast<size_t>(op.arity)));
  // The recipe is loads and one instruction.
  if (static_cast<int>(recipe.exprs.size()) != op.arity + 1 || recipe.result != op.arity) return {};
  const Expr& step = recipe.exprs.back();
  TinyStep tiny{.function = tile_function(step.op, step.dtype, dtype)};
  for (size_t i = 0; i < 3; ++i) tiny.operands[i] = std::max(0, step.in[i]);
  return tiny;
}

}  // namespace tidemark::compile
