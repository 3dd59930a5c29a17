// The reference interpreter: computes every op slowly and obviously, one element at a time, in
// wider arithmetic. Tests compare kernels with it; it shares no code with them.
#pragma once

#include <cstdint>
#include <span>

#include "tidemark/ops/op_def.h"

namespace tidemark::reference {

// Computes `op`. All arrays are dense and row-major, operands are already promoted, and results
// have the inferred types.
void evaluate(const OpDef& op, std::span<const ArrayRef> operands, const Attrs& attrs,
              std::span<const ArrayRef> results);

// Elements by their row-major number.
long double read_float(const ArrayRef& array, int64_t i);
int64_t read_integer(const ArrayRef& array, int64_t i);
// A number of an integer dtype, changed so that i64 compares all numbers of the dtype rightly:
// those of u64 beyond i64 are read as negative ones.
int64_t ordered(int64_t number, DType dtype);
int64_t read_ordered(const ArrayRef& array, int64_t i);
// Rounds to nearest into floats; truncates and saturates into integers, NaN gives 0.
void write(const ArrayRef& array, int64_t i, long double value);
void write(const ArrayRef& array, int64_t i, int64_t value);

// Calls f(index, number) for every index of the shape in row-major order.
template <class F>
void for_each_index(const Shape& shape, F&& f) {
  const int64_t size = shape.size();
  AxisList index(static_cast<size_t>(shape.rank()));
  for (int64_t i = 0; i < size; ++i) {
    f(std::span<const int64_t>(index), i);
    for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < shape[axis]) break;
      index[static_cast<size_t>(axis)] = 0;
    }
  }
}

}  // namespace tidemark::reference
