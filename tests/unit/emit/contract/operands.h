// What the tests of contractions share: memory that ends at a page nobody may touch, elements of
// any dtype, and the meaning of a sum written out.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "tidemark/device/cpu/features.h"
#include "tidemark/types/dtype.h"

namespace tidemark {

// Exactly so many bytes, with a page that faults right behind them or right before them.
class GuardedBytes {
 public:
  enum class Side { behind, before };
  explicit GuardedBytes(int64_t bytes, Side side = Side::behind) : bytes_(bytes) {
    constexpr int64_t page = 4096;
    const int64_t body = (bytes + page - 1) / page * page;
    mapped_ = static_cast<size_t>(body + 2 * page);
    void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    base_ = static_cast<std::byte*>(memory);
    if (body > 0 &&
        mprotect(base_ + page, static_cast<size_t>(body), PROT_READ | PROT_WRITE) != 0) {
      throw std::runtime_error("mprotect");
    }
    data_ = base_ + page + (side == Side::behind ? body - bytes : 0);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(base_, mapped_); }

  std::byte* data() { return data_; }
  int64_t size() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t mapped_ = 0;
  int64_t bytes_ = 0;
};

// Numbers of every size that still meet: most near one, some zeros of either sign, some so small
// that products are denormal.
inline void fill_random(std::byte* data, int64_t count, DType dtype, uint32_t seed) {
  std::minstd_rand random(seed + 1);
  const auto unit = [&] { return static_cast<double>(random()) / 2147483648.0 * 2 - 1; };
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      T value;
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(random() * 2654435761ULL * random());
      } else {
        double x = unit();
        const auto kind = random() % 64;
        if (kind == 0) x = 0.0;
        if (kind == 1) x = -0.0;
        if (kind == 2 && sizeof(T) >= 4) x *= 1e-30;
        value = static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(x));
      }
      std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    }
  });
}

// What sums of a dtype are kept in.
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<float16> {
  using type = float;
};
template <>
struct Accumulator<bfloat16> {
  using type = float;
};

// A sum of products by the book; `term` is called for increasing k and may skip one.
template <class T>
class Sum {
 public:
  using A = typename Accumulator<T>::type;
  void add(int64_t k, T a, T b) {
    to_block(k / 256);
    if constexpr (std::is_integral_v<T>) {
      using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      block_ = static_cast<T>(static_cast<U>(block_) + static_cast<U>(a) * static_cast<U>(b));
    } else {
      block_ = std::fma(static_cast<A>(a), static_cast<A>(b), block_);
    }
  }
  // `k`: how long the sum is, skipped terms included.
  T finish(int64_t k) {
    if (k > 0) to_block((k - 1) / 256);
    return static_cast<T>(join());
  }

 private:
  A join() const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(total_) + static_cast<uint64_t>(block_));
    } else {
      return index_ == 0 ? block_ : total_ + block_;
    }
  }
  void to_block(int64_t index) {
    for (; index_ < index; ++index_) {
      total_ = join();
      block_ = 0;
    }
  }
  int64_t index_ = 0;
  A total_ = 0, block_ = 0;
};

template <class T>
bool same_bits(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    const auto x = static_cast<typename Accumulator<T>::type>(a);
    const auto y = static_cast<typename Accumulator<T>::type>(b);
    if (std::isnan(x) && std::isnan(y)) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace tidemark
