// Call memory: the part of a thread's record that call_memory.h uses.
#include "tidemark/device/thread_record.h"

#include <algorithm>

namespace tidemark::device {

struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) CallMemory::Block {
  Block* next = nullptr;
  size_t bytes = 0, used = 0;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  size_t room() const { return bytes - used; }
};

namespace {

using Block = CallMemory::Block;

size_t rounded(size_t bytes) {
  constexpr size_t kUnit = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// Inserts a block after `at`, or first if it is null.
Block* add_block(CallMemory& memory, Block* at, size_t bytes) {
  constexpr size_t kLeast = (16 << 10) - sizeof(Block);
  bytes = std::max(bytes, kLeast);
  auto* const block = new (operator new(sizeof(Block) + bytes)) Block;
  block->bytes = bytes;
  Block*& place = at == nullptr ? memory.first : at->next;
  block->next = place;
  place = block;
  return block;
}

Block* block_with_room(CallMemory& memory, size_t bytes) {
  Block* const now = memory.now;
  if (now != nullptr && now->room() >= bytes) return now;
  Block* const next = now == nullptr ? memory.first : now->next;
  if (next != nullptr && next->room() >= bytes) return next;
  return add_block(memory, now, bytes);
}

}  // namespace

void forget_calls(CallMemory& memory) noexcept {
  for (Block* block = memory.first; block != nullptr; block = block->next) block->used = 0;
  memory.now = memory.first;
  memory.taken = 0;
}

std::byte* take_call_memory(size_t bytes) {
  bytes = rounded(bytes);
  CallMemory& memory = thread_record().calls;
  Block* const block = memory.now = block_with_room(memory, bytes);
  std::byte* const data = block->data() + block->used;
  block->used += bytes;
  ++memory.taken;
  return data;
}

void give_call_memory(std::byte* data, size_t bytes) noexcept {
  ThreadRecord* const record = thread_record_or_null();
  if (record == nullptr) return;  // It was freed with the thread's record.
  CallMemory& memory = record->calls;
  bytes = rounded(bytes);
  Block& now = *memory.now;
  if (now.data() + now.used == data + bytes) now.used -= bytes;
  if (--memory.taken == 0) forget_calls(memory);
}

}  // namespace tidemark::device
