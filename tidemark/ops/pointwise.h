// Every elementwise op. The lists at the foot of this file make up the catalogue.
#pragma once

#include <numbers>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/term_ops.h"

namespace tidemark {

// ---- one operand --------------------------------------------------------------------------------

inline constexpr UnaryOp abs = {
    .name = "abs",
    .brief = "Absolute value of each element.",
    .value =
        [](Scalar x) { return is_signed_integer(x.dtype()) || is_float(x.dtype()) ? x.abs() : x; },
    .grad = [](Term g, Term x, Term) { return g * term::sign(x); },
    .twice = Twice::settles,
};
inline constexpr UnaryOp bitwise_invert = {
    .name = "bitwise_invert",
    .brief = "Every bit of each element inverted.",
    .accepts = TypeSet::bits,
    .value = [](Scalar x) { return ~x; },
    .no_gradient = "bitwise ops are not differentiable",
    .twice = Twice::undoes,
};
inline constexpr UnaryOp ceil = {
    .name = "ceil",
    .brief = "The least whole number not below each element.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return x.ceil(); },
    .grad = [](Term g, Term, Term) { return g.like(0); },
    .twice = Twice::settles,
};
inline constexpr UnaryOp cos = {
    .name = "cos",
    .brief = "Cosine of each element, in radians.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.cos(); },
    .grad = [](Term g, Term x, Term) { return -(g * term::sin(x)); },
    .sample = {-8.0, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp erf = {
    .name = "erf",
    .brief = "Error function of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.erf(); },
    .grad = [](Term g, Term x,
               Term) { return g * (std::numbers::inv_sqrtpi * 2) * term::exp(-(x * x)); },
    .sample = {-4.0, 4.0},
    .ulps = 4,
};
inline constexpr UnaryOp erfc = {
    .name = "erfc",
    .brief = "1 - erf(x) of each element, accurate where that is small.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.erfc(); },
    .grad = [](Term g, Term x,
               Term) { return g * (std::numbers::inv_sqrtpi * -2) * term::exp(-(x * x)); },
    .sample = {-4.0, 4.0},
    .ulps = 8,
};
inline constexpr UnaryOp exp = {
    .name = "exp",
    .brief = "e to the power of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.exp(); },
    // Written with y, so that the backward pass keeps the output and not the input.
    .grad = [](Term g, Term, Term y) { return g * y; },
    .sample = {-8.0, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp expm1 = {
    .name = "expm1",
    .brief = "exp(x) - 1 of each element, accurate near zero.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.expm1(); },
    .grad = [](Term g, Term, Term y) { return g * (y + 1.0); },
    .sample = {-4.0, 4.0},
    .ulps = 4,
};
inline constexpr UnaryOp floor = {
    .name = "floor",
    .brief = "The greatest whole number not above each element.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return x.floor(); },
    .grad = [](Term g, Term, Term) { return g.like(0); },
    .twice = Twice::settles,
};
// Written with erfc, which stays accurate where the result is small; 1 + erf would cancel.
inline constexpr UnaryOp gelu = {
    .name = "gelu",
    .brief = "x * (1 + erf(x / sqrt 2)) / 2 of each element.",
    .accepts = TypeSet::floats,
    .value =
        [](Scalar x) { return x * (x.like(0.5) * (x * x.like(-1 / std::numbers::sqrt2)).erfc()); },
    .grad =
        [](Term g, Term x, Term) {
          constexpr double kDensityAtZero = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
          const Term below = term::erfc(x * (-1 / std::numbers::sqrt2)) * 0.5;
          return g * (below + x * (term::exp(x * x * -0.5) * kDensityAtZero));
        },
    .sample = {-4.0, 4.0},
    .ulps = 32,
};
inline constexpr UnaryOp identity = {
    .name = "identity",
    .brief = "A copy of each element, in memory of its own.",
    .value = [](Scalar x) { return x; },
    .grad = [](Term g, Term, Term) { return g; },
};
inline constexpr UnaryOp isfinite = {
    .name = "isfinite",
    .brief = "True where an element is neither infinite nor NaN.",
    .value = [](Scalar x) { return is_float(x.dtype()) ? x.abs() < x.infinity() : x == x; },
    .no_gradient = "the result is bool",
};
inline constexpr UnaryOp isinf = {
    .name = "isinf",
    .brief = "True where an element is an infinity.",
    .value = [](Scalar x) { return is_float(x.dtype()) ? x.abs() == x.infinity() : x != x; },
    .no_gradient = "the result is bool",
};
inline constexpr UnaryOp isnan = {
    .name = "isnan",
    .brief = "True where an element is not a number.",
    .value = [](Scalar x) { return x != x; },
    .no_gradient = "the result is bool",
};
inline constexpr UnaryOp log = {
    .name = "log",
    .brief = "Natural logarithm of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.log(); },
    .grad = [](Term g, Term x, Term) { return g / x; },
    .sample = {0.1, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp log1p = {
    .name = "log1p",
    .brief = "log(1 + x) of each element, accurate near zero.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.log1p(); },
    .grad = [](Term g, Term x, Term) { return g / (x + 1.0); },
    .sample = {-0.9, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp log2 = {
    .name = "log2",
    .brief = "Logarithm to base 2 of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.log2(); },
    .grad = [](Term g, Term x, Term) { return g / (x * std::numbers::ln2); },
    .sample = {0.1, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp logical_not = {
    .name = "logical_not",
    .brief = "True where an element is zero or false.",
    .accepts = TypeSet::booleans,
    .value = [](Scalar x) { return ~x; },
    .no_gradient = "the result is bool",
    .twice = Twice::undoes,
};
inline constexpr UnaryOp negative = {
    .name = "negative",
    .brief = "Each element with its sign changed.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return -x; },
    .grad = [](Term g, Term, Term) { return -g; },
    .twice = Twice::undoes,
};
inline constexpr UnaryOp reciprocal = {
    .name = "reciprocal",
    .brief = "1 / x of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.like(1) / x; },
    .grad = [](Term g, Term, Term y) { return -(g * y * y); },
    .sample = {0.5, 4.0},
};
inline constexpr UnaryOp relu = {
    .name = "relu",
    .brief = "The larger of each element and zero.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return is_unsigned_integer(x.dtype()) ? x : x.like(0).maximum(x); },
    .grad = [](Term g, Term,
               Term y) { return term::where(term::less(y.like(0), y), g, g.like(0)); },
    .twice = Twice::settles,
};
inline constexpr UnaryOp round = {
    .name = "round",
    .brief = "The nearest whole number of each element; halves go to the even one.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return x.round(); },
    .grad = [](Term g, Term, Term) { return g.like(0); },
    .twice = Twice::settles,
};
inline constexpr UnaryOp rsqrt = {
    .name = "rsqrt",
    .brief = "1 / sqrt(x) of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.like(1) / x.sqrt(); },
    .grad = [](Term g, Term, Term y) { return g * -0.5 * (y * y * y); },
    .sample = {0.5, 8.0},
    .ulps = 2,
};
inline constexpr UnaryOp sigmoid = {
    .name = "sigmoid",
    .brief = "1 / (1 + exp(-x)) of each element.",
    .accepts = TypeSet::floats,
    // Written with exp(-|x|), which does not overflow. 0 - |x| and not -|x|: compilers move a
    // negation into the products after it, which changes the sign of a NaN.
    .value =
        [](Scalar x) {
          const Scalar power = (x.like(0) - x.abs()).exp();
          return (x < x.like(0)).select(power, x.like(1)) / (x.like(1) + power);
        },
    .grad = [](Term g, Term, Term y) { return g * (y * (1.0 - y)); },
    .sample = {-8.0, 8.0},
    .ulps = 6,
};
inline constexpr UnaryOp sign = {
    .name = "sign",
    .brief = "-1, 0 or 1 by the sign of each element.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return x.sign(); },
    .grad = [](Term g, Term, Term) { return g.like(0); },
};
inline constexpr UnaryOp silu = {
    .name = "silu",
    .brief = "x * sigmoid(x) of each element.",
    .accepts = TypeSet::floats,
    // exp(-|x|) is computed as a square: it may be denormal or 0 where x times it is not.
    .value =
        [](Scalar x) {
          const Scalar root = ((x.like(0) - x.abs()) * x.like(0.5)).exp();
          const Scalar above = (x < x.like(0)).select(x * root * root, x);
          return above / (x.like(1) + root * root);
        },
    .grad =
        [](Term g, Term x, Term) {
          const Term y = term::sigmoid(x);
          return g * (y * (x * (1.0 - y) + 1.0));
        },
    .sample = {-8.0, 8.0},
    .ulps = 8,
};
inline constexpr UnaryOp sin = {
    .name = "sin",
    .brief = "Sine of each element, in radians.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.sin(); },
    .grad = [](Term g, Term x, Term) { return g * term::cos(x); },
    .sample = {-8.0, 8.0},
    .ulps = 4,
};
// The value is made of max(x, 0) and |x|, whose slopes at 0 do not add up to the function's.
inline constexpr UnaryOp softplus = {
    .name = "softplus",
    .brief = "log(1 + exp(x)) of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.like(0).maximum(x) + (x.like(0) - x.abs()).exp().log1p(); },
    .grad = [](Term g, Term x, Term) { return g * term::sigmoid(x); },
    .sample = {-8.0, 8.0},
    .ulps = 6,
};
inline constexpr UnaryOp sqrt = {
    .name = "sqrt",
    .brief = "Square root of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.sqrt(); },
    .grad = [](Term g, Term, Term y) { return g * 0.5 / y; },
    .sample = {0.5, 8.0},
};
inline constexpr UnaryOp square = {
    .name = "square",
    .brief = "Each element times itself.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar x) { return x * x; },
    .grad = [](Term g, Term x, Term) { return g * 2.0 * x; },
};
inline constexpr UnaryOp tan = {
    .name = "tan",
    .brief = "Tangent of each element, in radians.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.sin() / x.cos(); },
    .grad = [](Term g, Term, Term y) { return g * (y * y + 1.0); },
    .sample = {-1.4, 1.4},
    .ulps = 8,
};
inline constexpr UnaryOp tanh = {
    .name = "tanh",
    .brief = "Hyperbolic tangent of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.tanh(); },
    .grad = [](Term g, Term, Term y) { return g * (1.0 - y * y); },
    .sample = {-4.0, 4.0},
    .ulps = 6,
};

// ---- two operands -------------------------------------------------------------------------------

inline constexpr BinaryOp add = {
    .name = "add",
    .brief = "Sums of elements; logical or of bools.",
    .value = [](Scalar a, Scalar b) { return a.dtype() == DType::boolean ? a | b : a + b; },
    .grad_a = [](Term g, Term, Term, Term) { return g; },
    .grad_b = [](Term g, Term, Term, Term) { return g; },
    .commutes = true,
    .neutral = Neutral::negative_zero,
};
inline constexpr BinaryOp atan2 = {
    .name = "atan2",
    .brief = "The angle of the point (b, a), in radians; the signs of both count.",
    .accepts = TypeSet::floats,
    .value = angle_of,
    .grad_a = [](Term g, Term y, Term x, Term) { return g * x / (x * x + y * y); },
    .grad_b = [](Term g, Term y, Term x, Term) { return -(g * y / (x * x + y * y)); },
};
inline constexpr BinaryOp bitwise_and = {
    .name = "bitwise_and",
    .brief = "Bits set in both elements.",
    .accepts = TypeSet::bits,
    .value = [](Scalar a, Scalar b) { return a & b; },
    .no_gradient = "bitwise ops are not differentiable",
    .commutes = true,
    .neutral = Neutral::all_ones,
};
inline constexpr BinaryOp bitwise_or = {
    .name = "bitwise_or",
    .brief = "Bits set in either element.",
    .accepts = TypeSet::bits,
    .value = [](Scalar a, Scalar b) { return a | b; },
    .no_gradient = "bitwise ops are not differentiable",
    .commutes = true,
    .neutral = Neutral::zero,
};
inline constexpr BinaryOp bitwise_xor = {
    .name = "bitwise_xor",
    .brief = "Bits set in one element but not the other.",
    .accepts = TypeSet::bits,
    .value = [](Scalar a, Scalar b) { return a ^ b; },
    .no_gradient = "bitwise ops are not differentiable",
    .commutes = true,
    .neutral = Neutral::zero,
};
inline constexpr BinaryOp divide = {
    .name = "divide",
    .brief = "Quotients of elements.",
    .accepts = TypeSet::floats,
    .value = [](Scalar a, Scalar b) { return a / b; },
    .grad_a = [](Term g, Term, Term b, Term) { return g / b; },
    .grad_b = [](Term g, Term, Term b, Term y) { return -(g * y / b); },
    .sample = {0.5, 4.0},
    .neutral = Neutral::one,
};
inline constexpr BinaryOp equal = {
    .name = "equal",
    .brief = "True where elements are equal.",
    .value = [](Scalar a, Scalar b) { return a == b; },
    .no_gradient = "the result is bool",
};
inline constexpr BinaryOp floor_divide = {
    .name = "floor_divide",
    .brief = "Quotients rounded down; an integer divided by zero gives 0.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar a, Scalar b) { return a.floor_divide(b); },
    .grad_a = [](Term g, Term, Term, Term) { return g.like(0); },
    .grad_b = [](Term g, Term, Term, Term) { return g.like(0); },
    .sample = {0.5, 4.0},
};
inline constexpr BinaryOp greater = {
    .name = "greater",
    .brief = "True where the first element is greater.",
    .value = [](Scalar a, Scalar b) { return a > b; },
    .no_gradient = "the result is bool",
    .on_complex = OnComplex::needs_order,
};
inline constexpr BinaryOp greater_equal = {
    .name = "greater_equal",
    .brief = "True where the first element is not less.",
    .value = [](Scalar a, Scalar b) { return a >= b; },
    .no_gradient = "the result is bool",
    .on_complex = OnComplex::needs_order,
};
inline constexpr BinaryOp left_shift = {
    .name = "left_shift",
    .brief = "Bits shifted left; counts outside the width give 0.",
    .accepts = TypeSet::integers,
    .value = [](Scalar a, Scalar b) { return a.shift_left(b); },
    .no_gradient = "bitwise ops are not differentiable",
    .sample = {0.0, 7.0},
    .neutral = Neutral::zero,
};
inline constexpr BinaryOp less = {
    .name = "less",
    .brief = "True where the first element is less.",
    .value = [](Scalar a, Scalar b) { return a < b; },
    .no_gradient = "the result is bool",
    .on_complex = OnComplex::needs_order,
};
inline constexpr BinaryOp less_equal = {
    .name = "less_equal",
    .brief = "True where the first element is not greater.",
    .value = [](Scalar a, Scalar b) { return a <= b; },
    .no_gradient = "the result is bool",
    .on_complex = OnComplex::needs_order,
};
inline constexpr BinaryOp logical_and = {
    .name = "logical_and",
    .brief = "True where both elements are true or not zero.",
    .accepts = TypeSet::booleans,
    .value = [](Scalar a, Scalar b) { return a & b; },
    .no_gradient = "the result is bool",
    .commutes = true,
    .neutral = Neutral::one,
};
inline constexpr BinaryOp logical_or = {
    .name = "logical_or",
    .brief = "True where either element is true or not zero.",
    .accepts = TypeSet::booleans,
    .value = [](Scalar a, Scalar b) { return a | b; },
    .no_gradient = "the result is bool",
    .commutes = true,
    .neutral = Neutral::zero,
};
inline constexpr BinaryOp logical_xor = {
    .name = "logical_xor",
    .brief = "True where just one element is true or not zero.",
    .accepts = TypeSet::booleans,
    .value = [](Scalar a, Scalar b) { return a ^ b; },
    .no_gradient = "the result is bool",
    .commutes = true,
    .neutral = Neutral::zero,
};
// Equal elements get half of the gradient each, so that the gradients of maximum and minimum of one
// pair add up to the whole.
inline constexpr BinaryOp maximum = {
    .name = "maximum",
    .brief = "The larger of two elements; NaN if either is.",
    .value = [](Scalar a, Scalar b) { return a.maximum(b); },
    .grad_a = [](Term g, Term a, Term b, Term) { return term::share(g, term::less(b, a), a, b); },
    .grad_b = [](Term g, Term a, Term b, Term) { return term::share(g, term::less(a, b), a, b); },
    .range = &IntegerRange::maximum,
    .on_complex = OnComplex::needs_order,
};
inline constexpr BinaryOp minimum = {
    .name = "minimum",
    .brief = "The smaller of two elements; NaN if either is.",
    .value = [](Scalar a, Scalar b) { return a.minimum(b); },
    .grad_a = [](Term g, Term a, Term b, Term) { return term::share(g, term::less(a, b), a, b); },
    .grad_b = [](Term g, Term a, Term b, Term) { return term::share(g, term::less(b, a), a, b); },
    .range = &IntegerRange::minimum,
    .on_complex = OnComplex::needs_order,
};
inline constexpr BinaryOp multiply = {
    .name = "multiply",
    .brief = "Products of elements; logical and of bools.",
    .value = [](Scalar a, Scalar b) { return a.dtype() == DType::boolean ? a & b : a * b; },
    .grad_a = [](Term g, Term, Term b, Term) { return g * b; },
    .grad_b = [](Term g, Term a, Term, Term) { return g * a; },
    .commutes = true,
    .neutral = Neutral::one,
};
inline constexpr BinaryOp not_equal = {
    .name = "not_equal",
    .brief = "True where elements differ.",
    .value = [](Scalar a, Scalar b) { return a != b; },
    .no_gradient = "the result is bool",
};
inline constexpr BinaryOp pow = {
    .name = "pow",
    .brief = "The first element to the power of the second.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar a, Scalar b) { return a.pow(b); },
    // The slope of x^0 is 0 also at x = 0, and that of 0^y by y is 0. At y = 0 the slope is written
    // y / x, which is 0 without computing a power that overflows, and which has the slope by y that
    // second derivatives need. Each branch computes with 1 where the other one is taken, so that it
    // contributes no slope there.
    .grad_a =
        [](Term g, Term a, Term b, Term) {
          const Term none = a.like(0), one = a.like(1), flat = term::equal(b, b.like(0));
          const Term base = term::where(flat, one, a), at_flat = term::where(flat, a, one);
          const Term divisor = term::where(term::less(at_flat, none), at_flat,
                                           term::where(term::less(none, at_flat), at_flat, one));
          return g * term::where(flat, b / divisor, b * term::pow(base, b - 1.0));
        },
    .grad_b =
        [](Term g, Term a, Term, Term y) {
          return g * y * term::log(term::where(term::equal(a, a.like(0)), a.like(1), a));
        },
    .sample = {0.5, 3.0},
    .ulps = 4,
};
inline constexpr BinaryOp remainder = {
    .name = "remainder",
    .brief = "The remainder of floor_divide; it has the sign of the divisor.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar a, Scalar b) { return a.remainder(b); },
    .grad_a = [](Term g, Term, Term, Term) { return g; },
    .grad_b = [](Term g, Term a, Term b, Term) { return -(g * term::floor_divide(a, b)); },
    .sample = {0.5, 4.0},
    .range =
        [](IntegerRange, IntegerRange divisor) {
          return divisor.least > 0 ? IntegerRange{0, divisor.most - 1} : IntegerRange{};
        },
};
inline constexpr BinaryOp right_shift = {
    .name = "right_shift",
    .brief = "Bits shifted right, keeping the sign; counts outside the width leave only the sign.",
    .accepts = TypeSet::integers,
    .value = [](Scalar a, Scalar b) { return a.shift_right(b); },
    .no_gradient = "bitwise ops are not differentiable",
    .sample = {0.0, 7.0},
    .neutral = Neutral::zero,
};
inline constexpr BinaryOp subtract = {
    .name = "subtract",
    .brief = "Differences of elements.",
    .accepts = TypeSet::numbers,
    .value = [](Scalar a, Scalar b) { return a - b; },
    .grad_a = [](Term g, Term, Term, Term) { return g; },
    .grad_b = [](Term g, Term, Term, Term) { return -g; },
    .neutral = Neutral::zero,
};

// ---- three operands -----------------------------------------------------------------------------

inline constexpr TernaryOp clip = {
    .name = "clip",
    .brief = "Each element limited to [low, high]; NaN stays NaN.",
    .value = [](Scalar x, Scalar low, Scalar high) { return high.minimum(low.maximum(x)); },
    .grad = [](const GradContext& c, int index) -> Term {
      const Term x = c.operands[0], low = c.operands[1], high = c.operands[2];
      const Term none = c.g.like(0);
      // Where low is above high the result is high.
      const Term below = term::less(x, low), above = term::less(high, term::where(below, low, x));
      if (index == 2) return term::where(above, c.g, none);
      const Term inside =
          index == 1 ? term::where(below, c.g, none) : term::where(below, none, c.g);
      return term::where(above, none, inside);
    },
    .range =
        [](IntegerRange x, IntegerRange low, IntegerRange high) {
          return IntegerRange::minimum(high, IntegerRange::maximum(low, x));
        },
    .on_complex = OnComplex::needs_order,
};
inline constexpr TernaryOp where = {
    .name = "where",
    .brief = "The second operand where the first is true, else the third.",
    .first_is_condition = true,
    .value = [](Scalar c, Scalar a, Scalar b) { return c.select(a, b); },
    .grad = [](const GradContext& c, int index) -> Term {
      const Term condition = c.operands[0], none = c.g.like(0);
      if (index == 0) return {};
      return index == 1 ? term::where(condition, c.g, none) : term::where(condition, none, c.g);
    },
    .range = [](IntegerRange, IntegerRange a,
                IntegerRange b) { return IntegerRange::either(a, b); },
};

// ---- all of them --------------------------------------------------------------------------------

inline constexpr const UnaryOp* kUnaryOps[] = {
    &abs,   &bitwise_invert, &ceil,     &cos,        &erf,   &erfc,   &exp,   &expm1,
    &floor, &gelu,           &identity, &isfinite,   &isinf, &isnan,  &log,   &log1p,
    &log2,  &logical_not,    &negative, &reciprocal, &relu,  &round,  &rsqrt, &sigmoid,
    &sign,  &silu,           &sin,      &softplus,   &sqrt,  &square, &tan,   &tanh};
inline constexpr const BinaryOp* kBinaryOps[] = {
    &add,        &atan2,        &bitwise_and, &bitwise_or,    &bitwise_xor, &divide,
    &equal,      &floor_divide, &greater,     &greater_equal, &left_shift,  &less,
    &less_equal, &logical_and,  &logical_or,  &logical_xor,   &maximum,     &minimum,
    &multiply,   &not_equal,    &pow,         &remainder,     &right_shift, &subtract};
inline constexpr const TernaryOp* kTernaryOps[] = {&clip, &where};

}  // namespace tidemark
