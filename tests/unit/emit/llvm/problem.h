// A nest with memory to run on: buffers that end where the next page may not be touched, filled
// from a seed, and a comparison of what two ways of running leave behind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/kernel.h"
#include "tidemark/loops/nest.h"

namespace tidemark {

// Bytes that end at a page nobody may touch. Starts on 64 bytes only if `is_aligned`.
class GuardedBytes {
 public:
  GuardedBytes(int64_t bytes, bool is_aligned);
  ~GuardedBytes();
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  void* map_;
  int64_t map_bytes_;
  std::byte* data_;
  int64_t size_;
};

struct Problem {
  Nest nest;
  int64_t rows = 1, steps = 1, columns = 1;
  uint64_t seed = 1;
  int64_t column_elements = 3;        // How far strided buffers move, in elements; may be negative.
  std::vector<int32_t> same_as = {};  // Buffer i lies where buffer same_as[i] does; empty: apart.
  bool is_aligned = false;
  bool is_tame = false;  // Numbers of moderate size, no special values.
};

// Runs the problem by the naive evaluator and by the kernel; empty where all bytes agree (a NaN
// equals any NaN), else what differs first.
std::string difference(const Problem& problem, const Kernel& kernel);
// The same for two kernels.
std::string difference(const Problem& problem, const Kernel& expected, const Kernel& actual);

// The instruction sets this CPU can run.
std::vector<device::Isa> isas();

// For writing nests.
struct NestBuilder {
  Nest nest;
  int32_t buffer(DType dtype, BufferRef::Columns columns = BufferRef::Columns::unit);
  int32_t output(DType dtype, BufferRef::Columns columns = BufferRef::Columns::unit);
  int32_t load(int32_t buffer);
  int32_t op(ExprOp op, DType dtype, int32_t a = -1, int32_t b = -1, int32_t c = -1);
  int32_t constant(float value);
  int32_t leaf(ExprOp op, DType dtype, int32_t ref = 0);
};

}  // namespace tidemark
