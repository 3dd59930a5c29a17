#include "tidemark/emit/contract/contract.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <memory>

#include "tests/unit/emit/contract/operands.h"
#include "tidemark/device/threads.h"

namespace tidemark {
namespace {

enum class Layout {
  rows,     // Row by row.
  columns,  // Column by column: a transpose.
  padded,   // Rows with a gap between them.
  padded_columns,
  flipped_rows,  // Last row first.
  flipped_columns,
  one_row,  // Every row is the same.
  one_column,
  scattered,  // No stride is 1.
};
constexpr Layout kLayouts[] = {
    Layout::rows,           Layout::columns,      Layout::padded,
    Layout::padded_columns, Layout::flipped_rows, Layout::flipped_columns,
    Layout::one_row,        Layout::one_column,   Layout::scattered};

struct Strides {
  int64_t row, column;
};
Strides strides_of(Layout layout, int64_t rows, int64_t columns) {
  switch (layout) {
    case Layout::rows:
      return {columns, 1};
    case Layout::columns:
      return {1, rows};
    case Layout::padded:
      return {columns + 3, 1};
    case Layout::padded_columns:
      return {1, rows + 5};
    case Layout::flipped_rows:
      return {-columns, 1};
    case Layout::flipped_columns:
      return {columns, -1};
    case Layout::one_row:
      return {0, 1};
    case Layout::one_column:
      return {1, 0};
    case Layout::scattered:
      return {2 * columns + 1, 2};
  }
  return {0, 0};
}

// A matrix (or several) in memory of exactly the bytes it spans.
class Operand {
 public:
  Operand(int64_t rows, int64_t columns, int64_t batch, Strides strides, DType dtype, uint32_t seed,
          GuardedBytes::Side side) {
    const auto span = [](int64_t count, int64_t stride) { return (count - 1) * stride; };
    const int64_t r = span(std::max<int64_t>(rows, 1), strides.row);
    const int64_t c = span(std::max<int64_t>(columns, 1), strides.column);
    const int64_t low = std::min<int64_t>(r, 0) + std::min<int64_t>(c, 0);
    const int64_t high = std::max<int64_t>(r, 0) + std::max<int64_t>(c, 0) + 1;
    const int64_t count = (high - low) * batch;
    bytes = std::make_unique<GuardedBytes>(count * size_of(dtype), side);
    fill_random(bytes->data(), count, dtype, seed);
    ref = {bytes->data() - low * size_of(dtype), dtype, strides.row, strides.column};
    // Entries in reverse order: offsets need not grow.
    ref.data += (batch - 1) * (high - low) * size_of(dtype);
    stride = low - high;
  }
  std::unique_ptr<GuardedBytes> bytes;
  MatrixRef ref;
  int64_t stride = 0;  // From one entry of a batch to the next.
};

struct Case {
  int64_t m = 1, n = 1, k = 1;
  Layout a = Layout::rows, b = Layout::rows;
  DType dtype = DType::f32;
  int64_t batch = 1;
  int64_t c_gap = 0;
  GuardedBytes::Side side = GuardedBytes::Side::behind;
};

template <class T>
T expected(const Contraction& p, int64_t entry, int64_t row, int64_t column) {
  const auto at = [&](const MatrixRef& matrix, const Batch::Axes& strides, int64_t i, int64_t j) {
    T value;
    const int64_t index = (strides.empty() ? 0 : entry * strides[0]) + i * matrix.row_stride +
                          j * matrix.column_stride;
    std::memcpy(&value, matrix.data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
  };
  Sum<T> sum;
  for (int64_t k = 0; k < p.k; ++k) {
    sum.add(k, at(p.a, p.batch.a, row, k), at(p.b, p.batch.b, k, column));
  }
  return sum.finish(p.k);
}

class Trial {
 public:
  explicit Trial(const Case& c)
      : a_(c.m, c.k, c.batch, strides_of(c.a, c.m, c.k), c.dtype, 1, c.side),
        b_(c.k, c.n, c.batch, strides_of(c.b, c.k, c.n), c.dtype, 2, c.side),
        c_(c.m, c.n, c.batch, {c.n + c.c_gap, 1}, c.dtype, 3, c.side),
        case_(c) {
    p_ = {.m = c.m, .n = c.n, .k = c.k, .a = a_.ref, .b = b_.ref, .c = c_.ref};
    if (c.batch > 1) {
      p_.batch = {{c.batch}, {a_.stride}, {b_.stride}, {c_.stride}};
    }
  }

  void run() {
    before_.assign(c_.bytes->data(), c_.bytes->data() + c_.bytes->size());
    GuardedBytes scratch(contract_scratch_bytes(p_, num_threads()));
    contract(p_, num_threads(), scratch.data());
  }

  void check() {
    visit_dtype(case_.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>) check_as<T>();
    });
  }
  std::vector<std::byte> result() const {
    return {c_.bytes->data(), c_.bytes->data() + c_.bytes->size()};
  }
  const Contraction& contraction() const { return p_; }

 private:
  template <class T>
  void check_as() {
    const int64_t element = sizeof(T);
    for (int64_t entry = 0; entry < case_.batch; ++entry) {
      // From the first byte, where the last entry lies.
      const int64_t base = (entry - case_.batch + 1) * c_.stride;
      for (int64_t row = 0; row < p_.m; ++row) {
        for (int64_t column = 0; column < p_.n + case_.c_gap; ++column) {
          const int64_t index = base + row * p_.c.row_stride + column;
          if ((index + 1) * element > c_.bytes->size()) continue;
          T got, want;
          std::memcpy(&got, c_.bytes->data() + index * element, sizeof(T));
          if (column < p_.n) {
            want = expected<T>(p_, entry, row, column);
          } else {
            if (row + 1 == p_.m) continue;  // The gap after the last row is not there.
            std::memcpy(&want, before_.data() + index * element, sizeof(T));
          }
          ASSERT_TRUE(same_bits(got, want))
              << case_.m << " x " << case_.k << " x " << case_.n << " " << case_.dtype
              << " layouts " << static_cast<int>(case_.a) << " " << static_cast<int>(case_.b)
              << " batch " << case_.batch << " entry " << entry << " at " << row << ", " << column;
        }
      }
    }
  }

  Operand a_, b_, c_;
  Case case_;
  Contraction p_;
  std::vector<std::byte> before_;
};

void run_and_check(const Case& c) {
  Trial trial(c);
  trial.run();
  trial.check();
}

class Contract : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(threads_); }
  int threads_ = num_threads();
};

TEST_F(Contract, FollowsItsMeaningForEverySmallShape) {
  constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 25, 33, 40};
  for (const int64_t m : sizes) {
    for (const int64_t n : sizes) {
      for (const int64_t k : sizes) {
        run_and_check({.m = m, .n = n, .k = k});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Contract, FollowsItsMeaningAroundTilesAndBlocks) {
  for (const int64_t k : {255, 256, 257, 512, 513, 1100}) {
    for (const int64_t m : {1, 6, 7, 13}) {
      for (const int64_t n : {1, 15, 16, 17, 63, 64, 65, 130}) {
        run_and_check({.m = m, .n = n, .k = k, .c_gap = 2});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Several blocks of rows, each with a group of panels, on every instruction set.
TEST_F(Contract, FollowsItsMeaningOverBlocksOfRowsAndGroupsOfPanels) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    for (const Layout a : {Layout::rows, Layout::columns, Layout::padded}) {
      run_and_check({.m = 131, .n = 99, .k = 530, .a = a, .dtype = dtype});
      run_and_check({.m = 67, .n = 300, .k = 530, .a = a, .dtype = dtype});
    }
  }
}

// Few rows times long rows: B is read in slabs, and the chains of a block wait between them.
TEST_F(Contract, FollowsItsMeaningWhereChainsWait) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    for (const int64_t k : {64, 65, 300, 577}) {
      for (const int64_t m : {2, 8, 14, 33}) {
        run_and_check({.m = m, .n = 391, .k = k, .dtype = dtype, .batch = 2, .c_gap = 3});
      }
      run_and_check({.m = 8, .n = 3000, .k = k, .b = Layout::padded, .dtype = dtype});
      run_and_check({.m = 5,
                     .n = 200,
                     .k = k,
                     .a = Layout::columns,
                     .b = Layout::flipped_rows,
                     .dtype = dtype});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Contract, AddsBlocksToWhatIsThere) {
  for (const int64_t m : {3, 9, 60}) {
    Trial trial({.m = m, .n = 391, .k = 700});
    trial.run();
    const std::vector<std::byte> at_once = trial.result();
    Contraction part = trial.contraction();
    const auto run_part = [&] {
      GuardedBytes scratch(contract_scratch_bytes(part, num_threads()));
      contract(part, num_threads(), scratch.data());
    };
    part.k = 256;
    run_part();
    part.a.data += 256 * sizeof(float);
    part.b.data += 256 * 391 * sizeof(float);
    part.k = 700 - 256;
    part.add = true;
    run_part();
    EXPECT_EQ(trial.result(), at_once) << m;
  }
}

// A row has several stretches, the last of them short.
TEST_F(Contract, FollowsItsMeaningAlongLongRows) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    for (const int64_t k : {1024, 2300}) {
      run_and_check({.m = 37, .n = 1, .k = k, .dtype = dtype});
      run_and_check({.m = 1, .n = 19, .k = k, .b = Layout::padded_columns, .dtype = dtype});
    }
  }
}

TEST_F(Contract, TakesEveryLayout) {
  for (const auto side : {GuardedBytes::Side::behind, GuardedBytes::Side::before}) {
    for (const Layout a : kLayouts) {
      for (const Layout b : kLayouts) {
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32}) {
          const auto shape = [&](int64_t m, int64_t n, int64_t k) {
            run_and_check({.m = m, .n = n, .k = k, .a = a, .b = b, .dtype = dtype, .side = side});
          };
          shape(7, 70, 33);
          shape(1, 37, 270);
          shape(37, 1, 270);
          shape(1, 1, 300);
          shape(20, 18, 259);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(Contract, SumsEveryDType) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64,
                            DType::u8, DType::i16, DType::u32}) {
    for (const int64_t n : {1, 10, 40, 200}) {
      run_and_check({.m = 23, .n = n, .k = 600, .dtype = dtype, .batch = 2});
      run_and_check({.m = 1, .n = n, .k = 600, .dtype = dtype});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Contract, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64}) {
    for (const Case& c :
         {Case{.m = 130, .n = 200, .k = 300}, Case{.m = 300, .n = 20, .k = 257},
          Case{.m = 20, .n = 20, .k = 50, .batch = 40}, Case{.m = 1, .n = 3000, .k = 260},
          Case{.m = 1, .n = 500, .k = 260, .b = Layout::columns},
          Case{.m = 1500, .n = 1, .k = 260, .batch = 2},
          Case{.m = 90, .n = 150, .k = 300, .b = Layout::columns},
          Case{.m = 300, .n = 330, .k = 520, .a = Layout::columns},
          Case{.m = 8, .n = 3000, .k = 260}, Case{.m = 20, .n = 700, .k = 260, .batch = 3}}) {
      Case with_dtype = c;
      with_dtype.dtype = dtype;
      Trial trial(with_dtype);
      set_num_threads(1);
      trial.run();
      trial.check();
      const std::vector<std::byte> alone = trial.result();
      for (const int threads : {2, 5}) {
        set_num_threads(threads);
        trial.run();
        EXPECT_EQ(trial.result(), alone) << c.m << " " << c.n << " " << c.k << " " << dtype;
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(Contract, OfNothingIsZero) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    run_and_check({.m = 3, .n = 5, .k = 0, .dtype = dtype});
  }
  run_and_check({.m = 0, .n = 5, .k = 3});
  run_and_check({.m = 5, .n = 0, .k = 3});
}

TEST_F(Contract, CarriesInfinitiesAndNans) {
  Trial trial({.m = 14, .n = 70, .k = 300});
  auto* a = reinterpret_cast<float*>(trial.contraction().a.data);
  auto* b = reinterpret_cast<float*>(trial.contraction().b.data);
  a[3] = INFINITY;
  a[300 * 5 + 299] = -INFINITY;
  a[300 * 7] = NAN;
  b[70 * 299 + 69] = INFINITY;
  b[11] = NAN;
  trial.run();
  trial.check();
}

TEST_F(Contract, IgnoresAndKeepsTheCallersFloatModes) {
  const unsigned before = _mm_getcsr();
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    for (const Case& c : {Case{.m = 6, .n = 20, .k = 30}, Case{.m = 130, .n = 130, .k = 130},
                          Case{.m = 1, .n = 2000, .k = 300}, Case{.m = 50, .n = 1, .k = 300}}) {
      Trial trial(c);
      for (const unsigned modes : {0x1F80U | 0x8040U, 0x1F80U | 0x4000U, 0x1F80U | 0x6000U}) {
        _mm_setcsr(modes);
        trial.run();
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        EXPECT_EQ(after, modes);
        trial.check();
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(Contract, AsksForScratchInWholeLines) {
  for (const int threads : {1, 2, 5}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32}) {
      const Contraction p{.m = 100,
                          .n = 300,
                          .k = 700,
                          .a = {nullptr, dtype, 700, 1},
                          .b = {nullptr, dtype, 300, 1},
                          .c = {nullptr, dtype, 300, 1}};
      EXPECT_EQ(contract_scratch_bytes(p, threads) % 64, 0);
    }
  }
}

}  // namespace
}  // namespace tidemark
