// An order of the numbers [0, count), by a key, in no memory: number i of it is computed.
//
// Rounds of a Feistel network permute the cells of the smallest near-square that has room for all
// numbers; a number that falls outside is sent through again until it falls inside. Of n cells at
// most about sqrt(n) are outside, so that this is rare. Internal to data/.
#pragma once

#include <cmath>
#include <cstdint>

namespace tidemark::data {

// The finaliser of splitmix64: each bit of the result depends on all of x.
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
// What makes the orders of one seed differ from pass to pass.
constexpr uint64_t order_key(int64_t seed, int64_t epoch) {
  return mixed(mixed(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(epoch));
}

class Permutation {
 public:
  Permutation(int64_t count, uint64_t key)
      : count_(static_cast<uint64_t>(count)),
        // Any width is right; near the square root fewest cells are left over.
        columns_(static_cast<uint64_t>(std::sqrt(static_cast<double>(count))) + 1),
        rows_((count_ + columns_ - 1) / columns_),
        key_(key) {}

  int64_t operator()(int64_t index) const {
    auto x = static_cast<uint64_t>(index);
    do x = rounds(x);
    while (x >= count_);
    return static_cast<int64_t>(x);
  }

 private:
  static constexpr uint64_t kRounds = 4;  // Of both halves.

  uint64_t rounds(uint64_t x) const {
    uint64_t row = x / columns_, column = x % columns_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t key = key_ + (round << 56);
      row = moved(row, mixed(key ^ column), rows_);
      column = moved(column, mixed(~key ^ row), columns_);
    }
    return row * columns_ + column;
  }
  // By a random number of places, around the end.
  static uint64_t moved(uint64_t place, uint64_t random, uint64_t size) {
    const uint64_t sum = place + ((random >> 32) * size >> 32);
    return sum >= size ? sum - size : sum;
  }

  uint64_t count_, columns_, rows_, key_;
};

}  // namespace tidemark::data
