// Complex numbers: c64 and c128, whose bytes are those of std::complex. Sums, products, powers,
// exponentials and so on are the plain functions (td::multiply, td::exp, td::matmul, ...), which
// take complex tensors; here is what only complex numbers have.
#pragma once

#include "tidemark/calls/ops.h"

namespace tidemark {

// From real and imaginary parts, which broadcast: c128 if one of them is f64, else c64.
Tensor complex(const Operand& re, const Operand& im, Source at = Source::here());
// From sizes and angles.
Tensor polar(const Operand& size, const Operand& angle, Source at = Source::here());
// Views of one of the parts. Real tensors are their own real parts, and have imaginary parts of 0.
Tensor real(const Operand& z, Source at = Source::here());
Tensor imag(const Operand& z, Source at = Source::here());
Tensor conj(const Operand& z, Source at = Source::here());
// In (-pi, pi]; of a real number 0 or pi.
Tensor angle(const Operand& z, Source at = Source::here());
// Complex numbers as pairs of reals on a new last axis, and back; views.
Tensor view_as_real(const Operand& z, Source at = Source::here());
Tensor view_as_complex(const Operand& pairs, Source at = Source::here());

}  // namespace tidemark
