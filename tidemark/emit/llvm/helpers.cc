#include "tidemark/emit/llvm/helpers.h"

#include <math.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tidemark::jit {
namespace {

// fmod is exact, so any way gives its bits. In f64 a quotient of two f32 below 2^28 is truncated
// to the right whole number, since others are 2^-24 or more away, and its product with y has at
// most 52 bits. Other quotients, infinities and NaN are left to the C library.
void fmod_pair(float* x, const float* y) {
  using Floats [[gnu::vector_size(8)]] = float;
  using Bits [[gnu::vector_size(8)]] = uint32_t;
  using Doubles [[gnu::vector_size(16)]] = double;
  using Words [[gnu::vector_size(16)]] = int64_t;
  constexpr double kMost = 0x1p28, kShift = 0x1p52;
  constexpr double kLargest = std::numeric_limits<float>::max();
  Bits bits, divisor_bits;
  std::memcpy(&bits, x, sizeof(bits));
  std::memcpy(&divisor_bits, y, sizeof(bits));
  const auto sizes = [](Bits of) {
    return __builtin_convertvector(std::bit_cast<Floats>(of & 0x7fffffffU), Doubles);
  };
  const Doubles a = sizes(bits), b = sizes(divisor_bits), quotient = a / b;
  const Doubles nearest = (quotient + kShift) - kShift;
  const Words is_above = nearest > quotient;
  const Doubles one = {1, 1};
  const Doubles whole = nearest - std::bit_cast<Doubles>(is_above & std::bit_cast<Words>(one));
  const Words is_plain = (quotient < kMost) & (b <= kLargest);
  if ((is_plain[0] & is_plain[1]) == 0) {
    for (int i = 0; i < 2; ++i) x[i] = std::fmod(x[i], y[i]);
    return;
  }
  const Bits left = std::bit_cast<Bits>(__builtin_convertvector(a - whole * b, Floats));
  bits = left | (bits & 0x80000000U);
  std::memcpy(x, &bits, sizeof(bits));
}

void fmod_all(float* x, const float* y, int64_t count) {
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) fmod_pair(x + i, y + i);
  for (; i < count; ++i) x[i] = std::fmod(x[i], y[i]);
}

void fmod_all(double* x, const double* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = std::fmod(x[i], y[i]);
}

template <int64_t size>
void move(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
          int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, size);
}
void move(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
          int64_t count, int64_t size) {
  switch (size) {
    case 1:
      return move<1>(to, to_stride, from, from_stride, count);
    case 2:
      return move<2>(to, to_stride, from, from_stride, count);
    case 4:
      return move<4>(to, to_stride, from, from_stride, count);
    default:
      return move<8>(to, to_stride, from, from_stride, count);
  }
}

// Integers wrap: they are added and multiplied as unsigned.
template <class T, Monoid monoid>
T combine(T a, T b) {
  if constexpr (monoid == Monoid::minimum || monoid == Monoid::maximum) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a) return a;
    }
    return (monoid == Monoid::minimum ? a < b : a > b) ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t left = static_cast<uint64_t>(a);
    const uint64_t right = static_cast<uint64_t>(b);
    return static_cast<T>(monoid == Monoid::sum ? left + right : left * right);
  } else {
    return monoid == Monoid::sum ? a + b : a * b;
  }
}

template <class T, Monoid monoid>
void push_and_finish(void* levels, int64_t block, int64_t blocks, void* values, int64_t width) {
  T* value = static_cast<T*>(values);
  T* rows = static_cast<T*>(levels);
  int level = std::countr_one(static_cast<uint64_t>(block));
  for (int k = 0; k < level; ++k) {
    for (int64_t i = 0; i < width; ++i)
      value[i] = combine<T, monoid>(rows[k * width + i], value[i]);
  }
  if (block + 1 < blocks) {
    std::copy_n(value, width, rows + level * width);
    return;
  }
  // The rest is combined from the right.
  for (int64_t rest = blocks >> (level + 1); rest != 0; rest >>= 1) {
    ++level;
    if ((rest & 1) == 0) continue;
    const T* left = rows + level * width;
    for (int64_t i = 0; i < width; ++i) value[i] = combine<T, monoid>(left[i], value[i]);
  }
}

template <class T>
Pairwise* pairwise_of(Monoid monoid) {
  switch (monoid) {
    case Monoid::sum:
      return push_and_finish<T, Monoid::sum>;
    case Monoid::product:
      return push_and_finish<T, Monoid::product>;
    case Monoid::minimum:
      return push_and_finish<T, Monoid::minimum>;
    case Monoid::maximum:
      return push_and_finish<T, Monoid::maximum>;
  }
  return nullptr;
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void fmod_f32(void* x, const void* y, int64_t count) {
  fmod_all(static_cast<float*>(x), static_cast<const float*>(y), count);
}
void fmod_f64(void* x, const void* y, int64_t count) {
  fmod_all(static_cast<double*>(x), static_cast<const double*>(y), count);
}

void copy_in(std::byte* dense, const std::byte* strided, int64_t stride, int64_t count,
             int64_t size) {
  move(dense, size, strided, stride, count, size);
}
void copy_out(std::byte* strided, const std::byte* dense, int64_t stride, int64_t count,
              int64_t size) {
  move(strided, stride, dense, size, count, size);
}

Pairwise* pairwise(Monoid monoid, DType dtype) {
  switch (dtype) {
    case f32:
      return pairwise_of<float>(monoid);
    case f64:
      return pairwise_of<double>(monoid);
    case i8:
      return pairwise_of<int8_t>(monoid);
    case i16:
      return pairwise_of<int16_t>(monoid);
    case i32:
      return pairwise_of<int32_t>(monoid);
    case i64:
      return pairwise_of<int64_t>(monoid);
    case u16:
      return pairwise_of<uint16_t>(monoid);
    case u32:
      return pairwise_of<uint32_t>(monoid);
    case u64:
      return pairwise_of<uint64_t>(monoid);
    default:
      return pairwise_of<uint8_t>(monoid);
  }
}

void* library_function(const char* name) {
  static const std::pair<std::string_view, void*> known[] = {
      {"floorf", address(::floorf)},      {"floor", address<double(double)>(::floor)},
      {"ceilf", address(::ceilf)},        {"ceil", address<double(double)>(::ceil)},
      {"rintf", address(::rintf)},        {"rint", address<double(double)>(::rint)},
      {"truncf", address(::truncf)},      {"trunc", address<double(double)>(::trunc)},
      {"fmaf", address(::fmaf)},          {"fma", address<double(double, double, double)>(::fma)},
      {"memcpy", address(std::memcpy)},   {"memset", address(std::memset)},
      {"memmove", address(std::memmove)},
  };
  for (const auto& [known_name, function] : known) {
    if (known_name == name) return function;
  }
  return nullptr;
}

}  // namespace tidemark::jit
