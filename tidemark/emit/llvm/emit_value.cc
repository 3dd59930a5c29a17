// Emission of expressions and of vector loads and stores.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cmath>

#include "tidemark/emit/llvm/nest_emitter.h"
// After lane_value.h, which nest_emitter.h includes.
#include "tidemark/base/work.h"
#include "tidemark/emit/llvm/control_flow.h"
#include "tidemark/emit/llvm/float_math.h"
#include "tidemark/emit/llvm/low_precision.h"

namespace tidemark::jit {

using llvm::Value;

// ---- Types and constants

llvm::Type* NestEmitter::register_type(DType dtype, int64_t width) {
  llvm::Type* element = nullptr;
  switch (dtype) {
    case f32:
      element = builder_.getFloatTy();
      break;
    case f64:
      element = builder_.getDoubleTy();
      break;
    case boolean:
      element = builder_.getInt1Ty();
      break;
    default:
      element = builder_.getIntNTy(static_cast<unsigned>(8 * size_of(dtype)));
  }
  if (width == 1) return element;
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
}

llvm::Type* NestEmitter::memory_type(DType dtype, int64_t width) {
  return register_type(dtype == boolean ? u8 : dtype, width);
}

Value* NestEmitter::to_memory(Value* value, DType dtype) {
  if (dtype != boolean) return value;
  return builder_.CreateZExt(value, lane::in_lanes_of(value->getType(), builder_.getInt8Ty()));
}

Value* NestEmitter::from_memory(Value* value, DType dtype) {
  if (dtype != boolean) return value;
  return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

Value* NestEmitter::constant(DType dtype, uint64_t bits, int64_t width) {
  llvm::Type* type = register_type(dtype, width);
  if (dtype == f32) {
    return llvm::ConstantFP::get(type, llvm::APFloat(std::bit_cast<float>(uint32_t(bits))));
  }
  if (dtype == f64) {
    return llvm::ConstantFP::get(type, llvm::APFloat(std::bit_cast<double>(bits)));
  }
  if (dtype == boolean) return llvm::ConstantInt::get(type, (bits & 0xff) != 0 ? 1 : 0);
  const unsigned width_bits = type->getScalarSizeInBits();
  return llvm::ConstantInt::get(type, llvm::APInt(64, bits).trunc(width_bits));
}

Value* NestEmitter::splat(Value* scalar) {
  return width_ == 1 ? scalar : builder_.CreateVectorSplat(static_cast<unsigned>(width_), scalar);
}

Value* NestEmitter::offset(Value* base, Value* bytes) {
  return builder_.CreateGEP(builder_.getInt8Ty(), base, bytes);
}

Value* NestEmitter::times(Value* a, int64_t b) {
  return b == 1 ? a : builder_.CreateMul(a, builder_.getInt64(static_cast<uint64_t>(b)));
}

llvm::Constant* NestEmitter::lane_numbers() {
  llvm::SmallVector<uint64_t> numbers;
  for (int64_t i = 0; i < width_; ++i) numbers.push_back(static_cast<uint64_t>(i));
  return llvm::ConstantDataVector::get(context_, numbers);
}

Value* NestEmitter::lane_mask(Value* active, int64_t lanes) {
  // Counted in 8 bits: the compare is then one instruction for any width.
  llvm::SmallVector<uint8_t> numbers;
  for (int64_t i = 0; i < lanes; ++i) numbers.push_back(static_cast<uint8_t>(i));
  Value* count = builder_.CreateTrunc(active, builder_.getInt8Ty());
  Value* counts = builder_.CreateVectorSplat(static_cast<unsigned>(lanes), count);
  return builder_.CreateICmpULT(llvm::ConstantDataVector::get(context_, numbers), counts);
}

// ---- Memory

// Masked access to less than a register is written at the register's full 16 bytes, with lanes that
// are certainly off: code generation would widen it, and leaves the upper bits of the mask as they
// happen to be.
int64_t NestEmitter::register_lanes(int64_t size) const { return std::max(width_, 16 / size); }

// Counted anew: of a mask with lanes added that are off, code generation may drop that they are.
Value* NestEmitter::register_mask(const Place& place, int64_t size) {
  return register_lanes(size) == width_ ? place.mask
                                        : lane_mask(place.active, register_lanes(size));
}

// On some CPUs (Zen 5), masked access to memory beyond the caches is a quarter as fast as plain
// access: their prefetchers do not follow it.
Value* NestEmitter::masked_if_partial(const Place& place, const std::function<Value*()>& unmasked,
                                      const std::function<Value*()>& masked) {
  return place.is_full == nullptr ? masked() : either(builder_, place.is_full, unmasked, masked);
}

Value* NestEmitter::widened(Value* value, int64_t size) {
  if (register_lanes(size) == width_) return value;
  llvm::SmallVector<int> lanes;
  for (int64_t i = 0; i < register_lanes(size); ++i)
    lanes.push_back(i < width_ ? static_cast<int>(i) : llvm::PoisonMaskElem);
  return builder_.CreateShuffleVector(value, lanes);
}

Value* NestEmitter::narrowed(Value* value) {
  llvm::SmallVector<int> lanes;
  for (int64_t i = 0; i < width_; ++i) lanes.push_back(static_cast<int>(i));
  const auto* type = llvm::cast<llvm::FixedVectorType>(value->getType());
  return type->getNumElements() == width_ ? value : builder_.CreateShuffleVector(value, lanes);
}

// In a row of known columns, elements are loaded once, and what was stored is at hand.
Value* NestEmitter::load(int32_t buffer, const Place& place) {
  if (place.vector < 0) return load_elements(buffer, place);
  Value*& elements = row_elements_[{buffer, place.vector}];
  if (elements == nullptr) elements = load_elements(buffer, place);
  return elements;
}

Value* NestEmitter::load_elements(int32_t buffer, const Place& place) {
  const BufferRef& ref = nest_.buffers[static_cast<size_t>(buffer)];
  const int64_t size = size_of(ref.dtype);
  const llvm::Align align(static_cast<uint64_t>(size));
  Value* origin = place.origins[static_cast<size_t>(buffer)];
  if (ref.columns == BufferRef::Columns::repeat) {
    Value* one = builder_.CreateAlignedLoad(memory_type(ref.dtype, 1), origin, align);
    return splat(from_memory(one, ref.dtype));
  }
  if (ref.columns == BufferRef::Columns::strided) {
    Value* stride = buffers_[static_cast<size_t>(buffer)].column;
    Value* address = offset(origin, builder_.CreateMul(place.column, stride));
    return from_memory(load_strided(ref, address, stride, place), ref.dtype);
  }
  Value* address = offset(origin, times(place.column, size));
  llvm::Type* type = memory_type(ref.dtype, width_);
  if (fetches_ahead_) fetch(offset(address, buffers_[static_cast<size_t>(buffer)].row));
  const auto plain = [&]() -> Value* { return builder_.CreateAlignedLoad(type, address, align); };
  if (place.active == nullptr) return from_memory(plain(), ref.dtype);
  if (has_masks_) {
    const auto masked = [&]() -> Value* {
      llvm::Type* whole = memory_type(ref.dtype, register_lanes(size));
      Value* zero = llvm::Constant::getNullValue(whole);
      Value* mask = register_mask(place, size);
      return narrowed(builder_.CreateMaskedLoad(whole, address, align, mask, zero));
    };
    return from_memory(masked_if_partial(place, plain, masked), ref.dtype);
  }
  // The mask is a constant, for which there are instructions or a few plain loads.
  if (place.vector >= 0 || (isa_ == device::Isa::avx2 && size >= 4)) {
    Value* zero = llvm::Constant::getNullValue(type);
    return from_memory(builder_.CreateMaskedLoad(type, address, align, place.mask, zero),
                       ref.dtype);
  }
  return from_memory(load_pieces(ref.dtype, address, place.active), ref.dtype);
}

// To the second cache, for reading. An address outside of the array does no harm.
void NestEmitter::fetch(Value* address) {
  constexpr int kRead = 0, kSecondCache = 2, kData = 1;
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                           {address, builder_.getInt32(kRead), builder_.getInt32(kSecondCache),
                            builder_.getInt32(kData)});
}

// Gathers and scatters are no faster than elements one by one, and on Zen 5 several times slower:
// masked instructions move partial vectors only.
Value* NestEmitter::load_strided(const BufferRef& ref, Value* address, Value* stride,
                                 const Place& place) {
  const auto full = [&] { return load_full_strided(ref.dtype, address, stride); };
  if (place.active == nullptr) return full();
  return masked_if_partial(place, full,
                           [&] { return load_partial_strided(ref, address, stride, place); });
}

Value* NestEmitter::load_partial_strided(const BufferRef& ref, Value* address, Value* stride,
                                         const Place& place) {
  const int64_t size = size_of(ref.dtype);
  llvm::Type* type = memory_type(ref.dtype, width_);
  if (has_masks_ && size >= 4) {
    Value* offsets = builder_.CreateMul(lane_numbers(), splat(stride));
    Value* addresses = builder_.CreateGEP(builder_.getInt8Ty(), address, offsets);
    Value* zero = llvm::Constant::getNullValue(type);
    const llvm::Align align(static_cast<uint64_t>(size));
    return builder_.CreateMaskedGather(type, addresses, align, place.mask, zero);
  }
  auto* dense = lane::stack_slot(builder_, type);
  builder_.CreateStore(llvm::Constant::getNullValue(type), dense);
  lane::call_address(builder_, copy_in,
                     {dense, address, stride, place.active, builder_.getInt64(uint64_t(size))});
  return builder_.CreateLoad(type, dense);
}

// Every other element, as of complex numbers, is taken out of two vectors. The second one ends with
// the last element that is wanted.
Value* NestEmitter::load_full_strided(DType dtype, Value* address, Value* stride) {
  const int64_t size = size_of(dtype);
  const llvm::Align align(static_cast<uint64_t>(size));
  llvm::Type* type = memory_type(dtype, width_);
  const auto one_by_one = [&]() -> Value* {
    Value* gathered = llvm::PoisonValue::get(type);
    for (int64_t i = 0; i < width_; ++i) {
      Value* element = builder_.CreateAlignedLoad(memory_type(dtype, 1),
                                                  offset(address, times(stride, i)), align);
      gathered = builder_.CreateInsertElement(gathered, element, static_cast<uint64_t>(i));
    }
    return gathered;
  };
  if (size < 4) return one_by_one();
  const auto pairs = [&]() -> Value* {
    Value* low = builder_.CreateAlignedLoad(type, address, align);
    Value* behind = offset(address, builder_.getInt64(static_cast<uint64_t>((width_ - 1) * size)));
    Value* high = builder_.CreateAlignedLoad(type, behind, align);
    llvm::SmallVector<int> lanes;
    for (int64_t i = 0; i < width_; ++i)
      lanes.push_back(static_cast<int>(2 * i < width_ ? 2 * i : 2 * i + 1));
    return builder_.CreateShuffleVector(low, high, lanes);
  };
  Value* is_pairs = builder_.CreateICmpEQ(stride, builder_.getInt64(uint64_t(2 * size)));
  return either(builder_, is_pairs, pairs, one_by_one);
}

void NestEmitter::store(int32_t buffer, Value* value, const Place& place) {
  const BufferRef& ref = nest_.buffers[static_cast<size_t>(buffer)];
  const int64_t size = size_of(ref.dtype);
  const llvm::Align align(static_cast<uint64_t>(size));
  Value* origin = place.origins[static_cast<size_t>(buffer)];
  value = to_memory(value, ref.dtype);
  if (width_ == 1) {
    builder_.CreateAlignedStore(value, origin, align);
    return;
  }
  if (ref.columns == BufferRef::Columns::strided) {
    Value* stride = buffers_[static_cast<size_t>(buffer)].column;
    Value* address = offset(origin, builder_.CreateMul(place.column, stride));
    return store_strided(ref, value, address, stride, place);
  }
  Value* address = offset(origin, times(place.column, size));
  const auto plain = [&] {
    const auto whole = [&]() -> Value* {
      builder_.CreateAlignedStore(value, address, align);
      return nullptr;
    };
    const auto masked = [&]() -> Value* {
      builder_.CreateMaskedStore(widened(value, size), address, align, register_mask(place, size));
      return nullptr;
    };
    if (place.active == nullptr) {
      whole();
    } else if (has_masks_) {
      masked_if_partial(place, whole, masked);
    } else {
      store_pieces(ref.dtype, value, address, place.active);
    }
  };
  if (!ref.streaming || place.stream == nullptr) return plain();
  // The loop is bound by memory, so a branch that always goes one way costs nothing.
  auto* streaming = llvm::BasicBlock::Create(context_, "", function_);
  auto* cached = llvm::BasicBlock::Create(context_, "", function_);
  auto* done = llvm::BasicBlock::Create(context_, "", function_);
  builder_.CreateCondBr(place.stream, streaming, cached);
  builder_.SetInsertPoint(streaming);
  auto* past = builder_.CreateAlignedStore(value, address, llvm::Align(uint64_t(width_ * size)));
  past->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(builder_.getInt32(1))));
  builder_.CreateBr(done);
  builder_.SetInsertPoint(cached);
  plain();
  builder_.CreateBr(done);
  builder_.SetInsertPoint(done);
}

// Without masked instructions a partial vector is made of pieces, the largest first, whose sizes
// are the bits of the number of lanes. AVX2 has masked stores, but AMD's CPUs take dozens of cycles
// for one.
void NestEmitter::for_piece(Value* active, int64_t lanes, Carried& carried,
                            const std::function<Carried(Value* at, const Carried&)>& body) {
  Value* bit = builder_.CreateAnd(active, static_cast<uint64_t>(lanes));
  Value* at = builder_.CreateAnd(active, ~static_cast<uint64_t>(2 * lanes - 1));
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(bit)) {
    if (!known->isZero()) carried = body(at, carried);
    return;
  }
  carried = when(builder_, builder_.CreateICmpNE(bit, builder_.getInt64(0)), carried,
                 [&](const Carried& now) { return body(at, now); });
}

void NestEmitter::store_pieces(DType dtype, Value* value, Value* address, Value* active) {
  const int64_t size = size_of(dtype);
  const llvm::Align align(static_cast<uint64_t>(size));
  Carried left = {value};  // What is not stored yet, from lane 0 on.
  for (int64_t lanes = width_ / 2; lanes >= 1; lanes /= 2) {
    for_piece(active, lanes, left, [&](Value* at, const Carried& now) -> Carried {
      llvm::SmallVector<int> piece, rest(static_cast<size_t>(width_), llvm::PoisonMaskElem);
      for (int64_t i = 0; i < lanes; ++i) {
        piece.push_back(static_cast<int>(i));
        rest[static_cast<size_t>(i)] = static_cast<int>(lanes + i);
      }
      Value* to = offset(address, times(at, size));
      builder_.CreateAlignedStore(builder_.CreateShuffleVector(now[0], piece), to, align);
      return {builder_.CreateShuffleVector(now[0], rest)};
    });
  }
}

// The lanes that are not loaded are 0.
Value* NestEmitter::load_pieces(DType dtype, Value* address, Value* active) {
  const int64_t size = size_of(dtype);
  const llvm::Align align(static_cast<uint64_t>(size));
  Carried loaded = {llvm::Constant::getNullValue(memory_type(dtype, width_))};
  for (int64_t lanes = 1; lanes < width_; lanes *= 2) {
    for_piece(active, lanes, loaded, [&](Value* at, const Carried& now) -> Carried {
      Value* from = offset(address, times(at, size));
      auto* type = llvm::FixedVectorType::get(memory_type(dtype, 1), static_cast<unsigned>(lanes));
      Value* piece = builder_.CreateAlignedLoad(type, from, align);
      llvm::SmallVector<int> whole, joined;
      for (int64_t i = 0; i < width_; ++i) {
        whole.push_back(i < lanes ? static_cast<int>(i) : llvm::PoisonMaskElem);
        joined.push_back(static_cast<int>(i < lanes ? i : width_ + i - lanes));
      }
      piece = builder_.CreateShuffleVector(piece, whole);
      return {builder_.CreateShuffleVector(piece, now[0], joined)};
    });
  }
  return loaded[0];
}

void NestEmitter::store_strided(const BufferRef& ref, Value* value, Value* address, Value* stride,
                                const Place& place) {
  const int64_t size = size_of(ref.dtype);
  const auto full = [&]() -> Value* {
    const llvm::Align align(static_cast<uint64_t>(size));
    for (int64_t i = 0; i < width_; ++i) {
      Value* element = builder_.CreateExtractElement(value, static_cast<uint64_t>(i));
      builder_.CreateAlignedStore(element, offset(address, times(stride, i)), align);
    }
    return nullptr;
  };
  const auto partial = [&]() -> Value* {
    auto* dense = lane::stack_slot(builder_, value->getType());
    builder_.CreateStore(value, dense);
    lane::call_address(builder_, copy_out,
                       {address, dense, stride, place.active, builder_.getInt64(uint64_t(size))});
    return nullptr;
  };
  if (place.active == nullptr)
    full();
  else
    masked_if_partial(place, full, partial);
}

Value* NestEmitter::cell_address(int32_t cell, const Place& place) {
  Value* start = cells_[static_cast<size_t>(cell)];
  const DType dtype = cell_dtypes_[static_cast<size_t>(cell)];
  if (nest_.order == Nest::Order::lanes) return start;
  return offset(start, times(place.cell_lane, size_of(dtype)));
}

// ---- Expressions

Value* NestEmitter::value(int32_t expr, Known& known, const Place& place) {
  Value*& result = known[static_cast<size_t>(expr)];
  if (result == nullptr) {
    result = compute(nest_.exprs[static_cast<size_t>(expr)], expr, known, place);
  }
  return result;
}

Value* NestEmitter::first_index(const Place& place) {
  Value* row = builder_.CreateAdd(index_base_, builder_.CreateMul(place.row, index_row_));
  return builder_.CreateAdd(row, place.column);
}

// The value of an i64 expression in the first lane, and its increment per lane (null: 0). Empty if
// the lanes are not known to be an arithmetic progression.
std::optional<NestEmitter::Progression> NestEmitter::progression(int32_t id, const Place& place,
                                                                 Progressions& made) {
  Work::add(1);
  const auto [found, fresh] = made.try_emplace(id);
  if (!fresh) return found->second;
  // The map grows meanwhile, but its entries do not move.
  return found->second = make_progression(nest_.exprs[static_cast<size_t>(id)], place, made);
}

std::optional<NestEmitter::Progression> NestEmitter::make_progression(const Expr& expr,
                                                                      const Place& place,
                                                                      Progressions& made) {
  if (expr.dtype != i64) return std::nullopt;
  switch (expr.op) {
    case ExprOp::constant:
      return Progression{builder_.getInt64(expr.bits), nullptr};
    case ExprOp::scalar:
      return Progression{scalars_[static_cast<size_t>(expr.ref)], nullptr};
    case ExprOp::index:
      return Progression{first_index(place), builder_.getInt64(1)};
    case ExprOp::add:
    case ExprOp::multiply:
      break;
    default:
      return std::nullopt;
  }
  const auto a = progression(expr.in[0], place, made), b = progression(expr.in[1], place, made);
  if (!a || !b || (a->step != nullptr && b->step != nullptr)) return std::nullopt;
  const auto& [moving, still] = b->step != nullptr ? std::pair(*b, *a) : std::pair(*a, *b);
  if (expr.op == ExprOp::add)
    return Progression{builder_.CreateAdd(moving.first, still.first), moving.step};
  Value* first = builder_.CreateMul(moving.first, still.first);
  if (moving.step == nullptr) return Progression{first, nullptr};
  const auto* step = llvm::dyn_cast<llvm::ConstantInt>(moving.step);
  const bool is_one = step != nullptr && step->isOne();
  return Progression{first, is_one ? still.first : builder_.CreateMul(moving.step, still.first)};
}

// The number of each lane times `step`, computed once if `step` is known before the loops.
Value* NestEmitter::lane_multiples(Value* step, DType dtype) {
  llvm::BasicBlock& entry = builder_.GetInsertBlock()->getParent()->getEntryBlock();
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  const auto* made = llvm::dyn_cast<llvm::Instruction>(step);
  if (made != nullptr && made->getParent() == &entry && entry.getTerminator() != nullptr)
    builder_.SetInsertPoint(entry.getTerminator());
  Value* lanes = builder_.CreateTrunc(lane_numbers(), register_type(dtype, width_));
  return builder_.CreateMul(lanes, splat(builder_.CreateTrunc(step, register_type(dtype, 1))));
}

// Numbers of elements and what is linear in them, also cut off to 32 bits, without products of
// vectors: arithmetic that wraps gives the same in any order and any width.
Value* NestEmitter::arithmetic_progression(const Expr& expr, int32_t id, const Place& place) {
  if (nest_.order != Nest::Order::lanes || width_ == 1) return nullptr;
  const bool is_cut_off = expr.op == ExprOp::cast && expr.dtype == i32;
  if (!is_cut_off && expr.op != ExprOp::add && expr.op != ExprOp::multiply) return nullptr;
  Progressions made;
  const auto found = progression(is_cut_off ? expr.in[0] : id, place, made);
  if (!found || found->step == nullptr) return nullptr;
  llvm::Type* type = register_type(expr.dtype, 1);
  Value* first = splat(builder_.CreateTrunc(found->first, type));
  return builder_.CreateAdd(first, lane_multiples(found->step, expr.dtype));
}

Value* NestEmitter::compute(const Expr& expr, int32_t id, Known& known, const Place& place) {
  switch (expr.op) {
    case ExprOp::load:
      return load(expr.ref, place);
    case ExprOp::constant:
      return constant(expr.dtype, expr.bits, width_);
    case ExprOp::scalar: {
      Value* word = scalars_[static_cast<size_t>(expr.ref)];
      llvm::Type* memory = memory_type(expr.dtype, 1);
      Value* low = builder_.CreateTrunc(word, builder_.getIntNTy(memory->getScalarSizeInBits()));
      return splat(from_memory(builder_.CreateBitCast(low, memory), expr.dtype));
    }
    case ExprOp::cell: {
      if (const auto found = row_cells_.find(expr.ref); found != row_cells_.end())
        return splat(from_memory(found->second, expr.dtype));
      Value* address = cell_address(expr.ref, place);
      if (nest_.order == Nest::Order::lanes) {
        Value* one = builder_.CreateLoad(memory_type(expr.dtype, 1), address);
        return splat(from_memory(one, expr.dtype));
      }
      llvm::Type* type = memory_type(expr.dtype, width_);
      const llvm::Align align(static_cast<uint64_t>(size_of(expr.dtype)));
      return from_memory(builder_.CreateAlignedLoad(type, address, align), expr.dtype);
    }
    case ExprOp::index: {
      if (nest_.order == Nest::Order::columns) {
        return splat(builder_.CreateAdd(index_base_, place.step));
      }
      return builder_.CreateAdd(splat(first_index(place)), lane_numbers());
    }
    default:
      break;
  }
  if (Value* progression = arithmetic_progression(expr, id, place)) return progression;
  Value* in[3] = {nullptr, nullptr, nullptr};
  for (int i = 0; i < 3 && expr.in[static_cast<size_t>(i)] >= 0; ++i) {
    in[i] = value(expr.in[static_cast<size_t>(i)], known, place);
  }
  const DType from = nest_.exprs[static_cast<size_t>(expr.in[0])].dtype;
  switch (expr.op) {
    case ExprOp::cast:
      return cast(in[0], from, expr.dtype);
    case ExprOp::select:
      return builder_.CreateSelect(in[0], in[1], in[2]);
    case ExprOp::equal:
    case ExprOp::not_equal:
    case ExprOp::less:
    case ExprOp::less_equal:
      return compare(expr.op, lane(in[0]), lane(in[1]), from);
    case ExprOp::minimum:
    case ExprOp::maximum:
      return extreme(expr.op == ExprOp::maximum, expr.dtype, lane(in[0]), lane(in[1]));
    default:
      break;
  }
  if (is_float(expr.dtype)) return float_math(expr, lane(in[0]), lane(in[1]), lane(in[2]));
  return integer_math(expr, lane(in[0]), lane(in[1]));
}

Value* NestEmitter::float_math(const Expr& expr, LaneValue a, LaneValue b, LaneValue c) {
  if (expr.op == ExprOp::exp && expr.dtype == f32 && isa_ == device::Isa::avx512 && width_ == 16) {
    return exp_f32_avx512(a).value;
  }
  return float_operation(expr.op, expr.dtype, a, b, c).value;
}

Value* NestEmitter::compare(ExprOp op, LaneValue a, LaneValue b, DType dtype) {
  using P = llvm::CmpInst;
  const bool has_sign = is_signed_integer(dtype);
  P::Predicate predicate = P::ICMP_EQ;
  switch (op) {
    case ExprOp::equal:
      predicate = is_float(dtype) ? P::FCMP_OEQ : P::ICMP_EQ;
      break;
    case ExprOp::not_equal:
      predicate = is_float(dtype) ? P::FCMP_UNE : P::ICMP_NE;
      break;
    case ExprOp::less:
      predicate = is_float(dtype) ? P::FCMP_OLT : has_sign ? P::ICMP_SLT : P::ICMP_ULT;
      break;
    default:
      predicate = is_float(dtype) ? P::FCMP_OLE : has_sign ? P::ICMP_SLE : P::ICMP_ULE;
  }
  return builder_.CreateCmp(predicate, a.value, b.value);
}

Value* NestEmitter::extreme(bool is_maximum, DType dtype, LaneValue a, LaneValue b) {
  if (is_float(dtype)) {
    // Written as one comparison and a choice, which is what the machine's instruction does.
    const LaneValue better = select(is_maximum ? less(b, a) : less(a, b), a, b);
    return select(is_nan(a), a, better).value;
  }
  if (dtype == boolean) return is_maximum ? either(a, b).value : both(a, b).value;
  const bool has_sign = is_signed_integer(dtype);
  const auto id = is_maximum ? (has_sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                             : (has_sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
  return builder_.CreateBinaryIntrinsic(id, a.value, b.value);
}

Value* NestEmitter::combine(Monoid monoid, DType dtype, Value* a, Value* b) {
  switch (monoid) {
    case Monoid::sum:
      return (lane(a) + lane(b)).value;
    case Monoid::product:
      return (lane(a) * lane(b)).value;
    case Monoid::minimum:
      return extreme(false, dtype == boolean ? u8 : dtype, lane(a), lane(b));
    case Monoid::maximum:
      return extreme(true, dtype == boolean ? u8 : dtype, lane(a), lane(b));
  }
  return nullptr;
}

Value* NestEmitter::integer_math(const Expr& expr, LaneValue a, LaneValue b) {
  using lane::like;
  const bool has_sign = is_signed_integer(expr.dtype);
  const LaneValue zero = like(a, 0);
  const int bits = static_cast<int>(8 * size_of(expr.dtype));
  switch (expr.op) {
    case ExprOp::add:
      return (a + b).value;
    case ExprOp::subtract:
      return (a - b).value;
    case ExprOp::multiply:
      return (a * b).value;
    case ExprOp::negate:
      return (zero - a).value;
    case ExprOp::absolute:
      return has_sign ? select(less(a, zero), zero - a, a).value : a.value;
    case ExprOp::sign: {
      const LaneValue positive = select(equal(a, zero), zero, like(a, 1));
      return has_sign ? select(less(a, zero), like(a, -1), positive).value : positive.value;
    }
    case ExprOp::floor_divide:
    case ExprOp::remainder: {
      const LaneValue quotient = lane(integer_quotient(a, b, expr.dtype));
      if (expr.op == ExprOp::floor_divide) return quotient.value;
      // Division by zero: the quotient is 0, and the remainder is defined as 0, not a.
      return select(equal(b, zero), zero, a - quotient * b).value;
    }
    case ExprOp::power:
      return integer_power(a, b, expr.dtype);
    case ExprOp::bit_and:
      return both(a, b).value;
    case ExprOp::bit_or:
      return either(a, b).value;
    case ExprOp::bit_xor:
      return bit_xor(a, b).value;
    case ExprOp::bit_not:
      return no(a).value;
    case ExprOp::shift_left:
    case ExprOp::shift_right: {
      Value* fits = builder_.CreateICmpULT(b.value, like(b, bits).value);
      const bool left = expr.op == ExprOp::shift_left;
      const LaneValue beyond = like(b, left || !has_sign ? 0 : bits - 1);
      Value* count = select(lane(fits), b, beyond).value;
      if (!left && has_sign) return builder_.CreateAShr(a.value, count);
      Value* moved =
          left ? builder_.CreateShl(a.value, count) : builder_.CreateLShr(a.value, count);
      return builder_.CreateSelect(fits, moved, zero.value);
    }
    default:  // floor, ceil, round, trunc.
      return a.value;
  }
}

// Towards zero, of numbers whose quotient exists.
Value* NestEmitter::truncated_quotient(Value* a, Value* b, DType dtype) {
  const bool has_sign = is_signed_integer(dtype);
  llvm::Type* type = a->getType();
  if (size_of(dtype) == 8) return has_sign ? builder_.CreateSDiv(a, b) : builder_.CreateUDiv(a, b);
  // The quotient of 16-bit numbers in floats, of 32-bit numbers in doubles, is close enough to
  // truncate to the exact one.
  llvm::Type* wide =
      lane::in_lanes_of(type, size_of(dtype) == 4 ? builder_.getDoubleTy() : builder_.getFloatTy());
  const auto widened = [&](Value* x) {
    return has_sign ? builder_.CreateSIToFP(x, wide) : builder_.CreateUIToFP(x, wide);
  };
  Value* ratio = builder_.CreateFDiv(widened(a), widened(b));
  return has_sign ? builder_.CreateFPToSI(ratio, type) : builder_.CreateFPToUI(ratio, type);
}

Value* NestEmitter::integer_quotient(LaneValue a, LaneValue b, DType dtype) {
  using lane::like;
  const LaneValue zero = like(a, 0);
  const LaneValue one = like(a, 1);
  if (!is_signed_integer(dtype)) {
    const LaneValue divisor = select(equal(b, zero), one, b);
    const LaneValue quotient = lane(truncated_quotient(a.value, divisor.value, dtype));
    return select(equal(b, zero), zero, quotient).value;
  }
  // Division by 0 and of the least number by -1 would trap; both are put in afterwards.
  const LaneValue is_negated = equal(b, like(a, -1));
  const LaneValue divisor = select(either(equal(b, zero), is_negated), one, b);
  const LaneValue quotient = lane(truncated_quotient(a.value, divisor.value, dtype));
  const LaneValue left = a - quotient * divisor;
  const LaneValue other_side = both(no(equal(left, zero)), less(bit_xor(left, divisor), zero));
  const LaneValue down = select(other_side, quotient - one, quotient);
  return select(equal(b, zero), zero, select(is_negated, zero - a, down)).value;
}

// By squaring, in as many turns as the dtype has bits. A negative exponent gives the base for bases
// 1 and -1 to an odd power, 1 to an even one, and 0 for all others.
Value* NestEmitter::integer_power(LaneValue base, LaneValue exponent, DType dtype) {
  using lane::like;
  const int64_t bits = 8 * size_of(dtype);
  const LaneValue zero = like(base, 0);
  const LaneValue one = like(base, 1);
  const Carried end =
      loop(builder_, builder_.getInt64(0), builder_.getInt64(uint64_t(bits)), 1,
           {one.value, base.value, exponent.value}, [&](Value*, const Carried& turn) -> Carried {
             const LaneValue result = lane(turn[0]);
             const LaneValue square = lane(turn[1]);
             const LaneValue rest = lane(turn[2]);
             const LaneValue is_odd = equal(bit_and(rest, one), one);
             return {select(is_odd, result * square, result).value, (square * square).value,
                     shift_right_logical(rest, 1).value};
           });
  if (!is_signed_integer(dtype)) return end[0];
  const LaneValue is_odd = equal(bit_and(exponent, one), one);
  const LaneValue is_unit = either(equal(base, one), equal(base, like(base, -1)));
  const LaneValue inverse = select(is_unit, select(is_odd, base, one), zero);
  return select(less(exponent, zero), inverse, lane(end[0])).value;
}

// ---- Casts

// Floats truncated to integers, saturated, NaN to 0. Of vectors the intrinsics that do so convert
// one element at a time. Comparisons with NaN fail, so each choice says what NaN becomes.
Value* NestEmitter::saturated(Value* from, llvm::Type* type, bool is_unsigned) {
  const unsigned bits = type->getScalarSizeInBits();
  const auto number = [&](double value) { return llvm::ConstantFP::get(from->getType(), value); };
  const auto choose = [&](Value* if_true, Value* one, Value* other) {
    return builder_.CreateSelect(if_true, one, other);
  };
  // Powers of two, so exact: the first number above the range, and the least in it.
  const double end = std::ldexp(1.0, static_cast<int>(is_unsigned ? bits : bits - 1));
  Value* least = number(is_unsigned ? 0.0 : -end);
  if (bits < 32) {
    // Every number of the range is one of `from`, and of 32 bits with a sign, for which there is an
    // instruction.
    Value* some = is_unsigned ? from : choose(builder_.CreateFCmpORD(from, from), from, number(0));
    Value* inside = choose(builder_.CreateFCmpOGT(some, least), some, least);
    inside = choose(builder_.CreateFCmpOLT(inside, number(end - 1)), inside, number(end - 1));
    Value* whole = builder_.CreateFPToSI(inside, lane::in_lanes_of(type, builder_.getInt32Ty()));
    return builder_.CreateTrunc(whole, type);
  }
  Value* above = number(end);
  Value* inside = choose(builder_.CreateFCmpOLT(from, above), from, number(0));
  inside = choose(builder_.CreateFCmpOGT(inside, least), inside, least);
  Value* whole =
      is_unsigned ? builder_.CreateFPToUI(inside, type) : builder_.CreateFPToSI(inside, type);
  const llvm::APInt most =
      is_unsigned ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits);
  return choose(builder_.CreateFCmpOGE(from, above), llvm::ConstantInt::get(type, most), whole);
}

Value* NestEmitter::cast(Value* from, DType from_dtype, DType to) {
  if (from_dtype == to) return from;
  const bool has_f16c = isa_ != device::Isa::baseline;
  if (is_low_precision(from_dtype))
    return cast(f32_of_low(builder_, has_f16c, from, from_dtype), f32, to);
  if (is_low_precision(to)) return low_of_f32(builder_, has_f16c, cast(from, from_dtype, f32), to);
  llvm::Type* type = lane::in_lanes_of(from->getType(), register_type(to, 1));
  llvm::Value* zero = llvm::Constant::getNullValue(from->getType());
  const bool is_unsigned = !is_signed_integer(from_dtype);
  if (is_float(from_dtype)) {
    if (to == boolean) return builder_.CreateFCmpUNE(from, zero);
    if (is_float(to)) return builder_.CreateFPCast(from, type);
    return saturated(from, type, !is_signed_integer(to));
  }
  if (is_float(to)) {
    return is_unsigned ? builder_.CreateUIToFP(from, type) : builder_.CreateSIToFP(from, type);
  }
  if (to == boolean) return builder_.CreateICmpNE(from, zero);
  return builder_.CreateIntCast(from, type, !is_unsigned);
}

}  // namespace tidemark::jit
