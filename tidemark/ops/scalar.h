// The value of one element of a pointwise op, written once for all emitters.
//
// It is a function on Scalars. Calling it with recording Scalars yields a Recipe, a list of
// expressions. Kernels are compiled from the Recipe, and the reference interpreter evaluates it by
// itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/loops/nest.h"

namespace tidemark {

// Expressions whose loads name operands by number.
struct Recipe {
  std::vector<Expr> exprs;
  int32_t result = -1;
};

class Scalar {
 public:
  Scalar(Recipe& recipe, int32_t id) : recipe_(&recipe), id_(id) {}

  DType dtype() const { return recipe_->exprs[static_cast<size_t>(id_)].dtype; }
  int32_t id() const { return id_; }

  // A constant in this scalar's dtype.
  Scalar like(double value) const;
  Scalar infinity() const;
  // A constant of an integer dtype, all bits of which are given.
  Scalar whole(int64_t value) const;

  Scalar cast(DType dtype) const;
  Scalar unary(ExprOp op) const { return make(op, dtype(), {id_, -1, -1}); }
  Scalar binary(ExprOp op, Scalar other) const { return make(op, dtype(), {id_, other.id_, -1}); }
  Scalar compare(ExprOp op, Scalar other) const {
    return make(op, DType::boolean, {id_, other.id_, -1});
  }

  Scalar exp() const { return unary(ExprOp::exp); }
  Scalar expm1() const { return unary(ExprOp::expm1); }
  Scalar log() const { return unary(ExprOp::log); }
  Scalar log1p() const { return unary(ExprOp::log1p); }
  Scalar log2() const { return unary(ExprOp::log2); }
  Scalar log10() const { return unary(ExprOp::log10); }
  Scalar sin() const { return unary(ExprOp::sin); }
  Scalar cos() const { return unary(ExprOp::cos); }
  Scalar tanh() const { return unary(ExprOp::tanh); }
  Scalar erf() const { return unary(ExprOp::erf); }
  Scalar erfc() const { return unary(ExprOp::erfc); }
  Scalar sqrt() const { return unary(ExprOp::sqrt); }
  Scalar abs() const { return unary(ExprOp::absolute); }
  Scalar sign() const { return unary(ExprOp::sign); }
  Scalar floor() const { return unary(ExprOp::floor); }
  Scalar ceil() const { return unary(ExprOp::ceil); }
  Scalar round() const { return unary(ExprOp::round); }
  Scalar floor_divide(Scalar other) const { return binary(ExprOp::floor_divide, other); }
  Scalar remainder(Scalar other) const { return binary(ExprOp::remainder, other); }
  Scalar pow(Scalar other) const { return binary(ExprOp::power, other); }
  Scalar copysign(Scalar sign) const { return binary(ExprOp::copysign, sign); }
  // This times the factor plus the addend, rounded once.
  Scalar fma(Scalar factor, Scalar addend) const {
    return make(ExprOp::fma, dtype(), {id_, factor.id_, addend.id_});
  }
  Scalar minimum(Scalar other) const { return binary(ExprOp::minimum, other); }
  Scalar maximum(Scalar other) const { return binary(ExprOp::maximum, other); }
  Scalar shift_left(Scalar other) const { return binary(ExprOp::shift_left, other); }
  Scalar shift_right(Scalar other) const { return binary(ExprOp::shift_right, other); }
  // Requires this scalar to be a bool.
  Scalar select(Scalar then, Scalar otherwise) const {
    return make(ExprOp::select, then.dtype(), {id_, then.id_, otherwise.id_});
  }

  Scalar operator-() const { return unary(ExprOp::negate); }
  Scalar operator~() const { return unary(ExprOp::bit_not); }
  friend Scalar operator+(Scalar a, Scalar b) { return a.binary(ExprOp::add, b); }
  friend Scalar operator-(Scalar a, Scalar b) { return a.binary(ExprOp::subtract, b); }
  friend Scalar operator*(Scalar a, Scalar b) { return a.binary(ExprOp::multiply, b); }
  friend Scalar operator/(Scalar a, Scalar b) { return a.binary(ExprOp::divide, b); }
  friend Scalar operator&(Scalar a, Scalar b) { return a.binary(ExprOp::bit_and, b); }
  friend Scalar operator|(Scalar a, Scalar b) { return a.binary(ExprOp::bit_or, b); }
  friend Scalar operator^(Scalar a, Scalar b) { return a.binary(ExprOp::bit_xor, b); }
  friend Scalar operator==(Scalar a, Scalar b) { return a.compare(ExprOp::equal, b); }
  friend Scalar operator!=(Scalar a, Scalar b) { return a.compare(ExprOp::not_equal, b); }
  friend Scalar operator<(Scalar a, Scalar b) { return a.compare(ExprOp::less, b); }
  friend Scalar operator<=(Scalar a, Scalar b) { return a.compare(ExprOp::less_equal, b); }
  friend Scalar operator>(Scalar a, Scalar b) { return b < a; }
  friend Scalar operator>=(Scalar a, Scalar b) { return b <= a; }

 private:
  Scalar make(ExprOp op, DType dtype, std::array<int32_t, 3> in) const;

  Recipe* recipe_;
  int32_t id_;
};

// The angle of the point (x, y), in [-pi, pi]; the signs of both count, those of zeros too.
// Computed in f64, within 3 ulp.
Scalar angle_of(Scalar y, Scalar x);
// The angles whose tangent, sine and cosine x is; f32 within 2.5 ulp, f64 within 4.
Scalar angle_of_tangent(Scalar x);
Scalar angle_of_sine(Scalar x);
Scalar angle_of_cosine(Scalar x);

// Appends an expression and gives its number.
int32_t append(Recipe& recipe, const Expr& expr);

// A number as the bits of a dtype, in the low bytes of a word; floats round to nearest, integers
// must fit.
uint64_t bits_of(double value, DType dtype);
uint64_t bits_of(int64_t value, DType dtype);

}  // namespace tidemark
