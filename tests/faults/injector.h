// Fails the allocations of an operation one after another and judges what is left, as SQLite's
// tests do: after a failure the error is one of memory, nothing has changed, and the same operation
// then works and gives the same bits.
//
//   expect_survives({.name = "square", .act = [] { return bits(td::square(x)); }});
//
// Linked with tests/soak/counted_heap.cc, which is the malloc that fails. In a normal run a sample
// of the allocations fails; with TIDEMARK_TEST_COUNTS=full each of them does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tidemark/tidemark.h"

namespace tidemark::testing {

// Where an allocation fails: malloc and operator new, once or from then on; the pool that tensors'
// bytes come from; pages asked of the system.
enum class FaultSite : uint8_t { heap, heap_from_then_on, pool, mapping };
const char* name(FaultSite site);

struct FaultyOperation {
  std::string name;
  // Puts everything back to where `act` starts from. Runs before each try; nothing fails in it.
  std::function<void()> prepare = {};
  // What is tried, and what it gave: text, or bytes (see `bits`). What it makes it lets go of.
  std::function<std::string()> act;
  // All that outlives the operation and that it may change: Variables, the generator, files.
  std::function<std::string()> state = {};
};

// What one operation went through.
struct FaultCounts {
  int64_t allocations = 0;  // Of a run in which none fails.
  int64_t failed = 0;       // Allocations that were made to fail,
  int64_t refused = 0;      // and how often the operation threw for it.
  FaultCounts& operator+=(const FaultCounts& other);
};
std::string text(const FaultCounts& counts);

// Reports with gtest each allocation after which something is wrong. A crash, an abort or a hang
// ends the process with a line on stderr that names the operation and the allocation.
FaultCounts expect_survives(const FaultyOperation& operation, FaultSite site);
// At every site where one allocation fails.
FaultCounts expect_survives(const FaultyOperation& operation);

// The tensor's type and bytes: equal texts, equal bits.
std::string bits(const Tensor& tensor);
// Of the process-wide generator: what it would draw next. It draws nothing.
std::string generator_state();

}  // namespace tidemark::testing
