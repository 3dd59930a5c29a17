// Arithmetic on Terms, for gradient rules.
#pragma once

#include "tidemark/ir/term.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator-(Term a);
inline Term operator+(Term a, double b) { return a + a.like(b); }
inline Term operator-(Term a, double b) { return a - a.like(b); }
inline Term operator-(double a, Term b) { return b.like(a) - b; }
inline Term operator*(Term a, double b) { return a * a.like(b); }
inline Term operator/(Term a, double b) { return a / a.like(b); }

namespace term {

Term exp(Term x);
Term log(Term x);
Term erfc(Term x);
Term sigmoid(Term x);
Term sin(Term x);
Term cos(Term x);
Term sign(Term x);
Term rsqrt(Term x);
Term sinh(Term x);
Term copysign(Term a, Term b);
Term hypot(Term a, Term b);
Term polygamma(Term n, Term x);
Term pow(Term a, Term b);
Term floor_divide(Term a, Term b);
Term less(Term a, Term b);
Term equal(Term a, Term b);
Term where(Term condition, Term a, Term b);
Term cast(Term x, DType dtype);
Term view_as_real(Term z);
Term view_as_complex(Term pairs);

// g where `wins`, half of it where a and b are equal, else 0.
Term share(Term g, Term wins, Term a, Term b);

Term sum(Term x, const AxisList& axes, bool keep);
Term prod(Term x, const AxisList& axes, bool keep);
Term reshape(Term x, const Shape& shape);
Term transpose(Term x, const AxisList& order);
Term broadcast_to(Term x, const Shape& shape);
Term slice(Term x, const DimList& begins, const DimList& ends, const AxisList& steps);
// The gradient of a broadcast operand: g summed over the axes that were repeated.
Term sum_to(Term g, const Shape& shape);

}  // namespace term
}  // namespace tidemark
