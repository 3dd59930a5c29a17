#include "tidemark/emit/llvm/helpers.h"

#include <math.h>

#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tidemark/loops/pairwise.h"

namespace tidemark::jit {
namespace {

template <class T>
void fmod_all(T* x, const T* y, int64_t count) {
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

// Integers wrap: they add and multiply without a sign.
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

// The carries of `pairwise_push`, once for all columns rather than once for each.
template <class T, Monoid monoid>
void push(void* levels, int64_t block, const void* values, int64_t width) {
  const T* value = static_cast<const T*>(values);
  T* rows = static_cast<T*>(levels);
  for (int64_t i = 0; i < width; ++i) {
    T sum = value[i];
    T* level = rows + i;
    for (int64_t carry = block; (carry & 1) != 0; carry >>= 1, level += width) {
      sum = combine<T, monoid>(*level, sum);
    }
    *level = sum;
  }
}

template <class T, Monoid monoid>
void finish(const void* levels, int64_t blocks, void* values, int64_t width) {
  T* value = static_cast<T*>(values);
  const T* rows = static_cast<const T*>(levels);
  for (int64_t i = 0; i < width; ++i) {
    T gathered[kPairwiseLevels];
    int count = 0;
    for (int64_t rest = blocks; rest != 0; rest >>= 1, ++count) {
      gathered[count] = rows[count * width + i];
    }
    value[i] = pairwise_finish(gathered, blocks, combine<T, monoid>);
  }
}

template <class T>
Pairwise pairwise_of(Monoid monoid) {
  switch (monoid) {
    case Monoid::sum:
      return {push<T, Monoid::sum>, finish<T, Monoid::sum>};
    case Monoid::product:
      return {push<T, Monoid::product>, finish<T, Monoid::product>};
    case Monoid::minimum:
      return {push<T, Monoid::minimum>, finish<T, Monoid::minimum>};
    case Monoid::maximum:
      return {push<T, Monoid::maximum>, finish<T, Monoid::maximum>};
  }
  return {};
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

Pairwise pairwise(Monoid monoid, DType dtype) {
  switch (dtype) {
    case f32:
      return pairwise_of<float>(monoid);
    case f64:
      return pairwise_of<double>(monoid);
    case i32:
      return pairwise_of<int32_t>(monoid);
    case i64:
      return pairwise_of<int64_t>(monoid);
    case u8:
      return pairwise_of<uint8_t>(monoid);
    case boolean:
      if (monoid == Monoid::sum || monoid == Monoid::product) return {};
      return pairwise_of<uint8_t>(monoid);
    case f16:
    case bf16:
      return {};
  }
  return {};
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
