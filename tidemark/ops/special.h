// Inverse, hyperbolic and special functions of elements, made of the expressions that kernels have.
// The longer recipes are in special.cc.
#pragma once

#include <limits>
#include <numbers>

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/term_ops.h"

namespace tidemark {

// ---- recipes ------------------------------------------------------------------------------------

// The number of bits that are set.
Scalar count_bits(Scalar x);
// The inverse of erf; f32 within 4 ulp, f64 to its last bits.
Scalar inverse_erf(Scalar x);
// log |gamma(x)| and its first two derivatives, computed in f64.
Scalar log_gamma(Scalar x);
Scalar digamma_of(Scalar x);
Scalar trigamma_of(Scalar x);
// The derivative number n of digamma, computed in f64; n is rounded to a whole number.
Scalar polygamma_of(Scalar n, Scalar x);

// ---- one operand --------------------------------------------------------------------------------

inline constexpr UnaryOp acos = {
    .name = "acos",
    .brief = "The angle in [0, pi] whose cosine each element is; NaN outside [-1, 1].",
    .accepts = TypeSet::floats,
    .value = angle_of_cosine,
    .grad = [](Term g, Term x, Term) { return -(g * term::rsqrt(1.0 - x * x)); },
    .sample = {-0.9, 0.9},
    .ulps = 4,
};
inline constexpr UnaryOp acosh = {
    .name = "acosh",
    .brief = "The number from 0 up whose cosh each element is; NaN below 1.",
    .accepts = TypeSet::floats,
    // Of t = x - 1, which keeps the digits near 1. Squares of large elements would overflow.
    .value =
        [](Scalar x) {
          const Scalar t = x - x.like(1);
          const Scalar near = (t + (t * (t + x.like(2))).sqrt()).log1p();
          const Scalar far = x.log() + x.like(std::numbers::ln2);
          const Scalar none = x.like(std::numeric_limits<double>::quiet_NaN());
          return (x < x.like(1)).select(none, (x > x.like(1e9)).select(far, near));
        },
    // By two roots: the square of a large element would overflow.
    .grad = [](Term g, Term x, Term) { return g * term::rsqrt(x - 1.0) * term::rsqrt(x + 1.0); },
    .sample = {1.5, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp asin = {
    .name = "asin",
    .brief = "The angle in [-pi / 2, pi / 2] whose sine each element is; NaN outside [-1, 1].",
    .accepts = TypeSet::floats,
    .value = angle_of_sine,
    .grad = [](Term g, Term x, Term) { return g * term::rsqrt(1.0 - x * x); },
    .sample = {-0.9, 0.9},
    .ulps = 4,
};
inline constexpr UnaryOp asinh = {
    .name = "asinh",
    .brief = "The number whose sinh each element is.",
    .accepts = TypeSet::floats,
    .value =
        [](Scalar x) {
          const Scalar size = x.abs(), one = x.like(1), square = size * size;
          const Scalar near = (size + square / (one + (one + square).sqrt())).log1p();
          const Scalar far = size.log() + x.like(std::numbers::ln2);
          const Scalar result = (size > x.like(1e9)).select(far, near);
          return result.copysign(x);
        },
    // 1 / sqrt(1 + x^2); the square of a large element would overflow.
    .grad = [](Term g, Term x, Term) { return g / term::hypot(x, x.like(1)); },
    .sample = {-8.0, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp atan = {
    .name = "atan",
    .brief = "The angle in [-pi / 2, pi / 2] whose tangent each element is.",
    .accepts = TypeSet::floats,
    .value = angle_of_tangent,
    .grad = [](Term g, Term x, Term) { return g / (x * x + 1.0); },
    .sample = {-8.0, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp atanh = {
    .name = "atanh",
    .brief = "The number whose tanh each element is; NaN outside [-1, 1].",
    .accepts = TypeSet::floats,
    .value =
        [](Scalar x) {
          const Scalar size = x.abs();
          const Scalar result = x.like(0.5) * ((size + size) / (x.like(1) - size)).log1p();
          return result.copysign(x);
        },
    .grad = [](Term g, Term x, Term) { return g / ((1.0 - x) * (x + 1.0)); },
    .sample = {-0.9, 0.9},
    .ulps = 4,
};
inline constexpr UnaryOp bit_count = {
    .name = "bit_count",
    .brief = "The number of bits of each element that are set.",
    .accepts = TypeSet::integers,
    .value = count_bits,
    .no_gradient = "bitwise ops are not differentiable",
};
inline constexpr UnaryOp cosh = {
    .name = "cosh",
    .brief = "Hyperbolic cosine of each element.",
    .accepts = TypeSet::floats,
    // As a product of two roots, one of them halved: exp(|x|) overflows where cosh does not yet.
    .value =
        [](Scalar x) {
          const Scalar root = (x.abs() * x.like(0.5)).exp(), half = root * x.like(0.5);
          return half * root + x.like(0.25) / half / root;
        },
    .grad = [](Term g, Term x, Term) { return g * term::sinh(x); },
    .sample = {-4.0, 4.0},
    .ulps = 8,
};
inline constexpr UnaryOp trigamma = {
    .name = "trigamma",
    .brief = "The second derivative of lgamma at each element.",
    .accepts = TypeSet::floats,
    .value = trigamma_of,
    .grad = [](Term g, Term x, Term) { return g * term::polygamma(x.like(2), x); },
    .sample = {0.5, 8.0},
    .ulps = 8,
};
inline constexpr UnaryOp digamma = {
    .name = "digamma",
    .brief = "The derivative of lgamma at each element; NaN at -1, -2, ...",
    .accepts = TypeSet::floats,
    .value = digamma_of,
    .grad = [](Term g, Term x, Term) { return g * trigamma(x); },
    .sample = {2.0, 8.0},
    .ulps = 16,
};
inline constexpr UnaryOp erfinv = {
    .name = "erfinv",
    .brief = "The number whose erf each element is; NaN outside [-1, 1].",
    .accepts = TypeSet::floats,
    .value = inverse_erf,
    .grad = [](Term g, Term,
               Term y) { return g * (0.5 / std::numbers::inv_sqrtpi) * term::exp(y * y); },
    .sample = {-0.95, 0.95},
    .ulps = 8,
};
inline constexpr UnaryOp lgamma = {
    .name = "lgamma",
    .brief = "The logarithm of |gamma(x)| of each element.",
    .accepts = TypeSet::floats,
    .value = log_gamma,
    .grad = [](Term g, Term x, Term) { return g * digamma(x); },
    .sample = {8.0, 30.0},
    .ulps = 16,
};
inline constexpr UnaryOp log10 = {
    .name = "log10",
    .brief = "Logarithm to base 10 of each element.",
    .accepts = TypeSet::floats,
    .value = [](Scalar x) { return x.log10(); },
    .grad = [](Term g, Term x, Term) { return g / (x * std::numbers::ln10); },
    .sample = {0.1, 8.0},
    .ulps = 4,
};
inline constexpr UnaryOp sinh = {
    .name = "sinh",
    .brief = "Hyperbolic sine of each element.",
    .accepts = TypeSet::floats,
    // Small elements by expm1, which keeps their digits; large ones as a product of two roots, one
    // of them halved, which overflows only where sinh does.
    .value =
        [](Scalar x) {
          const Scalar size = x.abs(), less_one = size.expm1();
          const Scalar near = x.like(0.5) * (less_one + less_one / (less_one + x.like(1)));
          const Scalar root = (size * x.like(0.5)).exp();
          const Scalar result = (size > x.like(20)).select(root * x.like(0.5) * root, near);
          return result.copysign(x);
        },
    .grad = [](Term g, Term x, Term) { return g * cosh(x); },
    .sample = {-4.0, 4.0},
    .ulps = 8,
};

// ---- two operands -------------------------------------------------------------------------------

inline constexpr BinaryOp copysign = {
    .name = "copysign",
    .brief = "The size of the first element with the sign of the second; -0 counts as negative.",
    .accepts = TypeSet::floats,
    .value = [](Scalar a, Scalar b) { return a.copysign(b); },
    .grad_a = [](Term g, Term a, Term b,
                 Term) { return g * term::sign(a) * term::copysign(b.like(1), b); },
    .grad_b = [](Term g, Term, Term, Term) { return g.like(0); },
};
// At (0, 0) the slopes are 0.
inline constexpr BinaryOp hypot = {
    .name = "hypot",
    .brief = "sqrt(a * a + b * b) without overflow.",
    .accepts = TypeSet::floats,
    .value =
        [](Scalar a, Scalar b) {
          const Scalar x = a.abs(), y = b.abs();
          const Scalar longer = x.maximum(y), ratio = x.minimum(y) / longer;
          const Scalar length = longer * (a.like(1) + ratio * ratio).sqrt();
          const Scalar none = longer == a.like(0);
          const Scalar endless = (x == x.infinity()) | (y == y.infinity());
          return endless.select(x.infinity(), none.select(a.like(0), length));
        },
    .grad_a = [](Term g, Term a, Term,
                 Term y) { return g * (a / term::where(term::equal(y, y.like(0)), y.like(1), y)); },
    .grad_b = [](Term g, Term, Term b,
                 Term y) { return g * (b / term::where(term::equal(y, y.like(0)), y.like(1), y)); },
    .ulps = 4,
    .commutes = true,
};
// a - b, and 0 for equal infinities.
inline Term difference(Term a, Term b) {
  const Term apart = term::where(term::equal(a, b), a - a, a.like(0));  // NaN for equal infinities.
  return term::where(term::equal(apart, apart), a - b, a.like(0));
}
// The larger element is taken out of the sum.
inline constexpr BinaryOp logaddexp = {
    .name = "logaddexp",
    .brief = "log(exp(a) + exp(b)) without overflow.",
    .accepts = TypeSet::floats,
    .value =
        [](Scalar a, Scalar b) {
          const Scalar apart = (a == b).select(a.like(0), a.like(0) - (a - b).abs());
          return a.maximum(b) + apart.exp().log1p();
        },
    .grad_a = [](Term g, Term a, Term b, Term) { return g * term::sigmoid(difference(a, b)); },
    .grad_b = [](Term g, Term a, Term b, Term) { return g * term::sigmoid(difference(b, a)); },
    .sample = {0.5, 8.0},
    .ulps = 6,
    .commutes = true,
};
// A function of whole n has no slope by n; it counts as 0.
inline constexpr BinaryOp polygamma = {
    .name = "polygamma",
    .brief = "Derivative number a of digamma at b; a is rounded to a whole number from 0 up.",
    .accepts = TypeSet::floats,
    .value = polygamma_of,
    .grad_a = [](Term g, Term, Term, Term) { return g.like(0); },
    .grad_b = [](Term g, Term a, Term b, Term) { return g * term::polygamma(a + 1.0, b); },
    .sample = {1.0, 8.0},
    .ulps = 64,
};
inline constexpr BinaryOp xlogy = {
    .name = "xlogy",
    .brief = "a * log(b), and 0 where a is 0, unless b is NaN.",
    .accepts = TypeSet::floats,
    .value = [](Scalar a,
                Scalar b) { return ((a == a.like(0)) & (b == b)).select(a.like(0), a * b.log()); },
    .grad_a = [](Term g, Term, Term b, Term) { return g * term::log(b); },
    .grad_b = [](Term g, Term a, Term b, Term) { return g * a / b; },
    .sample = {0.1, 8.0},
    .ulps = 6,
};

// ---- all of them --------------------------------------------------------------------------------

inline constexpr const UnaryOp* kSpecialUnaryOps[] = {&acos,   &acosh,     &asin, &asinh,   &atan,
                                                      &atanh,  &bit_count, &cosh, &digamma, &erfinv,
                                                      &lgamma, &log10,     &sinh, &trigamma};
inline constexpr const BinaryOp* kSpecialBinaryOps[] = {&copysign, &hypot, &logaddexp, &polygamma,
                                                        &xlogy};

}  // namespace tidemark
