// The block size of matrix products, which is part of their definition.
#pragma once

#include <cstdint>

namespace tidemark {

// The number of terms of one fma chain; the results of chains are added in order
// (emit/contract/contract.h).
inline constexpr int64_t kProductBlock = 256;

}  // namespace tidemark
