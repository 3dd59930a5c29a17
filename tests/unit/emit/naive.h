// Evaluates a nest one element at a time, as its definition reads. Shares no code with what runs
// nests: values are words, ops are written out again, and folds follow the text of `nest.h`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tidemark/device/kernel.h"
#include "tidemark/loops/nest.h"

namespace tidemark::testing {

// The value of one op on words that hold elements in their low bytes. Elementary functions are not
// redone here: they come from `math.h`.
uint64_t naive_apply(ExprOp op, DType dtype, DType operand, uint64_t a, uint64_t b, uint64_t c);

void naive_run(const Nest& nest, const KernelArgs& args);

// Whether two elements are the same bits, or both NaN.
bool same(DType dtype, uint64_t a, uint64_t b);
uint64_t read_element(DType dtype, const std::byte* at);
void write_element(DType dtype, std::byte* at, uint64_t bits);

// Values where ops go wrong, then ordinary ones.
std::vector<uint64_t> special_values(DType dtype);
uint64_t random_value(DType dtype, std::mt19937_64& random);

}  // namespace tidemark::testing
