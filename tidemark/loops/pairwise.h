// Pairwise combination of the results of blocks, by position.
//
// Blocks arrive in order. A result is combined with its left neighbour as soon as both cover the
// same number of blocks, like carries in a binary counter; at the end the rest is combined from the
// right. So the tree depends only on the number of blocks, the error of a sum grows with its
// logarithm, and 2^k blocks that start at a multiple of 2^k form a subtree, which a thread may
// compute separately.
#pragma once

#include <cstdint>

namespace tidemark {

// Enough levels for 2^48 blocks.
inline constexpr int kPairwiseLevels = 48;

// Adds the result of block number `block` (0, 1, ...) to the stack of partial results.
template <class T, class Combine>
void pairwise_push(T* levels, int64_t block, T value, Combine combine) {
  int level = 0;
  for (int64_t carry = block; (carry & 1) != 0; carry >>= 1) {
    value = combine(levels[level], value);
    ++level;
  }
  levels[level] = value;
}

// The result of all `blocks` (at least 1).
template <class T, class Combine>
T pairwise_finish(const T* levels, int64_t blocks, Combine combine) {
  int level = __builtin_ctzll(static_cast<uint64_t>(blocks));
  T value = levels[level];
  for (int64_t rest = blocks >> (level + 1); rest != 0; rest >>= 1) {
    ++level;
    if ((rest & 1) != 0) value = combine(levels[level], value);
  }
  return value;
}

}  // namespace tidemark
