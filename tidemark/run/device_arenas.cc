#include "tidemark/run/device_arenas.h"

#include <algorithm>

#include "tidemark/device/memory.h"
#include "tidemark/run/paint.h"

namespace tidemark::run {

DeviceArenas::DeviceArenas(const Program& program, std::span<std::byte*> registers,
                           std::vector<int64_t>* touched)
    : program_(program), touched_(touched) {
  if (touched_ != nullptr) touched_->reserve(touched_->size() + program.device_arenas.size());
  try {
    for (const DeviceArena& arena : program.device_arenas) {
      device::Memory& memory = device::memory(arena.memory);
      taken_.push_back(nullptr);
      if (arena.bytes == 0) continue;
      taken_.back() = memory.take(arena.bytes);
      registers[static_cast<size_t>(arena.reg)] = taken_.back();
      if (touched_ == nullptr) continue;
      image_.resize(std::max(image_.size(), static_cast<size_t>(arena.bytes)));
      paint(image_.data(), arena.bytes);
      memory.copy_in(taken_.back(), image_.data(), arena.bytes);
    }
  } catch (...) {
    give_back();
    throw;
  }
}

DeviceArenas::~DeviceArenas() {
  for (size_t i = 0; touched_ != nullptr && i < taken_.size(); ++i) {
    const DeviceArena& arena = program_.device_arenas[i];
    if (taken_[i] == nullptr) {
      touched_->push_back(0);
      continue;
    }
    device::memory(arena.memory).copy_out(image_.data(), taken_[i], arena.bytes);
    touched_->push_back(touched_bytes(image_.data(), arena.bytes));
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
