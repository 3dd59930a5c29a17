// Changes of a tensor at a subscript: td::update, and x.at[...] of Python.
#pragma once

#include <cstdint>

#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

// How the value is combined with the elements that are there.
enum class Change : uint8_t { set, add, multiply, min, max };

// x with the value, broadcast, combined with the elements at the subscript. Where a subscript of
// tensors names an element twice, both count; of `set` the last one.
Tensor changed_at(const Operand& x, const Slices& place, const Operand& value, Change change);

}  // namespace tidemark::detail
