// The arenas that one call holds in memories other than the host's.
#pragma once

#include <span>
#include <vector>

#include "tidemark/device/call_memory.h"
#include "tidemark/run/program.h"

namespace tidemark::run {

class DeviceArenas {
 public:
  // Allocates all arenas, or throws DeviceError, and sets their registers. If `touched` is given,
  // the arenas are painted (paint.h), and the destructor writes there, for each arena, the bytes up
  // to the last that changed.
  DeviceArenas(const Program& program, std::span<std::byte*> registers,
               std::vector<int64_t>* touched);
  ~DeviceArenas();
  DeviceArenas(const DeviceArenas&) = delete;
  DeviceArenas& operator=(const DeviceArenas&) = delete;

 private:
  void give_back() noexcept;

  const Program& program_;
  device::CallList<std::byte*> taken_;
  std::vector<int64_t>* touched_;
  std::vector<std::byte> image_;  // A host copy of the largest arena, if arenas are painted.
};

}  // namespace tidemark::run
