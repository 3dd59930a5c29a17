// An order of the numbers [0, count), by a key, in no memory: number i of it is computed.
//
// Rounds of a Feistel network permute the numbers of as many bits as count needs; a number that
// falls outside is sent through again until it falls inside, which it does in less than two rounds
// on average. Internal to data/.
#pragma once

#include <bit>
#include <cstdint>

namespace tidemark::data {

// The finaliser of splitmix64: each bit of the result depends on all of x.
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class Permutation {
 public:
  Permutation(int64_t count, int64_t seed, int64_t epoch)
      : count_(static_cast<uint64_t>(count)),
        key_(mixed(mixed(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(epoch))) {
    const int bits = count > 1 ? static_cast<int>(std::bit_width(count_ - 1)) : 0;
    low_bits_ = bits - bits / 2;
    low_ = (uint64_t{1} << low_bits_) - 1;
    high_ = (uint64_t{1} << (bits / 2)) - 1;
  }

  int64_t operator()(int64_t index) const {
    auto x = static_cast<uint64_t>(index);
    do x = rounds(x);
    while (x >= count_);
    return static_cast<int64_t>(x);
  }

 private:
  // Pairs of rounds; four are known to suffice where the halves are large, small ones want more.
  static constexpr uint64_t kRounds = 4;

  uint64_t rounds(uint64_t x) const {
    uint64_t low = x & low_, high = x >> low_bits_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t key = key_ + (round << 56);
      high ^= mixed(key ^ low) & high_;
      low ^= mixed(~key ^ high) & low_;
    }
    return high << low_bits_ | low;
  }

  uint64_t count_, key_, low_ = 0, high_ = 0;
  int low_bits_ = 0;
};

}  // namespace tidemark::data
