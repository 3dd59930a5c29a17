// The amount of work that compilation takes, counted and not timed.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark {

// Passes, emitters and the layout add the nodes, operands and expressions that they visit. Tests
// check with it that compilation is linear in the size of the program.
class Work {
 public:
  static void add(int64_t steps) { steps_.fetch_add(steps, std::memory_order_relaxed); }
  static int64_t so_far() { return steps_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<int64_t> steps_;
};

}  // namespace tidemark
