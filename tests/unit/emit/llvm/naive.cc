#include "naive.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tidemark/loops/divmod.h"
#include "tidemark/loops/math.h"
#include "tidemark/loops/pairwise.h"

namespace tidemark::naive {
namespace {

template <class T>
T get(uint64_t word) {
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
  return value;
}
template <class T>
uint64_t put(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

template <class T>
T saturate(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

uint64_t from_double(double value, DType to);

uint64_t cast(uint64_t word, DType from, DType to) {
  if (from == to) return word;
  switch (from) {
    case f16:
      return cast(put(static_cast<float>(get<float16>(word))), f32, to);
    case bf16:
      return cast(put(static_cast<float>(get<bfloat16>(word))), f32, to);
    case f32:
      return from_double(static_cast<double>(get<float>(word)), to);
    case f64:
      return from_double(get<double>(word), to);
    default:
      break;
  }
  const int64_t value = from == i32   ? get<int32_t>(word)
                        : from == i64 ? get<int64_t>(word)
                                      : static_cast<int64_t>(get<uint8_t>(word));
  switch (to) {
    case f16:
      return put(float16(static_cast<float>(value)));
    case bf16:
      return put(bfloat16(static_cast<float>(value)));
    case f32:
      return put(static_cast<float>(value));
    case f64:
      return put(static_cast<double>(value));
    case i32:
      return put(static_cast<int32_t>(value));
    case i64:
      return put(value);
    case u8:
      return put(static_cast<uint8_t>(value));
    case boolean:
      return put(static_cast<uint8_t>(value != 0));
  }
  return 0;
}

uint64_t from_double(double value, DType to) {
  switch (to) {
    case f16:
      return put(float16(static_cast<float>(value)));
    case bf16:
      return put(bfloat16(static_cast<float>(value)));
    case f32:
      return put(static_cast<float>(value));
    case f64:
      return put(value);
    case i32:
      return put(saturate<int32_t>(value));
    case i64:
      return put(saturate<int64_t>(value));
    case u8:
      return put(saturate<uint8_t>(value));
    case boolean:
      return put(static_cast<uint8_t>(value != 0));
  }
  return 0;
}

template <class T>
T float_op(ExprOp op, T a, T b, T c) {
  namespace m = math;
  constexpr bool is_f32 = sizeof(T) == 4;
#define TIDEMARK_BOTH(name, ...)         \
  [&] {                                  \
    if constexpr (is_f32) {              \
      return m::name##_f32(__VA_ARGS__); \
    } else {                             \
      return m::name##_f64(__VA_ARGS__); \
    }                                    \
  }()
  switch (op) {
    case ExprOp::add:
      return a + b;
    case ExprOp::subtract:
      return a - b;
    case ExprOp::multiply:
      return a * b;
    case ExprOp::divide:
      return a / b;
    case ExprOp::floor_divide:
      return m::float_floor_divide(a, b);
    case ExprOp::remainder:
      return m::float_remainder(a, b);
    case ExprOp::minimum:
      return std::isnan(a) ? a : a < b ? a : b;
    case ExprOp::maximum:
      return std::isnan(a) ? a : a > b ? a : b;
    case ExprOp::power:
      return TIDEMARK_BOTH(power, a, b);
    case ExprOp::fma:
      return std::fma(a, b, c);
    case ExprOp::negate:
      return -a;
    case ExprOp::absolute:
      return std::fabs(a);
    case ExprOp::sign:
      return std::isnan(a) ? a : a > 0 ? T{1} : a < 0 ? T{-1} : T{0};
    case ExprOp::sqrt:
      return std::sqrt(a);
    case ExprOp::floor:
      return std::floor(a);
    case ExprOp::ceil:
      return std::ceil(a);
    case ExprOp::round:
      return std::rint(a);
    case ExprOp::trunc:
      return std::trunc(a);
    case ExprOp::exp:
      return TIDEMARK_BOTH(exp, a);
    case ExprOp::expm1:
      return TIDEMARK_BOTH(expm1, a);
    case ExprOp::log:
      return TIDEMARK_BOTH(log, a);
    case ExprOp::log1p:
      return TIDEMARK_BOTH(log1p, a);
    case ExprOp::sin:
      return TIDEMARK_BOTH(sin, a);
    case ExprOp::cos:
      return TIDEMARK_BOTH(cos, a);
    case ExprOp::tanh:
      return TIDEMARK_BOTH(tanh, a);
    case ExprOp::erf:
      return TIDEMARK_BOTH(erf, a);
    default:
      return T{};
  }
#undef TIDEMARK_BOTH
}

// Wide enough for every integer dtype to be computed without overflow, then cut.
using Wide = __int128;

template <class T>
T integer_op(ExprOp op, T a, T b, bool is_bool) {
  const Wide x = a;
  const Wide y = b;
  constexpr int width = 8 * sizeof(T);
  const auto quotient = [&]() -> Wide {
    if (y == 0) return 0;
    const Wide q = x / y;
    return x % y != 0 && ((x < 0) != (y < 0)) ? q - 1 : q;
  };
  switch (op) {
    case ExprOp::add:
      return static_cast<T>(x + y);
    case ExprOp::subtract:
      return static_cast<T>(x - y);
    case ExprOp::multiply:
      return static_cast<T>(x * y);
    case ExprOp::floor_divide:
      return static_cast<T>(quotient());
    case ExprOp::remainder:
      return y == 0 ? T{0} : static_cast<T>(x - quotient() * y);
    case ExprOp::minimum:
      return a < b ? a : b;
    case ExprOp::maximum:
      return a > b ? a : b;
    case ExprOp::power: {
      if (y < 0) {
        if (x == 1) return 1;
        if (x == -1) return static_cast<T>(y % 2 == 0 ? 1 : -1);
        return 0;
      }
      uint64_t result = 1;
      uint64_t base = static_cast<uint64_t>(a);
      for (uint64_t rest = static_cast<uint64_t>(b); rest != 0; rest >>= 1) {
        if ((rest & 1) != 0) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    }
    case ExprOp::negate:
      return static_cast<T>(-x);
    case ExprOp::absolute:
      return static_cast<T>(x < 0 ? -x : x);
    case ExprOp::sign:
      return static_cast<T>(x > 0 ? 1 : x < 0 ? -1 : 0);
    case ExprOp::bit_and:
      return static_cast<T>(a & b);
    case ExprOp::bit_or:
      return static_cast<T>(a | b);
    case ExprOp::bit_xor:
      return static_cast<T>(a ^ b);
    case ExprOp::bit_not:
      return static_cast<T>(is_bool ? 1 - x : ~x);
    case ExprOp::shift_left:
      return y < 0 || y >= width ? T{0} : static_cast<T>(x << static_cast<int>(y));
    case ExprOp::shift_right:
      if (y < 0 || y >= width) return static_cast<T>(x < 0 ? -1 : 0);
      return static_cast<T>(x >> static_cast<int>(y));
    default:
      return a;
  }
}

template <class T>
bool compare(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::equal:
      return a == b;
    case ExprOp::not_equal:
      return a != b;
    case ExprOp::less:
      return a < b;
    default:
      return a <= b;
  }
}

// Calls f with a zero of the type computed in; bool as uint8_t.
template <class F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case f32:
      return f(float{});
    case f64:
      return f(double{});
    case i32:
      return f(int32_t{});
    case i64:
      return f(int64_t{});
    default:
      return f(uint8_t{});
  }
}

uint64_t apply(ExprOp op, DType operand, uint64_t a, uint64_t b, uint64_t c) {
  return with_type(operand, [&]<class T>(T) -> uint64_t {
    if (op >= ExprOp::equal && op <= ExprOp::less_equal) {
      return put(static_cast<uint8_t>(compare(op, get<T>(a), get<T>(b))));
    }
    if constexpr (std::is_floating_point_v<T>) {
      return put(float_op(op, get<T>(a), get<T>(b), get<T>(c)));
    } else {
      return put(integer_op(op, get<T>(a), get<T>(b), operand == boolean));
    }
  });
}

uint64_t combine(Monoid monoid, DType dtype, uint64_t a, uint64_t b) {
  constexpr ExprOp ops[] = {ExprOp::add, ExprOp::multiply, ExprOp::minimum, ExprOp::maximum};
  return apply(ops[static_cast<int>(monoid)], dtype, a, b, 0);
}

class Evaluator {
 public:
  Evaluator(const Nest& nest, const KernelArgs& args) : nest_(nest), args_(args) {}

  void run() {
    for (row_ = 0; row_ < args_.rows; ++row_) {
      const bool in_lanes = nest_.order == Nest::Order::lanes;
      const int64_t cells_each = in_lanes ? 1 : args_.columns;
      cells_.assign(static_cast<size_t>(nest_.cells), std::vector<uint64_t>());
      for (auto& cell : cells_) cell.resize(static_cast<size_t>(cells_each));
      for (const Sweep& sweep : nest_.sweeps) {
        in_lanes ? lane_sweep(sweep) : column_sweep(sweep);
      }
      step_ = 0;
      for (column_ = 0; column_ < cells_each && nest_.cells > 0; ++column_) {
        std::vector<uint64_t> words;
        for (const Store& s : nest_.finish) words.push_back(value(s.expr));
        for (size_t i = 0; i < words.size(); ++i) store(nest_.finish[i].buffer, words[i]);
      }
    }
  }

 private:
  std::byte* address(int32_t buffer) const {
    const Movement& m = args_.movements[buffer];
    const BufferRef& ref = nest_.buffers[static_cast<size_t>(buffer)];
    const int64_t along = ref.columns == BufferRef::Columns::unit     ? size_of(ref.dtype)
                          : ref.columns == BufferRef::Columns::repeat ? 0
                                                                      : m.column;
    return args_.buffers[buffer] + row_ * m.row + step_ * m.step + column_ * along;
  }
  void store(int32_t buffer, uint64_t word) const {
    const DType dtype = nest_.buffers[static_cast<size_t>(buffer)].dtype;
    std::memcpy(address(buffer), &word, static_cast<size_t>(size_of(dtype)));
  }

  uint64_t value(int32_t number) const {
    const Expr& e = nest_.exprs[static_cast<size_t>(number)];
    const auto in = [&](size_t i) { return e.in[i] < 0 ? 0 : value(e.in[i]); };
    switch (e.op) {
      case ExprOp::load: {
        uint64_t word = 0;
        std::memcpy(&word, address(e.ref), static_cast<size_t>(size_of(e.dtype)));
        return word;
      }
      case ExprOp::constant:
        return e.bits;
      case ExprOp::scalar:
        return args_.scalars[e.ref];
      case ExprOp::cell: {
        const bool in_lanes = nest_.order == Nest::Order::lanes;
        return cells_[static_cast<size_t>(e.ref)][static_cast<size_t>(in_lanes ? 0 : column_)];
      }
      case ExprOp::index:
        return put(args_.index_base +
                   (nest_.order == Nest::Order::lanes ? row_ * args_.index_row + column_ : step_));
      case ExprOp::cast:
        return cast(in(0), nest_.exprs[static_cast<size_t>(e.in[0])].dtype, e.dtype);
      case ExprOp::select:
        return get<uint8_t>(in(0)) != 0 ? in(1) : in(2);
      default:
        return apply(e.op, nest_.exprs[static_cast<size_t>(e.in[0])].dtype, in(0), in(1), in(2));
    }
  }

  // Evaluates everything of the sweep here, then stores, and gives the values to fold.
  std::vector<uint64_t> visit(const Sweep& sweep) const {
    std::vector<uint64_t> stored, folded;
    for (const Store& s : sweep.stores) stored.push_back(value(s.expr));
    for (const Fold& f : sweep.folds) folded.push_back(value(f.expr));
    for (size_t i = 0; i < stored.size(); ++i) store(sweep.stores[i].buffer, stored[i]);
    return folded;
  }
  DType dtype_of(const Fold& fold) const {
    return nest_.exprs[static_cast<size_t>(fold.expr)].dtype;
  }

  void lane_sweep(const Sweep& sweep) {
    const size_t folds = sweep.folds.size();
    std::vector<std::vector<uint64_t>> levels(folds, std::vector<uint64_t>(kPairwiseLevels));
    const int64_t blocks = std::max<int64_t>(1, (args_.columns + kLaneBlock - 1) / kLaneBlock);
    for (step_ = 0; step_ < (nest_.cells == 0 ? args_.steps : 1); ++step_) {
      for (int64_t block = 0; block < blocks; ++block) {
        std::vector<std::vector<uint64_t>> lanes(folds);
        for (size_t k = 0; k < folds; ++k) {
          lanes[k].assign(kLanes, identity_bits(sweep.folds[k].monoid, dtype_of(sweep.folds[k])));
        }
        const int64_t end = std::min(args_.columns, (block + 1) * kLaneBlock);
        for (column_ = block * kLaneBlock; column_ < end; ++column_) {
          const std::vector<uint64_t> values = visit(sweep);
          for (size_t k = 0; k < folds; ++k) {
            uint64_t& lane = lanes[k][static_cast<size_t>(column_ % kLanes)];
            lane = combine(sweep.folds[k].monoid, dtype_of(sweep.folds[k]), lane, values[k]);
          }
        }
        for (size_t k = 0; k < folds; ++k) {
          const auto both = [&](uint64_t a, uint64_t b) {
            return combine(sweep.folds[k].monoid, dtype_of(sweep.folds[k]), a, b);
          };
          for (size_t half = kLanes / 2; half >= 1; half /= 2) {
            for (size_t j = 0; j < half; ++j) lanes[k][j] = both(lanes[k][j], lanes[k][j + half]);
          }
          pairwise_push(levels[k].data(), block, lanes[k][0], both);
          if (block == blocks - 1) {
            cells_[static_cast<size_t>(sweep.folds[k].cell)][0] =
                pairwise_finish(levels[k].data(), blocks, both);
          }
        }
      }
    }
    step_ = 0;
  }

  void column_sweep(const Sweep& sweep) {
    const size_t folds = sweep.folds.size();
    const int64_t blocks = std::max<int64_t>(1, (args_.steps + kStepBlock - 1) / kStepBlock);
    for (column_ = 0; column_ < args_.columns; ++column_) {
      std::vector<std::vector<uint64_t>> levels(folds, std::vector<uint64_t>(kPairwiseLevels));
      for (int64_t block = 0; block < blocks; ++block) {
        std::vector<uint64_t> sums;
        for (const Fold& f : sweep.folds) sums.push_back(identity_bits(f.monoid, dtype_of(f)));
        const int64_t end = std::min(args_.steps, (block + 1) * kStepBlock);
        for (step_ = block * kStepBlock; step_ < end; ++step_) {
          const std::vector<uint64_t> values = visit(sweep);
          for (size_t k = 0; k < folds; ++k) {
            sums[k] = combine(sweep.folds[k].monoid, dtype_of(sweep.folds[k]), sums[k], values[k]);
          }
        }
        for (size_t k = 0; k < folds; ++k) {
          const auto both = [&](uint64_t a, uint64_t b) {
            return combine(sweep.folds[k].monoid, dtype_of(sweep.folds[k]), a, b);
          };
          pairwise_push(levels[k].data(), block, sums[k], both);
          if (block == blocks - 1) {
            cells_[static_cast<size_t>(sweep.folds[k].cell)][static_cast<size_t>(column_)] =
                pairwise_finish(levels[k].data(), blocks, both);
          }
        }
      }
    }
  }

  const Nest& nest_;
  const KernelArgs& args_;
  int64_t row_ = 0, step_ = 0, column_ = 0;
  std::vector<std::vector<uint64_t>> cells_;
};

}  // namespace

void run(const Nest& nest, const KernelArgs& args) { Evaluator(nest, args).run(); }

}  // namespace tidemark::naive
