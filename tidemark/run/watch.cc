#include "tidemark/run/watch.h"

#include <algorithm>
#include <chrono>

namespace tidemark::run {
namespace {

int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Watch::Watch(const Program& program, const std::byte* arena)
    : program_(program),
      arena_(arena),
      began_ns_(clock_ns()),
      used_(program.buffers.size()),
      found_(program.steps.size()),
      steps_(program.steps.size()) {
  slices_.reserve(kMostSlices);  // Worker threads append to it and must not throw.
}

int64_t Watch::now_ns() const { return clock_ns() - began_ns_; }

void Watch::use(int32_t step, int32_t buffer) {
  UseRange& used = used_[static_cast<size_t>(buffer)];
  used.first = used.first < 0 ? step : std::min(used.first, step);
  used.last = std::max(used.last, step);
}

// Registers that loops and maps advance name no buffer: it is the one that is alive at that offset.
int32_t Watch::buffer_at(int32_t step, int64_t offset) {
  const auto holds = [&](int32_t number) {
    const Buffer& buffer = program_.buffers[static_cast<size_t>(number)];
    const int64_t begin = program_.offsets[static_cast<size_t>(number)];
    return buffer.arena == 0 && buffer.memory == 0 && buffer.lower <= step && step < buffer.upper &&
           begin <= offset && offset < begin + buffer.bytes;
  };
  std::vector<int32_t>& found = found_[static_cast<size_t>(step)];
  for (const int32_t number : found)
    if (holds(number)) return number;
  for (int32_t number = 0; number < static_cast<int32_t>(program_.buffers.size()); ++number) {
    if (!holds(number)) continue;
    found.push_back(number);
    return number;
  }
  return kNoBuffer;
}

void Watch::handed(int32_t step, const Address& address, const std::byte* place) {
  const std::lock_guard lock(lock_);
  if (address.buffer >= 0) {
    const Buffer& buffer = program_.buffers[static_cast<size_t>(address.buffer)];
    if (buffer.memory != 0) return;
    if (buffer.arena == 0) return use(step, address.buffer);
  }
  const int64_t offset = place - arena_;
  if (arena_ == nullptr || offset < 0 || offset >= program_.arena_bytes) return;
  if (const int32_t number = buffer_at(step, offset); number >= 0) use(step, number);
}

void Watch::add(const Slice& slice) {
  if (slices_.size() < kMostSlices)
    slices_.push_back(slice);
  else
    ++slices_left_out_;
}

void Watch::ran(int32_t step, int thread, int64_t begin_ns) {
  const int64_t end_ns = now_ns();
  const std::lock_guard lock(lock_);
  StepRuns& seen = steps_[static_cast<size_t>(step)];
  ++seen.runs;
  seen.time_ns += end_ns - begin_ns;
  add({step, thread, begin_ns, end_ns});
}

void Watch::add_share(int worker, int64_t begin_ns, int64_t end_ns) {
  if (worker == 0) return;  // The calling thread's share is recorded with the step.
  const std::lock_guard lock(lock_);
  add({current_, worker, begin_ns - began_ns_, end_ns - began_ns_});
}

std::vector<int64_t> Watch::in_use() const {
  std::vector<int64_t> bytes(program_.steps.size() + 1);
  for (size_t i = 0; i < used_.size(); ++i) {
    if (used_[i].first < 0) continue;
    bytes[static_cast<size_t>(used_[i].first)] += program_.buffers[i].bytes;
    bytes[static_cast<size_t>(used_[i].last) + 1] -= program_.buffers[i].bytes;
  }
  int64_t now = 0;
  for (int64_t& each : bytes) each = now += each;
  bytes.pop_back();
  return bytes;
}

}  // namespace tidemark::run
