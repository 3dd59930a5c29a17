// Fourier transforms, and arithmetic of complex numbers. A complex tensor is a real one whose last
// axis has size 2: the real and the imaginary part. Its bytes are those of a complex array of
// NumPy. Sums, differences, means, products with reals, slices and so on are the plain ops, whose
// axes are best counted from the front. Gradients are pairs too, (dL/d re, dL/d im), as PyTorch
// defines them; JAX's are their conjugates.
#pragma once

#include <vector>

#include "tidemark/calls/ops.h"

namespace tidemark::complex {

// Pairs of a real and an imaginary part, which broadcast.
Tensor make(const Operand& re, const Operand& im, Source at = Source::here());
// Views of one of the parts.
Tensor real(const Operand& z, Source at = Source::here());
Tensor imag(const Operand& z, Source at = Source::here());
Tensor conj(const Operand& z, Source at = Source::here());
// Without overflow; real.
Tensor abs(const Operand& z, Source at = Source::here());
// In (-pi, pi]; real.
Tensor angle(const Operand& z, Source at = Source::here());
Tensor exp(const Operand& z, Source at = Source::here());
Tensor multiply(const Operand& a, const Operand& b, Source at = Source::here());
Tensor divide(const Operand& a, const Operand& b, Source at = Source::here());
// Whether both parts are equal; bool.
Tensor equal(const Operand& a, const Operand& b, Source at = Source::here());
// The product along an axis, pairwise; axes do not count that of the pairs.
Tensor prod(const Operand& z, int64_t axis = -1, Source at = Source::here());
// Of the axes before the pairs: [..., m, k, 2] and [..., k, n, 2] give [..., m, n, 2].
Tensor matmul(const Operand& a, const Operand& b, Source at = Source::here());

}  // namespace tidemark::complex

namespace tidemark::fft {

// Which direction divides by the length: the inverse one, both by its root, or the forward one.
enum class Norm { backward, ortho, forward };

struct AxisOptions {
  std::optional<int64_t> n =
      {};             // The length: longer axes are cut, shorter ones padded with zeros.
  int64_t axis = -1;  // Without the axis of pairs.
  Norm norm = Norm::backward;
};
// Of complex numbers. The length is a number of the program: an open one becomes closed.
Tensor fft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
Tensor ifft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
// Of reals: the n / 2 + 1 complex numbers that determine the others.
Tensor rfft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
// The reals with this transform. Imaginary parts that such a transform has not are ignored.
// Without n, the length is even.
Tensor irfft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());

struct AxesOptions {
  std::vector<int64_t> s = {};     // The length of each axis; none: as they are.
  std::vector<int64_t> axes = {};  // Default: the last ones of `s`, or all.
  Norm norm = Norm::backward;
};
// Along several axes; that of reals is the last one named.
Tensor fftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor ifftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor rfftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor irfftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
// Along the last two unless axes are named.
Tensor fft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor ifft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor rfft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor irfft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());

}  // namespace tidemark::fft
