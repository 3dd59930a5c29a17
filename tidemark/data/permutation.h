// A keyed permutation of [0, count) without a table: entry i is computed.
//
// Rounds of a Feistel network permute the cells of the smallest near-square grid that holds all
// numbers; a result outside [0, count) is permuted again until it falls inside. At most about
// sqrt(n) of n cells are outside, so that this is rare. For few numbers the network does not make
// every order equally likely: these are shuffled, in a table inside the object. Internal to data/.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tidemark::data {

// The finaliser of splitmix64: each bit of the result depends on all of x.
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
// The key of one pass: orders of the same seed differ from pass to pass.
constexpr uint64_t order_key(int64_t seed, int64_t epoch) {
  return mixed(mixed(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(epoch));
}

class Permutation {
 public:
  Permutation(int64_t count, uint64_t key)
      : count_(static_cast<uint64_t>(count)),
        // Any width is correct; near the square root the fewest cells are unused.
        columns_(static_cast<uint64_t>(std::sqrt(static_cast<double>(count))) + 1),
        rows_((count_ + columns_ - 1) / columns_),
        key_(key) {
    if (count_ <= kDealt) deal();
  }

  int64_t operator()(int64_t index) const {
    auto x = static_cast<uint64_t>(index);
    if (count_ <= kDealt) return dealt_[x];
    do x = rounds(x);
    while (x >= count_);
    return static_cast<int64_t>(x);
  }

 private:
  static constexpr uint64_t kRounds = 4;  // Of both halves.
  static constexpr uint64_t kDealt = 64;

  // A Fisher-Yates shuffle, from the last position down.
  void deal() {
    for (uint64_t i = 0; i < count_; ++i) dealt_[i] = static_cast<uint8_t>(i);
    for (uint64_t i = count_; i > 1; --i)
      std::swap(dealt_[i - 1], dealt_[below(mixed(key_ + i * 0x9e3779b97f4a7c15U), i)]);
  }
  // Maps a random number to [0, size), for sizes far below 2^32.
  static uint64_t below(uint64_t random, uint64_t size) { return (random >> 32) * size >> 32; }

  uint64_t rounds(uint64_t x) const {
    uint64_t row = x / columns_, column = x % columns_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t key = key_ + (round << 56);
      row = moved(row, mixed(key ^ column), rows_);
      column = moved(column, mixed(~key ^ row), columns_);
    }
    return row * columns_ + column;
  }
  // Rotates by a random offset.
  static uint64_t moved(uint64_t place, uint64_t random, uint64_t size) {
    const uint64_t sum = place + below(random, size);
    return sum >= size ? sum - size : sum;
  }

  uint64_t count_, columns_, rows_, key_;
  std::array<uint8_t, kDealt> dealt_{};
};

}  // namespace tidemark::data
