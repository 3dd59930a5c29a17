// A nest with sizes, layouts and memory: run by the interpreter on every instruction set, and
// compared with the naive evaluation.
#pragma once

#include <string>
#include <vector>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/kernel.h"
#include "tidemark/loops/nest.h"

namespace tidemark::testing {

// The instruction sets this CPU can run.
std::vector<device::Isa> available_isas();

// How far a buffer moves, in elements.
struct Steps {
  int64_t row = 0, step = 0, column = 0;
};

class Call {
 public:
  // Every buffer is packed: by rows, steps and columns, or, if only `finish` stores to it, by
  // cells.
  Call(Nest nest, int64_t rows, int64_t steps, int64_t columns);

  Call& layout(int32_t buffer, Steps steps);
  // Buffer and `other` are the same memory. Their layouts and dtypes must agree.
  Call& alias(int32_t buffer, int32_t other);
  Call& scalars(std::vector<uint64_t> words);
  Call& index(int64_t base, int64_t row);
  Call& seed(uint64_t seed);

  // What differs between the interpreter and the naive evaluation; "" where nothing does.
  std::string differences() const;
  // The same for compiled code.
  std::string compiled_differences(device::Isa isa) const;
  // Runs in checking mode with `buffer` cut short by `bytes` at its end (or, negative, at its
  // start). Gives the message of the error, or "".
  std::string message_when_cut(int32_t buffer, int64_t bytes) const;

  const Nest& nest() const { return nest_; }

 private:
  struct Memory {
    std::vector<std::vector<std::byte>> blocks;
    std::vector<std::byte*> bases;
    std::vector<Extent> extents;
  };
  Memory make_memory() const;
  KernelArgs args(const Memory& memory) const;
  std::string compare(const Memory& expected, const Memory& actual) const;

  Nest nest_;
  KernelArgs sizes_;
  std::vector<Steps> steps_;
  std::vector<int32_t> aliases_;
  std::vector<uint64_t> scalars_;
  mutable std::vector<Movement> movements_;
  uint64_t seed_ = 1;
};

// Builds expressions one after another and gives their numbers.
class NestBuilder {
 public:
  explicit NestBuilder(Nest::Order order = Nest::Order::lanes) { nest.order = order; }

  int32_t buffer(DType dtype, BufferRef::Columns columns = BufferRef::Columns::unit);
  int32_t output(DType dtype, BufferRef::Columns columns = BufferRef::Columns::unit);
  int32_t load(int32_t buffer);
  int32_t constant(DType dtype, double value);
  int32_t scalar(DType dtype, int32_t ref);
  int32_t cell(int32_t cell, DType dtype);
  int32_t index();
  int32_t apply(ExprOp op, DType dtype, int32_t a, int32_t b = -1, int32_t c = -1);
  // The op on operands of its own dtype.
  int32_t apply(ExprOp op, int32_t a, int32_t b = -1, int32_t c = -1);
  void sweep() { nest.sweeps.emplace_back(); }
  void store(int32_t buffer, int32_t expr) { nest.sweeps.back().stores.push_back({buffer, expr}); }
  int32_t fold(Monoid monoid, int32_t expr);
  void finish(int32_t buffer, int32_t expr) { nest.finish.push_back({buffer, expr}); }

  Nest nest;

 private:
  int32_t add(Expr expr);
};

}  // namespace tidemark::testing
