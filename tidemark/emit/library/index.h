// Indexing kernels. Precompiled: they move memory, and specialising them would
// gain nothing.
//
// Arrays are viewed as [outer, axis, inner] with dense inner parts, unless the parameter is an
// ArrayRef. Indices are dense integers of any dtype; negative ones count from the end. If an index
// is out of range, nothing is written and its position is returned; otherwise -1.
#pragma once

#include <cstdint>

#include "tidemark/types/array_ref.h"
#include "tidemark/types/dtype.h"

namespace tidemark::library {

struct Indices {
  const std::byte* data = nullptr;
  DType dtype = DType::i32;
  int64_t count = 0;

  int64_t operator[](int64_t i) const;
};

// The position of the first index outside [-size, size), or -1.
int64_t first_outside(const Indices& indices, int64_t size);

// to[o, i, :] = from[o, indices[i], :]; rows are `inner_bytes` long.
void gather(const std::byte* from, int64_t outer, int64_t size, int64_t inner_bytes,
            const Indices& indices, std::byte* to);

// to[o, i, n] = from[o, indices[o, i, n], n], where i stands at `axis`; `shape` is that of the
// indices and of what is written.
void take_along(const ArrayRef& from, int64_t axis, const Indices& indices, const Shape& shape,
                std::byte* to);

// to[i] is the least j whose index equals that of i. `order` has room for as many numbers.
void first_equal(const Indices& indices, int64_t* order, int64_t* to);

// to[indices[i], :] = from[i, :], in increasing i; rows are `row_bytes` long.
void put(std::byte* to, int64_t size, int64_t row_bytes, const Indices& indices,
         const std::byte* from);

enum class Combine { add, multiply, maximum, minimum };
struct Scatter {
  Combine how = Combine::add;
  DType dtype = DType::f32;
  std::byte* to = nullptr;
  int64_t outer = 1, size = 1, inner = 1;
};

// Combines to[o, indices[i], :] with updates[o, i, :], in increasing i. Threads share the outer and
// inner parts, never one target.
void scatter(const Scatter& work, const Indices& indices, const std::byte* updates);

// Combines to[o, indices[o, i, n], n] with updates[o, i, n], in increasing i.
void scatter_along(const Scatter& work, const Indices& indices, int64_t count,
                   const std::byte* updates);

}  // namespace tidemark::library
