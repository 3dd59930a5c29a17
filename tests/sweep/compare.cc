#include "tests/sweep/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <sstream>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/ops/reference.h"
#include "tidemark/ops/scan.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::sweep {
namespace {

const ArrayRef& array(const Tensor& tensor) { return detail::array_of(tensor, Source::none()); }

uint64_t bits(const ArrayRef& x, int64_t i) {
  uint64_t word = 0;
  std::memcpy(&word, x.data + i * size_of(x.dtype), static_cast<size_t>(size_of(x.dtype)));
  return word;
}

// A float's bits as a whole number that counts representable values from zero.
int64_t rank_of(uint64_t word, DType dtype) {
  const int64_t width = size_of(dtype) * 8;
  const uint64_t sign = 1ULL << (width - 1);
  return (word & sign) != 0 ? -static_cast<int64_t>(word & (sign - 1)) : static_cast<int64_t>(word);
}

// Half an ulp of 1 in the dtype results are added up in.
double unit(DType dtype) { return dtype == DType::f64 ? 0x1p-53 : 0x1p-24; }

// One ulp of a value as large as this.
double ulp_of(long double value, DType dtype) {
  const int digits = dtype == DType::f16    ? 11
                     : dtype == DType::bf16 ? 8
                     : dtype == DType::f32  ? 24
                                            : 53;
  const int least = dtype == DType::f16   ? -24
                    : dtype == DType::f64 ? -1074
                    : dtype == DType::f32 ? -149
                                          : -133;
  if (value == 0) return std::ldexp(1.0, least);
  const int exponent = std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent - digits + 1, least));
}

std::string shown(const ArrayRef& x, int64_t i) {
  std::ostringstream out;
  out.precision(20);
  if (is_float(x.dtype))
    out << reference::read_float(x, i);
  else
    out << reference::read_integer(x, i);
  out << " (0x" << std::hex << bits(x, i) << ")";
  return out.str();
}

std::string at_element(const ArrayRef& got, const ArrayRef& want, int64_t i,
                       const std::string& why) {
  return cat("element ", i, " of ", TensorType{got.dtype, got.shape}, ": got ", shown(got, i),
             ", want ", shown(want, i), why);
}

// |x| of every float operand, for error bounds.
std::vector<Tensor> magnitudes(const Case& c) {
  std::vector<Tensor> list;
  for (const Tensor& operand : c.operands) {
    Tensor copy = dense_copy(operand);
    for (int64_t i = 0; is_float(copy.dtype()) && i < copy.size(); ++i)
      reference::write(array(copy), i, std::fabs(reference::read_float(array(copy), i)));
    list.push_back(copy);
  }
  return list;
}

int64_t folded_count(const Case& c) {
  int64_t count = 1;
  for (const int64_t axis : c.attrs.read().integers()) count *= c.operands[0].shape()[axis];
  return count;
}

double sum_depth(int64_t n) {
  const double count = static_cast<double>(std::max<int64_t>(1, n));
  return std::min(count, 326.0) + std::ceil(std::log2(count)) + 1;
}

// The largest difference of two finite elements of the operand: what softmax subtracts.
double spread(const Tensor& x) {
  const Tensor dense = dense_copy(x);
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < dense.size(); ++i) {
    const auto value = static_cast<double>(reference::read_float(array(dense), i));
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return high > low ? high - low : 0;
}

// A share of the sum of magnitudes along the transformed axis.
std::vector<double> fourier_bounds(const Case& c, double share) {
  Attrs::Reader read = c.attrs.read();
  const int64_t axis = read.integers()[0];
  read.boolean();
  const double scale = std::fabs(read.number());
  const Tensor x = dense_copy(c.operands[0]);
  const int64_t n = x.shape()[axis];
  const int64_t stride = contiguous_strides(x.shape())[static_cast<size_t>(axis)];
  std::vector<double> list;
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t first = i - i / stride % n * stride - i % 2;
    double total = 0;
    for (int64_t j = 0; j < 2 * n; ++j)
      total += std::fabs(
          static_cast<double>(reference::read_float(array(x), first + j / 2 * stride + j % 2)));
    list.push_back(share * scale * total);
  }
  return list;
}

// The same for all elements of a row.
std::vector<double> real_fourier_bounds(const Case& c, const Tensor& want) {
  const auto spec = ops::RealFourierSpec::from(c.attrs);
  const Tensor x = dense_copy(c.operands[0]);
  const int64_t row = spec.inverse ? 2 * (spec.count / 2 + 1) : spec.count;
  const int64_t made = spec.inverse ? spec.count : 2 * (spec.count / 2 + 1);
  const double share = 24 * unit(want.dtype()) * (2 + std::log2(static_cast<double>(spec.count)));
  std::vector<double> list;
  for (int64_t i = 0; i < want.size(); ++i) {
    double total = 0;
    for (int64_t j = i / made * row; j < (i / made + 1) * row; ++j)
      total += std::fabs(static_cast<double>(reference::read_float(array(x), j)));
    list.push_back(2 * share * std::fabs(spec.scale) * total);
  }
  return list;
}

// How far each element may be from the reference; empty where ulps decide.
std::vector<double> bounds(const Case& c, const Tensor& want) {
  const OpDef& op = *c.op;
  if (!is_float(want.dtype()) || op.gives_index) return {};
  const auto count = static_cast<size_t>(want.size());
  const double u = unit(want.dtype());
  double depth = 0;
  if (op.self == &sum) {
    depth = sum_depth(folded_count(c));
  } else if (op.self == &ops::fourier) {
    // Every sum has all elements of the row, and errors grow with the number of passes; a chirp
    // takes two transforms of up to four times the length.
    const int64_t n = c.operands[0].shape()[c.attrs.read().integers()[0]];
    return fourier_bounds(c, 12 * u * (2 + std::log2(static_cast<double>(n))));
  } else if (op.self == &ops::real_fourier) {
    return real_fourier_bounds(c, want);
  } else if (op.self == &ops::cumsum) {
    depth = static_cast<double>(int64_t{c.operands[0].shape()[c.attrs.read().integer()]});
  } else if (op.self == &ops::distances) {
    const auto terms = static_cast<double>(int64_t{c.operands[0].shape()[-1]});
    std::vector<double> list;
    for (int64_t i = 0; i < want.size(); ++i)
      list.push_back((terms + 4) * u * static_cast<double>(reference::read_float(array(want), i)));
    return list;
  } else if (op.self == &ops::weighted_differences) {
    const int64_t k = c.operands[0].shape()[-1];
    depth = static_cast<double>(std::min<int64_t>(k, 256) + k / 256 + 2);
  } else if (op.family == Family::contract) {
    const Shape& w = c.operands[1].shape();
    const bool is_product = op.self == &ops::matmul;
    const int64_t k = is_product || w[-1] == 0 ? int64_t{w[-2]} : int64_t{w.size() / w[-1]};
    const int64_t blocks = k / 256;
    depth = static_cast<double>(std::min<int64_t>(k, 256) + blocks + 1);
  } else if (op.self == &ops::resample) {
    // Weights have two roundings, and the sum of their sizes is below 2 for each sample of the
    // axis that the result has fewer of.
    const auto spec = ops::ResampleSpec::from(c.attrs);
    const double from = static_cast<double>(int64_t{c.operands[0].shape()[spec.axis]});
    const double to = static_cast<double>(int64_t{want.shape()[spec.axis]});
    double most = 0;
    for (const Tensor& x : magnitudes(c))
      for (int64_t i = 0; i < x.size(); ++i)
        most = std::max(most, static_cast<double>(reference::read_float(array(x), i)));
    const double terms = 8 * std::max(1.0, from / to);
    return std::vector<double>(count, 2 * (terms + 4) * u * most * std::max(1.0, from / to));
  } else if (op.family == Family::linalg) {
    // Relative to the largest element, whose error a factor spreads.
    double most = 0;
    for (int64_t i = 0; i < want.size(); ++i) {
      const double size = std::fabs(static_cast<double>(reference::read_float(array(want), i)));
      if (std::isfinite(size)) most = std::max(most, size);
    }
    const auto n = static_cast<double>(int64_t{c.operands[0].shape()[-2]} + 1);
    return std::vector<double>(count, op.ulps * n * u * most);
  } else if (op.self == &prod) {
    std::vector<double> list;
    for (int64_t i = 0; i < want.size(); ++i)
      list.push_back(static_cast<double>(folded_count(c)) * u *
                     std::fabs(static_cast<double>(reference::read_float(array(want), i))));
    return list;
  } else if (op.family == Family::row) {
    const int64_t n = c.operands[0].shape()[c.attrs.read().integer()];
    // In f64 the reference itself adds up n terms one by one.
    const double own = want.dtype() == DType::f64 ? static_cast<double>(n) : 0;
    const double steps = 2 * op.ulps + sum_depth(n) + spread(c.operands[0]) + own;
    std::vector<double> list;
    for (int64_t i = 0; i < want.size(); ++i) {
      const double y = std::fabs(static_cast<double>(reference::read_float(array(want), i)));
      list.push_back(steps * u * (op.self == &log_softmax ? 1 + y : y));
    }
    return list;
  } else {
    return {};
  }
  std::vector<Tensor> sizes = magnitudes(c);
  if (op.self == &ops::weighted_differences) sizes[2] = negative(sizes[2]);
  const Tensor total = expected(op, sizes, c.attrs);
  std::vector<double> list(count);
  for (size_t i = 0; i < count; ++i)
    list[i] = depth * u *
              static_cast<double>(reference::read_float(array(total), static_cast<int64_t>(i)));
  return list;
}

}  // namespace

std::string difference(const Case& c, const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return cat("got ", detail::type_of(got, Source::none()), ", want ",
               detail::type_of(want, Source::none()));
  const Tensor dense = dense_copy(got);
  const ArrayRef &a = array(dense), &b = array(want);
  const std::vector<double> bound = bounds(c, want);
  const double ulps = c.op->ulps == 0 ? 0 : is_low_precision(want.dtype()) ? 1 : c.op->ulps;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (bits(a, i) == bits(b, i)) continue;
    if (!is_float(want.dtype())) return at_element(a, b, i, "");
    const long double x = reference::read_float(a, i), y = reference::read_float(b, i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!bound.empty()) {
      const double allowed = bound[static_cast<size_t>(i)] + ulp_of(y, want.dtype());
      // An infinity that the reference rounds to must be one; a bound may reach over the edge.
      if (std::fabs(x - y) <= allowed || (std::isinf(allowed) && !std::isnan(x))) continue;
      return at_element(a, b, i, cat(", allowed ", allowed));
    }
    const auto apart =
        static_cast<double>(std::abs(rank_of(bits(a, i), a.dtype) - rank_of(bits(b, i), b.dtype)));
    if (std::isnan(x) || std::isnan(y) || ulps == 0 || apart > ulps)
      return at_element(a, b, i, cat(", ", apart, " ulps apart, allowed ", ulps));
  }
  return {};
}

std::string bit_difference(const Case& c, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return cat("got ", detail::type_of(a, Source::none()), ", want ",
               detail::type_of(b, Source::none()));
  const Tensor x = dense_copy(a), y = dense_copy(b);
  const bool any_nan = (c.op->family != Family::pointwise || c.op->ulps > 0) && is_float(a.dtype());
  for (int64_t i = 0; i < x.size(); ++i) {
    if (bits(array(x), i) == bits(array(y), i)) continue;
    if (any_nan && std::isnan(reference::read_float(array(x), i)) &&
        std::isnan(reference::read_float(array(y), i)))
      continue;
    return at_element(array(x), array(y), i, "");
  }
  return {};
}

}  // namespace tidemark::sweep
