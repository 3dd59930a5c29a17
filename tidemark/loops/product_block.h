// A part of what a sum of products means.
#pragma once

#include <cstdint>

namespace tidemark {

// Terms of a matrix product that are one chain; the results of chains are added in order
// (emit/contract/contract.h).
inline constexpr int64_t kProductBlock = 256;

}  // namespace tidemark
