// Hashing and ordering of Values, for tables.
#pragma once

#include <cstdint>
#include <utility>

#include "tidemark/ir/term.h"

namespace tidemark {

using ValueKey = std::pair<int32_t, int32_t>;
inline ValueKey key_of(Value value) { return {value.node, value.result}; }

}  // namespace tidemark
