// Random numbers that depend only on a key and a position.
//
// The generator is Philox4x32-10: ten rounds that map a counter of four words to four random words.
// Positions [begin, begin + count) have the same values whether drawn alone or with all others, so
// pieces may be drawn by any thread, in any order, or repeatedly. The bits are the same on every
// instruction set.
//
// Position i of a 32-bit draw is word (i / 16) % 4 of counter (i / 64) * 16 + i % 16: sixteen
// counters, one per lane, make the 64 words of a group, each word a run of sixteen. A 64-bit draw
// joins words 0 and 1 (low and high), or 2 and 3, in groups of 32 positions. Draws of different
// kinds under one key use the same words: take a new key, by `fold_in`, for each draw that shall be
// independent.
#pragma once

#include <array>
#include <cstdint>

namespace tidemark::library {

struct RandomKey {
  uint64_t value = 0;
  bool operator==(const RandomKey&) const = default;
};

// One block of Philox4x32-10.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, RandomKey key);

// A key for the data-th child of `key`; children and draws never share a counter.
RandomKey fold_in(RandomKey key, uint64_t data);

void fill_bits(RandomKey key, int64_t begin, int64_t count, uint32_t* out);

// Uniform in [low, high): low + u (high - low) with u a multiple of 2^-24 (f32) or 2^-53 (f64), and
// never high, even where rounding would reach it. high - low must be finite and positive.
void fill_uniform(RandomKey key, int64_t begin, int64_t count, float* out, float low, float high);
void fill_uniform(RandomKey key, int64_t begin, int64_t count, double* out, double low,
                  double high);

// mean + stddev * z, with z normal by the method of Box and Muller: pairs of words give a radius,
// from 31 bits (f32; up to 6.66) or 53 (f64; up to 8.65), and an angle.
void fill_normal(RandomKey key, int64_t begin, int64_t count, float* out, float mean, float stddev);
void fill_normal(RandomKey key, int64_t begin, int64_t count, double* out, double mean,
                 double stddev);

// Integers in [low, high), low < high: the high half of a 64-bit draw times the size of the range.
// A value's probability is off by less than 2^-64, so by size * 2^-64 of itself. Both widths give
// the same integers.
void fill_integers(RandomKey key, int64_t begin, int64_t count, int32_t* out, int32_t low,
                   int32_t high);
void fill_integers(RandomKey key, int64_t begin, int64_t count, int64_t* out, int64_t low,
                   int64_t high);

// 1 with probability p (to a multiple of 2^-32), else 0.
void fill_bernoulli(RandomKey key, int64_t begin, int64_t count, uint8_t* out, float p);

// The logarithms of gamma draws, and Poisson draws, by a parameter for each; any count. A NaN gives
// NaN, an infinity itself.
void fill_log_gamma(RandomKey key, int64_t begin, int64_t count, const double* alpha, double* out);
void fill_poisson(RandomKey key, int64_t begin, int64_t count, const double* rate, double* out);

// A permutation of 0 .. n - 1, each with the same probability as far as the key's 64 bits go.
// Drawn in one piece, by the shuffle of Fisher and Yates.
void permutation(RandomKey key, int64_t n, int64_t* out);

}  // namespace tidemark::library
