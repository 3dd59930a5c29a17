// Lookups in Variables. Under an Autocast only what is looked up is converted, so that a table is
// not copied and its gradient stays row-sparse.
#pragma once

#include <concepts>
#include <cstdint>

#include "tidemark/tensor/tensor.h"

namespace tidemark {
namespace detail {
Tensor gather_from(const Variable& table, const Operand& indices, int64_t axis, Source at);
}

template <std::same_as<Variable> V>
Tensor gather(const V& table, const Operand& indices, int64_t axis = 0,
              Source at = Source::here()) {
  return detail::gather_from(table, indices, axis, at);
}
template <std::same_as<Variable> V>
Tensor embedding(const V& table, const Operand& ids, Source at = Source::here()) {
  return detail::gather_from(table, ids, 0, at);
}

}  // namespace tidemark
