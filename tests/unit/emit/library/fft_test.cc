// Rows of a transform have the same bits with every instruction set, alone or beside others, and
// wherever their numbers come from and go to.
#include "tidemark/emit/library/fft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tidemark/emit/library/fft_kernels.h"

namespace tidemark::library {
namespace {

template <class T>
std::vector<T> drawn(int64_t count) {
  std::mt19937 engine(5);
  std::vector<T> list(static_cast<size_t>(count));
  for (T& x : list) x = static_cast<T>(engine()) / T(1 << 30) - 2;
  return list;
}
template <class T>
std::byte* bytes(std::vector<T>& list) {
  return reinterpret_cast<std::byte*>(list.data());
}
template <class T>
const std::byte* bytes(const std::vector<T>& list) {
  return reinterpret_cast<const std::byte*>(list.data());
}

template <class T>
std::vector<T> transformed(Fourier work, const std::vector<T>& from) {
  work.dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  std::vector<T> to(from.size());
  std::vector<std::byte> scratch(static_cast<size_t>(fft_scratch_bytes(work, 1)) + 64);
  const auto place = reinterpret_cast<uintptr_t>(scratch.data());
  work.from = bytes(from);
  work.to = bytes(to);
  fft(work, 1, scratch.data() + (64 - place % 64) % 64);
  return to;
}

// Every number of pairs [rows, count], at its place in [count, rows].
template <class T>
std::vector<T> turned(const std::vector<T>& rows, int64_t count) {
  std::vector<T> columns(rows.size());
  const int64_t lanes = static_cast<int64_t>(rows.size()) / 2 / count;
  for (int64_t l = 0; l < lanes; ++l)
    for (int64_t k = 0; k < 2 * count; ++k)
      columns[static_cast<size_t>((k / 2 * lanes + l) * 2 + k % 2)] =
          rows[static_cast<size_t>(l * 2 * count + k)];
  return columns;
}

// Lengths of each kind of first, middle and last pass, with and without remainders of vectors.
constexpr int64_t kLengths[] = {6,   8,   24,  49,  64,  128, 136, 168, 200,  240,  256,
                                320, 384, 512, 600, 640, 792, 896, 997, 1000, 1024, 4100};

template <class T>
void expect_rows_like_columns() {
  for (const int64_t count : kLengths) {
    for (const int64_t lanes : {1, 5, 8, 16, 29}) {
      for (const bool inverse : {false, true}) {
        const Fourier rows{.outer = lanes, .count = count, .inverse = inverse, .scale = 0.75};
        Fourier columns = rows;
        std::swap(columns.outer, columns.inner);
        const std::vector<T> x = drawn<T>(lanes * count * 2);
        EXPECT_EQ(turned(transformed(rows, x), count), transformed(columns, turned(x, count)))
            << count << " numbers, " << lanes << " lanes";
      }
    }
  }
}
TEST(Fft, RowsHaveTheBitsOfColumns) {
  expect_rows_like_columns<float>();
  expect_rows_like_columns<double>();
}

template <class T>
struct KernelsOf;
template <>
struct KernelsOf<float> {
  static constexpr const FourierKernels<float>* kAll[] = {&baseline::fft_f32, &avx2::fft_f32,
                                                          &avx512::fft_f32};
};
template <>
struct KernelsOf<double> {
  static constexpr const FourierKernels<double>* kAll[] = {&baseline::fft_f64, &avx2::fft_f64,
                                                           &avx512::fft_f64};
};
int instruction_sets() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
             ? 3
             : 2;
}

// Tables of random numbers do as well where kernels are compared with each other.
template <class T>
struct Tables {
  Tables(FourierFactors factors, bool is_alone)
      : roots(drawn<T>(2 * factors.length)), turns(drawn<T>(16 * factors.length)) {
    tables = {factors, {roots.data(), roots.data() + factors.length}, turns.data(), is_alone};
  }
  std::vector<T> roots, turns;
  FourierTables<T> tables;
};

template <class T>
std::vector<T> by(const FourierKernels<T>& kernels, const FourierTables<T>& tables, int64_t lanes,
                  bool swapped) {
  const int64_t n = tables.factors.length, count = n * lanes;
  const std::vector<T> from = drawn<T>(2 * count);
  std::vector<T> to(from.size()), scratch(static_cast<size_t>(4 * count));
  T* const first = scratch.data();
  const int64_t pair_step = tables.is_alone ? 2 : 2 * lanes;
  kernels.transform(tables,
                    {.from = {from.data(), pair_step, 2, n, lanes},
                     .to = {to.data(), pair_step, 2, n, lanes},
                     .scale = T(0.75),
                     .swapped = swapped},
                    {first, first + count}, {first + 2 * count, first + 3 * count}, lanes);
  return to;
}

template <class T>
void expect_equal_kernels() {
  const FourierFactors all[] = {
      {.length = 6, .count = 2, .factors = {2, 3}},
      {.length = 128, .count = 3, .factors = {8, 8, 2}},
      {.length = 168, .count = 3, .factors = {8, 3, 7}},
      {.length = 320, .count = 3, .factors = {8, 8, 5}},
      {.length = 1000, .count = 4, .factors = {8, 5, 5, 5}},
      {.length = 2048, .count = 4, .factors = {8, 8, 8, 4}},
      {.length = 1024, .count = 5, .factors = {8, 2, 4, 2, 8}},
  };
  for (const FourierFactors& factors : all) {
    for (const int64_t lanes : {0, 1, 3, 8, 16, 24}) {  // 0: a row by itself.
      if (lanes == 0 && factors.length < 128) continue;
      const Tables<T> made(factors, lanes == 0);
      for (const bool swapped : {false, true}) {
        const std::vector<T> want =
            by(*KernelsOf<T>::kAll[0], made.tables, std::max<int64_t>(lanes, 1), swapped);
        for (int i = 1; i < instruction_sets(); ++i)
          EXPECT_EQ(by(*KernelsOf<T>::kAll[i], made.tables, std::max<int64_t>(lanes, 1), swapped),
                    want)
              << factors.length << " numbers, " << lanes << " lanes, instruction set " << i;
      }
    }
  }
}
TEST(Fft, InstructionSetsHaveTheSameBits) {
  expect_equal_kernels<float>();
  expect_equal_kernels<double>();
}

}  // namespace
}  // namespace tidemark::library
