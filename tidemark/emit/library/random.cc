#include "tidemark/emit/library/random.h"

#include <algorithm>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/library/random_kernels.h"

namespace tidemark::library {
namespace {

const RandomKernels& kernels() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return avx512::random_kernels;
    case device::Isa::avx2:
      return avx2::random_kernels;
    case device::Isa::baseline:
      break;
  }
  return baseline::random_kernels;
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, RandomKey key) {
  auto key0 = static_cast<uint32_t>(key.value);
  auto key1 = static_cast<uint32_t>(key.value >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

RandomKey fold_in(RandomKey key, uint64_t data) {
  // Draws have 0 in the last word of the counter.
  const auto words =
      philox({static_cast<uint32_t>(data), static_cast<uint32_t>(data >> 32), 0, 1}, key);
  return {static_cast<uint64_t>(words[1]) << 32 | words[0]};
}

void fill_bits(RandomKey key, int64_t begin, int64_t count, uint32_t* out) {
  kernels().bits(key.value, begin, count, out);
}

void fill_uniform(RandomKey key, int64_t begin, int64_t count, float* out, float low, float high) {
  kernels().uniform_f32(key.value, begin, count, out, low, high);
}
void fill_uniform(RandomKey key, int64_t begin, int64_t count, double* out, double low,
                  double high) {
  kernels().uniform_f64(key.value, begin, count, out, low, high);
}

void fill_normal(RandomKey key, int64_t begin, int64_t count, float* out, float mean,
                 float stddev) {
  kernels().normal_f32(key.value, begin, count, out, mean, stddev);
}
void fill_normal(RandomKey key, int64_t begin, int64_t count, double* out, double mean,
                 double stddev) {
  kernels().normal_f64(key.value, begin, count, out, mean, stddev);
}

void fill_integers(RandomKey key, int64_t begin, int64_t count, int32_t* out, int32_t low,
                   int32_t high) {
  TIDEMARK_CHECK(low < high, "no integers in [", low, ", ", high, ")");
  kernels().integers_i32(key.value, begin, count, out, low,
                         static_cast<uint64_t>(int64_t{high} - low));
}
void fill_integers(RandomKey key, int64_t begin, int64_t count, int64_t* out, int64_t low,
                   int64_t high) {
  TIDEMARK_CHECK(low < high, "no integers in [", low, ", ", high, ")");
  kernels().integers_i64(key.value, begin, count, out, low,
                         static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
}

void fill_bernoulli(RandomKey key, int64_t begin, int64_t count, uint8_t* out, float p) {
  TIDEMARK_CHECK(p >= 0 && p <= 1, "probability ", p);
  const auto threshold = static_cast<uint64_t>(static_cast<double>(p) * 0x1p32);
  kernels().bernoulli(key.value, begin, count, out, threshold);
}

namespace {

template <class Fill>
void fill_blocks(int64_t count, Fill fill) {
  for (int64_t done = 0; done < count; done += kRejectionBlock)
    fill(done, static_cast<int>(std::min<int64_t>(kRejectionBlock, count - done)));
}

}  // namespace

void fill_log_gamma(RandomKey key, int64_t begin, int64_t count, const double* alpha, double* out) {
  fill_blocks(count, [&](int64_t done, int n) {
    kernels().log_gamma(key.value, begin + done, n, alpha + done, out + done);
  });
}

void fill_poisson(RandomKey key, int64_t begin, int64_t count, const double* rate, double* out) {
  fill_blocks(count, [&](int64_t done, int n) {
    kernels().poisson(key.value, begin + done, n, rate + done, out + done);
  });
}

void permutation(RandomKey key, int64_t n, int64_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = i;
  constexpr int64_t kDraws = 512;
  uint64_t draws[kDraws];
  // Position i is settled by draw i, from the end down; draws come in pieces, last piece first.
  for (int64_t begin = (std::max<int64_t>(n, 1) - 1) / kDraws * kDraws; begin >= 0;
       begin -= kDraws) {
    const int64_t count = std::min(kDraws, n - begin);
    kernels().bits64(key.value, begin, count, draws);
    for (int64_t k = count - 1; k >= 0; --k) {
      const int64_t i = begin + k;
      __extension__ typedef unsigned __int128 Wide;
      const auto size = static_cast<uint64_t>(i) + 1;
      const auto other = static_cast<int64_t>(static_cast<Wide>(draws[k]) * size >> 64);
      std::swap(out[i], out[other]);
    }
  }
}

}  // namespace tidemark::library
