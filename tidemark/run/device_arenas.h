// The arenas of one call in memories that are not the host's.
#pragma once

#include <span>
#include <vector>

#include "tidemark/device/call_memory.h"
#include "tidemark/run/program.h"

namespace tidemark::run {

class DeviceArenas {
 public:
  // Takes them all or throws DeviceError, and sets their registers. Where `touched` is given they
  // are painted, and it gets the bytes up to the last that changed, when they go.
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
  std::vector<std::byte> image_;  // Of the largest, where they are painted.
};

}  // namespace tidemark::run
