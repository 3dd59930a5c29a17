#include "tidemark/ops/scalar.h"

#include <bit>
#include <cstring>
#include <limits>

namespace tidemark {
namespace {

template <class Value>
uint64_t encode(Value value, DType dtype) {
  uint64_t word = 0;
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_arithmetic_v<T>) {
      element = static_cast<T>(value);
    } else {
      element = T(static_cast<float>(value));
    }
    std::memcpy(&word, &element, sizeof(element));
  });
  return word;
}

}  // namespace

int32_t append(Recipe& recipe, const Expr& expr) {
  recipe.exprs.push_back(expr);
  return static_cast<int32_t>(recipe.exprs.size()) - 1;
}

uint64_t bits_of(double value, DType dtype) { return encode(value, dtype); }
uint64_t bits_of(int64_t value, DType dtype) { return encode(value, dtype); }

Scalar Scalar::like(double value) const {
  return {*recipe_,
          append(*recipe_,
                 {.op = ExprOp::constant, .dtype = dtype(), .bits = bits_of(value, dtype())})};
}

Scalar Scalar::whole(int64_t value) const {
  return {*recipe_,
          append(*recipe_,
                 {.op = ExprOp::constant, .dtype = dtype(), .bits = bits_of(value, dtype())})};
}

Scalar Scalar::infinity() const { return like(std::numeric_limits<double>::infinity()); }

Scalar Scalar::cast(DType to) const {
  if (to == dtype()) return *this;
  return make(ExprOp::cast, to, {id_, -1, -1});
}

Scalar Scalar::make(ExprOp op, DType dtype, std::array<int32_t, 3> in) const {
  return {*recipe_, append(*recipe_, {.op = op, .dtype = dtype, .in = in})};
}

}  // namespace tidemark
