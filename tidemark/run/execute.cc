#include <algorithm>
#include <cstring>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/run/device_arenas.h"
#include "tidemark/run/program.h"

namespace tidemark::run {
namespace {

class Executor {
 public:
  Executor(const Program& program, std::byte** registers)
      : program_(program), registers_(registers) {}

  void run(int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end;) {
      const Step& step = program_.steps[static_cast<size_t>(i)];
      switch (step.kind) {
        case Step::Kind::run:
          if (step.memory == 0)
            run_task(step);
          else
            device::memory(step.memory).run([&] { run_task(step); });
          ++i;
          break;
        case Step::Kind::copy:
          run_copy(step);
          ++i;
          break;
        case Step::Kind::branch: {
          const bool taken = *at(operand(step, 0)) != std::byte{0};
          run(taken ? i + 1 : step.middle, taken ? step.middle : step.end);
          i = step.end;
          break;
        }
        case Step::Kind::loop:
          run_loop(step, i);
          i = step.end;
          break;
        case Step::Kind::map:
          run_map(step, i);
          i = step.end;
          break;
      }
    }
  }

 private:
  std::byte* at(const Address& address) const {
    const int64_t place =
        address.buffer < 0 ? 0 : program_.offsets[static_cast<size_t>(address.buffer)];
    return registers_[address.reg] + place + address.offset;
  }
  const Address& operand(const Step& step, int32_t index) const {
    return program_.addresses[static_cast<size_t>(step.first_operand + index)];
  }

  void run_task(const Step& step) {
    std::byte* places[kMostOperands];
    for (int32_t k = 0; k < step.operands; ++k) places[k] = at(operand(step, k));
    step.task->run(places, at(step.workspace));
  }

  void run_copy(const Step& step) {
    std::byte *const from = at(operand(step, 0)), *const to = at(operand(step, 1));
    device::Memory& memory = device::memory(step.memory);
    if (step.to_host)
      memory.copy_out(to, from, step.bytes);
    else
      memory.copy_in(to, from, step.bytes);
  }

  void start(const std::vector<Walk>& walks, int64_t trip) {
    for (const Walk& walk : walks) registers_[walk.reg] = at(walk.base) + trip * walk.stride;
  }

  void run_loop(const Step& step, int32_t index) {
    const Loop& loop = program_.loops[static_cast<size_t>(step.control)];
    int64_t trips = loop.trips;
    if (loop.counted) {
      std::memcpy(&trips, at(loop.count), sizeof(trips));
      TIDEMARK_CHECK(loop.trips < 0 || trips <= loop.trips, "a loop of ", trips,
                     " trips was planned for ", loop.trips);
    }
    for (const Loop::Carry& carry : loop.carries) {
      registers_[carry.next] = at(carry.second);
      registers_[carry.now] = at(carry.first);  // Last: one that stays in place has only this.
    }
    for (int64_t trip = 0; trips < 0 || trip < trips; ++trip) {
      std::memcpy(at(loop.trip), &trip, sizeof(trip));
      start(loop.walks, loop.reverse ? trips - 1 - trip : trip);
      run(index + 1, step.middle);
      if (loop.tested && *at(loop.condition) == std::byte{0}) break;
      run(step.middle, step.end);
      for (const Loop::Carry& carry : loop.carries) {
        if (carry.now != carry.next) std::swap(registers_[carry.now], registers_[carry.next]);
      }
    }
  }

  void run_map(const Step& step, int32_t index) {
    const Map& map = program_.maps[static_cast<size_t>(step.control)];
    std::byte* const arenas = at(map.arenas);
    // Batches of as many trips as may be under way, each in an arena of its own.
    for (int64_t first = 0; first < map.trips; first += map.alive) {
      const int64_t batch = std::min(map.alive, map.trips - first);
      device::parallel_for(batch, 1, [&](int64_t begin, int64_t end, int) {
        // The trips of a batch share the threads; alone, a trip has all of them.
        const device::ThreadsScope threads(map.alive > 1 ? 1 : program_.threads);
        std::vector<std::byte*> own(registers_, registers_ + program_.registers);
        Executor body(program_, own.data());
        for (int64_t k = begin; k < end; ++k) {
          own[static_cast<size_t>(map.arena_reg)] = arenas + k * map.arena_bytes;
          body.start(map.walks, first + k);
          body.run(index + 1, step.end);
        }
      });
    }
  }

  const Program& program_;
  std::byte** registers_;
};

}  // namespace

void execute(const Program& program, std::span<std::byte*> registers,
             std::vector<int64_t>* touched) {
  const DeviceArenas arenas(program, registers, touched);
  const device::ThreadsScope threads(program.threads);
  const device::FloatEnvironment ieee;
  Executor(program, registers.data()).run(0, static_cast<int32_t>(program.steps.size()));
}

}  // namespace tidemark::run
