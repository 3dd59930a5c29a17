// Emits one recurrence as one LLVM function. Included only by jit.cc.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "tidemark/device/kernel.h"
#include "tidemark/emit/llvm/nest_emitter.h"
#include "tidemark/loops/recurrence.h"

namespace tidemark::jit {

class RecurrenceEmitter : NestEmitter {
 public:
  RecurrenceEmitter(const Recurrence& recurrence, const Nest& exprs, device::Isa isa,
                    llvm::Module& module, const std::string& name)
      : NestEmitter(exprs, isa, module, name), loop_(recurrence) {
    width_ = 1;
  }

  void emit() {
    builder_.SetInsertPoint(block());
    read_arguments();
    bad_ = block();
    Known fixed(loop_.exprs.size());
    write_fixed(fixed);
    llvm::BasicBlock* const head = block();
    llvm::BasicBlock* const body = block();
    llvm::BasicBlock* const end = block();
    Carried starts;
    for (const Recurrence::Register& one : loop_.registers)
      starts.push_back(value(one.start, fixed, {}));
    llvm::BasicBlock* const entry = builder_.GetInsertBlock();
    builder_.CreateBr(head);

    builder_.SetInsertPoint(head);
    llvm::PHINode* const trip = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    trip->addIncoming(builder_.getInt64(0), entry);
    std::vector<llvm::PHINode*> registers;
    for (llvm::Value* start : starts) {
      registers.push_back(builder_.CreatePHI(start->getType(), 2));
      registers.back()->addIncoming(start, entry);
    }
    Known known = fixed;
    seed(known, trip, registers);
    const Known at_head = known;
    llvm::Value* goes_on = builder_.CreateICmpSLT(trip, trips_);
    if (loop_.condition >= 0) {
      llvm::BasicBlock* const test = block();
      builder_.CreateCondBr(goes_on, test, end);
      builder_.SetInsertPoint(test);
      goes_on = value(loop_.condition, known, {});
    }
    builder_.CreateCondBr(goes_on, body, end);

    builder_.SetInsertPoint(body);
    for (const Recurrence::Move& move : loop_.moves) make(move, known);
    for (size_t i = 0; i < registers.size(); ++i)
      starts[i] = value(loop_.registers[i].next, known, {});
    llvm::BasicBlock* const latch = builder_.GetInsertBlock();
    trip->addIncoming(builder_.CreateAdd(trip, builder_.getInt64(1)), latch);
    for (size_t i = 0; i < registers.size(); ++i) registers[i]->addIncoming(starts[i], latch);
    builder_.CreateBr(head);

    builder_.SetInsertPoint(end);
    known = at_head;
    for (const Recurrence::Move& move : loop_.after) make(move, known);
    builder_.CreateRetVoid();
    write_bad();
  }

 private:
  llvm::BasicBlock* block() { return llvm::BasicBlock::Create(context_, "", function_); }

  void read_arguments() {
    llvm::Value* const args = function_->getArg(1);
    const auto field = [&](llvm::Type* type, llvm::Value* base, size_t at) -> llvm::Value* {
      return builder_.CreateLoad(type, offset(base, builder_.getInt64(at)));
    };
    trips_ = field(builder_.getInt64Ty(), args, offsetof(KernelArgs, columns));
    scratch_ = field(builder_.getPtrTy(), args, offsetof(KernelArgs, scratch));
    llvm::Value* const data = field(builder_.getPtrTy(), args, offsetof(KernelArgs, buffers));
    for (int32_t i = 0; i < loop_.buffers; ++i)
      data_.push_back(
          field(builder_.getPtrTy(), data, static_cast<size_t>(i) * sizeof(std::byte*)));
  }

  // Loop-invariant values are emitted before the loop, since no pass hoists them.
  void write_fixed(Known& fixed) {
    for (const Recurrence::Move& move : loop_.before) make(move, fixed);
    for (size_t i = 0; i < loop_.exprs.size(); ++i) {
      const Expr& expr = loop_.exprs[i];
      if (expr.op == ExprOp::scalar) fixed[i] = trips_;
      if (expr.op == ExprOp::scalar || expr.op == ExprOp::load || expr.op == ExprOp::cell ||
          expr.op == ExprOp::index || expr.op == ExprOp::constant)
        continue;
      bool is_fixed = true;
      for (const int32_t in : expr.in) {
        if (in < 0) continue;
        const auto operand = static_cast<size_t>(in);
        is_fixed &= fixed[operand] != nullptr || loop_.exprs[operand].op == ExprOp::constant;
      }
      if (is_fixed) value(static_cast<int32_t>(i), fixed, {});
    }
  }

  void seed(Known& known, llvm::Value* trip, const std::vector<llvm::PHINode*>& registers) {
    for (size_t i = 0; i < loop_.exprs.size(); ++i) {
      const Expr& expr = loop_.exprs[i];
      if (expr.op == ExprOp::index) known[i] = trip;
      if (expr.op == ExprOp::cell) known[i] = registers[static_cast<size_t>(expr.ref)];
    }
  }

  void make(const Recurrence::Move& move, Known& known) {
    const Recurrence::Access& access = loop_.accesses[static_cast<size_t>(move.access)];
    const Expr& expr = loop_.exprs[static_cast<size_t>(move.expr)];
    llvm::Value* const address = address_of(move.access, known);
    const llvm::Align align(static_cast<uint64_t>(size_of(access.dtype)));
    if (expr.op == ExprOp::load && expr.ref == move.access) {
      known[static_cast<size_t>(move.expr)] = from_memory(
          builder_.CreateAlignedLoad(memory_type(access.dtype, 1), address, align), access.dtype);
    } else {
      builder_.CreateAlignedStore(to_memory(value(move.expr, known, {}), access.dtype), address,
                                  align);
    }
  }

  llvm::Value* address_of(int32_t number, Known& known) {
    const Recurrence::Access& access = loop_.accesses[static_cast<size_t>(number)];
    llvm::Value* element = builder_.getInt64(static_cast<uint64_t>(access.first));
    if (access.index >= 0) {
      llvm::Value* index = value(access.index, known, {});
      if (access.bound >= 0) index = checked_once(number, index);
      element = builder_.CreateAdd(element, times(index, access.scale));
    }
    return offset(data_[static_cast<size_t>(access.buffer)], times(element, size_of(access.dtype)));
  }

  // Elements of one slice have the same index, which is checked once in a trip.
  llvm::Value* checked_once(int32_t number, llvm::Value* index) {
    const Recurrence::Access& access = loop_.accesses[static_cast<size_t>(number)];
    llvm::Value*& known = checked_[{access.index, access.bound}];
    if (known == nullptr) known = checked(number, access.bound, index);
    return known;
  }

  llvm::Value* checked(int32_t number, int64_t bound, llvm::Value* index) {
    llvm::Value* const size = builder_.getInt64(static_cast<uint64_t>(bound));
    llvm::Value* const is_negative = builder_.CreateICmpSLT(index, builder_.getInt64(0));
    llvm::Value* const plain =
        builder_.CreateSelect(is_negative, builder_.CreateAdd(index, size), index);
    llvm::BasicBlock* const good = block();
    faults_.push_back({builder_.GetInsertBlock(), number, index});
    builder_.CreateCondBr(builder_.CreateICmpULT(plain, size), good, bad_);
    builder_.SetInsertPoint(good);
    return plain;
  }

  void write_bad() {
    builder_.SetInsertPoint(bad_);
    if (faults_.empty()) {
      builder_.CreateUnreachable();
      return;
    }
    const auto count = static_cast<unsigned>(faults_.size());
    llvm::PHINode* const which = builder_.CreatePHI(builder_.getInt64Ty(), count);
    llvm::PHINode* const index = builder_.CreatePHI(builder_.getInt64Ty(), count);
    for (const Fault& fault : faults_) {
      which->addIncoming(builder_.getInt64(static_cast<uint64_t>(fault.access)), fault.from);
      index->addIncoming(fault.index, fault.from);
    }
    builder_.CreateStore(which, scratch_);
    builder_.CreateStore(index, offset(scratch_, builder_.getInt64(8)));
    builder_.CreateRetVoid();
  }

  struct Fault {
    llvm::BasicBlock* from;
    int32_t access;
    llvm::Value* index;
  };
  const Recurrence& loop_;
  llvm::Value* trips_ = nullptr;
  std::vector<llvm::Value*> data_;
  llvm::BasicBlock* bad_ = nullptr;
  std::vector<Fault> faults_;
  std::map<std::pair<int32_t, int64_t>, llvm::Value*> checked_;
};

}  // namespace tidemark::jit
