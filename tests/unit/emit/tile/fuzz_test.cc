// Random nests, sizes and layouts, interpreted on every instruction set and compared with the naive
// evaluation. TIDEMARK_FUZZ sets how many.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/emit/naive.h"
#include "tests/unit/emit/tile/call.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

using namespace testing;
using Columns = BufferRef::Columns;

class RandomCall {
 public:
  explicit RandomCall(uint64_t seed)
      : random_(seed), b_(below(2) == 0 ? Nest::Order::lanes : Nest::Order::columns) {}

  Call make() {
    make_inputs();
    const int64_t sweeps = 1 + below(3);
    for (int64_t i = 0; i < sweeps; ++i) {
      grow();
      make_sweep(i == 0);
    }
    make_finish();
    return place();
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  DType any_dtype() {
    return one_of({f32, f32, f32, f64, i32, i64, u8, boolean, f16, bf16, i8, i16, u16, u32, u64});
  }
  Columns any_columns() { return one_of({Columns::unit, Columns::unit, Columns::strided}); }

  int32_t any_expr() {
    return static_cast<int32_t>(below(static_cast<int64_t>(b_.nest.exprs.size())));
  }
  DType dtype(int32_t expr) const { return b_.nest.exprs[expr].dtype; }
  int32_t any_expr(DType wanted) {
    for (int i = 0; i < 20; ++i) {
      const int32_t expr = any_expr();
      if (dtype(expr) == wanted) return expr;
    }
    return b_.constant(wanted, static_cast<double>(below(7)) - 2);
  }

  void make_inputs() {
    const int64_t count = 1 + below(3);
    for (int64_t i = 0; i < count; ++i) {
      const Columns columns = below(4) == 0 ? Columns::repeat : any_columns();
      b_.load(b_.buffer(any_dtype(), columns));
    }
    if (below(2) == 0) b_.scalar(one_of({f32, f64, i32, i64}), static_cast<int32_t>(below(2)));
    if (below(3) == 0) b_.index();
  }

  void grow() {
    const int64_t count = below(12);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t a = any_expr();
      const auto op = static_cast<ExprOp>(below(kExprOps));
      if (arity(op) == 0) continue;
      if (op == ExprOp::cast || is_low_precision(dtype(a))) {
        b_.apply(ExprOp::cast, any_dtype(), a);
      } else if (op == ExprOp::select) {
        const int32_t mask = any_expr(boolean);
        const int32_t other = any_expr(dtype(a));
        b_.apply(op, dtype(a), mask, a, other);
      } else {
        const bool compares = is_defined(op, boolean, dtype(a)) && dtype(a) != boolean;
        const DType result = compares ? boolean : dtype(a);
        if (!is_defined(op, result, dtype(a))) continue;
        const int32_t second = arity(op) > 1 ? any_expr(dtype(a)) : -1;
        const int32_t third = arity(op) > 2 ? any_expr(dtype(a)) : -1;
        b_.apply(op, result, a, second, third);
      }
    }
  }

  void make_sweep(bool first) {
    b_.sweep();
    const int64_t folds = below(3);
    std::vector<std::pair<int32_t, DType>> made;
    for (int64_t i = 0; i < folds; ++i) {
      const int32_t expr = any_expr();
      const auto monoid = static_cast<Monoid>(below(kMonoids));
      if (is_defined(monoid, dtype(expr))) made.push_back({b_.fold(monoid, expr), dtype(expr)});
    }
    const int64_t stores = first && made.empty() ? 1 + below(2) : below(3);
    for (int64_t i = 0; i < stores; ++i) {
      const int32_t expr = any_expr();
      const int32_t out = b_.output(dtype(expr), any_columns());
      b_.store(out, expr);
      // What is stored may be read again, from the next sweep on.
      if (below(2) == 0) later_.push_back(out);
    }
    for (const auto& [cell, type] : made) finished_.push_back(b_.cell(cell, type));
    for (const int32_t out : later_) b_.load(out);
    later_.clear();
  }

  void make_finish() {
    for (int32_t value : finished_) {
      if (below(4) == 0) continue;
      if (below(2) == 0) value = b_.apply(ExprOp::cast, any_dtype(), value);
      b_.finish(b_.output(dtype(value)), value);
    }
  }

  Call place() {
    const bool lanes = b_.nest.order == Nest::Order::lanes;
    const int64_t rows = one_of<int64_t>({1, 2, 3, 17, 300});
    const int64_t steps = lanes ? 1 : one_of<int64_t>({0, 1, 2, 9, 40, 255, 257, 600});
    int64_t columns =
        one_of<int64_t>({0, 1, 2, 3, 9, 16, 64, 65, 130, 1000, 1025, 2100, 4097, 8200});
    while (columns > 1 && rows * steps * columns > 20000) columns = (columns + 1) / 2;
    Call call(b_.nest, rows, steps, columns);
    for (size_t i = 0; i < b_.nest.buffers.size(); ++i) {
      const auto buffer = static_cast<int32_t>(i);
      if (!finishes(buffer))
        call.layout(buffer, any_layout(b_.nest.buffers[i], rows, steps, columns));
    }
    call.scalars({random_value(f64, random_), random_value(i64, random_)});
    const int64_t index_row = below(2) == 0 ? columns : below(100);
    return std::move(call.index(below(1000) - 500, index_row).seed(random_()));
  }

  bool finishes(int32_t buffer) const {
    for (const Store& store : b_.nest.finish) {
      if (store.buffer == buffer) return true;
    }
    return false;
  }

  Steps any_layout(const BufferRef& ref, int64_t rows, int64_t steps, int64_t columns) {
    const int64_t stride = ref.columns == Columns::strided ? one_of<int64_t>({1, 2, 3, -1, -2})
                           : ref.columns == Columns::unit  ? 1
                                                           : 0;
    const int64_t padding = below(3) == 0 ? below(5) : 0;
    const int64_t step = std::max<int64_t>(columns * std::abs(stride), 1) + padding;
    const int64_t row = step * std::max<int64_t>(steps, 1) + (below(3) == 0 ? below(5) : 0);
    // Transposed: columns far apart, rows and steps close.
    if (ref.columns == Columns::strided && below(3) == 0) return {steps, 1, rows * steps + 1};
    if (!ref.written && below(4) == 0) return {below(2) * row, below(2) * step, stride};
    return {below(5) == 0 ? -row : row, below(5) == 0 ? -step : step, stride};
  }

  std::mt19937_64 random_;
  NestBuilder b_;
  std::vector<int32_t> finished_, later_;
};

TEST(TileFuzz, RandomNestsGiveTheDefinedBits) {
  const char* const count = std::getenv("TIDEMARK_FUZZ");
  const int64_t nests = count != nullptr ? std::atoll(count) : 400;
  for (int64_t seed = 1; seed <= nests; ++seed) {
    SCOPED_TRACE(seed);
    const std::string found = RandomCall(static_cast<uint64_t>(seed)).make().differences();
    ASSERT_EQ(found, "");
  }
}

TEST(TileFuzz, CompiledNestsGiveThemToo) {
  const char* const count = std::getenv("TIDEMARK_FUZZ");
  const int64_t nests = count != nullptr ? std::atoll(count) : 400;
  const std::vector<device::Isa> isas = available_isas();
  for (int64_t seed = 1; seed <= nests; ++seed) {
    SCOPED_TRACE(seed);
    const Call call = RandomCall(static_cast<uint64_t>(seed)).make();
    const std::string found =
        call.compiled_differences(isas[static_cast<size_t>(seed) % isas.size()]);
    ASSERT_EQ(found, "");
  }
}

}  // namespace
}  // namespace tidemark
