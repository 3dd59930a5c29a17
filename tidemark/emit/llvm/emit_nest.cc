// The loops of a nest.
//
//   pointwise          for row { for sweep { for step { for vector of columns } } }
//   folds along lanes  for row { for sweep { for block of 4096 { for vector } } finish }
//   of known columns   for row { every vector of every sweep, finish }
//   along columns      for row { for block of columns { for sweep { for block of 256 steps
//                      { for a few steps { for vectors of the block { for step } } } } finish } }
//
// A loop over vectors ends in a partial one. With masked instructions a heavy body is emitted once
// and entered twice, with a full and with a partial mask, which halves the code to compile.
// Otherwise the partial vector has a separate body.
#include <algorithm>
#include <bit>
#include <cstddef>

#include <llvm/IR/IntrinsicsX86.h>

#include "tidemark/base/work.h"
#include "tidemark/device/kernel.h"
#include "tidemark/emit/llvm/control_flow.h"
#include "tidemark/emit/llvm/nest_emitter.h"
#include "tidemark/emit/llvm/support.h"
#include "tidemark/loops/pairwise.h"

namespace tidemark::jit {

using llvm::BasicBlock;
using llvm::Value;

namespace {

// A body this heavy is emitted once, at the cost of a jump for each load and store.
constexpr int64_t kHeavy = 12;

// Accumulators that may take turns in registers.
constexpr size_t kTurningRegisters = 8;

}  // namespace

NestEmitter::NestEmitter(const Nest& nest, device::Isa isa, llvm::Module& module,
                         const std::string& name, int64_t known_columns)
    : nest_(nest),
      known_columns_(known_columns),
      isa_(isa),
      module_(module),
      context_(module.getContext()),
      builder_(context_),
      has_masks_(isa == device::Isa::avx512),
      width_(choose_width(nest, isa)),
      column_vectors_(choose_column_vectors(nest, isa)),
      column_block_(choose_column_block(nest)) {
  llvm::Type* pointer = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->setDoesNotThrow();
  if (isa == device::Isa::avx512) {
    function_->addFnAttr("prefer-vector-width", "512");
    function_->addFnAttr("min-legal-vector-width", "512");
  }
}

void NestEmitter::emit() {
  builder_.SetInsertPoint(BasicBlock::Create(context_, "", function_));
  load_arguments();
  find_fixed();
  if (nest_.cells == 0) {
    emit_pointwise();
  } else {
    allocate_cells();
    known_columns_ > 0                  ? emit_known_rows()
    : nest_.order == Nest::Order::lanes ? emit_lanes()
                                        : emit_columns();
  }
  if (stream_ != nullptr) {
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }
  builder_.CreateRetVoid();
}

void NestEmitter::load_arguments() {
  Value* args = function_->getArg(1);
  const auto field = [&](llvm::Type* type, Value* base, size_t at) -> Value* {
    return builder_.CreateLoad(type, offset(base, builder_.getInt64(at)));
  };
  llvm::Type* word = builder_.getInt64Ty();
  llvm::Type* pointer = builder_.getPtrTy();
  rows_ = field(word, args, offsetof(KernelArgs, rows));
  steps_ = field(word, args, offsetof(KernelArgs, steps));
  columns_ = field(word, args, offsetof(KernelArgs, columns));
  index_base_ = field(word, args, offsetof(KernelArgs, index_base));
  index_row_ = field(word, args, offsetof(KernelArgs, index_row));
  scratch_ = field(pointer, args, offsetof(KernelArgs, scratch));
  Value* data = field(pointer, args, offsetof(KernelArgs, buffers));
  Value* movements = field(pointer, args, offsetof(KernelArgs, movements));
  Value* scalars = field(pointer, args, offsetof(KernelArgs, scalars));
  Value* misaligned = nullptr;
  for (size_t i = 0; i < nest_.buffers.size(); ++i) {
    const size_t at = i * sizeof(Movement);
    buffers_.push_back({.data = field(pointer, data, i * sizeof(std::byte*)),
                        .row = field(word, movements, at + offsetof(Movement, row)),
                        .step = field(word, movements, at + offsetof(Movement, step)),
                        .column = field(word, movements, at + offsetof(Movement, column))});
    if (!nest_.buffers[i].streaming || nest_.buffers[i].columns != BufferRef::Columns::unit) {
      continue;
    }
    const Buffer& buffer = buffers_.back();
    const auto if_many = [&](Value* count, Value* movement) {
      Value* many = builder_.CreateICmpSGT(count, builder_.getInt64(1));
      return builder_.CreateSelect(many, movement, builder_.getInt64(0));
    };
    Value* bits = builder_.CreatePtrToInt(buffer.data, word);
    bits = builder_.CreateOr(bits, if_many(rows_, buffer.row));
    bits = builder_.CreateOr(bits, if_many(steps_, buffer.step));
    misaligned = misaligned == nullptr ? bits : builder_.CreateOr(misaligned, bits);
  }
  if (misaligned != nullptr) {
    Value* aligned =
        builder_.CreateICmpEQ(builder_.CreateAnd(misaligned, 63), builder_.getInt64(0));
    Value* wanted = builder_.CreateICmpNE(field(word, args, offsetof(KernelArgs, streams)),
                                          builder_.getInt64(0));
    stream_ = builder_.CreateAnd(aligned, wanted);
  }
  for (const Expr& expr : nest_.exprs) {
    if (expr.op != ExprOp::scalar) continue;
    const size_t number = static_cast<size_t>(expr.ref);
    if (scalars_.size() <= number) scalars_.resize(number + 1);
    if (scalars_[number] == nullptr) {
      scalars_[number] = field(word, scalars, number * sizeof(uint64_t));
    }
  }
}

// ---- What does not change inside a loop

void NestEmitter::find_fixed() {
  const bool along_steps = nest_.order == Nest::Order::columns && nest_.cells != 0;
  for (const Expr& expr : nest_.exprs) {
    bool is_fixed = true;
    switch (expr.op) {
      case ExprOp::load: {
        const BufferRef& buffer = nest_.buffers[static_cast<size_t>(expr.ref)];
        is_fixed = !along_steps && buffer.columns == BufferRef::Columns::repeat && !buffer.written;
        break;
      }
      case ExprOp::index:
        is_fixed = !along_steps && nest_.order == Nest::Order::columns;
        break;
      default:
        for (const int32_t in : expr.in) {
          is_fixed = is_fixed && (in < 0 || fixed_[static_cast<size_t>(in)] != 0);
        }
    }
    fixed_.push_back(is_fixed ? 1 : 0);
  }
}

void NestEmitter::hoist(int32_t expr, std::vector<bool>& seen, Known& known, const Place& place) {
  Work::add(1);
  if (seen[static_cast<size_t>(expr)]) return;
  seen[static_cast<size_t>(expr)] = true;
  if (fixed_[static_cast<size_t>(expr)] != 0) {
    value(expr, known, place);
    return;
  }
  for (const int32_t in : nest_.exprs[static_cast<size_t>(expr)].in) {
    if (in >= 0) hoist(in, seen, known, place);
  }
}

void NestEmitter::hoist(const Sweep& sweep, Known& known, const Place& place) {
  known.assign(nest_.exprs.size(), nullptr);
  std::vector<bool> seen(nest_.exprs.size(), false);
  for (const Store& store : sweep.stores) hoist(store.expr, seen, known, place);
  for (const Fold& fold : sweep.folds) hoist(fold.expr, seen, known, place);
}

// ---- Loops over vectors

Carried NestEmitter::vector_loop(const Place& at, Value* begin, Value* end, bool is_light,
                                 const Carried& carried, const Body& body) {
  if (has_masks_ && !is_light) return masked_vector_loop(at, begin, end, carried, body);
  Value* count = builder_.CreateSub(end, begin);
  Value* rest = builder_.CreateAnd(count, static_cast<uint64_t>(width_ - 1));
  Value* full = builder_.CreateSub(end, rest);
  Place place = at;
  const Carried whole =
      loop(builder_, begin, full, width_, carried, [&](Value* column, const Carried& turn) {
        place.column = column;
        place.stream = stream_;
        return body(place, turn);
      });
  Value* is_left = builder_.CreateICmpNE(rest, builder_.getInt64(0));
  return when(builder_, is_left, whole, [&](const Carried& turn) {
    place.column = full;
    place.stream = nullptr;
    place.active = rest;
    place.mask = lane_mask(rest, width_);
    return body(place, turn);
  });
}

void NestEmitter::vector_loop(const Place& at, Value* begin, Value* end, bool is_light,
                              const std::function<void(const Place&)>& body) {
  vector_loop(at, begin, end, is_light, {}, [&](const Place& place, const Carried&) -> Carried {
    body(place);
    return {};
  });
}

Carried NestEmitter::masked_vector_loop(const Place& at, Value* begin, Value* end,
                                        const Carried& carried, const Body& body) {
  Value* count = builder_.CreateSub(end, begin);
  Value* rest = builder_.CreateAnd(count, static_cast<uint64_t>(width_ - 1));
  Value* full = builder_.CreateSub(end, rest);
  BasicBlock* before = builder_.GetInsertBlock();
  BasicBlock* pass = BasicBlock::Create(context_, "", function_);
  BasicBlock* partial_or_done = BasicBlock::Create(context_, "", function_);
  BasicBlock* partial = BasicBlock::Create(context_, "", function_);
  BasicBlock* after = BasicBlock::Create(context_, "", function_);
  builder_.CreateCondBr(builder_.CreateICmpSLT(begin, full), pass, partial_or_done);

  const auto phi_of = [&](Value* first, BasicBlock* from) {
    llvm::PHINode* phi = builder_.CreatePHI(first->getType(), 2);
    phi->addIncoming(first, from);
    return phi;
  };
  builder_.SetInsertPoint(partial_or_done);
  std::vector<llvm::PHINode*> so_far;
  for (Value* value : carried) so_far.push_back(phi_of(value, before));
  builder_.CreateCondBr(builder_.CreateICmpNE(rest, builder_.getInt64(0)), partial, after);
  builder_.SetInsertPoint(partial);
  Value* partial_mask = lane_mask(rest, width_);
  builder_.CreateBr(pass);

  builder_.SetInsertPoint(pass);
  const auto either = [&](Value* of_full, Value* of_partial) {
    llvm::PHINode* phi = phi_of(of_full, before);
    phi->addIncoming(of_partial, partial);
    return phi;
  };
  Place place = at;
  Value* first = either(begin, full);
  Value* last = either(full, end);
  place.mask = either(llvm::Constant::getAllOnesValue(partial_mask->getType()), partial_mask);
  place.active = either(builder_.getInt64(static_cast<uint64_t>(width_)), rest);
  Value* is_full = either(builder_.getTrue(), builder_.getFalse());
  place.is_full = is_full;
  Carried in_pass;
  for (size_t k = 0; k < carried.size(); ++k) in_pass.push_back(either(carried[k], so_far[k]));
  if (stream_ != nullptr) place.stream = builder_.CreateAnd(stream_, is_full);
  const auto turn = [&](Value* column, const Carried& in_turn) {
    place.column = column;
    return body(place, in_turn);
  };
  const Carried passed = loop(builder_, first, last, width_, in_pass, turn, true);
  BasicBlock* end_of_pass = builder_.GetInsertBlock();
  builder_.CreateCondBr(is_full, partial_or_done, after);
  builder_.SetInsertPoint(after);
  Carried result;
  for (size_t k = 0; k < carried.size(); ++k) {
    so_far[k]->addIncoming(passed[k], end_of_pass);
    llvm::PHINode* phi = phi_of(so_far[k], partial_or_done);
    phi->addIncoming(passed[k], end_of_pass);
    result.push_back(phi);
  }
  return result;
}

Place NestEmitter::place_of_row(Value* row) {
  Place place;
  place.row = row;
  place.step = builder_.getInt64(0);
  place.column = builder_.getInt64(0);
  for (const Buffer& buffer : buffers_) {
    place.origins.push_back(offset(buffer.data, builder_.CreateMul(row, buffer.row)));
  }
  return place;
}

Place NestEmitter::place_of_step(const Place& row, Value* step) {
  Place place = row;
  place.step = step;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    place.origins[i] = offset(row.origins[i], builder_.CreateMul(step, buffers_[i].step));
  }
  return place;
}

// All values of a body are computed before any is stored: an output may alias an input.
void NestEmitter::emit_stores(const Sweep& sweep, Known& known, const Place& place) {
  for (const Store& store : sweep.stores) value(store.expr, known, place);
  for (const Fold& fold : sweep.folds) value(fold.expr, known, place);
  for (const Store& s : sweep.stores) store(s.buffer, value(s.expr, known, place), place);
}

// ---- No cells

void NestEmitter::emit_pointwise() {
  loop(builder_, builder_.getInt64(0), rows_, 1, [&](Value* row) {
    const Place at_row = place_of_row(row);
    for (const Sweep& sweep : nest_.sweeps) {
      const auto columns = [&](const Place& at) {
        Known hoisted;
        hoist(sweep, hoisted, at);
        const bool is_light = weight(nest_, sweep) < kHeavy;
        vector_loop(at, builder_.getInt64(0), columns_, is_light, [&](const Place& place) {
          Known known = hoisted;
          emit_stores(sweep, known, place);
        });
      };
      if (nest_.order == Nest::Order::lanes) {
        columns(at_row);
      } else {
        loop(builder_, builder_.getInt64(0), steps_, 1,
             [&](Value* step) { columns(place_of_step(at_row, step)); });
      }
    }
  });
}

// ---- Cells

// In the order of columns a cell is a row of them, followed by as many rows of partial results as
// the blocks of this call have levels: scratch_bytes in support.h counts the same.
void NestEmitter::allocate_cells() {
  const bool in_lanes = nest_.order == Nest::Order::lanes;
  const size_t count = static_cast<size_t>(nest_.cells);
  cells_.resize(count);
  lane_partials_.resize(count);
  levels_.resize(count);
  cell_dtypes_.resize(count, f32);
  Value *row_cells = nullptr, *rows = nullptr, *start = builder_.getInt64(0);
  if (!in_lanes) {
    Value* width = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, columns_, builder_.getInt64(static_cast<uint64_t>(column_block_)));
    row_cells = builder_.CreateAnd(builder_.CreateAdd(width, builder_.getInt64(kLanes - 1)),
                                   ~static_cast<uint64_t>(kLanes - 1));
    Value* blocks =
        builder_.CreateLShr(builder_.CreateAdd(steps_, builder_.getInt64(kStepBlock - 1)),
                            static_cast<uint64_t>(std::countr_zero(uint64_t(kStepBlock))));
    Value* zeros =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, blocks, builder_.getFalse());
    Value* levels = builder_.CreateSub(builder_.getInt64(64), zeros);
    rows = builder_.CreateAdd(builder_.getInt64(1), levels);
    Value* is_one = builder_.CreateICmpULE(blocks, builder_.getInt64(1));
    rows = builder_.CreateSelect(is_one, builder_.getInt64(1), rows);
  }
  for (const Sweep& sweep : nest_.sweeps) {
    for (const Fold& fold : sweep.folds) {
      const size_t cell = static_cast<size_t>(fold.cell);
      const DType dtype = dtype_of(fold);
      cell_dtypes_[cell] = dtype;
      if (in_lanes) {
        cells_[cell] = lane::stack_slot(builder_, memory_type(dtype, 1), 1, 8);
        lane_partials_[cell] = lane::stack_slot(builder_, memory_type(dtype, 1), kLanes);
        levels_[cell] = lane::stack_slot(builder_, memory_type(dtype, 1), kPairwiseLevels);
      } else {
        Value* row_bytes = times(row_cells, size_of(dtype));
        cells_[cell] = offset(scratch_, start);
        levels_[cell] = offset(cells_[cell], row_bytes);
        start = builder_.CreateAdd(start, builder_.CreateMul(row_bytes, rows));
      }
    }
  }
}

Value* NestEmitter::identity(const Fold& fold, int64_t width) {
  const DType dtype = dtype_of(fold);
  return to_memory(constant(dtype, identity_bits(fold.monoid, dtype), width), dtype);
}

void NestEmitter::push_blocks(const Sweep& sweep, Value* block, Value* blocks, Value* width) {
  when(builder_, builder_.CreateICmpSGT(blocks, builder_.getInt64(1)), [&] {
    for (const Fold& fold : sweep.folds) {
      const size_t cell = static_cast<size_t>(fold.cell);
      lane::call_address(builder_, pairwise(fold.monoid, dtype_of(fold)),
                         {levels_[cell], block, blocks, cells_[cell], width});
    }
  });
}

// ---- Folds along lanes

void NestEmitter::emit_lanes() {
  loop(builder_, builder_.getInt64(0), rows_, 1, [&](Value* row) {
    const Place at = place_of_row(row);
    for (size_t i = 0; i < nest_.sweeps.size(); ++i) {
      // The first sweep waits for memory, the second works in the cache and prefetches the next
      // row. Not if results are stored through the caches, whose lines are fetched too.
      fetches_ahead_ = i == 1 && stream_ != nullptr;
      emit_lane_sweep(nest_.sweeps[i], at);
    }
    fetches_ahead_ = false;
    finish_lane_row(at);
  });
}

void NestEmitter::emit_lane_sweep(const Sweep& sweep, const Place& row) {
  Known hoisted;
  hoist(sweep, hoisted, row);
  if (sweep.folds.empty()) {
    const bool is_light = weight(nest_, sweep) < kHeavy;
    vector_loop(row, builder_.getInt64(0), columns_, is_light, [&](const Place& place) {
      Known known = hoisted;
      emit_stores(sweep, known, place);
    });
    return;
  }
  // An empty row is one empty block: its cells are the identity.
  Value* whole =
      builder_.CreateLShr(builder_.CreateAdd(columns_, builder_.getInt64(kLaneBlock - 1)),
                          static_cast<uint64_t>(std::countr_zero(uint64_t(kLaneBlock))));
  Value* blocks =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, whole, builder_.getInt64(1));
  const auto fold_block = [&](Value* block) {
    Value* begin = times(block, kLaneBlock);
    Value* end = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, builder_.CreateAdd(begin, builder_.getInt64(kLaneBlock)), columns_);
    fold_lane_block(sweep, hoisted, row, begin, end);
    for (const Fold& fold : sweep.folds) reduce_lanes(fold);
    push_blocks(sweep, block, blocks, builder_.getInt64(1));
  };
  loop(builder_, builder_.getInt64(0), blocks, 1, fold_block, true);
}

// The location of a lane's partial result of a fold.
Value* NestEmitter::lane_partial(const Fold& fold, Value* lane) {
  return offset(lane_partials_[static_cast<size_t>(fold.cell)],
                times(lane, size_of(dtype_of(fold))));
}

void NestEmitter::fold_lane_block(const Sweep& sweep, const Known& hoisted, const Place& row,
                                  Value* begin, Value* end) {
  const auto vectors = static_cast<size_t>(kLanes / width_);
  Carried partials;
  for (const Fold& fold : sweep.folds) {
    partials.resize(partials.size() + vectors, identity(fold, width_));
  }
  Value* rest = begin;
  if (weight(nest_, sweep) * static_cast<int64_t>(vectors) <= 64) {
    Value* count = builder_.CreateSub(end, begin);
    rest = builder_.CreateAdd(begin, builder_.CreateAnd(count, ~static_cast<uint64_t>(kLanes - 1)));
    partials = fold_lane_groups(sweep, hoisted, row, begin, rest, partials);
  }
  if (partials.size() <= kTurningRegisters) {
    return fold_lanes_by_turns(sweep, hoisted, row, rest, end, std::move(partials));
  }
  for (size_t k = 0; k < partials.size(); ++k) {
    Value* lane = builder_.getInt64(k % vectors * static_cast<size_t>(width_));
    builder_.CreateStore(partials[k], lane_partial(sweep.folds[k / vectors], lane));
  }
  fold_lanes_in_memory(sweep, hoisted, row, rest, end);
}

// Whole groups of 64 columns, all lanes in registers.
Carried NestEmitter::fold_lane_groups(const Sweep& sweep, const Known& hoisted, const Place& row,
                                      Value* begin, Value* end, Carried partials) {
  const auto vectors = static_cast<size_t>(kLanes / width_);
  const auto group = [&](Value* column, const Carried& turn) {
    Carried next = turn;
    for (size_t i = 0; i < vectors; ++i) {
      Place place = row;
      place.column = builder_.CreateAdd(column, builder_.getInt64(i * static_cast<size_t>(width_)));
      place.stream = stream_;
      Known known = hoisted;
      emit_stores(sweep, known, place);
      for (size_t k = 0; k < sweep.folds.size(); ++k) {
        const Fold& fold = sweep.folds[k];
        Value*& sum = next[k * vectors + i];
        Value* folded = to_memory(value(fold.expr, known, place), dtype_of(fold));
        sum = combine(fold.monoid, dtype_of(fold), sum, folded);
      }
    }
    return next;
  };
  return loop(builder_, begin, end, kLanes, std::move(partials), group);
}

// One vector at a time, rotating the vectors of lanes through one register: one body serves them
// all, and they never leave the registers. For what whole groups leave, and for heavy bodies.
// `begin` is lane 0.
void NestEmitter::fold_lanes_by_turns(const Sweep& sweep, const Known& hoisted, const Place& row,
                                      Value* begin, Value* end, Carried partials) {
  const auto vectors = static_cast<size_t>(kLanes / width_);
  // Full vectors without masks: a masked store beside the fold costs a fifth of the time.
  partials =
      vector_loop(row, begin, end, true, partials, [&](const Place& place, const Carried& turn) {
        Known known = hoisted;
        emit_stores(sweep, known, place);
        Carried next;
        for (size_t k = 0; k < sweep.folds.size(); ++k) {
          const Fold& fold = sweep.folds[k];
          const DType dtype = dtype_of(fold);
          Value* folded = to_memory(value(fold.expr, known, place), dtype);
          // Absent columns fold the identity, which changes no bit of a fold that started from it.
          if (place.mask != nullptr) {
            folded = builder_.CreateSelect(place.mask, folded, identity(fold, width_));
          }
          const auto first = turn.begin() + static_cast<std::ptrdiff_t>(k * vectors);
          next.insert(next.end(), first + 1, first + static_cast<std::ptrdiff_t>(vectors));
          next.push_back(combine(fold.monoid, dtype, *first, folded));
        }
        return next;
      });
  // After n rotations the first register holds vector n.
  Value* count = builder_.CreateAdd(builder_.CreateSub(end, begin),
                                    builder_.getInt64(static_cast<uint64_t>(width_ - 1)));
  for (size_t k = 0; k < partials.size(); ++k) {
    Value* lane =
        builder_.CreateAdd(count, builder_.getInt64(k % vectors * static_cast<size_t>(width_)));
    lane = builder_.CreateAnd(lane, static_cast<uint64_t>(kLanes - width_));
    builder_.CreateStore(partials[k], lane_partial(sweep.folds[k / vectors], lane));
  }
}

void NestEmitter::fold_lanes_in_memory(const Sweep& sweep, const Known& hoisted, const Place& row,
                                       Value* begin, Value* end) {
  vector_loop(row, begin, end, false, [&](const Place& place) {
    Known known = hoisted;
    emit_stores(sweep, known, place);
    for (const Fold& fold : sweep.folds) {
      const DType dtype = dtype_of(fold);
      Value* address =
          lane_partial(fold, builder_.CreateAnd(place.column, static_cast<uint64_t>(kLanes - 1)));
      Value* sum = builder_.CreateLoad(memory_type(dtype, width_), address);
      Value* folded = to_memory(value(fold.expr, known, place), dtype);
      if (place.mask != nullptr) {
        folded = builder_.CreateSelect(place.mask, folded, identity(fold, width_));
      }
      builder_.CreateStore(combine(fold.monoid, dtype, sum, folded), address);
    }
  });
}

// Lane j takes lane j + 32, then j + 16, 8, 4, 2, 1.
void NestEmitter::reduce_lanes(const Fold& fold) {
  const DType dtype = dtype_of(fold);
  const size_t cell = static_cast<size_t>(fold.cell);
  std::vector<Value*> vectors;
  for (int64_t i = 0; i < kLanes; i += width_) {
    Value* bytes = builder_.getInt64(static_cast<uint64_t>(i * size_of(dtype)));
    vectors.push_back(
        builder_.CreateLoad(memory_type(dtype, width_), offset(lane_partials_[cell], bytes)));
  }
  builder_.CreateStore(total(fold, std::move(vectors)), cells_[cell]);
}

// Absent vectors hold the identity, and so need not be combined.
Value* NestEmitter::total(const Fold& fold, std::vector<Value*> vectors) {
  const DType dtype = dtype_of(fold);
  for (size_t half = static_cast<size_t>(kLanes / width_) / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half && i + half < vectors.size(); ++i) {
      vectors[i] = combine(fold.monoid, dtype, vectors[i], vectors[i + half]);
    }
    vectors.resize(std::min(half, vectors.size()));
  }
  // At full width, with nothing in the upper lanes: narrower vectors take longer to compile.
  Value* lanes = vectors[0];
  for (int64_t count = width_ / 2; count >= 1; count /= 2) {
    llvm::SmallVector<int> upper(static_cast<size_t>(width_), -1);
    for (int64_t i = 0; i < count; ++i) upper[static_cast<size_t>(i)] = static_cast<int>(count + i);
    lanes = combine(fold.monoid, dtype, lanes, builder_.CreateShuffleVector(lanes, upper));
  }
  return builder_.CreateExtractElement(lanes, uint64_t{0});
}

void NestEmitter::finish_lane_row(const Place& row) {
  const int64_t width = width_;
  width_ = 1;
  Known known(nest_.exprs.size(), nullptr);
  for (const Store& s : nest_.finish) value(s.expr, known, row);
  for (const Store& s : nest_.finish) store(s.buffer, value(s.expr, known, row), row);
  width_ = width;
}

// ---- Rows of known columns

// Nothing but arithmetic is left of a row: its elements and cells stay in registers, and it stores
// at its end.
void NestEmitter::emit_known_rows() {
  loop(builder_, builder_.getInt64(0), rows_, 1, [&](Value* row) {
    const Place at = place_of_row(row);
    row_elements_.clear();
    row_cells_.clear();
    std::map<std::pair<int32_t, int64_t>, Value*> stored;
    for (const Sweep& sweep : nest_.sweeps) {
      emit_known_sweep(sweep, at);
      for (const Store& s : sweep.stores) {
        for (int64_t i = 0; i * width_ < known_columns_; ++i)
          stored[{s.buffer, i}] = row_elements_.at({s.buffer, i});
      }
    }
    for (const auto& [where, elements] : stored)
      store(where.first, elements, place_of_vector(at, where.second));
    finish_lane_row(at);
  });
}

Place NestEmitter::place_of_vector(const Place& row, int64_t vector) {
  Place place = row;
  place.vector = vector;
  place.column = builder_.getInt64(static_cast<uint64_t>(vector * width_));
  const int64_t left = known_columns_ - vector * width_;
  if (left < width_) {
    place.active = builder_.getInt64(static_cast<uint64_t>(left));
    place.mask = lane_mask(place.active, width_);
  }
  return place;
}

void NestEmitter::emit_known_sweep(const Sweep& sweep, const Place& row) {
  Known hoisted;
  hoist(sweep, hoisted, row);
  std::vector<std::vector<Value*>> partials(sweep.folds.size());
  for (int64_t i = 0; i * width_ < known_columns_; ++i) {
    const Place place = place_of_vector(row, i);
    Known known = hoisted;
    for (size_t k = 0; k < sweep.folds.size(); ++k) {
      const Fold& fold = sweep.folds[k];
      Value* folded = to_memory(value(fold.expr, known, place), dtype_of(fold));
      if (place.mask != nullptr)
        folded = builder_.CreateSelect(place.mask, folded, identity(fold, width_));
      partials[k].push_back(combine(fold.monoid, dtype_of(fold), identity(fold, width_), folded));
    }
    for (const Store& s : sweep.stores) value(s.expr, known, place);
    for (const Store& s : sweep.stores) row_elements_[{s.buffer, i}] = value(s.expr, known, place);
  }
  for (size_t k = 0; k < sweep.folds.size(); ++k)
    row_cells_[sweep.folds[k].cell] = total(sweep.folds[k], std::move(partials[k]));
}

// ---- Folds along steps

// Rows of memory are read in long runs, as the machine fetches them best: where a block of columns
// is a whole row, one row after another, or as many as make a block; where it is part of one, eight
// rows side by side. Accumulators stay in the first cache between turns.
void NestEmitter::emit_columns() {
  constexpr uint64_t kRowsSideBySide = 8;
  steps_per_turn_ = builder_.getInt64(kRowsSideBySide);
  const auto block = static_cast<uint64_t>(column_block_);
  if (nest_.sweeps.size() == 1) {
    Value* some =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, columns_, builder_.getInt64(1));
    Value* is_part = builder_.CreateICmpUGT(columns_, builder_.getInt64(block));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const BufferRef& ref = nest_.buffers[i];
      if (ref.written || ref.columns != BufferRef::Columns::unit) continue;
      Value* row_bytes = times(columns_, size_of(ref.dtype));
      is_part = builder_.CreateOr(is_part, builder_.CreateICmpNE(buffers_[i].step, row_bytes));
    }
    steps_per_turn_ = builder_.CreateSelect(is_part, steps_per_turn_,
                                            builder_.CreateUDiv(builder_.getInt64(block), some));
  }
  loop(builder_, builder_.getInt64(0), rows_, 1, [&](Value* row) {
    const Place at = place_of_row(row);
    loop(builder_, builder_.getInt64(0), columns_, column_block_, [&](Value* begin) {
      Value* end = builder_.CreateBinaryIntrinsic(
          llvm::Intrinsic::smin, builder_.CreateAdd(begin, builder_.getInt64(block)), columns_);
      for (const Sweep& sweep : nest_.sweeps) emit_column_sweep(sweep, at, begin, end);
      vector_loop(at, begin, end, false, [&](const Place& vector) {
        Place place = vector;
        place.cell_lane = builder_.CreateSub(place.column, begin);
        Known known(nest_.exprs.size(), nullptr);
        for (const Store& s : nest_.finish) value(s.expr, known, place);
        for (const Store& s : nest_.finish) store(s.buffer, value(s.expr, known, place), place);
      });
    });
  });
}

void NestEmitter::emit_column_sweep(const Sweep& sweep, const Place& row, Value* begin,
                                    Value* end) {
  if (sweep.folds.empty()) {
    return sweep_steps(sweep, row, begin, end, builder_.getInt64(0), steps_);
  }
  Value* width = builder_.CreateSub(end, begin);
  Value* whole = builder_.CreateLShr(builder_.CreateAdd(steps_, builder_.getInt64(kStepBlock - 1)),
                                     static_cast<uint64_t>(std::countr_zero(uint64_t(kStepBlock))));
  Value* blocks =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, whole, builder_.getInt64(1));
  const auto fold_block = [&](Value* block) {
    loop(builder_, builder_.getInt64(0), width, width_, [&](Value* lane) {
      Place place = row;
      place.cell_lane = lane;
      for (const Fold& fold : sweep.folds) {
        const llvm::Align align(static_cast<uint64_t>(size_of(dtype_of(fold))));
        builder_.CreateAlignedStore(identity(fold, width_), cell_address(fold.cell, place), align);
      }
    });
    Value* first = times(block, kStepBlock);
    Value* last = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, builder_.CreateAdd(first, builder_.getInt64(kStepBlock)), steps_);
    sweep_steps(sweep, row, begin, end, first, last);
    push_blocks(sweep, block, blocks, width);
  };
  loop(builder_, builder_.getInt64(0), blocks, 1, fold_block, true);
}

// A block of columns over some steps.
void NestEmitter::sweep_steps(const Sweep& sweep, const Place& row, Value* begin, Value* end,
                              Value* first_step, Value* last_step) {
  loop(builder_, first_step, last_step, steps_per_turn_, [&](Value* first) {
    Value* last = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, builder_.CreateAdd(first, steps_per_turn_), last_step);
    Value* rest = begin;
    if (column_vectors_ > 1) {
      const int64_t together = column_vectors_ * width_;
      Value* count = builder_.CreateSub(end, begin);
      rest = builder_.CreateAdd(begin,
                                builder_.CreateAnd(count, ~static_cast<uint64_t>(together - 1)));
      loop(builder_, begin, rest, together, [&](Value* column) {
        std::vector<Place> places(static_cast<size_t>(column_vectors_), row);
        for (size_t i = 0; i < places.size(); ++i) {
          places[i].column =
              builder_.CreateAdd(column, builder_.getInt64(i * static_cast<size_t>(width_)));
          places[i].cell_lane = builder_.CreateSub(places[i].column, begin);
          places[i].stream = stream_;
        }
        fold_column_vectors(sweep, places, first, last);
      });
    }
    vector_loop(row, rest, end, false, [&](const Place& vector) {
      Place place = vector;
      place.cell_lane = builder_.CreateSub(place.column, begin);
      fold_column_vectors(sweep, {place}, first, last);
    });
  });
}

void NestEmitter::fold_column_vectors(const Sweep& sweep, const std::vector<Place>& places,
                                      Value* first_step, Value* last_step) {
  std::vector<Known> hoisted(places.size());
  for (size_t i = 0; i < places.size(); ++i) hoist(sweep, hoisted[i], places[i]);
  const auto cell = [&](size_t k) {
    return cell_address(sweep.folds[k / places.size()].cell, places[k % places.size()]);
  };
  const auto align = [&](size_t k) {
    return llvm::Align(static_cast<uint64_t>(size_of(dtype_of(sweep.folds[k / places.size()]))));
  };
  Carried sums;
  for (size_t k = 0; k < sweep.folds.size() * places.size(); ++k) {
    llvm::Type* type = memory_type(dtype_of(sweep.folds[k / places.size()]), width_);
    sums.push_back(builder_.CreateAlignedLoad(type, cell(k), align(k)));
  }
  const auto body = [&](Value* step, const Carried& turn) {
    Carried next = turn;
    const std::vector<Value*> origins = place_of_step(places[0], step).origins;
    for (size_t i = 0; i < places.size(); ++i) {
      Place place = places[i];
      place.step = step;
      place.origins = origins;
      Known known = hoisted[i];
      emit_stores(sweep, known, place);
      for (size_t k = 0; k < sweep.folds.size(); ++k) {
        const Fold& fold = sweep.folds[k];
        Value*& sum = next[k * places.size() + i];
        Value* folded = to_memory(value(fold.expr, known, place), dtype_of(fold));
        sum = combine(fold.monoid, dtype_of(fold), sum, folded);
      }
    }
    return next;
  };
  sums = loop(builder_, first_step, last_step, 1, sums, body, true);
  for (size_t k = 0; k < sums.size(); ++k) {
    builder_.CreateAlignedStore(sums[k], cell(k), align(k));
  }
}

}  // namespace tidemark::jit
