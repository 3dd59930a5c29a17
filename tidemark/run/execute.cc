// The executor: runs the steps of a program.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/base/interrupt.h"
#include "tidemark/device/call_memory.h"
#include "tidemark/device/memory.h"
#include "tidemark/device/threads.h"
#include "tidemark/run/device_arenas.h"
#include "tidemark/run/program.h"
#include "tidemark/run/treeverse.h"
#include "tidemark/run/watch.h"

namespace tidemark::run {
namespace {

// Registers for the bodies of maps: one set for each worker and each level of nested maps. They are
// allocated before the first step, so that no step can run out of memory.
class Bodies {
 public:
  explicit Bodies(const Program& program)
      : count_(static_cast<size_t>(program.registers)),
        workers_(static_cast<size_t>(program.threads)),
        all_(count_ * workers_ * static_cast<size_t>(program.map_depth)) {}
  std::byte** registers(int depth, int worker) {
    const size_t number = static_cast<size_t>(depth) * workers_ + static_cast<size_t>(worker);
    return all_.data() + number * count_;
  }

 private:
  size_t count_, workers_;
  device::CallList<std::byte*> all_;
};

class Executor {
 public:
  Executor(const Program& program, std::byte** registers, Bodies& bodies, Watch* watch)
      : program_(program), registers_(registers), bodies_(bodies), watch_(watch) {}

  void run(int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end;) {
      poll(i);
      i = watch_ == nullptr ? run_step(i) : watch_step(i);
    }
  }
  // Steps are numbered in the order they run, those of bodies between their loop and what follows
  // it. A map's bodies run on several threads, which no exception may leave.
  void poll(int32_t step) const {
    if (worker_ < 0 && step < program_.first_in_place) detail::poll_interrupt();
  }

 private:
  // Returns the index of the next step.
  int32_t run_step(int32_t i) {
    const Step& step = program_.steps[static_cast<size_t>(i)];
    switch (step.kind) {
      case Step::Kind::run:
        run_on_its_threads(step);
        return i + 1;
      case Step::Kind::copy:
        run_copy(step);
        return i + 1;
      case Step::Kind::branch: {
        const bool taken = *at(operand(step, 0)) != std::byte{0};
        run(taken ? i + 1 : step.middle, taken ? step.middle : step.end);
        return step.end;
      }
      case Step::Kind::loop:
        run_loop(step, i);
        return step.end;
      case Step::Kind::map:
        run_map(step, i);
        return step.end;
      case Step::Kind::reverse:
        run_reverse(step, i);
        return step.end;
    }
    return i + 1;
  }

  int32_t watch_step(int32_t i) {
    if (worker_ < 0) watch_->set_current(i);
    const int64_t begin_ns = watch_->now_ns();
    hand_over(i);
    const int32_t next = run_step(i);
    watch_->ran(i, std::max(worker_, 0), begin_ns);
    return next;
  }
  // Tells the watch which buffers the step uses. The buffers of a loop or map itself are in use
  // until its last trip.
  void hand_over(int32_t i) {
    const Step& step = program_.steps[static_cast<size_t>(i)];
    const bool has_body = step.kind == Step::Kind::loop || step.kind == Step::Kind::map ||
                          step.kind == Step::Kind::reverse;
    const auto hand = [&](const Address& address) {
      watch_->handed(i, address, at(address));
      if (has_body) watch_->handed(step.end - 1, address, at(address));
    };
    for (int32_t k = 0; k < step.operands; ++k) hand(operand(step, k));
    if (step.workspace.buffer >= 0) hand(step.workspace);
    if (!has_body) return;
    const auto control = static_cast<size_t>(step.control);
    if (step.kind == Step::Kind::map) {
      for (const Map::BodyArena& arena : program_.maps[control].arenas) hand(arena.arenas);
      for (const Walk& walk : program_.maps[control].walks) hand(walk.base);
    } else if (step.kind == Step::Kind::loop) {
      const Loop& loop = program_.loops[control];
      hand(loop.trip);
      if (loop.marked) hand(loop.marks);
      for (const Loop::Carry& carry : loop.carries) hand(carry.first);
      for (const Loop::Checkpoints& kept : loop.kept) hand(kept.rows);
      for (const Walk& walk : loop.walks) hand(walk.base);
    } else {
      const Reverse& walked = program_.reverses[control];
      hand(walked.trip);
      hand(walked.marks);
      for (const Reverse::State& state : walked.states) hand(state.rows);
      for (const Loop::Carry& carry : walked.backs) hand(carry.first);
      for (const Walk& walk : walked.walks) hand(walk.base);
    }
  }

  std::byte* at(const Address& address) const {
    const int64_t place =
        address.buffer < 0 ? 0 : program_.offsets[static_cast<size_t>(address.buffer)];
    return registers_[address.reg] + place + address.offset;
  }
  const Address& operand(const Step& step, int32_t index) const {
    return program_.addresses[static_cast<size_t>(step.first_operand) + static_cast<size_t>(index)];
  }

  void run_on_its_threads(const Step& step) {
    if (step.threads == 0) return run_in_its_memory(step);
    const device::ThreadsScope fewer(std::min(num_threads(), step.threads));
    run_in_its_memory(step);
  }
  void run_in_its_memory(const Step& step) {
    if (step.memory == 0)
      run_task(step);
    else
      device::memory(step.memory).run([&] { run_task(step); });
  }
  void run_task(const Step& step) {
    if (step.operands > kMostOperands) return run_wide_task(step);
    std::byte* places[kMostOperands];
    for (int32_t k = 0; k < step.operands; ++k) places[k] = at(operand(step, k));
    step.task->run(places, at(step.workspace));
  }

  // Prints and checks: they also allocate, for their text.
  void run_wide_task(const Step& step) {
    std::vector<std::byte*> places;
    for (int32_t k = 0; k < step.operands; ++k) places.push_back(at(operand(step, k)));
    step.task->run(places.data(), at(step.workspace));
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
    start(loop.carries);
    std::optional<Keeper> keeper;
    if (loop.slots > 0) keeper.emplace(marks_of(loop), loop.tested ? -1 : trips, loop.every);
    int64_t trip = 0;
    for (; trips < 0 || trip < trips; ++trip) {
      std::memcpy(at(loop.trip), &trip, sizeof(trip));
      start(loop.walks, loop.reverse ? trips - 1 - trip : trip);
      run(index + 1, step.middle);
      if (loop.tested && *at(loop.condition) == std::byte{0}) break;
      if (keeper) {
        if (const auto kept = keeper->at_start_of(trip))
          keep(loop, kept->row, kept->trip == trip ? &Loop::Carry::now : &Loop::Carry::next);
      }
      place_next(loop, trip, trips);
      run(step.middle, step.end);
      exchange(loop.carries);
    }
    if (!loop.marked) return;
    std::memcpy(at(loop.marks), &trip, sizeof(trip));
    if (trip > 0) keep(loop, 0, &Loop::Carry::next);
  }

  Marks marks_of(const Loop& loop) const {
    return {reinterpret_cast<int64_t*>(at(loop.marks)), loop.slots};
  }
  // Copies the carries in these registers to a row of the checkpoints.
  void keep(const Loop& loop, int64_t row, int32_t Loop::Carry::* which) {
    for (const Loop::Checkpoints& kept : loop.kept) {
      std::byte* const to = at(kept.rows) + row * kept.bytes;
      const std::byte* const from = registers_[loop.carries[kept.carry].*which];
      if (loop.memory == device::kHostMemory)
        std::memcpy(to, from, static_cast<size_t>(kept.bytes));
      else
        device::memory(loop.memory).copy_within(to, from, kept.bytes);
    }
  }

  void start(const std::vector<Loop::Carry>& carries) {
    for (const Loop::Carry& carry : carries) {
      registers_[carry.next] = at(carry.second);
      // After `next`: a carry that is updated in place has one register.
      registers_[carry.now] = at(carry.first);
    }
  }
  void exchange(const std::vector<Loop::Carry>& carries) {
    for (const Loop::Carry& carry : carries) {
      if (carry.now != carry.next) std::swap(registers_[carry.now], registers_[carry.next]);
      if (carry.follows >= 0) registers_[carry.now] = registers_[carry.follows];
    }
  }
  // A stacked state is computed directly in its row of the stack.
  void place_next(const Loop& loop, int64_t trip, int64_t trips) {
    for (const Loop::Carry& carry : loop.carries) {
      if (carry.stack < 0) continue;
      const Walk& walk = loop.walks[static_cast<size_t>(carry.stack)];
      const int64_t slot = loop.reverse ? trips - 2 - trip : trip + 1;
      registers_[carry.next] =
          trip + 1 < trips ? at(walk.base) + slot * walk.stride : at(carry.second);
    }
  }

  void run_reverse(const Step& step, int32_t index) {
    const Reverse& walked = program_.reverses[static_cast<size_t>(step.control)];
    const Marks marks(reinterpret_cast<int64_t*>(at(walked.marks)), walked.slots);
    const int64_t trips = marks.trips();
    const auto begin = [&](int64_t trip) {
      std::memcpy(at(walked.trip), &trip, sizeof(trip));
      start(walked.walks, walked.reverse ? trips - 1 - trip : trip);
    };
    const auto row = [&](const Reverse::State& state, int64_t number) {
      return number == Marks::kStart ? at(state.start) : at(state.rows) + number * state.bytes;
    };
    start(walked.backs);
    Reversal reversal(marks);
    while (const auto move = reversal.next()) {
      for (const Reverse::State& state : walked.states)
        registers_[state.now] = row(state, move->from_row);
      for (int64_t trip = move->from; trip < move->to; ++trip) {
        const bool is_kept = trip + 1 == move->to && move->to_row != ReverseMove::kNoRow;
        for (const Reverse::State& state : walked.states) {
          std::byte* const way = (trip & 1) == 0 ? row(state, 0) : at(state.other);
          registers_[state.next] = is_kept ? row(state, move->to_row) : way;
        }
        begin(trip);
        run(index + 1, step.middle);
        for (const Reverse::State& state : walked.states)
          registers_[state.now] = registers_[state.next];
      }
      if (!move->goes_back) continue;
      begin(move->to);
      run(step.middle, step.end);
      exchange(walked.backs);
    }
  }

  void run_map(const Step& step, int32_t index) {
    const Map& map = program_.maps[static_cast<size_t>(step.control)];
    // The trips of a batch share the threads; a trip that runs alone gets all of them.
    const int threads_of_trip = map.alive > 1 ? 1 : num_threads();
    // A batch has as many trips as may run at once, each in its own arena.
    for (int64_t first = 0; first < map.trips; first += map.alive) {
      poll(index);
      const int64_t batch = std::min(map.alive, map.trips - first);
      device::parallel_for(batch, 1, [&](int64_t begin, int64_t end, int worker) {
        const device::ThreadsScope threads(threads_of_trip);
        // At most one of the two is not 0: trips that run in parallel have no threads to share.
        worker += std::max(worker_, 0);
        std::byte** const own = bodies_.registers(depth_, worker);
        std::copy_n(registers_, program_.registers, own);
        Executor body(program_, own, bodies_, watch_);
        body.worker_ = worker;
        body.depth_ = depth_ + 1;
        for (int64_t k = begin; k < end; ++k) {
          for (const Map::BodyArena& arena : map.arenas)
            own[static_cast<size_t>(arena.reg)] = at(arena.arenas) + k * arena.bytes;
          body.start(map.walks, first + k);
          body.run(index + 1, step.end);
        }
      });
    }
  }

  const Program& program_;
  std::byte** registers_;
  Bodies& bodies_;
  Watch* watch_;
  int worker_ = -1;  // The worker that runs this body of a map; -1 for the program itself.
  int depth_ = 0;    // The number of maps around it.
};

}  // namespace

void execute(const Program& program, std::span<std::byte*> registers, Measurement* measured) {
  const DeviceArenas arenas(program, registers, measured != nullptr ? &measured->touched : nullptr);
  Bodies bodies(program);
  const device::ThreadsScope threads(program.threads);
  const device::FloatEnvironment ieee;
  Watch* const watch = measured != nullptr ? measured->watch : nullptr;
  const auto end = static_cast<int32_t>(program.steps.size());
  const auto share = [&](int worker, int64_t begin_ns, int64_t end_ns) {
    watch->add_share(worker, begin_ns, end_ns);
  };
  std::optional<device::SharesScope> shares;
  if (watch != nullptr) shares.emplace(share);
  Executor(program, registers.data(), bodies, watch).run(0, end);
}

}  // namespace tidemark::run
