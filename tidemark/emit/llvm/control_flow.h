// Loops and conditions of the function being built. A body may itself add blocks.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <utility>
#include <vector>

namespace tidemark::jit {

// Values carried from one iteration of a loop to the next.
using Carried = std::vector<llvm::Value*>;

// for (i = begin; i < end; i += step) body(i), with carried values; returns the last ones. `runs`:
// the loop is known to run at least once.
inline Carried loop(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end,
                    llvm::Value* step, Carried carried,
                    const std::function<Carried(llvm::Value*, const Carried&)>& body,
                    bool runs = false) {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* turn =
      llvm::BasicBlock::Create(builder.getContext(), "", builder.GetInsertBlock()->getParent());
  llvm::BasicBlock* after =
      llvm::BasicBlock::Create(builder.getContext(), "", builder.GetInsertBlock()->getParent());
  if (runs) {
    builder.CreateBr(turn);
  } else {
    builder.CreateCondBr(builder.CreateICmpSLT(begin, end), turn, after);
  }
  builder.SetInsertPoint(turn);
  llvm::PHINode* i = builder.CreatePHI(begin->getType(), 2);
  i->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  Carried in_turn;
  for (llvm::Value* value : carried) {
    phis.push_back(builder.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    in_turn.push_back(phis.back());
  }
  Carried next = body(i, in_turn);
  llvm::BasicBlock* latch = builder.GetInsertBlock();
  llvm::Value* following = builder.CreateAdd(i, step);
  builder.CreateCondBr(builder.CreateICmpSLT(following, end), turn, after);
  i->addIncoming(following, latch);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(next[k], latch);
  builder.SetInsertPoint(after);
  if (runs) return next;
  Carried result;
  for (size_t k = 0; k < phis.size(); ++k) {
    llvm::PHINode* phi = builder.CreatePHI(phis[k]->getType(), 2);
    phi->addIncoming(carried[k], before);
    phi->addIncoming(next[k], latch);
    result.push_back(phi);
  }
  return result;
}

inline Carried loop(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
                    Carried carried,
                    const std::function<Carried(llvm::Value*, const Carried&)>& body,
                    bool runs = false) {
  llvm::Value* constant = builder.getInt64(static_cast<uint64_t>(step));
  return loop(builder, begin, end, constant, std::move(carried), body, runs);
}

inline void loop(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end,
                 llvm::Value* step, const std::function<void(llvm::Value*)>& body,
                 bool runs = false) {
  const auto without_carried = [&](llvm::Value* i, const Carried&) -> Carried {
    body(i);
    return {};
  };
  loop(builder, begin, end, step, {}, without_carried, runs);
}

inline void loop(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
                 const std::function<void(llvm::Value*)>& body, bool runs = false) {
  loop(builder, begin, end, builder.getInt64(static_cast<uint64_t>(step)), body, runs);
}

// if (condition) body(), with values it may replace.
inline Carried when(llvm::IRBuilder<>& builder, llvm::Value* condition, Carried carried,
                    const std::function<Carried(const Carried&)>& body) {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* yes =
      llvm::BasicBlock::Create(builder.getContext(), "", builder.GetInsertBlock()->getParent());
  llvm::BasicBlock* after =
      llvm::BasicBlock::Create(builder.getContext(), "", builder.GetInsertBlock()->getParent());
  builder.CreateCondBr(condition, yes, after);
  builder.SetInsertPoint(yes);
  const Carried next = body(carried);
  llvm::BasicBlock* end = builder.GetInsertBlock();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
  for (size_t k = 0; k < carried.size(); ++k) {
    llvm::PHINode* phi = builder.CreatePHI(carried[k]->getType(), 2);
    phi->addIncoming(carried[k], before);
    phi->addIncoming(next[k], end);
    carried[k] = phi;
  }
  return carried;
}

inline void when(llvm::IRBuilder<>& builder, llvm::Value* condition,
                 const std::function<void()>& body) {
  when(builder, condition, {}, [&](const Carried&) -> Carried {
    body();
    return {};
  });
}

// condition ? yes() : no(), of which one is run. Null if there is no value.
inline llvm::Value* either(llvm::IRBuilder<>& builder, llvm::Value* condition,
                           const std::function<llvm::Value*()>& yes,
                           const std::function<llvm::Value*()>& no) {
  llvm::Function* const function = builder.GetInsertBlock()->getParent();
  const auto block = [&] { return llvm::BasicBlock::Create(builder.getContext(), "", function); };
  llvm::BasicBlock *const first = block(), *const second = block(), *const after = block();
  builder.CreateCondBr(condition, first, second);
  const auto emit = [&](llvm::BasicBlock* in, const std::function<llvm::Value*()>& body) {
    builder.SetInsertPoint(in);
    llvm::Value* const made = body();
    llvm::BasicBlock* const end = builder.GetInsertBlock();
    builder.CreateBr(after);
    return std::pair(made, end);
  };
  const auto [a, end_of_a] = emit(first, yes);
  const auto [b, end_of_b] = emit(second, no);
  builder.SetInsertPoint(after);
  if (a == nullptr) return nullptr;
  llvm::PHINode* const phi = builder.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, end_of_a);
  phi->addIncoming(b, end_of_b);
  return phi;
}

}  // namespace tidemark::jit
