#include "tidemark/run/device_arenas.h"

#include "tidemark/device/memory.h"
#include "tidemark/run/paint.h"

namespace tidemark::run {

DeviceArenas::DeviceArenas(const Program& program, std::span<std::byte*> registers,
                           std::vector<int64_t>* touched)
    : program_(program), touched_(touched) {
  try {
    for (const DeviceArena& arena : program.device_arenas) {
      device::Memory& memory = device::memory(arena.memory);
      taken_.push_back(nullptr);
      taken_.back() = memory.take(arena.bytes);
      registers[static_cast<size_t>(arena.reg)] = taken_.back();
      if (touched_ == nullptr) continue;
      std::vector<std::byte> colours(static_cast<size_t>(arena.bytes));
      paint(colours.data(), arena.bytes);
      memory.copy_in(taken_.back(), colours.data(), arena.bytes);
    }
  } catch (...) {
    give_back();
    throw;
  }
}

DeviceArenas::~DeviceArenas() {
  for (size_t i = 0; touched_ != nullptr && i < taken_.size(); ++i) {
    const DeviceArena& arena = program_.device_arenas[i];
    std::vector<std::byte> seen(static_cast<size_t>(arena.bytes));
    device::memory(arena.memory).copy_out(seen.data(), taken_[i], arena.bytes);
    touched_->push_back(touched_bytes(seen.data(), arena.bytes));
  }
  give_back();
}

void DeviceArenas::give_back() noexcept {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i] == nullptr) continue;
    const DeviceArena& arena = program_.device_arenas[i];
    device::memory(arena.memory).give(taken_[i], arena.bytes);
  }
}

}  // namespace tidemark::run
