#include "tests/unit/emit/naive.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "tidemark/base/error.h"
#include "tidemark/loops/divmod.h"
#include "tidemark/loops/math.h"

namespace tidemark::testing {
namespace {

template <class T>
T low(uint64_t word) {
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
  return value;
}
template <class T>
uint64_t word(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  return bits;
}

template <class T>
T float_op(ExprOp op, T a, T b, T c) {
  constexpr bool single = sizeof(T) == 4;
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
      return math::float_floor_divide(a, b);
    case ExprOp::remainder:
      return math::float_remainder(a, b);
    case ExprOp::minimum:
      if (std::isnan(a)) return a;
      return a < b ? a : b;
    case ExprOp::maximum:
      if (std::isnan(a)) return a;
      return a > b ? a : b;
    case ExprOp::copysign:
      return std::copysign(a, b);
    case ExprOp::fma:
      return std::fma(a, b, c);
    case ExprOp::negate:
      return std::copysign(a, std::signbit(a) ? T{1} : T{-1});
    case ExprOp::absolute:
      return std::fabs(a);
    case ExprOp::sign:
      if (std::isnan(a)) return a;
      return static_cast<T>(a > 0 ? 1 : a < 0 ? -1 : 0);
    case ExprOp::sqrt:
      return std::sqrt(a);
    case ExprOp::floor:
      return std::floor(a);
    case ExprOp::ceil:
      return std::ceil(a);
    case ExprOp::round:
      return std::nearbyint(a);
    case ExprOp::trunc:
      return std::trunc(a);
#define TIDEMARK_CASE(name)       \
  case ExprOp::name:              \
    if constexpr (single)         \
      return math::name##_f32(a); \
    else                          \
      return math::name##_f64(a)
      TIDEMARK_CASE(exp);
      TIDEMARK_CASE(expm1);
      TIDEMARK_CASE(log);
      TIDEMARK_CASE(log1p);
      TIDEMARK_CASE(log2);
      TIDEMARK_CASE(log10);
      TIDEMARK_CASE(sin);
      TIDEMARK_CASE(cos);
      TIDEMARK_CASE(tanh);
      TIDEMARK_CASE(erf);
      TIDEMARK_CASE(erfc);
#undef TIDEMARK_CASE
    case ExprOp::power:
      if constexpr (single)
        return math::power_f32(a, b);
      else
        return math::power_f64(a, b);
    default:
      throw InternalError("not an op of floats");
  }
}

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return exponent % 2 == 0 ? 1 : static_cast<T>(-1);
    return 0;
  }
  __extension__ typedef unsigned __int128 Wide;
  Wide result = 1;
  Wide square = static_cast<Wide>(base);
  for (T left = exponent; left != 0; left = static_cast<T>(left / 2)) {
    if (left % 2 != 0) result = static_cast<uint64_t>(result * square);
    square = static_cast<uint64_t>(square * square);
  }
  return static_cast<T>(result);
}

// In 128 bits nothing overflows, and converting back wraps.
template <class T>
T integer_op(ExprOp op, T narrow_a, T narrow_b) {
  __extension__ typedef __int128 Wide;
  const Wide a = narrow_a;
  const Wide b = narrow_b;
  const int width = sizeof(T) * 8;
  switch (op) {
    case ExprOp::add:
      return static_cast<T>(a + b);
    case ExprOp::subtract:
      return static_cast<T>(a - b);
    case ExprOp::multiply:
      return static_cast<T>(a * b);
    case ExprOp::floor_divide: {
      if (b == 0) return 0;
      Wide quotient = a / b;
      if (quotient * b != a && (a < 0) != (b < 0)) --quotient;
      return static_cast<T>(quotient);
    }
    case ExprOp::remainder: {
      if (b == 0) return 0;
      Wide left = a % b;
      if (left != 0 && (left < 0) != (b < 0)) left += b;
      return static_cast<T>(left);
    }
    case ExprOp::minimum:
      return static_cast<T>(std::min(a, b));
    case ExprOp::maximum:
      return static_cast<T>(std::max(a, b));
    case ExprOp::power:
      return integer_power(narrow_a, narrow_b);
    case ExprOp::negate:
      return static_cast<T>(-a);
    case ExprOp::absolute:
      return static_cast<T>(a < 0 ? -a : a);
    case ExprOp::sign:
      return static_cast<T>(a < 0 ? -1 : a > 0 ? 1 : 0);
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round:
    case ExprOp::trunc:
      return narrow_a;
    case ExprOp::bit_and:
      return static_cast<T>(a & b);
    case ExprOp::bit_or:
      return static_cast<T>(a | b);
    case ExprOp::bit_xor:
      return static_cast<T>(a ^ b);
    case ExprOp::bit_not:
      return static_cast<T>(~a);
    case ExprOp::shift_left:
      return b < 0 || b >= width ? T{0} : static_cast<T>(a << static_cast<int>(b));
    case ExprOp::shift_right:
      return static_cast<T>(a >> (b < 0 || b >= width ? width : static_cast<int>(b)));
    default:
      throw InternalError("not an op of integers");
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

bool bool_op(ExprOp op, bool a, bool b) {
  switch (op) {
    case ExprOp::minimum:
    case ExprOp::bit_and:
      return a && b;
    case ExprOp::maximum:
    case ExprOp::bit_or:
      return a || b;
    case ExprOp::bit_xor:
      return a != b;
    case ExprOp::bit_not:
      return !a;
    default:
      throw InternalError("not an op of bool");
  }
}

template <class R>
R saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<R>::min())) {
    return std::numeric_limits<R>::min();
  }
  if (value >= std::ldexp(1.0, std::numeric_limits<R>::digits)) {
    return std::numeric_limits<R>::max();
  }
  return static_cast<R>(value);
}

template <class R, class A>
uint64_t cast_number(A value) {
  if constexpr (std::is_same_v<R, A>) {
    return word(value);
  } else if constexpr (std::is_same_v<A, float16> || std::is_same_v<A, bfloat16>) {
    return cast_number<R>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<R, float16> || std::is_same_v<R, bfloat16>) {
    return word(R(static_cast<float>(value)));
  } else if constexpr (std::is_same_v<R, bool>) {
    return word(value != 0);
  } else if constexpr (std::is_integral_v<R> && std::is_floating_point_v<A>) {
    return word(saturate<R>(value));
  } else {
    return word(static_cast<R>(value));
  }
}

uint64_t cast(DType dtype, DType operand, uint64_t a) {
  return visit_dtype(dtype, [&](auto to) {
    return visit_dtype(
        operand, [&](auto from) { return cast_number<decltype(to)>(low<decltype(from)>(a)); });
  });
}

bool is_comparison(ExprOp op) {
  return op == ExprOp::equal || op == ExprOp::not_equal || op == ExprOp::less ||
         op == ExprOp::less_equal;
}

ExprOp combining_op(Monoid monoid) {
  switch (monoid) {
    case Monoid::sum:
      return ExprOp::add;
    case Monoid::product:
      return ExprOp::multiply;
    case Monoid::minimum:
      return ExprOp::minimum;
    default:
      return ExprOp::maximum;
  }
}

class NaiveNest {
 public:
  NaiveNest(const Nest& nest, const KernelArgs& args)
      : nest_(nest),
        args_(args),
        lanes_(nest.order == Nest::Order::lanes),
        known_(nest.exprs.size()) {}

  void run() {
    for (row_ = 0; row_ < args_.rows; ++row_) {
      cells_.clear();
      for (const Sweep& sweep : nest_.sweeps) run_sweep(sweep);
      const int64_t finishes = lanes_ ? 1 : args_.columns;
      for (step_ = 0, column_ = 0; column_ < finishes; ++column_) {
        ++element_;
        store(nest_.finish);
      }
    }
  }

 private:
  void run_sweep(const Sweep& sweep) {
    // Values to fold, by cell and by place (the column where cells are per column).
    std::map<std::pair<int, int64_t>, std::vector<uint64_t>> values;
    for (const Fold& fold : sweep.folds) {
      for (int64_t place = 0; place < (lanes_ ? 1 : args_.columns); ++place) {
        values[{fold.cell, place}];
      }
    }
    for (step_ = 0; step_ < args_.steps; ++step_) {
      for (column_ = 0; column_ < args_.columns; ++column_) {
        ++element_;
        for (const Fold& fold : sweep.folds) {
          values[{fold.cell, lanes_ ? 0 : column_}].push_back(evaluate(fold.expr));
        }
        store(sweep.stores);
      }
    }
    for (const Fold& fold : sweep.folds) {
      for (int64_t place = 0; place < (lanes_ ? 1 : args_.columns); ++place) {
        cells_[{fold.cell, place}] = fold_all(fold, values[{fold.cell, place}]);
      }
    }
  }

  void store(const std::vector<Store>& stores) {
    std::vector<uint64_t> values;
    for (const Store& s : stores) values.push_back(evaluate(s.expr));
    for (size_t i = 0; i < stores.size(); ++i) {
      write_element(nest_.buffers[stores[i].buffer].dtype, at(stores[i].buffer), values[i]);
    }
  }

  std::byte* at(int32_t buffer) const {
    const Movement& by = args_.movements[buffer];
    return args_.buffers[buffer] + row_ * by.row + step_ * by.step + column_ * by.column;
  }

  uint64_t evaluate(int32_t expr) {
    if (known_[expr].element != element_) known_[expr] = {element_, evaluate_anew(expr)};
    return known_[expr].value;
  }

  uint64_t evaluate_anew(int32_t expr) {
    const Expr& e = nest_.exprs[expr];
    switch (e.op) {
      case ExprOp::load:
        return read_element(e.dtype, at(e.ref));
      case ExprOp::constant:
        return e.bits;
      case ExprOp::scalar:
        return args_.scalars[e.ref];
      case ExprOp::cell:
        return cells_.at({e.ref, lanes_ ? 0 : column_});
      case ExprOp::index:
        return word(lanes_ ? args_.index_base + row_ * args_.index_row + column_
                           : args_.index_base + step_);
      default: {
        uint64_t in[3] = {};
        DType operand = f32;
        for (int k = 0; k < 3 && e.in[k] >= 0; ++k) {
          in[k] = evaluate(e.in[k]);
          operand = nest_.exprs[e.in[k]].dtype;
        }
        return naive_apply(e.op, e.dtype, operand, in[0], in[1], in[2]);
      }
    }
  }

  uint64_t fold_all(const Fold& fold, const std::vector<uint64_t>& values) {
    const DType dtype = nest_.exprs[fold.expr].dtype;
    const uint64_t identity = identity_bits(fold.monoid, dtype);
    const auto combine = [&](uint64_t a, uint64_t b) {
      return naive_apply(combining_op(fold.monoid), dtype, dtype, a, b, 0);
    };
    const size_t block = lanes_ ? 4096 : 256;
    std::vector<uint64_t> results;
    for (size_t begin = 0; begin < values.size(); begin += block) {
      const size_t end = std::min(begin + block, values.size());
      if (!lanes_) {
        uint64_t result = identity;
        for (size_t i = begin; i < end; ++i) result = combine(result, values[i]);
        results.push_back(result);
        continue;
      }
      std::vector<uint64_t> lane(64, identity);
      for (size_t i = begin; i < end; ++i) {
        lane[(i - begin) % 64] = combine(lane[(i - begin) % 64], values[i]);
      }
      for (size_t half : {32, 16, 8, 4, 2, 1}) {
        for (size_t j = 0; j < half; ++j) lane[j] = combine(lane[j], lane[j + half]);
      }
      results.push_back(lane[0]);
    }
    if (results.empty()) return identity;
    // The largest power of two of blocks on the left, the others on the right.
    const std::function<uint64_t(size_t, size_t)> tree = [&](size_t begin, size_t count) {
      if (count == 1) return results[begin];
      size_t left = 1;
      while (left * 2 < count) left *= 2;
      const uint64_t a = tree(begin, left);
      return combine(a, tree(begin + left, count - left));
    };
    return tree(0, results.size());
  }

  const Nest& nest_;
  const KernelArgs& args_;
  bool lanes_;
  int64_t row_ = 0, step_ = 0, column_ = 0;
  std::map<std::pair<int, int64_t>, uint64_t> cells_;
  // What each expression was when last evaluated.
  struct Known {
    int64_t element = 0;
    uint64_t value = 0;
  };
  int64_t element_ = 0;
  std::vector<Known> known_;
};

}  // namespace

uint64_t naive_apply(ExprOp op, DType dtype, DType operand, uint64_t a, uint64_t b, uint64_t c) {
  if (op == ExprOp::cast) return cast(dtype, operand, a);
  if (op == ExprOp::select) return (a & 0xff) != 0 ? b : c;
  return visit_dtype(operand, [&](auto zero) -> uint64_t {
    using T = decltype(zero);
    if constexpr (std::is_arithmetic_v<T>) {
      if (is_comparison(op)) return word(compare(op, low<T>(a), low<T>(b)));
    }
    if constexpr (std::is_same_v<T, bool>) {
      return word(bool_op(op, low<bool>(a), low<bool>(b)));
    } else if constexpr (std::is_floating_point_v<T>) {
      return word(float_op(op, low<T>(a), low<T>(b), low<T>(c)));
    } else if constexpr (std::is_integral_v<T>) {
      return word(integer_op(op, low<T>(a), low<T>(b)));
    } else {
      throw InternalError("no arithmetic in low precision");
    }
  });
}

void naive_run(const Nest& nest, const KernelArgs& args) { NaiveNest(nest, args).run(); }

bool same(DType dtype, uint64_t a, uint64_t b) {
  const auto is_nan = [&](uint64_t bits) {
    const uint64_t magnitude = bits & (~uint64_t{0} >> (65 - 8 * size_of(dtype)));
    switch (dtype) {
      case f16:
        return magnitude > 0x7c00;
      case bf16:
        return magnitude > 0x7f80;
      case f32:
        return magnitude > 0x7f800000;
      case f64:
        return magnitude > 0x7ff0000000000000;
      default:
        return false;
    }
  };
  return a == b || (is_nan(a) && is_nan(b));
}

uint64_t read_element(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(size_of(dtype)));
  return bits;
}

void write_element(DType dtype, std::byte* at, uint64_t bits) {
  std::memcpy(at, &bits, static_cast<size_t>(size_of(dtype)));
}

std::vector<uint64_t> special_values(DType dtype) {
  std::vector<uint64_t> result;
  const auto floats = [&](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    for (const T value : {T{0},
                          T{1},
                          T(0.5),
                          T(1.5),
                          T(2.5),
                          T(2),
                          T(3),
                          T(0.1),
                          T(10),
                          T(87),
                          T(88.8),
                          T(100),
                          T(1e-3),
                          T(254.9),
                          T(256),
                          T(2147483648.0),
                          T(4294967296.0),
                          T(9.3e18),
                          Limits::min(),
                          Limits::denorm_min(),
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN(),
                          T(65519),
                          T(65520),
                          T(6e-8)}) {
      result.push_back(word(value));
      result.push_back(word(-value));
    }
  };
  // Those that the dtype can tell apart, and their negatives: 127 and 128 are the ends of i8, 255
  // that of u8, and so on.
  const auto integers = [&] {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size_of(dtype));
    for (const uint64_t value : {0ULL,
                                 1ULL,
                                 2ULL,
                                 3ULL,
                                 7ULL,
                                 31ULL,
                                 64ULL,
                                 127ULL,
                                 128ULL,
                                 255ULL,
                                 256ULL,
                                 32767ULL,
                                 32768ULL,
                                 65537ULL,
                                 16777217ULL,
                                 2147483647ULL,
                                 2147483648ULL,
                                 4294967297ULL,
                                 9007199254740993ULL,
                                 9223372036854775807ULL,
                                 9223372036854775808ULL}) {
      if (value > mask) break;
      result.push_back(value);
      result.push_back((~value + 1) & mask);
    }
  };
  switch (dtype) {
    case f32:
      floats(float{});
      break;
    case f64:
      floats(double{});
      break;
    case f16:
      return {0,     0x8000, 0x3c00, 0xbc00, 1,      0x8001, 0x3ff,
              0x400, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x5bff};
    case bf16:
      return {0,    0x8000, 0x3f80, 0xbf80, 1,      0x8001, 0x7f,
              0x80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x4f00};
    case boolean:
      return {0, 1};
    default:
      integers();
  }
  return result;
}

uint64_t random_value(DType dtype, std::mt19937_64& random) {
  static const std::vector<std::vector<uint64_t>> specials = [] {
    std::vector<std::vector<uint64_t>> result;
    for (int i = 0; i < kDTypes; ++i) result.push_back(special_values(static_cast<DType>(i)));
    return result;
  }();
  const std::vector<uint64_t>& special = specials[static_cast<int>(dtype)];
  if (random() % 16 == 0) return special[random() % special.size()];
  const double number = std::uniform_real_distribution<double>(-4, 4)(random);
  if (dtype == boolean) return random() % 2;
  if (is_float(dtype)) return cast(dtype, f64, word(number));
  return cast(dtype, i64, word(static_cast<int64_t>(number * 5)));
}

}  // namespace tidemark::testing
